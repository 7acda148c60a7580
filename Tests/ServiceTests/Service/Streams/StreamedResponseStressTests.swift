import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("StreamedResponse under load", .timeLimit(.minutes(10)))
struct StreamedResponseStressTests {
    /// Pseudorandom bytes, so that a lost, doubled or swapped byte is detected.
    private static let body: Data = {
        var random = SeededGenerator(seed: 1)
        return Data((0..<250_000).flatMap { _ in withUnsafeBytes(of: random.next(), Array.init) })
    }()

    private static func bytes(from start: Int, count: Int) -> Data {
        body.subdata(in: start..<min(start + count, body.count))
    }

    /// Sends pieces of random lengths, like a transport that pauses late.
    private func send(_ exchange: SteeredTransport.Exchange, _ total: Int, _ seed: UInt64, _ code: NetworkError.Code?) {
        Thread {
            var random = SeededGenerator(seed: seed)
            var sent = 0
            while sent < total, !exchange.isCancelled {
                let most = Bool.random(using: &random) ? 100 : 100_000
                let count = min(Int.random(in: 0...most, using: &random), total - sent)
                exchange.body(Self.bytes(from: sent, count: count))
                sent += count
                if exchange.orders.last == "pause" { sched_yield() }
            }
            if !exchange.isCancelled { exchange.end(code) }
        }.start()
    }

    @Test(
        "BEY-3, BEY-5: every byte once and in order, then the end; cancelled anywhere, a part and .cancelled; all is freed",
        arguments: 0..<UInt64(TestLoad.count(60, part: 15))
    )
    func everything(seed: UInt64) async throws {
        var random = SeededGenerator(seed: seed)
        let total = Int.random(in: 0...2_000_000, using: &random)
        let code = [nil, NetworkError.Code.connectionLost].randomElement(using: &random) ?? nil
        let cancelsAfter = Bool.random(using: &random) ? Int.random(in: 0...max(total, 1), using: &random) : nil
        let cancelsService = Bool.random(using: &random)
        let transport = SteeredTransport()
        weak var freed: EasyNetworkService?
        do {
            let service = EasyNetworkService(transport.host())
            freed = service
            let exchangeSeed = random.next()
            let reader = Task {
                let answer = try await service.stream(Get(api: "x"))
                var count = 0
                var isCancelled = false
                do {
                    for try await data in answer {
                        guard !data.isEmpty, data == Self.bytes(from: count, count: data.count) else {
                            return (count, false, true)
                        }
                        count += data.count
                        if let cancelsAfter, count >= cancelsAfter, !isCancelled {
                            isCancelled = true
                            if cancelsService { service.cancel() } else { withUnsafeCurrentTask { $0?.cancel() } }
                        }
                    }
                    return (count, true, false)
                } catch let error as NetworkError where error.code == .cancelled {
                    return (count, false, !isCancelled)
                } catch let error as NetworkError where error.code == .connectionLost {
                    return (count, code != nil, false)
                }
            }
            let exchange = try #require(await transport.exchange(0))
            exchange.head()
            send(exchange, total, exchangeSeed, code)
            let (count, isWhole, isWrong) = try await reader.value
            expect(!isWrong, "seed \(seed)")
            expect(isWhole ? count == total : cancelsAfter != nil, "seed \(seed)")
        }
        await expect(eventually { freed == nil })
    }
}
