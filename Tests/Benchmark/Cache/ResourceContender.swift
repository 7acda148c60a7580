import Dispatch
import EasyNetwork
import EasyNetworkResources
import Foundation

/// Decoded resources in the memory of a `ResourceLoader`.
struct ResourceContender {
    private struct Picture: BaseAPIRequest {
        let url: URL
        var api: String { url.absoluteString }
        var options: RequestOptions { RequestOptions(cache: CachePolicy(.cacheOnly, storesOnDisk: false)) }
    }

    private let service: EasyNetworkService
    private let loader: ResourceLoader<Int>
    private let urls: [URL]

    init(_ count: Int) {
        let base = "http://localhost"
        service = EasyNetworkService(
            HostConfiguration(baseURL: URL(string: base)) { $0.cache = NetworkCache(diskBytes: 0) }
        )
        loader = ResourceLoader(queue: NetworkQueue(), service: service, request: { Picture(url: $0) }) {
            $0.body.count
        }
        urls = (0..<count).compactMap { URL(string: "\(base)/pictures/\($0)") }
        let response = NetworkResponse(body: Data(count: 1_024))
        Measurement.wait { [service, loader, urls] in
            for url in urls {
                try? service.store(response, for: Picture(url: url))
                guard (try? await loader.resource(at: url)) == 1_024 else {
                    Report.stop("the loader has lost a resource")
                }
            }
        }
    }

    /// The microseconds of a hit that is asked for and got at once.
    func direct(_ count: Int) -> Double {
        Measurement.microseconds(count) {
            for index in 0..<count where loader.cachedResource(for: urls[index % urls.count]) != 1_024 {
                Report.stop("the loader has lost a resource")
            }
        }
    }

    /// The microseconds of a hit until its task goes on.
    func awaited(_ count: Int) -> Double {
        Measurement.microseconds(count) {
            Measurement.wait { [loader, urls] in
                for index in 0..<count { _ = try? await loader.resource(at: urls[index % urls.count]) }
            }
        }
    }

    /// The microseconds of a hit with a receipt, until all completions have been called.
    func told(_ count: Int) -> Double {
        Measurement.microseconds(count) {
            let group = DispatchGroup()
            for index in 0..<count {
                group.enter()
                loader.load(urls[index % urls.count]) { _ in group.leave() }
            }
            group.wait()
        }
    }
}
