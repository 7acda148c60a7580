import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("Every transport", .timeLimit(.minutes(10)))
struct TransportTests {
    typealias Kind = TransportFixture.Kind

    @Test("BEY-14: head, body and end come in order, once", arguments: Kind.allCases)
    func order(kind: Kind) async throws {
        let fixture = try TransportFixture(kind)
        fixture.route("GET", "/fixed") { _ in .text("hello", headers: ["X-One": "1"]) }
        fixture.route("GET", "/chunked") { _ in .chunked([Data("a".utf8), Data("bc".utf8), Data("d".utf8)]) }
        fixture.route("GET", "/empty") { _ in .status(204) }
        let fixed = await fixture.start(try fixture.request("/fixed")).end()
        expect(fixed.head?.statusCode == 200 && fixed.head?.headers["x-one"] == "1")
        expect(fixed.body == Data("hello".utf8) && fixed.end?.error == nil && fixed.faults.isEmpty)
        let chunked = await fixture.start(try fixture.request("/chunked")).end()
        expect(chunked.body == Data("abcd".utf8) && chunked.end?.error == nil && chunked.faults.isEmpty)
        let empty = await fixture.start(try fixture.request("/empty")).end()
        expect(empty.head?.statusCode == 204 && empty.body.isEmpty && empty.end?.error == nil && empty.faults.isEmpty)
    }

    @Test("REQ-1: every method goes out in upper case, with headers and body as given", arguments: Kind.allCases)
    func methods(kind: Kind) async throws {
        let fixture = try TransportFixture(kind)
        fixture.route("*", "/echo") { _ in .status(200) }
        let methods: [NetworkService.Method] = [
            .get, .post, .put, .delete, .patch, .head, .init(rawValue: "propfind"),
        ]
        for method in methods {
            var request = try fixture.request("/echo", method)
            request.headers = ["X-Name": "vélo"]
            if ![.get, .head].contains(method) { request.body = .data(Data("body of \(method)".utf8)) }
            let outcome = await fixture.start(request).end()
            expect(outcome.end?.error == nil && outcome.faults.isEmpty, "\(method)")
            let received = try #require(fixture.requests.last)
            expect(received.method, equals: method.rawValue)
            expect(received.body, equals: ([.get, .head].contains(method) ? Data() : Data("body of \(method)".utf8)))
            expect(received.headers["x-name"] != nil)
        }
    }

    @Test("SEC-3: every Set-Cookie field comes by itself, also with a date in it", arguments: Kind.allCases)
    func setCookie(kind: Kind) async throws {
        let fixture = try TransportFixture(kind)
        let fields = [
            "session=1; Path=/", "theme=dark; Expires=Wed, 09 Jun 2100 10:18:14 GMT; Domain=example.com",
            "c=3; Expires=Wednesday, 09-Jun-99 10:18:14 GMT; HttpOnly", "d=4, 5",
        ]
        fixture.route("GET", "/") { _ in
            MockResponse(headers: HTTPHeaders(fields.map { .init(name: "Set-Cookie", value: $0) }))
        }
        let head = await fixture.start(try fixture.request("/")).end().head
        expect(head?.headers.values(for: "Set-Cookie"), equals: fields)
    }

    @Test("SEC-4: user and password of an address are not sent", arguments: Kind.allCases)
    func credentialsOfURL(kind: Kind) async throws {
        let fixture = try TransportFixture(kind)
        fixture.route("GET", "/") { _ in .text("ok") }
        var request = try fixture.request("/")
        let address = request.url.absoluteString.replacingOccurrences(of: "//", with: "//user:secret@")
        request.url = try #require(URL(string: address))
        await expect(fixture.start(request).end().head?.statusCode, equals: 200)
        expect(fixture.requests.first?.headers["Authorization"] == nil)
    }

