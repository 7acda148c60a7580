import EasyNetwork
import Foundation
import Testing

@testable import EasyNetworkTesting
@testable import TestSupport

@Suite("Answers broken off")
struct BrokenAnswerTests {
    typealias Fault = MockResponse.Fault

    private static let head = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n"
    private static let whole = head + "0123456789"

    /// Each place, and the bytes of an answer with a length that are sent before it.
    static let places: [(Fault.Place, String)] = [
        (.requestStart, ""), (.requestBody(after: 5), ""), (.responseStart, ""),
        (.responseHead(after: 0), ""), (.responseHead(after: 12), "HTTP/1.1 200"), (.responseHead(after: 999), head),
        (.responseBody(after: 0), head), (.responseBody(after: 3), head + "012"), (.responseBody(after: -1), head),
        (.responseBody(after: 99), whole), (.responseEnd, whole),
    ]

    private func answer(_ fault: Fault) -> MockResponse {
        MockResponse(body: .data(Data("0123456789".utf8)), fault: fault)
    }

    @Test("BEY-11: an answer is closed or reset at each place, and the bytes before it arrive", arguments: places)
    func closeAndReset(place: Fault.Place, sent: String) async throws {
        try await expect(MockServer.sight(of: answer(.close(at: place))), equals: Sight(sent))
        try await expect(MockServer.sight(of: answer(.reset(at: place))), equals: Sight(sent, .reset))
    }

    @Test("BEY-11: an answer stalls at each place, until the client closes", arguments: places)
    func stall(place: Fault.Place, sent: String) async throws {
        let server = try MockServer()
        let response = answer(.stall(at: place))
        server.route("GET", "/") { _ in response }
        let client = try RawClient(server)
        // The server ignores a second request as well, and keeps reading from the client.
        try client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n")
        let bytes = try await onThread {
            let bytes = try client.receive(sent.utf8.count)
            try client.send(Data(count: 16_000_000))
            client.finishWriting()
            return bytes + client.receiveAll().bytes
        }
        expect(bytes, equals: Data(sent.utf8))
        await expect(server.waitForConnections(0))
        expect(server.faultCount, equals: 1)
    }

    @Test(
        "BEY-11: a half-open connection neither reads nor writes and outlives its client",
        arguments: TestLoad.isFull ? places : places.filter { $0.1 == head }
    )
    func halfOpen(place: Fault.Place, sent: String) async throws {
        let server = try MockServer()
        let response = answer(.halfOpen(at: place))
        server.route("GET", "/") { _ in response }
        server.route("GET", "/other") { _ in .text("other") }
        let client = try RawClient(server)
        try client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        let bytes = try await onThread { try client.receive(sent.utf8.count) }
        expect(bytes, equals: Data(sent.utf8))
        await expect(server.waitForFaults(1))
        client.limitSending(to: 0.2)
        let failure = await #expect(throws: RawClient.Failure.self) {
            try await onThread { try client.send(Data(count: 64_000_000)) }
        }
        expect(failure?.number, equals: EAGAIN, "the server reads on")
        client.finishWriting()
        // The server's loop has completed a round once it answers this request.
        try await expect(onThread { try RawClient(server).get("/other") }, equals: "other")
        await expect(server.waitForConnections(1))
        server.stop()
        try await expect(onThread { client.receiveAll().bytes }, equals: Data())
        expect(server.connectionCount, equals: 0)
    }

    @Test("BEY-11: a cut chunk has announced its whole size, and the end comes after the last chunk")
    func chunks() async throws {
        func sight(_ place: Fault.Place) async throws -> Sight {
            let chunks = [Data("abc".utf8), Data("defgh".utf8)]
            return try await MockServer.sight(of: MockResponse(body: .chunks(chunks), fault: .reset(at: place)))
        }
        let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
        try await expect(sight(.responseBody(after: 5)), equals: Sight(head + "3\r\nabc\r\n5\r\nde", .reset))
        try await expect(sight(.responseBody(after: 8)), equals: Sight(head + "3\r\nabc\r\n5\r\ndefgh\r\n", .reset))
        try await expect(sight(.responseEnd), equals: Sight(head + "3\r\nabc\r\n5\r\ndefgh\r\n0\r\n\r\n", .reset))
    }

    @Test("BEY-11: the delay comes before a fault of the answer, and interim answers come before a broken head")
    func delayAndInterim() async throws {
        var response = answer(.close(at: .responseHead(after: 4)))
        response.interim = [MockResponse.Interim(103)]
        response.delay = 0.02
        let start = DispatchTime.now().uptimeNanoseconds
        try await expect(MockServer.sight(of: response), equals: Sight("HTTP/1.1 103 Early Hints\r\n\r\nHTTP"))
        expect(DispatchTime.now().uptimeNanoseconds - start >= 20_000_000)
    }
}
