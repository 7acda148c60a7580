import EasyNetworkTesting

@testable import EasyNetwork
@testable import TestSupport

/// A suite of calls with a cache, over a transport and a clock of its own.
protocol CacheSuite: ServiceSuite {
    var fixture: CachedCallFixture { get }
}

/// A scripted server, a cache in memory, and the clock of both.
struct CachedCallFixture: Sendable {
    let clock = ManualClock()
    let transport: InMemoryTransport
    let cache: NetworkCache

    init() {
        transport = InMemoryTransport(clock: clock)
        cache = NetworkCache(diskBytes: 0, clock: clock)
    }
}

extension CacheSuite {
    var clock: ManualClock { fixture.clock }
    var transport: InMemoryTransport { fixture.transport }
    var cache: NetworkCache { fixture.cache }

    func prepare(_ host: inout HostSettings) {
        host.clock = clock
        host.cache = cache
    }

    func service(with cache: NetworkCache) -> EasyNetworkService {
        service { $0.cache = cache }
    }

    /// The text and the source of the response.
    func ask(_ call: CachedCall = CachedCall(), over service: EasyNetworkService? = nil) async throws -> String {
        let response = try await (service ?? self.service()).send(call)
        return "\(try response.text()) \(response.source)"
    }
}

/// A request that is cached by HTTP's rules.
struct CachedCall: BaseAPIRequest {
    var api = "a"
    var method = NetworkService.Method.get
    var headers: [String: String]?
    var cache: CachePolicy? = .http
    var validation: ResponseValidation?
    var interceptors: [any RequestInterceptor] = []
    var options: RequestOptions {
        RequestOptions(cache: cache, interceptors: interceptors, validation: validation)
    }
}

/// A request whose item is the text, first the stored one.
struct CachedText: APIRequest {
    var api = "a"
    var cache: CachePolicy? = CachePolicy(.cacheThenNetwork)
    var options: RequestOptions { RequestOptions(cache: cache) }
    func item(from response: NetworkResponse) throws -> String { try response.text() }
}
