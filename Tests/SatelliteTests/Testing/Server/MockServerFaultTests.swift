import EasyNetwork
import Foundation
import Testing

@testable import EasyNetworkTesting
@testable import TestSupport

@Suite("MockServer faults")
struct MockServerFaultTests {
    /// Receives the answer to GET `/`: the bytes up to the end, or the error of the connection.
    private func see(_ response: MockResponse) async throws -> Result<String, RawClient.Failure> {
        let server = try MockServer()
        server.route("GET", "/") { _ in response }
        return try await onThread {
            let client = try RawClient(server)
            try client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            do {
                return .success(try client.receiveToEnd())
            } catch let failure as RawClient.Failure {
                return .failure(failure)
            }
        }
    }

    @Test("BEY-11: close ends the connection without a byte")
    func close() async throws {
        try await expect(see(.fault(.close)).get(), equals: "")
        try await expect(see(MockResponse(delay: 0.01, fault: .close)).get(), equals: "")
    }

    @Test("BEY-11: reset resets the connection")
    func reset() async throws {
        guard case .failure(let failure) = try await see(.fault(.reset)) else {
            Issue.record("the connection was closed in good order")
            return
        }
        expect(failure.number, equals: ECONNRESET)
    }

    @Test("BEY-11: truncate sends the head of the whole body and its first bytes, and closes")
    func truncate() async throws {
        func fault(_ count: Int, _ body: MockResponse.Body) -> MockResponse {
            MockResponse(body: body, fault: .truncate(after: count))
        }
        let data = MockResponse.Body.data(Data("0123456789".utf8))
        let head = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n"
        try await expect(see(fault(3, data)).get(), equals: head + "012")
        try await expect(see(fault(0, data)).get(), equals: head)
        try await expect(see(fault(-1, data)).get(), equals: head)
        try await expect(see(fault(99, data)).get(), equals: head + "0123456789")
        let chunks = MockResponse.Body.chunks([Data("abc".utf8), Data("defgh".utf8)])
        let chunkHead = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
        try await expect(see(fault(5, chunks)).get(), equals: chunkHead + "3\r\nabc\r\n5\r\nde")
        try await expect(see(fault(8, chunks)).get(), equals: chunkHead + "3\r\nabc\r\n5\r\ndefgh\r\n")
    }

    @Test("BEY-11: raw sends these bytes and closes")
    func raw() async throws {
        try await expect(see(.fault(.raw(Data("SSH-2.0\r\n".utf8)))).get(), equals: "SSH-2.0\r\n")
        try await expect(see(.fault(.raw(Data()))).get(), equals: "")
    }

    @Test("BEY-11: stall never answers and keeps the connection, until the client closes it")
    func stall() async throws {
        let server = try MockServer()
        server.route("GET", "/") { _ in .fault(.stall) }
        server.route("GET", "/next") { _ in .text("next") }
        let stalled = try RawClient(server)
        try stalled.send("GET / HTTP/1.1\r\nHost: a\r\n\r\nGET /next HTTP/1.1\r\nHost: a\r\n\r\n")
        await expect(server.waitForRequests(1))
        try await expect(onThread { try RawClient(server).get("/next") }, equals: "next")
        await expect(server.waitForConnections(1))
        expect(server.requests.count, equals: 2, "the request behind the stalled one was answered")
        stalled.close()
        await expect(server.waitForConnections(0))
    }

    @Test("BEY-11: a line break in a scripted header becomes a 500 with the reason, and the stream stays valid")
    func lineBreak() async throws {
        let server = try MockServer()
        server.route("GET", "/value") { _ in .text("x", headers: ["A": "b\r\nSet-Cookie: c"]) }
        server.route("GET", "/name") { _ in .text("x", headers: ["A\n": "b"]) }
        server.route("GET", "/status") { _ in .status(12) }
        server.route("GET", "/good") { _ in .text("good") }
        let bodies = try await onThread {
            let client = try RawClient(server)
            return try ["/value", "/name", "/status", "/good"].map { try client.get($0) }
        }
        let start = "{\"error\":\"the scripted response cannot be sent: "
        expect(bodies[0], equals: start + "the value of A has a control character in it\"}")
        expect(bodies[1], equals: start + #"\"A\\n\" is not a field name"}"#)
        expect(bodies[2], equals: start + "12 is not a status code\"}")
        expect(bodies[3], equals: "good")
    }
}
