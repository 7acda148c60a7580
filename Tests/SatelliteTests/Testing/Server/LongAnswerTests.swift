import EasyNetwork
import Foundation
import Testing

@testable import EasyNetworkTesting
@testable import TestSupport

@Suite("Long and slow answers")
struct LongAnswerTests {
    private static let get = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"

    @Test("BEY-11: a body of a gibibyte is announced and sent, and takes no memory")
    func repeating() async throws {
        let count = 1 << 30
        let response = MockResponse(body: .repeating(0x61, count: count))
        let segments = ResponsePlan(response, method: "GET").wire(closing: false, minorVersion: 1)
        expect(segments.last, equals: .repeating(0x61, count: count))
        expect(segments.count, equals: 2)
        let server = try MockServer()
        server.route("GET", "/") { _ in response }
        server.route("GET", "/next") { _ in .text("next") }
        let (head, isEqual, next) = try await onThread {
            let client = try RawClient(server)
            try client.send(Self.get)
            let head = try client.receiveHead()
            return (head, try client.receive(count, of: 0x61), try client.get("/next"))
        }
        expect(head, equals: "HTTP/1.1 200 OK\r\nContent-Length: \(count)\r\n\r\n")
        expect(isEqual)
        expect(next, equals: "next")
    }

    @Test("BEY-11: a repeated byte is cut, chunked and empty like other bodies")
    func repeatingFramed() async throws {
        func sight(_ count: Int, _ fault: MockResponse.Fault?, _ trailers: HTTPHeaders = [:]) async throws -> Sight {
            try await MockServer.sight(
                of: MockResponse(body: .repeating(0x62, count: count), fault: fault, trailers: trailers),
                request: "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
            )
        }
        func head(_ field: String) -> String { "HTTP/1.1 200 OK\r\n\(field)\r\nConnection: close\r\n\r\n" }
        let cut = head("Content-Length: \(Int.max)") + String(repeating: "b", count: 300_000)
        try await expect(sight(.max, .truncate(after: 300_000)), equals: Sight(cut))
        let chunked =
            head("Transfer-Encoding: chunked") + "10\r\n\(String(repeating: "b", count: 16))\r\n0\r\nA: b\r\n\r\n"
        try await expect(sight(16, nil, ["A": "b"]), equals: Sight(chunked))
        try await expect(sight(-1, nil), equals: Sight(head("Content-Length: 0")))
    }

    @Test("BEY-11: a client that leaves an endless body ends its connection, and others are served in the meantime")
    func endless() async throws {
        let server = try MockServer()
        server.route("GET", "/") { _ in MockResponse(body: .repeating(0, count: .max)) }
        server.route("GET", "/other") { _ in .text("other") }
        let client = try RawClient(server)
        try client.send(Self.get)
        let isEqual = try await onThread {
            _ = try client.receiveHead()
            return try client.receive(10_000_000, of: 0)
        }
        expect(isEqual)
        try await expect(onThread { try RawClient(server).get("/other") }, equals: "other")
        client.close()
        await expect(server.waitForConnections(0))
    }

    @Test("BEY-11: an answer is never faster than its rate")
    func pacing() async throws {
        let server = try MockServer()
        server.route("GET", "/") { _ in MockResponse(body: .repeating(0x63, count: 161), bytesPerSecond: 200) }
        let seconds = try await onThread {
            let client = try RawClient(server)
            let start = DispatchTime.now().uptimeNanoseconds
            try client.send(Self.get)
            _ = try client.receive(200)
            return Double(DispatchTime.now().uptimeNanoseconds - start) / 1e9
        }
        // A slow machine only takes longer; the margin is for rounding.
        expect(seconds >= 0.99)
    }

    @Test(
        "BEY-11: a slow answer is complete, head included, or breaks off, and does not delay others",
        arguments: [400, 5]
    )
    func trickle(rate: Int) async throws {
        let server = try MockServer()
        let body = Data(repeating: 0x63, count: rate == 5 ? 0 : 100)
        server.route("GET", "/") { _ in
            MockResponse(
                body: .data(body),
                fault: rate == 5 ? .close(at: .responseHead(after: 3)) : .close(at: .responseEnd),
                bytesPerSecond: rate
            )
        }
        server.route("GET", "/other") { _ in .text("other") }
        let client = try RawClient(server)
        try client.send(Self.get)
        await expect(server.waitForRequests(1))
        // The server's loop still serves other clients.
        try await expect(onThread { try RawClient(server).get("/other") }, equals: "other")
        let sight = try await onThread { client.receiveAll() }
        let whole = Data("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n".utf8) + body
        expect(sight, equals: Sight(bytes: rate == 5 ? Data("HTT".utf8) : whole, ending: .end))
    }

    @Test("BEY-11: after a slow answer the connection has its full speed again")
    func trickleThenNext() async throws {
        let server = try MockServer()
        server.route("GET", "/") { _ in MockResponse(bytesPerSecond: 200) }
        server.route("GET", "/fast") { _ in MockResponse(body: .repeating(0x64, count: 40_000)) }
        let (isEqual, seconds) = try await onThread {
            let client = try RawClient(server)
            _ = try client.get("/")
            let start = DispatchTime.now().uptimeNanoseconds
            try client.send("GET /fast HTTP/1.1\r\nHost: a\r\n\r\n")
            _ = try client.receiveHead()
            let isEqual = try client.receive(40_000, of: 0x64)
            return (isEqual, Double(DispatchTime.now().uptimeNanoseconds - start) / 1e9)
        }
        expect(isEqual)
        // The previous rate would take 200 seconds.
        expect(seconds < 100)
    }

    @Test("BEY-11: a slow answer ends with its client, and with the server")
    func trickleAway() async throws {
        let server = try MockServer()
        server.route("GET", "/") { _ in MockResponse(body: .repeating(0, count: .max), bytesPerSecond: 50) }
        let (gone, left) = (try RawClient(server), try RawClient(server))
        try gone.send(Self.get)
        try left.send(Self.get)
        await expect(server.waitForRequests(2))
        gone.close()
        await expect(server.waitForConnections(1))
        server.stop()
        let ending = try await onThread { left.receiveAll().ending }
        expect(ending, equals: .end)
    }

    @Test("BEY-11: a pace allows its share at each tick and accumulates nothing")
    func pace() {
        for (rate, share, interval) in [(1, 1, 1.0), (0, 1, 1.0), (-5, 1, 1.0), (10, 1, 0.1), (1_000, 20, 0.02)] {
            var pace = Pace(bytesPerSecond: rate)
            expect(pace.share, equals: share)
            expect(pace.interval, equals: interval)
            expect(pace.allowance, equals: 0)
            pace.tick(.max)
            pace.tick(share)
            expect(pace.allowance, equals: share)
            pace.spend(share)
            expect(pace.allowance, equals: 0)
        }
        expect(Pace(bytesPerSecond: .max).interval.isFinite)
    }
}
