import EasyNetwork
import Foundation
import Testing

@testable import EasyNetworkTesting
@testable import TestSupport

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

@Suite("MockServer")
struct MockServerTests {
    @Test("BEY-11: requests on one connection are answered in order and have its number")
    func keepAlive() async throws {
        let server = try MockServer()
        server.route("GET", "/hello") { request in .text("hello \(request.query ?? "")") }
        let bodies = try await onThread {
            let client = try RawClient(server)
            let bodies = try (0..<3).map { try client.get("/hello?\($0)") }
            return bodies + [try RawClient(server).get("/hello?other")]
        }
        expect(bodies, equals: ["hello 0", "hello 1", "hello 2", "hello other"])
        expect(server.requests.map(\.connection), equals: [1, 1, 1, 2])
        expect(server.requests.map(\.target), equals: ["/hello?0", "/hello?1", "/hello?2", "/hello?other"])
        expect(server.requests(to: "/hello").count, equals: 4)
        expect(server.requests(to: "/hello?0").isEmpty)
        await expect(server.waitForConnections(0))
    }

    @Test("BEY-11: an answer has the documented bytes")
    func bytes() async throws {
        let server = try MockServer()
        server.route("GET", "/text") { _ in .text("hi", status: 201, headers: ["X-A": "1", "X-A": "2"]) }
        server.route("GET", "/none") { _ in .status(204) }
        server.route("GET", "/chunks") { _ in .chunked([Data("ab".utf8), Data(), Data("0123456789".utf8)]) }
        server.route("GET", "/same") { _ in .status(304, headers: ["ETag": "\"1\"", "Content-Length": "7"]) }
        server.route("GET", "/odd") { _ in .status(299) }
        let text = try await onThread {
            let client = try RawClient(server)
            for path in ["/text", "/none", "/chunks", "/same", "/odd"] {
                try client.send("GET \(path) HTTP/1.1\r\nHost: a\r\n\r\n")
            }
            try client.send("GET /text HTTP/1.1\r\nHost: a\r\nConnection: x, Close\r\n\r\n")
            return try client.receiveToEnd()
        }
        let hi =
            "HTTP/1.1 201 Created\r\nX-A: 1\r\nX-A: 2\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: 2\r\n"
        expect(
            text,
            equals: hi + "\r\nhi"
                + "HTTP/1.1 204 No Content\r\n\r\n"
                + "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\na\r\n0123456789\r\n0\r\n\r\n"
                + "HTTP/1.1 304 Not Modified\r\nETag: \"1\"\r\nContent-Length: 7\r\n\r\n"
                + "HTTP/1.1 299 \r\nContent-Length: 0\r\n\r\n"
                + hi + "Connection: close\r\n\r\nhi"
        )
    }

