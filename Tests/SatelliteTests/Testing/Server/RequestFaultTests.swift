import EasyNetwork
import Foundation
import Testing

@testable import EasyNetworkTesting
@testable import TestSupport

@Suite("Requests broken off")
struct RequestFaultTests {
    typealias Fault = MockResponse.Fault

    private static let get = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"

    private static func post(_ length: Int) -> String {
        "POST /upload HTTP/1.1\r\nHost: a\r\nContent-Length: \(length)\r\n\r\n"
    }

    @Test(
        "BEY-11: the next request is closed or reset unread, on a new and on a kept connection",
        arguments: [false, true]
    )
    func start(isKept: Bool) async throws {
        for (fault, ending) in [
            (Fault.close(at: .requestStart), Sight.Ending.end), (Fault.reset(at: .requestStart), .reset),
        ] {
            let server = try MockServer()
            server.route("GET", "/") { _ in .text("x") }
            let sight = try await onThread {
                let client = try RawClient(server)
                if isKept { _ = try client.get("/") }
                server.failNextRequests(with: fault)
                // A single byte starts a request.
                try client.send("G")
                return client.receiveAll()
            }
            expect(sight, equals: Sight("", ending))
            expect(server.requests.count, equals: (isKept ? 1 : 0))
            expect(server.faultCount, equals: 1)
            try await expect(onThread { try RawClient(server).get("/") }, equals: "x", "only one request was to fail")
        }
    }

    @Test("BEY-11: a client that closes without a request uses up no fault")
    func noRequest() async throws {
        let server = try MockServer()
        server.route("GET", "/") { _ in .text("x") }
        server.failNextRequests(with: .close(at: .requestStart))
        try RawClient(server).finishWriting()
        await expect(server.waitForConnections(0))
        expect(server.faultCount, equals: 0)
        let client = try RawClient(server)
        try client.send(Self.get)
        try await expect(onThread { client.receiveAll() }, equals: Sight(""))
        expect(server.faultCount, equals: 1)
    }

    @Test("BEY-11: the next requests fail in order, also pipelined ones, and later requests do not")
    func order() async throws {
        let server = try MockServer()
        server.route("GET", "/") { _ in .text("0123") }
        server.failNextRequests(2, with: .statusLine("first"))
        server.failNextRequests(with: .truncate(after: 2))
        server.failNextRequests(0, with: .reset)
        let client = try RawClient(server)
        try client.send(Self.get + Self.get + Self.get + Self.get)
        let fields = "\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: 4\r\n\r\n"
        let expected = "first" + fields + "0123first" + fields + "0123HTTP/1.1 200 OK" + fields + "01"
        try await expect(onThread { client.receiveAll() }, equals: Sight(expected))
        expect(server.faultCount, equals: 3)
        try await expect(onThread { try RawClient(server).get("/") }, equals: "0123")
    }

    @Test("BEY-11: the fault of the next request comes before those of its route and of its answer")
    func precedence() async throws {
        let server = try MockServer()
        server.route("GET", "/", fault: .reset(at: .requestStart))
        server.route("GET", "/answer") { _ in .fault(.reset) }
        for path in ["/", "/answer"] {
            server.failNextRequests(with: .raw(Data("next".utf8)))
            let client = try RawClient(server)
            try client.send("GET \(path) HTTP/1.1\r\nHost: a\r\n\r\n")
            try await expect(onThread { client.receiveAll() }, equals: Sight("next"))
            let second = try RawClient(server)
            try second.send("GET \(path) HTTP/1.1\r\nHost: a\r\n\r\n")
            try await expect(onThread { second.receiveAll() }, equals: Sight("", .reset))
        }
        expect(server.faultCount, equals: 4)
    }

    @Test("BEY-11: a request breaks off after the given bytes of its body", arguments: [0, 1, 100])
    func body(count: Int) async throws {
        for (fault, ending) in [
            (Fault.close(at: .requestBody(after: count)), Sight.Ending.end),
            (Fault.reset(at: .requestBody(after: count)), .reset),
        ] {
            let server = try MockServer()
            server.route("POST", "/upload", fault: fault)
            let client = try RawClient(server)
            try client.send(Self.post(1_000))
            if count > 0 {
                // The server waits for the last byte. A request on another connection shows that it has read the rest.
                try client.send(Data(count: count - 1))
                try await expect(onThread { try RawClient(server).get("/other").contains("no route") })
                expect(server.faultCount, equals: 0)
                try client.send(Data(count: 1))
            }
            try await expect(onThread { client.receiveAll() }, equals: Sight("", ending))
            expect(server.faultCount, equals: 1)
            expect(server.requests(to: "/upload").isEmpty)
        }
    }

