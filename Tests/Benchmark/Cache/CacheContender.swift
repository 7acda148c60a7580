import Dispatch
import EasyNetwork
import Foundation

/// The cache as programs use it, by requests with a policy.
struct CacheContender {
    private struct Answer: APIRequest {
        typealias Item = NetworkResponse
        let index: Int
        let isOnDisk: Bool
        var api: String { "answers/\(index)" }
        var cache: CachePolicy? {
            CachePolicy(.cacheOnly, storesInMemory: !isOnDisk, storesOnDisk: isOnDisk, maximumAge: 3_600)
        }
        var options: RequestOptions { RequestOptions(cache: cache) }
    }

    private let memory: EasyNetworkService
    private let disk: EasyNetworkService
    private let diskCache: NetworkCache
    private let queue = NetworkQueue(maxConcurrentOperationCount: 6)

    init(_ folder: URL) throws {
        func service(_ cache: NetworkCache) -> EasyNetworkService {
            EasyNetworkService(
                HostConfiguration(baseURL: URL(string: "http://localhost")) { $0.cache = cache }
            )
        }
        memory = service(NetworkCache(diskBytes: 0))
        diskCache = try NetworkCache(directory: folder, memoryBytes: 0)
        disk = service(diskCache)
    }

    func write(_ count: Int) -> Double {
        let response = NetworkResponse(headers: ["Content-Type": "text/plain"], body: Data(count: 1_024))
        return Measurement.microseconds(count) {
            for index in 0..<count { try? disk.store(response, for: Answer(index: index, isOnDisk: true)) }
            let cache = diskCache
            Measurement.wait { await cache.flush() }
        }
    }

    func memoryHits(_ count: Int) -> Double {
        let response = NetworkResponse(headers: ["Content-Type": "text/plain"], body: Data(count: 1_024))
        for index in 0..<count { try? memory.store(response, for: Answer(index: index, isOnDisk: false)) }
        return Measurement.microseconds(count) { find(count, isOnDisk: false, memory) }
    }

    func diskHits(_ count: Int) -> Double {
        Measurement.microseconds(count) { find(count, isOnDisk: true, disk) }
    }

    private func find(_ count: Int, isOnDisk: Bool, _ service: EasyNetworkService) {
        Measurement.wait {
            for index in 0..<count {
                let answer = Answer(index: index, isOnDisk: isOnDisk)
                guard (try? await service.cachedResponse(for: answer))?.body.count == 1_024 else {
                    Report.stop("the cache has lost an answer")
                }
            }
        }
    }

    /// The processor's microseconds for each operation with a memory hit, including the queue.
    ///
    /// - Parameter rounds: the rounds of `count` operations in a sample; larger rounds would measure the machine's
    ///   memory.
    func operations(_ count: Int, rounds: Int) -> Double {
        (0..<Measurement.samples).map { _ in
            let times = (0..<rounds).map { _ in
                let operations = (0..<count).map { index in
                    RequestOperation(Answer(index: index, isOnDisk: false), service: memory)
                }
                let start = Measurement.processorTime
                queue.addOperations(operations, waitUntilFinished: true)
                return Measurement.processorTime - start
            }
            return times.reduce(0, +) / Double(count * rounds) * 1_000_000
        }.min() ?? .nan
    }
}
