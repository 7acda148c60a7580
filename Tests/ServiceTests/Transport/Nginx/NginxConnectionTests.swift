#if os(Linux)
import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("Nginx: how many connections there are", .enabled(if: NginxServer.isInstalled), .timeLimit(.minutes(10)))
struct NginxConnectionTests {
    @Test(
        "BEY-6: many requests, eight at a time, go over eight connections",
        arguments: [
            (NginxServer.Listener.http, TestLoad.count(10_000), 8),
            (.https2, TestLoad.count(1_000), CurlLoop.multiplexes ? 1 : 8),
        ]
    )
    func keepAlive(listener: NginxServer.Listener, count: Int, limit: Int) async throws {
        let client = try await NginxClient()
        // After the first answer the transport knows whether connections can be shared.
        let first = await client.outcome(listener, "/small")
        expect(first.isSmall && first.metrics?.isReusedConnection == false)
        let connections = Locked<Set<Int>>([])
        let new = Locked(1)
        let faults = Locked<[String]>([])
        _ = await together(count, atOnce: 8) { number in
            // Every twentieth request asks for its connection's number.
            let isEcho = number % 20 == 0
            let contents = await client.outcome(listener, isEcho ? "/echo-protocol" : "/small")
            if contents.metrics?.isReusedConnection != true { new.withLock { $0 += 1 } }
            if let connection = contents.connection, isEcho {
                connections.withLock { _ = $0.insert(connection) }
            } else if !contents.isSmall {
                faults.withLock { $0.append("\(number): \(contents)") }
            }
        }
        expect(faults.withLock { $0 }, equals: [])
        expect((1...limit).contains(connections.withLock { $0.count }))
        expect((1...limit).contains(new.withLock { $0 }))
    }

    @Test(
        "BEY-6: 64 exchanges with a known HTTP/2 server share a connection",
        .enabled(if: CurlLoop.multiplexes)
    )
    func multiplexing() async throws {
        let client = try await NginxClient()
        let first = await client.outcome(.https2, "/echo-protocol")
        let outcomes = await together(64) { _ in await client.outcome(.https2, "/echo-protocol") }
        expect(outcomes.allSatisfy { $0.text.hasPrefix("HTTP/2.0 ") })
        expect(Set((outcomes + [first]).map(\.connection)).count, equals: 1)
        expect(outcomes.allSatisfy { $0.metrics?.isReusedConnection == true })
    }

    @Test(
        "BEY-6: over HTTP/1.1 there are never more connections than allowed",
        arguments: [
            NginxServer.Listener.http, .https1,
        ]
    )
    func connectionLimit(listener: NginxServer.Listener) async throws {
        let client = try await NginxClient { configuration, _ in configuration.maximumConnectionsPerHost = 3 }
        let outcomes = await together(200) { _ in await client.outcome(listener, "/echo-protocol") }
        expect(outcomes.allSatisfy { $0.end?.error == nil })
        expect((1...3).contains(Set(outcomes.map(\.connection)).count))
    }

    /// Starts exchanges that pause at their heads, and returns when the first ones have paused.
    private func held(
        _ count: Int,
        until expected: Int,
        _ client: NginxClient,
        _ listener: NginxServer.Listener
    ) async -> [HeldExchange] {
        var request = client.request(.init(listener: listener, ipv6: false), "/ranges")
        // Without a deadline, the test would hang if an exchange never began.
        request.deadlines.total = 300
        let message = request
        let exchanges = (0..<count).map { _ in HeldExchange(message, over: client.transport) }
        for exchange in exchanges.prefix(expected) { await exchange.held() }
        return exchanges
    }

    @Test(
        "BEY-6: a server that turns out to speak HTTP/2 gets more at once than its connections would be",
        .enabled(if: CurlLoop.multiplexes)
    )
    func streamLimit() async throws {
        let client = try await NginxClient { configuration, _ in
            configuration.maximumConnectionsPerHost = 2
            configuration.maximumStreamsPerHost = 20
        }
        // The others begin before the first two have ended.
        let exchanges = await held(50, until: 20, client, .https2)
        expect(exchanges.count { $0.hasHead }, equals: 20)
        for exchange in exchanges { exchange.letGo() }
        for exchange in exchanges {
            let contents = await exchange.end()
            expect(contents.body == NginxServer.rangesData && contents.end?.error == nil)
        }
        expect((1...2).contains(exchanges.count { $0.recording.contents.metrics?.isReusedConnection == false }))
    }

    @Test("BEY-6: over HTTP/1.1 an exchange begins when another ends")
    func oneByOne() async throws {
        let client = try await NginxClient { configuration, _ in configuration.maximumConnectionsPerHost = 2 }
        let exchanges = await held(6, until: 2, client, .https1)
        for (number, exchange) in exchanges.enumerated() {
            // Each end lets one exchange begin. If more were running, a later one would already have its head.
            expect(exchanges.count { $0.hasHead } <= number + 2)
            exchange.letGo()
            await expect(exchange.end().body, equals: NginxServer.rangesData)
        }
    }
}
#endif
