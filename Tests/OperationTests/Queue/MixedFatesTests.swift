import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("Requests of mixed fates", .timeLimit(.minutes(10)))
struct MixedFatesTests {
    private final class CountedOperation: RequestOperation<Get>, @unchecked Sendable {
        static let alive = Locked(0)

        override init(_ request: Get, service: EasyNetworkService) {
            Self.alive.withLock { $0 += 1 }
            super.init(request, service: service)
        }

        deinit { Self.alive.withLock { $0 -= 1 } }
    }

    @Test(
        "BEY-1, OPQ-2: two thousand requests, each ends exactly once, nothing is left",
        arguments: [UInt64(20_261_121)]
    )
    func mixedFates(seed: UInt64) async throws {
        var random = SeededGenerator(seed: seed)
        let server = try MockServer()
        server.route("GET", "/fine") { _ in .json(["a": 1]) }
        server.route("GET", "/slow") { _ in
            var response = MockResponse.json(["a": 1])
            response.delay = 0.01
            return response
        }
        server.route("GET", "/reset") { _ in .fault(.reset) }
        server.route("GET", "/stall") { _ in .fault(.stall) }
        let endings = Locked([Int](repeating: 0, count: 2_000))
        let wrong = Locked<[String]>([])
        do {
            let service = EasyNetworkService(server.host())
            let queue = NetworkQueue(maxConcurrentOperationCount: 32)
            let waves = (0..<2_000).map { index -> (operation: CountedOperation, isVictim: Bool) in
                let path = ["fine", "missing", "reset", "slow", "stall"][index % 5]
                let isVictim = path == "stall" || Int.random(in: 0..<5, using: &random) == 0
                let operation = CountedOperation(Get(api: path), service: service)
                operation.success = { response in
                    endings.withLock { $0[index] += 1 }
                    if !["fine", "slow"].contains(path) { wrong.withLock { $0.append("\(path) succeeded") } }
                }
                operation.failure = { error in
                    endings.withLock { $0[index] += 1 }
                    let expected: NetworkError.Code =
                        switch path {
                        case "missing": .unacceptableStatus
                        case "reset": .connectionLost
                        case "stall": .cancelled
                        default: .invalidRequest
                        }
                    if error.code != expected, !isVictim || error.code != .cancelled {
                        wrong.withLock { $0.append("\(path): \(error)") }
                    }
                }
                return (operation, isVictim)
            }
            for (operation, _) in waves { queue.addOperation(operation) }
            for (operation, isVictim) in waves.shuffled(using: &random) where isVictim {
                operation.cancel()
                if Int.random(in: 0..<8, using: &random) == 0 { await Task.yield() }
            }
            for (operation, _) in waves { await operation.ended() }
            expect(queue.operationCount, equals: 0, "seed \(seed)")
            await expect(eventually { queue.queue.operationCount == 0 }, "seed \(seed)")
        }
        expect(endings.withLock { $0.allSatisfy { $0 == 1 } }, "seed \(seed)")
        expect(wrong.withLock { $0 }, equals: [], "seed \(seed)")
        // The transport was released with its host, so the server sees every connection close.
        await expect(server.waitForConnections(0), "seed \(seed)")
        await expect(eventually { CountedOperation.alive.withLock { $0 } == 0 }, "seed \(seed)")
    }
}
