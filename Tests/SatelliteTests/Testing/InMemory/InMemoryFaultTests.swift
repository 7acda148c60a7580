import EasyNetwork
import Foundation
import Testing

@testable import EasyNetworkTesting
@testable import TestSupport

@Suite("InMemoryTransport faults")
struct InMemoryFaultTests {
    typealias Fault = MockResponse.Fault

    static let places: [(Fault.Place, String, isOver: Bool)] = [
        (.requestStart, "", false), (.requestBody(after: 3), "", false), (.responseStart, "", false),
        (.responseHead(after: 5), "", false), (.responseBody(after: 0), "200 ", false),
        (.responseBody(after: 2), "200 body:ab ", false), (.responseBody(after: 4), "200 body:abcd ", true),
        (.responseBody(after: 9), "200 body:abcd ", true),
        (.responseEnd, "200 body:abcd ", true),
    ]

    static let malformations: [(Fault, String)] = [
        (.garbageStatusLine, "end:badServerResponse"), (.badChunk(after: 2), "200 body:ab end:badServerResponse"),
        (.contentLength(offBy: 1), "200 body:abcd end:connectionLost"), (.contentLength(offBy: -3), "200 body:a end"),
        (.noReasonPhrase, "200 body:abcd end"), (.lineFeedsOnly, "200 body:abcd end"),
        (.latin1Headers, "200 body:abcd end"), (.manyHeaders(7), "200 body:abcd end"),
        (.longHeader(9), "200 body:abcd end"),
    ]

    /// The events of an exchange, as text.
    private func story(_ response: MockResponse) async throws -> (story: String, headers: HTTPHeaders?) {
        let transport = InMemoryTransport()
        transport.route("GET", "/") { _ in response }
        let url = try #require(URL(string: "http://host.test/"))
        let recorder = Recorder()
        recorder.start(TransportRequest(url: url, deadlines: TransportDeadlines(idle: nil)), on: transport)
        return (await recorder.ended(), recorder.headers)
    }

    @Test("BEY-11: an exchange is lost at each place, after the server's bytes before it", arguments: places)
    func lost(place: Fault.Place, heard: String, isOver: Bool) async throws {
        for fault in [Fault.close(at: place), .reset(at: place)] {
            let response = MockResponse(body: .data(Data("abcd".utf8)), fault: fault)
            try await expect(story(response).story, equals: heard + (isOver ? "end" : "end:connectionLost"))
        }
    }

    @Test("BEY-11: an exchange stalls at each place, until it is cancelled", arguments: places)
    func stalled(place: Fault.Place, heard: String, isOver: Bool) async throws {
        let url = try #require(URL(string: "http://host.test/"))
        for fault in [Fault.stall(at: place), .halfOpen(at: place)] {
            let transport = InMemoryTransport()
            transport.route("GET", "/") { _ in MockResponse(body: .data(Data("abcd".utf8)), fault: fault) }
            let recorder = Recorder()
            // A deadline in real time could pass on a slow machine.
            let request = TransportRequest(url: url, deadlines: TransportDeadlines(idle: nil))
            let exchange = recorder.start(request, on: transport)
            if !isOver {
                // The earlier events arrive on another thread.
                await recorder.heard(heard.trimmingCharacters(in: .whitespaces))
                exchange.cancel()
            }
            await expect(recorder.ended(), equals: heard + (isOver ? "end" : "end:cancelled"))
        }
    }

    @Test("BEY-11: malformed answers have the events of a real reader", arguments: malformations)
    func malformed(fault: Fault, heard: String) async throws {
        let (story, headers) = try await story(MockResponse(body: .data(Data("abcd".utf8)), fault: fault))
        expect(story, equals: heard)
        if fault == .manyHeaders(7) { expect(headers?["X-Field-7"], equals: "7") }
        if fault == .longHeader(9) { expect(headers?["X-Long"], equals: "xxxxxxxxx") }
    }

    @Test("BEY-11: a chunked body without its end is lost, a complete one is not")
    func chunks() async throws {
        let body = MockResponse.Body.chunks([Data("ab".utf8), Data("cd".utf8)])
        for count in [4, 9] {
            let response = MockResponse(body: body, fault: .truncate(after: count))
            try await expect(story(response).story, equals: "200 body:ab body:cd end:connectionLost")
        }
        let response = MockResponse(body: body, fault: .reset(at: .responseEnd))
        try await expect(story(response).story, equals: "200 body:ab body:cd end")
        try await expect(story(.fault(.refuse(413))).story, equals: "413 end")
    }

    @Test("BEY-11: a repeated byte comes in pieces, and cancelling ends an endless body")
    func repeating() async throws {
        let url = try #require(URL(string: "http://host.test/"))
        let transport = InMemoryTransport()
        transport.route("GET", "/") { _ in MockResponse(body: .repeating(0x61, count: 65_537)) }
        transport.route("GET", "/endless") { _ in MockResponse(body: .repeating(0x61, count: .max)) }
        let recorder = Recorder()
        recorder.start(TransportRequest(url: url, deadlines: TransportDeadlines(idle: nil)), on: transport)
        await expect(recorder.ended(), equals: "200 body:\(String(repeating: "a", count: 65_536)) body:a end")
        let endless = Recorder(cancelAt: "body:" + String(repeating: "a", count: 65_536))
        endless.start(TransportRequest(url: url.appendingPathComponent("endless")), on: transport)
        await expect(endless.ended().hasSuffix("a end:cancelled"))
    }
}