    @Test("BEY-11: HEAD gets the head of the answer alone, its length included")
    func head() async throws {
        let server = try MockServer()
        server.route("*", "/text") { _ in .text("four") }
        server.route("HEAD", "/chunks") { _ in .chunked([Data("ab".utf8)]) }
        server.route("HEAD", "/size") { _ in .status(200, headers: ["Content-Length": "123"]) }
        let text = try await onThread {
            let client = try RawClient(server)
            try client.send("HEAD /text HTTP/1.1\r\nHost: a\r\n\r\nHEAD /chunks HTTP/1.1\r\nHost: a\r\n\r\n")
            try client.send("HEAD /size HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
            return try client.receiveToEnd()
        }
        expect(
            text,
            equals: "HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: 4\r\n\r\n"
                + "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                + "HTTP/1.1 200 OK\r\nContent-Length: 123\r\nConnection: close\r\n\r\n"
        )
    }

    @Test("BEY-11: pipelined requests are answered in order, one at a time, even if the first takes longest")
    func pipelining() async throws {
        let server = try MockServer()
        let running = Locked((now: 0, most: 0))
        server.route("GET", "*") { request in
            running.withLock {
                $0.now += 1
                $0.most = max($0.most, $0.now)
            }
            defer { running.withLock { $0.now -= 1 } }
            var response = MockResponse.text(request.path)
            response.delay = request.path == "/0" ? 0.05 : 0
            return response
        }
        let bodies = try await onThread {
            let client = try RawClient(server)
            try client.send((0..<50).map { "GET /\($0) HTTP/1.1\r\nHost: a\r\n\r\n" }.joined())
            return try (0..<50).map { _ in try client.receiveAnswer().body }
        }
        expect(bodies, equals: (0..<50).map { Data("/\($0)".utf8) })
        expect(running.withLock { $0.most }, equals: 1)
        expect(server.requests.allSatisfy { $0.connection == 1 })
    }

    @Test("BEY-11: HTTP/1.0 gets bare bytes and a closed connection")
    func oldVersion() async throws {
        let server = try MockServer()
        server.route("GET", "/") { _ in .chunked([Data("ab".utf8), Data("c".utf8)]) }
        let text = try await onThread {
            let client = try RawClient(server)
            try client.send("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
            return try client.receiveToEnd()
        }
        expect(text, equals: "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nabc")
    }

    @Test("BEY-11: a client that expects 100 gets it, then the answer")
    func continueExpected() async throws {
        let server = try MockServer()
        server.route("PUT", "/") { request in .data(request.body) }
        let (interim, body) = try await onThread {
            let client = try RawClient(server)
            try client.send("PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n")
            let interim = try client.receiveHead()
            try client.send("body")
            return (interim, try client.receiveAnswer().body)
        }
        expect(interim, equals: "HTTP/1.1 100 Continue\r\n\r\n")
        expect(body, equals: Data("body".utf8))
    }

    @Test("BEY-11: 8 MiB go both ways, with a length and in chunks")
    func large() async throws {
        let server = try MockServer()
        server.route("PUT", "/") { request in .data(request.body) }
        let count = 8 * 1_048_576
        // The period divides no buffer size, so a misplaced piece is detected.
        let pattern = Data((0..<251).map { UInt8($0) })
        var bytes = Data(capacity: count + 251)
        while bytes.count < count { bytes.append(pattern) }
        let body = bytes.prefix(count)
        let (first, second) = try await onThread {
            let client = try RawClient(server)
            try client.send("PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: \(count)\r\n\r\n")
            try client.send(body)
            let first = try client.receiveAnswer().body
            try client.send("PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
            for start in stride(from: 0, to: count, by: 1_048_576) {
                try client.send("100000\r\n")
                try client.send(body[start..<start + 1_048_576])
                try client.send("\r\n")
            }
            try client.send("0\r\n\r\n")
            return (first, try client.receiveAnswer().body)
        }
        expect(first, equals: body)
        expect(second, equals: body)
        expect(server.requests.map(\.body.count), equals: [count, count])
    }

    @Test("BEY-11: a delayed answer does not delay others")
    func delay() async throws {
        let server = try MockServer()
        server.route("GET", "/slow") { _ in MockResponse(delay: 3600) }
        server.route("GET", "/soon") { _ in MockResponse(body: .data(Data("soon".utf8)), delay: 0.02) }
        server.route("GET", "/fast") { _ in .text("fast") }
        let slow = try RawClient(server)
        try slow.send("GET /slow HTTP/1.1\r\nHost: a\r\n\r\n")
        await expect(server.waitForRequests(1))
        let bodies = try await onThread {
            let client = try RawClient(server)
            return [try client.get("/fast"), try client.get("/soon"), try client.get("/fast")]
        }
        expect(bodies, equals: ["fast", "soon", "fast"])
        await expect(server.waitForConnections(1))
        slow.close()
        await expect(server.waitForConnections(0), "a client that gives up is let go before the delay is over")
    }

    @Test("BEY-11: invalid bytes get their status and a closed connection, and are no request")
    func badRequest() async throws {
        let server = try MockServer()
        let texts = try await onThread {
            let endless = "GET /" + String(repeating: "a", count: 1_100_000)
            return try ["GET / HTTP/1.1\r\n\r\n", endless, "GET / HTTP/3.0\r\n"].map { bytes in
                let client = try RawClient(server)
                try client.send(bytes)
                return try client.receiveToEnd()
            }
        }
        expect(texts[0].hasPrefix("HTTP/1.1 400 Bad Request\r\n"))
        expect(texts[0].hasSuffix("{\"error\":\"the request must have exactly one Host header, but has 0\"}"))
        expect(texts[1].hasPrefix("HTTP/1.1 431 "))
        expect(texts[2].hasPrefix("HTTP/1.1 505 "))
        expect(texts.allSatisfy { $0.contains("\r\nConnection: close\r\n") })
        expect(server.requests.isEmpty)
    }

    @Test("BEY-11: a client that ends its side still gets the answer that is being made")
    func halfClosed() async throws {
        let server = try MockServer()
        server.route("GET", "/") { _ in .text("still") }
        let text = try await onThread {
            let client = try RawClient(server)
            try client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            client.finishWriting()
            return try client.receiveToEnd()
        }
        expect(text.hasSuffix("\r\n\r\nstill"))
        await expect(server.waitForConnections(0))
    }

    @Test("BEY-11: a hang-up ends no connection that has an answer to send, since Darwin reports one at a half-close")
    func hangUp() {
        let connection = ServerConnection(id: 1, descriptor: -1)
        let hangUp = Int32(POLLIN | POLLHUP)
        expect(connection.isGone(hangUp) && connection.isGone(Int32(POLLERR)) && connection.isGone(Int32(POLLNVAL)))
        expect(!connection.isGone(Int32(POLLIN | POLLOUT)))
        for phase in [ServerConnection.Phase.answering, .writing(then: .close), .writing(then: nil)] {
            connection.phase = phase
            expect(!connection.isGone(hangUp) && connection.isGone(Int32(POLLERR | POLLHUP)))
        }
        for phase in [ServerConnection.Phase.stalled, .halfOpen] {
            connection.phase = phase
            expect(connection.isGone(hangUp))
        }
    }
}
