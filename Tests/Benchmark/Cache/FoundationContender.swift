import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// Foundation's `URLCache` without a session.
struct FoundationContender {
    private let memory: URLCache
    private let disk: URLCache

    init(_ folder: URL) {
        memory = URLCache(memoryCapacity: 50_000_000, diskCapacity: 0, diskPath: nil)
        disk = URLCache(memoryCapacity: 0, diskCapacity: 200_000_000, diskPath: folder.path)
    }

    func write(_ count: Int) -> Double {
        Measurement.microseconds(count) { store(count, in: disk, .allowed) }
    }

    func memoryHits(_ count: Int) -> Double {
        store(count, in: memory, .allowedInMemoryOnly)
        return Measurement.microseconds(count) { find(count, in: memory) }
    }

    func diskHits(_ count: Int) -> Double {
        Measurement.microseconds(count) { find(count, in: disk) }
    }

    private func request(_ index: Int) -> URLRequest? {
        URL(string: "http://localhost/answers/\(index)").map { URLRequest(url: $0) }
    }

    private func store(_ count: Int, in cache: URLCache, _ policy: URLCache.StoragePolicy) {
        let fields = ["Content-Type": "text/plain", "Cache-Control": "max-age=3600"]
        for request in (0..<count).lazy.compactMap(request) {
            guard let url = request.url,
                let head = HTTPURLResponse(url: url, statusCode: 200, httpVersion: "HTTP/1.1", headerFields: fields)
            else { continue }
            let answer = CachedURLResponse(response: head, data: Data(count: 1_024), storagePolicy: policy)
            cache.storeCachedResponse(answer, for: request)
        }
    }

    private func find(_ count: Int, in cache: URLCache) {
        for request in (0..<count).lazy.compactMap(request) where cache.cachedResponse(for: request) == nil {
            Report.stop("URLCache has lost an answer")
        }
    }
}
