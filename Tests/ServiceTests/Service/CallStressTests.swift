import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("Calls under stress", .serialized, .timeLimit(.minutes(10)))
struct CallStressTests {
    private final class CountedOperation: RequestOperation<Get>, @unchecked Sendable {
        static let alive = Locked(0)

        override init(_ request: Get, service: EasyNetworkService) {
            Self.alive.withLock { $0 += 1 }
            super.init(request, service: service)
        }

        deinit { Self.alive.withLock { $0 -= 1 } }
    }

    /// Tokens that expire quickly.
    private struct Tokens: Authenticator {
        let random: Locked<SeededGenerator>
        let refreshing: Locked<Int>

        func apply(_ credential: Int, to request: inout TransportRequest) {
            request.headers["X-Token"] = "\(credential)"
        }

        func refresh(_ credential: Int?, over service: EasyNetworkService) async throws -> Int {
            refreshing.withLock { $0 += 1 }
            defer { refreshing.withLock { $0 -= 1 } }
            _ = try await service.send(Get(api: "token"))
            if random.withLock({ Int.random(in: 0..<4, using: &$0) }) == 0 { throw NetworkError(code: .connectionLost) }
            return (credential ?? 0) + 1
        }
    }

    private struct Moody: RequestInterceptor {
        let random: Locked<SeededGenerator>

        func didReceive(
            _ result: Result<NetworkResponse, NetworkError>,
            context: AttemptContext
        ) async -> ResponseDecision {
            switch random.withLock({ Int.random(in: 0..<20, using: &$0) }) {
            case 0: .sendAgain(after: 0.5)
            case 1: .fail(NetworkError(code: .connectionLost))
            case 2: .succeed(NetworkResponse())
            case 3: .stop
            default: .proceed
            }
        }
    }

    private func transport(_ clock: ManualClock, _ random: Locked<SeededGenerator>) -> InMemoryTransport {
        let transport = InMemoryTransport(clock: clock)
        transport.route("GET", "/token") { _ in .text("t") }
        for path in ["/a", "/b"] {
            transport.route("GET", path) { _ in
                var answer: MockResponse =
                    switch random.withLock({ Int.random(in: 0..<10, using: &$0) }) {
                    case 0: .status(302, headers: ["Location": "/b"])
                    case 1: .status(503, headers: ["Retry-After": "1"])
                    case 2: .status(401)
                    case 3: .fault(.close)
                    case 4: .fault(.stall)
                    default: .text("fine")
                    }
                answer.delay = Double(random.withLock { Int.random(in: 0..<3, using: &$0) }) * 0.1
                return answer
            }
        }
        return transport
    }

    @Test(
        "BEY-1, BEY-8, CBK-7: redirects, retries, refreshes, interceptors and cancels: each request ends exactly once",
        arguments: [UInt64(20_261_121), 7, 99]
    )
    func mixed(seed: UInt64) async throws {
        let random = Locked(SeededGenerator(seed: seed))
        let clock = ManualClock()
        let refreshing = Locked(0)
        let endings = Locked([Int](repeating: 0, count: 500))
        let url = try #require(URL(string: "http://one.example"))
        do {
            let host = HostConfiguration(
                baseURL: url,
                deadlines: TransportDeadlines(idle: nil, total: 3),
                transport: transport(clock, random)
            ) { host in
                host.clock = clock
                host.retryBudget = .infinity
                host.interceptors = [Moody(random: random)]
                host.authentication = AuthenticationSession(
                    Tokens(random: random, refreshing: refreshing),
                    credential: 0,
                    refreshLimit: .max,
                    clock: clock
                )
            }
            let service = EasyNetworkService(host)
            let queue = NetworkQueue(maxConcurrentOperationCount: 8)
            let operations = (0..<500).map { index -> CountedOperation in
                let operation = CountedOperation(Get(api: "a"), service: service)
                operation.success = { _ in endings.withLock { $0[index] += 1 } }
                operation.failure = { _ in endings.withLock { $0[index] += 1 } }
                return operation
            }
            queue.addOperations(operations, waitUntilFinished: false)
            for operation in operations {
                let isFinished = await eventually {
                    clock.advance(by: 0.1)
                    let victim = random.withLock { Int.random(in: 0..<5_000, using: &$0) }
                    if victim < operations.count { operations[victim].cancel() }
                    return operation.isFinished
                }
                expect(isFinished, "seed \(seed)")
                await operation.ended()
            }
            expect(queue.operationCount, equals: 0, "seed \(seed)")
            let stopped = operations.filter { $0.error?.isSilent == true }.count
            expect(endings.withLock { $0.reduce(0, +) }, equals: operations.count - stopped, "seed \(seed)")
        }
        expect(endings.withLock { $0.allSatisfy { $0 <= 1 } }, "seed \(seed)")
        await expect(eventually { CountedOperation.alive.withLock { $0 } == 0 }, "seed \(seed)")
        let isQuiet = await eventually {
            // An abandoned refresh may still be about to retry.
            if refreshing.withLock({ $0 }) > 0 { clock.advance(by: 0.1) }
            return clock.pendingCount == 0
        }
        expect(isQuiet, "seed \(seed)")
    }
}
