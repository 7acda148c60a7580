import EasyNetworkTesting
import Foundation

@testable import EasyNetwork
@testable import EasyNetworkResources
@testable import TestSupport

/// A loader of texts whose answers the test sends by hand, or that are numbered: "/a 1", "/a 2".
struct ResourceFixture {
    struct NotDecodable: Error {}

    let transport = SteeredTransport()
    let answers = InMemoryTransport()
    let clock = ManualClock()
    let queue = NetworkQueue(maxConcurrentOperationCount: 100)
    /// What was decoded, in order.
    let decoded = Locked<[String]>([])
    /// What ``first`` was made of.
    let shortened = Locked<[String]>([])
    let loader: ResourceLoader<String>
    /// The first two characters.
    let first: ResourceVariant<String>

    /// - Parameters:
    ///   - isSteered: whether the test sends the answers.
    ///   - decoding: called in each decoding.
    init(
        isSteered: Bool = false,
        maximumLoadCount: Int = 6,
        maximumDecodeCount: Int = 2,
        memoryMaximumAge: TimeInterval? = nil,
        failureLifetime: TimeInterval = 0,
        cache: NetworkCache = NetworkCache(diskBytes: 0),
        policy: CachePolicy = .http,
        queue: NetworkQueue? = nil,
        decoding: @escaping @Sendable (String) -> Void = { _ in }
    ) {
        struct Get: BaseAPIRequest {
            let url: URL
            let policy: CachePolicy
            var api: String { url.absoluteString }
            var options: RequestOptions { RequestOptions(cache: policy) }
        }
        let (decoded, shortened, clock) = (decoded, shortened, clock)
        first = ResourceVariant("first") { text in
            shortened.withLock { $0.append(text) }
            if text.hasPrefix("/long") { throw NotDecodable() }
            return String(text.prefix(2))
        }
        let service = EasyNetworkService(
            HostConfiguration(
                baseURL: URL(string: "https://api.example.com"),
                transport: isSteered ? transport : answers
            ) {
                $0.clock = clock
                $0.retry = .never
                $0.deadlines.idle = nil
                $0.cache = cache
            }
        )
        loader = ResourceLoader(
            queue: queue ?? self.queue,
            service: service,
            maximumLoadCount: maximumLoadCount,
            maximumDecodeCount: maximumDecodeCount,
            memoryMaximumAge: memoryMaximumAge,
            failureLifetime: failureLifetime,
            request: { Get(url: $0, policy: policy) }
        ) { response in
            let text = try response.text()
            decoding(text)
            decoded.withLock { $0.append(text) }
            if text.hasPrefix("/bad") { throw NotDecodable() }
            return text
        }
        let counts = Locked<[String: Int]>([:])
        for (pattern, headers) in [("/*", "max-age=60"), ("/secret", "no-store")] {
            answers.route("GET", pattern) { request in
                let number = counts.withLock { counts in
                    counts[request.path, default: 0] += 1
                    return counts[request.path, default: 0]
                }
                return MockResponse(
                    headers: ["Cache-Control": HTTPHeaders.Value(headers)],
                    body: .data(Data("\(request.path) \(number)".utf8))
                )
            }
        }
        answers.route("GET", "/stall") { _ in .fault(.stall) }
        answers.route("GET", "/lost") { _ in .fault(.close(at: .requestStart)) }
    }

    func url(_ path: String) -> URL {
        URL(string: "https://api.example.com/\(path)") ?? URL(fileURLWithPath: path)
    }

    var paths: [String] { answers.requests.map(\.path) }

    var isIdle: Bool { loader.state.withLock { $0.isIdle } && queue.operationCount == 0 }
}

/// Holds threads until the test lets them go, or a broken test has waited too long.
final class Barrier: Sendable {
    private let semaphore = DispatchSemaphore(value: 0)
    private let counts = Locked((waiting: 0, lost: 0))

    var waitingCount: Int { counts.withLock { $0.waiting } }

    func wait() {
        counts.withLock { $0.waiting += 1 }
        let isInTime = semaphore.wait(timeout: .now() + 240) == .success
        counts.withLock { counts in
            counts.waiting -= 1
            if !isInTime { counts.lost += 1 }
        }
    }

    func letGo(_ count: Int = 1) {
        for _ in 0..<count { semaphore.signal() }
    }
}
