import EasyNetwork
import EasyNetworkTesting
import Foundation
import Testing

@testable import TestSupport

@Suite("InMemoryTransport")
struct InMemoryTransportTests {
    private static func url(_ path: String) throws -> URL {
        try #require(URL(string: "http://host.test:8080" + path))
    }

    private func get(_ path: String = "/", deadlines: TransportDeadlines = TransportDeadlines(idle: nil)) throws
        -> TransportRequest
    {
        TransportRequest(url: try Self.url(path), deadlines: deadlines)
    }

    @Test("BEY-11: head, body and end come once, in order, with the header fields of the server")
    func events() async throws {
        let transport = InMemoryTransport()
        transport.route("GET", "/text") { _ in .text("hello") }
        transport.route("GET", "/chunks") { _ in .chunked([Data("a".utf8), Data(), Data("b".utf8)]) }
        transport.route("*", "/none") { _ in .status(204) }
        let text = Recorder()
        text.start(try get("/text"), on: transport)
        await expect(text.ended(), equals: "200 body:hello end")
        expect(text.headers?["Content-Length"], equals: "5")
        let chunks = Recorder()
        chunks.start(try get("/chunks"), on: transport)
        await expect(chunks.ended(), equals: "200 body:a body:b end")
        expect(chunks.headers?["Transfer-Encoding"], equals: "chunked")
        let none = Recorder()
        none.start(try get("/none"), on: transport)
        await expect(none.ended(), equals: "204 end")
        let missing = Recorder()
        missing.start(try get("/missing"), on: transport)
        await expect(missing.ended(), equals: #"404 body:{"error":"no route for GET /missing"} end"#)
        expect(transport.requests.map(\.path), equals: ["/text", "/chunks", "/none", "/missing"])
    }

    @Test("BEY-11: a route sees the request that a server would see")
    func request() async throws {
        let transport = InMemoryTransport()
        let recorder = Recorder()
        let request = TransportRequest(
            method: .post,
            url: try Self.url("/a%20b?c=%26#fragment"),
            headers: ["A": "b"],
            body: .data(Data("body".utf8))
        )
        recorder.start(request, on: transport)
        _ = await recorder.ended()
        let seen = try #require(transport.requests.first)
        expect(seen.method, equals: "POST")
        expect(seen.target, equals: "/a%20b?c=%26")
        expect(seen.headers, equals: ["A": "b", "Host": "host.test:8080", "Content-Length": "4"])
        expect(seen.body, equals: Data("body".utf8))
        expect(seen.connection, equals: 0)
    }

    @Test("BEY-11: a file is a body; a missing file and an invalid request end with an error")
    func invalid() async throws {
        let transport = InMemoryTransport()
        transport.route("*", "*") { request in .data(request.body) }
        let file = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        let request = TransportRequest(method: .put, url: try Self.url("/"), body: .file(file))
        let missing = Recorder()
        missing.start(request, on: transport)
        await expect(missing.ended(), equals: "end:invalidRequest")
        expect(missing.error?.message?.contains(file.path), equals: true)
        try Data("contents".utf8).write(to: file)
        defer { try? FileManager.default.removeItem(at: file) }
        let there = Recorder()
        there.start(request, on: transport)
        await expect(there.ended(), equals: "200 body:contents end")

        let ftp = try #require(URL(string: "ftp://host/"))
        for bad in [
            TransportRequest(url: ftp), TransportRequest(method: .init(rawValue: "A B"), url: try Self.url("/")),
            TransportRequest(url: try Self.url("/"), headers: ["A": "b\r\nC: d"]),
            TransportRequest(url: try Self.url("/"), headers: ["A ": "b"]),
        ] {
            let recorder = Recorder()
            recorder.start(bad, on: transport)
            await expect(recorder.ended(), equals: "end:invalidRequest")
        }
        expect(transport.requests.count, equals: 1)
    }

    static let faults: [(fault: MockResponse.Fault, events: String)] = [
        (.close, "end:connectionLost"), (.reset, "end:connectionLost"),
        (.truncate(after: 3), "200 body:abc end:connectionLost"), (.truncate(after: 0), "200 end:connectionLost"),
        (.truncate(after: 9), "200 body:abcdef end"), (.raw(Data("x".utf8)), "end:badServerResponse"),
    ]

    @Test("BEY-11: faults end as those of the server", arguments: faults)
    func fault(fault: MockResponse.Fault, events: String) async throws {
        let transport = InMemoryTransport()
        transport.route("GET", "/") { _ in MockResponse(body: .data(Data("abcdef".utf8)), fault: fault) }
        let recorder = Recorder()
        recorder.start(try get(), on: transport)
        await expect(recorder.ended(), equals: events)
    }

    @Test("BEY-11: a delay follows the clock")
    func delay() async throws {
        let clock = ManualClock()
        let transport = InMemoryTransport(clock: clock)
        transport.route("GET", "/") { _ in MockResponse(delay: 5) }
        let recorder = Recorder()
        recorder.start(try get(deadlines: TransportDeadlines()), on: transport)
        await expect(clock.waitForTimers(2))
        clock.advance(by: 4.9)
        expect(clock.pendingCount, equals: 2)
        expect(recorder.story, equals: "")
        clock.advance(by: 0.1)
        await expect(recorder.ended(), equals: "200 end")
        expect(clock.pendingCount, equals: 0, "the deadline's timer is taken back")
    }

    static let deadlines: [(deadlines: TransportDeadlines, due: TimeInterval)] = [
        (TransportDeadlines(), 60), (TransportDeadlines(idle: 10, total: 20), 10),
        (TransportDeadlines(idle: 10, total: 3), 3), (TransportDeadlines(idle: nil, total: 7), 7),
        (TransportDeadlines(idle: .nan, total: 7), 7),
    ]

    @Test("BEY-11: a stalled exchange ends at its earliest deadline", arguments: deadlines)
    func deadline(deadlines: TransportDeadlines, due: TimeInterval) async throws {
        let clock = ManualClock()
        let transport = InMemoryTransport(clock: clock)
        transport.route("GET", "/") { _ in .fault(.stall) }
        let recorder = Recorder()
        recorder.start(try get(deadlines: deadlines), on: transport)
        await expect(transport.waitForRequests(1))
        clock.advance(by: due - 0.1)
        expect(clock.pendingCount, equals: 1)
        clock.advance(by: 0.2)
        await expect(recorder.ended(), equals: "end:timedOut")
        expect(clock.pendingCount, equals: 0)
    }

    @Test("BEY-11: a stalled exchange that is cancelled ends once and frees its closure and its timers")
    func cancelStalled() async throws {
        let clock = ManualClock()
        let transport = InMemoryTransport(clock: clock)
        transport.route("GET", "/") { _ in .status(103) }
        let recorder = Recorder()
        let exchange = recorder.start(try get(), on: transport)
        await expect(transport.waitForRequests(1))
        exchange.cancel()
        exchange.cancel()
        await expect(recorder.ended(), equals: "end:cancelled")
        expect(clock.pendingCount, equals: 0)
        clock.advance(by: 100)
        exchange.cancel()
        expect(recorder.story, equals: "end:cancelled")
    }

    @Test("BEY-11: an exchange that is cancelled at once ends once, with cancelled or its answer")
    func cancelAtOnce() async throws {
        let transport = InMemoryTransport(clock: ManualClock())
        transport.route("GET", "/") { _ in MockResponse(body: .data(Data("x".utf8)), delay: 1) }
        for _ in 0..<200 {
            let recorder = Recorder()
            recorder.start(try get(), on: transport).cancel()
            await expect(recorder.ended(), equals: "end:cancelled")
        }
    }

    @Test(
        "BEY-11: after a cancel inside an event only the end follows",
        arguments: ["200", "body:a", "body:b"]
    )
    func cancelInside(event: String) async throws {
        let transport = InMemoryTransport()
        transport.route("GET", "/") { _ in .chunked([Data("a".utf8), Data("b".utf8)]) }
        let gate = DispatchSemaphore(value: 0)
        let recorder = Recorder(cancelAt: event, gate: gate)
        recorder.start(try get(), on: transport)
        gate.signal()
        let expected = ["200": "200", "body:a": "200 body:a", "body:b": "200 body:a body:b"]
        await expect(recorder.ended(), equals: "\(expected[event] ?? "") end:cancelled")
    }

    @Test("BEY-11: an exchange that many threads cancel during its answer ends exactly once")
    func cancelRace() async throws {
        let transport = InMemoryTransport()
        transport.route("GET", "/") { _ in .text("x") }
        for _ in 0..<200 {
            let recorder = Recorder()
            let exchange = recorder.start(try get(), on: transport)
            await withTaskGroup(of: Void.self) { group in
                for _ in 0..<4 { group.addTask { exchange.cancel() } }
            }
            let story = await recorder.ended()
            let possible = ["end:cancelled", "200 end:cancelled", "200 body:x end:cancelled", "200 body:x end"]
            expect(possible.contains(story), "\(story)")
            expect(recorder.endCount, equals: 1)
        }
    }
}
