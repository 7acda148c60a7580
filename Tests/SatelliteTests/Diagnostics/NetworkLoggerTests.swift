import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork
@testable import EasyNetworkDiagnostics
@testable import TestSupport

@Suite("NetworkLogger", .timeLimit(.minutes(10)))
struct NetworkLoggerTests {
    private struct Secretive: APIRequest {
        typealias Item = NetworkResponse
        var api: String { "login?access_token=secret1&q=1" }
        var method: NetworkService.Method { .post }
        var headers: [String: String]? {
            ["Authorization": "Bearer secret2", "Cookie": "id=secret3", "X-Api-Key": "secret4"]
        }
        var params: [String: Any]? { ["password": "secret5"] }
    }

    @Test("DIA-1: a line for each attempt and each end, once though queue and host tell it, and without secrets")
    func lines() async {
        let lines = Locked<[String]>([])
        let transport = ScriptedTransport { _, number in
            .answer(
                number == 0 ? 307 : 401,
                ["Location": "/b?token=secret6", "Set-Cookie": "a=secret7"],
                body: "secret8"
            )
        }
        let host = transport.host()
        let queue = NetworkQueue()
        let logger = NetworkLogger { level, line in lines.withLock { $0.append("\(level) \(line)") } }
        for _ in 1...2 {
            logger.log(queue)
            logger.log(host)
        }
        let operation = RequestOperation(Secretive(), service: EasyNetworkService(host))
        operation.name = "login"
        queue.addOperation(operation)
        await operation.ended()
        await logger.settled()
        let text = lines.withLock { $0 }
        let subject = "'login' #\(operation.operationID): "
        expect(text.count, equals: 3, "\(text)")
        expect(
            text.first?.hasPrefix("info \(subject)first: POST https://api.example.com/login?access_token="),
            equals: true
        )
        expect(text.last?.hasPrefix("error \(subject)failed: unauthorized"), equals: true, "\(text)")
        expect(!text.joined().contains("secret"), "\(text)")
    }

    @Test("DIA-1: a job's call begins and ends with it: the log of queue and host has one line for each end")
    func oneEnd() async throws {
        let lines = Locked<[String]>([])
        let host = ScriptedTransport { _, _ in .answer(200) }.host()
        let queue = NetworkQueue()
        let logger = NetworkLogger(level: .debug) { _, line in lines.withLock { $0.append(line) } }
        logger.log(queue)
        logger.log(host)
        let operation = RequestOperation(Get(api: "a"), service: EasyNetworkService(host))
        queue.addOperation(operation)
        await operation.ended()
        await logger.settled()
        let text = lines.exchange([])
        expect(text.count { $0.hasSuffix(": succeeded") }, equals: 1, "\(text)")
        expect(!text.contains { $0.hasSuffix(": began") }, "\(text)")
        // Without a job, or with one of a queue that is not logged, they are the host's to report.
        _ = try await EasyNetworkService(host).send(Get(api: "a"))
        let other = RequestOperation(Get(api: "a"), service: EasyNetworkService(host))
        NetworkQueue().addOperation(other)
        await other.ended()
        await logger.settled()
        expect(lines.withLock { $0.count { $0.hasSuffix(": succeeded") } }, equals: 2)
    }

    @Test("DIA-2: nothing of a long text is lost in a system's log whose entries end at a kilobyte")
    func entries() {
        for line in [
            "a", "é", "👩‍👩‍👧", "b\n", String(repeating: "c", count: 90) + "\n",
            String(repeating: "d", count: 3_000) + "\r\n",
        ] {
            for count in [0, 1, 30, 1_001] {
                let text = String(repeating: line, count: count)
                let entries = NetworkLogger.entries(of: text)
                expect(entries.allSatisfy { $0.utf8.count <= 1_000 })
                let parts = [text, entries.joined()].map { $0.utf8.filter { $0 != UInt8(ascii: "\n") } }
                expect(parts[0] == parts[1], "\(count) of \(line.debugDescription)")
                // Whole lines, if they fit.
                expect(line.utf8.count != 91 || entries.dropLast().allSatisfy { ($0.utf8.count + 1) % 91 == 0 })
            }
        }
    }

    @Test("DIA-1: only events of the level and above are logged, and none after the logger is released")
    func levels() async throws {
        let host = ScriptedTransport { _, _ in .answer(200) }.host()
        let count = Locked(0)
        for (level, expected) in [(NetworkEvent.Level.debug, 4), (.info, 2), (.error, 0)] {
            count.exchange(0)
            var logger: NetworkLogger? = NetworkLogger(level: level) { _, _ in count.withLock { $0 += 1 } }
            logger?.log(host)
            _ = try await EasyNetworkService(host).send(Get(api: "a"))
            await logger?.settled()
            logger = nil
            _ = try await EasyNetworkService(host).send(Get(api: "a"))
            await host.broadcast.settled()
            expect(count.withLock { $0 }, equals: expected)
        }
    }
}