    @Test("REQ-1: a malformed request is an error of that request", arguments: Kind.allCases)
    func invalid(kind: Kind) async throws {
        let fixture = try TransportFixture(kind)
        var messages: [TransportRequest] = []
        for address in ["ftp://127.0.0.1/a", "file:///etc/passwd", "relative/path", "http://", "gopher://127.0.0.1/"] {
            messages.append(TransportRequest(url: try #require(URL(string: address))))
        }
        for headers: HTTPHeaders in [["A": "b\r\nC: d"], ["A\r\n": "b"], ["": "b"], ["A": "\0"]] {
            var message = try fixture.request("/")
            message.headers = headers
            messages.append(message)
        }
        var method = try fixture.request("/")
        method.method = NetworkService.Method(rawValue: "GET / HTTP/1.1\r\nA:")
        messages.append(method)
        for message in messages {
            let outcome = await fixture.start(message).end()
            expect(outcome.code, equals: .invalidRequest, "\(message.url): \(String(describing: outcome.end))")
            expect(outcome.end?.error?.message?.isEmpty == false && outcome.end?.error?.mayHaveReachedServer == false)
        }
        expect(fixture.requests.isEmpty)
    }

    @Test("REQ-3: a body from a file; a path that is no file is an error of that request", arguments: Kind.allCases)
    func fileBody(kind: Kind) async throws {
        let fixture = try TransportFixture(kind)
        fixture.route("PUT", "/file") { _ in .status(201) }
        let file = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        let contents = bodyBytes(300_000)
        try contents.write(to: file)
        defer { try? FileManager.default.removeItem(at: file) }
        var request = try fixture.request("/file", .put)
        request.body = .file(file)
        await expect(fixture.start(request).end().head?.statusCode, equals: 201)
        expect(fixture.requests.last?.body, equals: contents)
        for bad in [file.appendingPathExtension("missing"), FileManager.default.temporaryDirectory] {
            request.body = .file(bad)
            let outcome = await fixture.start(request).end()
            expect(outcome.code, equals: .invalidRequest)
            expect(outcome.end?.error?.message?.contains(bad.path), equals: true)
        }
        expect(fixture.requests.count, equals: 1)
    }

    @Test("SEC-2: no redirect is followed and no status judged", arguments: Kind.allCases, [301, 302, 303, 307, 308])
    func redirects(kind: Kind, status: Int) async throws {
        let fixture = try TransportFixture(kind)
        fixture.route("POST", "/from") { _ in .text("moved", status: status, headers: ["Location": "/to"]) }
        fixture.route("*", "/to") { _ in .text("target") }
        var request = try fixture.request("/from", .post)
        request.body = .data(Data("x".utf8))
        let outcome = await fixture.start(request).end()
        expect(outcome.head?.statusCode == status && outcome.head?.headers["Location"] != nil)
        expect(outcome.end?.error == nil && outcome.faults.isEmpty)
        expect(fixture.requests.count, equals: 1)
    }

    @Test("CBK-7: a challenge for credentials is passed on as the 401 that it is", arguments: Kind.allCases)
    func challenge(kind: Kind) async throws {
        let fixture = try TransportFixture(kind)
        for scheme in ["Basic realm=\"a\"", "Digest realm=\"a\", nonce=\"b\"", "Bearer", "nonsense"] {
            fixture.route("GET", "/private") { _ in
                .json(["error": "who are you"], status: 401, headers: ["WWW-Authenticate": scheme])
            }
            let outcome = await fixture.start(try fixture.request("/private")).end()
            expect(outcome.head?.statusCode, equals: 401, "\(scheme)")
            expect(outcome.body, equals: Data("{\"error\":\"who are you\"}".utf8), "\(scheme)")
            expect(outcome.end?.error == nil && outcome.faults.isEmpty, "\(scheme)")
        }
    }

    @Test("BEY-1: a reset, a close and a truncated body are a clear end each", arguments: Kind.allCases)
    func faults(kind: Kind) async throws {
        let fixture = try TransportFixture(kind)
        fixture.route("GET", "/reset") { _ in .fault(.reset) }
        fixture.route("GET", "/close") { _ in .fault(.close) }
        fixture.route("GET", "/cut") { _ in
            var response = MockResponse.data(Data(repeating: 7, count: 1_000))
            response.fault = .truncate(after: 10)
            return response
        }
        for path in ["/reset", "/close", "/cut"] {
            let outcome = await fixture.start(try fixture.request(path)).end()
            expect(outcome.code, equals: .connectionLost, "\(path): \(String(describing: outcome.end))")
            expect(outcome.faults.isEmpty)
        }
    }

    @Test("RSP-6: an answer that is not HTTP says so", arguments: Kind.allCases)
    func garbage(kind: Kind) async throws {
        let fixture = try TransportFixture(kind)
        fixture.route("GET", "/garbage") { _ in .fault(.raw(Data("SSH-2.0-OpenSSH\r\n".utf8))) }
        let outcome = await fixture.start(try fixture.request("/garbage")).end()
        expect(outcome.code == .badServerResponse && outcome.faults.isEmpty)
    }

    @Test("REQ-5: silence longer than the idle deadline ends the exchange", arguments: Kind.allCases)
    func idleDeadline(kind: Kind) async throws {
        let fixture = try TransportFixture(kind)
        fixture.route("GET", "/stall") { _ in .fault(.stall) }
        var request = try fixture.request("/stall")
        request.deadlines = TransportDeadlines(idle: 0.25, total: nil)
        let exchange = fixture.start(request)
        await fixture.waitForRequests(1)
        await fixture.clock.waitForTimers(1)
        fixture.clock.advance(by: 0.2)
        expect(exchange.recording.contents.end == nil)
        fixture.clock.advance(by: 0.1)
        let outcome = await exchange.end()
        expect(outcome.code == .timedOut && outcome.faults.isEmpty)
        // The timer is removed just after the end event.
        await expect(eventually { fixture.clock.pendingCount == 0 })
    }

    @Test("REQ-5: the total deadline ends the exchange whatever comes in", arguments: Kind.allCases)
    func totalDeadline(kind: Kind) async throws {
        let fixture = try TransportFixture(kind)
        fixture.route("GET", "/stall") { _ in .fault(.stall) }
        var request = try fixture.request("/stall")
        request.deadlines = TransportDeadlines(idle: nil, total: 3)
        let exchange = fixture.start(request)
        await fixture.clock.waitForTimers(1)
        fixture.clock.advance(by: 3)
        await expect(exchange.end().code, equals: .timedOut)
    }

    @Test(
        "REQ-5: an exchange without deadlines sets no timer, and an ended exchange leaves none",
        arguments: Kind.allCases
    )
    func timersAreTakenBack(kind: Kind) async throws {
        let fixture = try TransportFixture(kind)
        fixture.route("GET", "/ok") { _ in .text("ok") }
        for deadlines in [TransportDeadlines(idle: nil), TransportDeadlines(idle: 5, total: 6)] {
            var request = try fixture.request("/ok")
            request.deadlines = deadlines
            await expect(fixture.start(request).end().end?.error == nil)
            // The timer may be set just after the end, and is then removed immediately.
            await expect(eventually { fixture.clock.pendingCount == 0 })
        }
    }

    @Test(
        "CBK-2: a cancel, at once or while the server is silent, is a single end with .cancelled",
        arguments: Kind.allCases
    )
    func cancel(kind: Kind) async throws {
        let fixture = try TransportFixture(kind)
        fixture.route("GET", "/silent") { _ in .fault(.stall) }
        fixture.route("GET", "/other") { _ in .fault(.stall) }
        let waiting = fixture.start(try fixture.request("/silent"))
        await fixture.waitForRequests(1)
        waiting.exchange.cancel()
        await expect(waiting.end().code, equals: .cancelled)

        let immediate = fixture.start(try fixture.request("/other"))
        immediate.exchange.cancel()
        immediate.exchange.cancel()
        await expect(immediate.end().code, equals: .cancelled)
        expect(waiting.recording.contents.faults.isEmpty && immediate.recording.contents.faults.isEmpty)
    }

    @Test("CBK-2: after a cancel inside the head event, no body and a single end follow", arguments: Kind.allCases)
    func cancelAtHead(kind: Kind) async throws {
        let fixture = try TransportFixture(kind)
        fixture.route("GET", "/ok") { _ in .chunked(Array(repeating: Data(repeating: 1, count: 10_000), count: 50)) }
        let exchange = Locked<(any TransportExchange)?>(nil)
        let isStarted = DispatchSemaphore(value: 0)
        // The head may arrive before the exchange is known here, so the transport's thread waits.
        let started = fixture.start(try fixture.request("/ok")) {
            isStarted.wait()
            exchange.withLock { $0 }?.cancel()
        }
        exchange.withLock { $0 = started.exchange }
        isStarted.signal()
        let outcome = await started.end()
        expect(outcome.code == .cancelled && outcome.body.isEmpty && outcome.faults.isEmpty)
        started.exchange.cancel()
        expect(started.recording.contents.faults.isEmpty)
    }

    @Test("BEY-1: two hundred exchanges cancelled at random moments end once each", arguments: Kind.allCases, 0..<3)
    func randomCancels(kind: Kind, seed: UInt64) async throws {
        var random = SeededGenerator(seed: seed)
        let fixture = try TransportFixture(kind, TransportConfiguration(maximumConnectionsPerHost: 16))
        fixture.route("GET", "/ok") { _ in .text("ok") }
        fixture.route("GET", "/moved") { _ in .status(302, headers: ["Location": "/ok"]) }
        fixture.route("GET", "/private") { _ in .status(401, headers: ["WWW-Authenticate": "Basic realm=\"x\""]) }
        fixture.route("GET", "/reset") { _ in .fault(.reset) }
        fixture.route("GET", "/stall") { _ in .fault(.stall) }
        let exchanges = try (0..<200).map { _ in
            let path = ["/ok", "/moved", "/private", "/reset", "/stall"].randomElement(using: &random) ?? "/ok"
            return fixture.start(try fixture.request(path))
        }
        for index in exchanges.indices.shuffled(using: &random) {
            exchanges[index].exchange.cancel()
            if Bool.random(using: &random) { await Task.yield() }
        }
        for exchange in exchanges {
            let outcome = await exchange.end()
            expect(outcome.faults.isEmpty, "seed \(seed)")
        }
        await expect(eventually { fixture.clock.pendingCount == 0 }, "seed \(seed)")
    }
}