    @Test("BEY-11: chunked and short bodies break off too, and before 100 Continue")
    func framings() async throws {
        let server = try MockServer()
        server.route("POST", "/upload", fault: .close(at: .requestBody(after: 4)))
        server.route("POST", "/now", fault: .close(at: .requestStart))
        let head = " HTTP/1.1\r\nHost: a\r\n"
        let chunked = "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n3\r\nd"
        for request in [
            "POST /upload" + head + chunked, Self.post(2) + "ab", Self.post(0),
            "POST /now" + head + "Expect: 100-continue\r\nContent-Length: 5\r\n\r\n",
        ] {
            let client = try RawClient(server)
            try client.send(request)
            try await expect(onThread { client.receiveAll() }, equals: Sight(""), "\(request)")
        }
        let client = try RawClient(server)
        try client.send("POST /upload" + head + "Expect: 100-continue\r\nContent-Length: 5\r\n\r\n")
        let go = try await onThread { try client.receiveHead() }
        expect(go, equals: "HTTP/1.1 100 Continue\r\n\r\n")
        try client.send("abcd")
        try await expect(onThread { client.receiveAll() }, equals: Sight(""))
        expect(server.requests.isEmpty)
    }

    @Test("BEY-11: a stalled upload is still read, a half-open one is not")
    func stall() async throws {
        let server = try MockServer()
        server.route("POST", "/upload", fault: .stall(at: .requestBody(after: 10)))
        let stalled = try RawClient(server)
        try await onThread {
            try stalled.send(Self.post(16_000_000))
            try stalled.send(Data(count: 16_000_000))
        }
        await expect(server.waitForFaults(1))
        stalled.close()
        await expect(server.waitForConnections(0))
        server.failNextRequests(with: .halfOpen(at: .requestBody(after: 10)))
        let held = try RawClient(server)
        try held.send(Self.post(64_000_000) + "0123456789")
        await expect(server.waitForFaults(2))
        held.limitSending(to: 0.2)
        let failure = await #expect(throws: RawClient.Failure.self) {
            try await onThread { try held.send(Data(count: 64_000_000)) }
        }
        expect(failure?.number, equals: EAGAIN)
        expect(server.connectionCount, equals: 1)
        expect(server.requests.isEmpty)
    }

    @Test("BEY-11: a route with a fault of the answer receives the request")
    func answerFault() async throws {
        let server = try MockServer()
        server.route("POST", "/upload", fault: .close(at: .responseEnd))
        let client = try RawClient(server)
        try client.send(Self.post(2) + "ab")
        let sight = try await onThread { client.receiveAll() }
        expect(sight, equals: Sight("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"))
        expect(server.requests.map(\.body), equals: [Data("ab".utf8)])
    }

    @Test("BEY-11: a request is refused after its head, or a part of its body, with an answer and a closed connection")
    func refusal() async throws {
        let server = try MockServer()
        server.route("POST", "/upload", fault: .refuse(413))
        server.route("POST", "/upload/later", fault: .refuse(503, afterBody: 3))
        for (path, body, status) in [("", "", "413 Content Too Large"), ("/later", "abc", "503 Service Unavailable")] {
            let client = try RawClient(server)
            try client.send("POST /upload\(path) HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n" + body)
            let sight = try await onThread { client.receiveAll() }
            expect(sight.text.hasPrefix("HTTP/1.1 \(status)\r\n") && sight.ending == .end, "\(sight)")
            expect(sight.text.contains("Connection: close\r\n"))
        }
        expect(server.requests.isEmpty && server.faultCount == 2)
    }

    @Test("BEY-11: an endless redirect never leads to the same URL twice")
    func endlessRedirect() async throws {
        let server = try MockServer()
        server.routeEndlessRedirect("/loop", status: 307)
        let locations = try await onThread {
            let client = try RawClient(server)
            var path = "/loop"
            return try (0..<100).map { _ in
                try client.send("GET \(path) HTTP/1.1\r\nHost: a\r\n\r\n")
                let head = try client.receiveAnswer().head
                path =
                    head.split(separator: "\r\n").first { $0.hasPrefix("Location: ") }.map { "\($0.dropFirst(10))" }
                    ?? ""
                return head.hasPrefix("HTTP/1.1 307 ") ? path : "no redirect"
            }
        }
        expect(locations, equals: (1...100).map { "/loop/\($0)" })
    }
}
