import EasyNetworkTesting
import Foundation
import Testing

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

@testable import EasyNetwork
@testable import TestSupport

@Suite("URLSessionTransport", .timeLimit(.minutes(10)))
struct URLSessionTransportTests {
    @Test("SEC-2: the release of a transport closes its connections", arguments: ["/ok", "/stall", "/reset", "/moved"])
    func closes(path: String) async throws {
        let server = try MockServer()
        server.route("GET", "/ok") { _ in .text("ok") }
        server.route("GET", "/stall") { _ in .fault(.stall) }
        server.route("GET", "/reset") { _ in .fault(.reset) }
        server.route("GET", "/moved") { _ in .status(302, headers: ["Location": "/ok"]) }
        weak var released: URLSessionTransport?
        do {
            let transport = URLSessionTransport()
            released = transport
            let ended = Gate()
            let url = try #require(URL(string: server.baseURL.absoluteString + path))
            let exchange = transport.start(TransportRequest(url: url, deadlines: TransportDeadlines(idle: nil))) {
                if case .end = $0 { ended.open() }
            }
            await server.waitForRequests(1)
            if path == "/stall" { exchange.cancel() }
            await ended.opened()
        }
        await expect(eventually { released == nil })
        await expect(server.waitForConnections(0))
    }

    @Test("REQ-4: a file that has become longer until the response is an error", arguments: [false, true])
    func longerFile(grows: Bool) async throws {
        let folder = TestFolder()
        let file = folder.write("0123456789", to: "a")
        let server = try MockServer()
        server.route("PUT", "/a") { _ in
            if grows, let handle = try? FileHandle(forWritingTo: file) {
                _ = try? handle.seekToEnd()
                try? handle.write(contentsOf: Data("a".utf8))
                try? handle.close()
            }
            return .status(201)
        }
        struct Put: BaseAPIRequest {
            let api = "a"
            let method = NetworkService.Method.put
            let body: RequestBody?
        }
        let service = EasyNetworkService(server.host(transport: URLSessionTransport()))
        do {
            try await expect(service.send(Put(body: .file(file))).statusCode == 201 && !grows)
        } catch {
            expect(grows && error.code == .invalidRequest && error.message?.contains("longer") == true, "\(error)")
        }
    }

    @Test("SEC-2, CBK-2: the release closes the connections after cancels before the start too")
    func closesAfterEarlyCancels() async throws {
        let server = try MockServer()
        server.route("GET", "/ok") { _ in .text("ok") }
        let url = try #require(URL(string: server.baseURL.absoluteString + "/ok"))
        do {
            let transport = URLSessionTransport(TransportConfiguration(maximumConnectionsPerHost: 2))
            let gates = (0..<200).map { index -> Gate in
                let ended = Gate()
                let exchange = transport.start(TransportRequest(url: url, deadlines: TransportDeadlines(idle: nil))) {
                    if case .end = $0 { ended.open() }
                }
                if index % 10 != 0 { exchange.cancel() }
                return ended
            }
            for gate in gates { await gate.opened() }
        }
        await expect(server.waitForConnections(0))
    }

    @Test(
        "SEC-3: Set-Cookie fields that a session has joined are split",
        arguments: [
            ("a=1", ["a=1"]), ("a=1,b=2", ["a=1", "b=2"]), ("a=1, b=2; Domain=x", ["a=1", "b=2; Domain=x"]),
            (
                "a=1; Expires=Wed, 09 Jun 2100 10:18:14 GMT, b=2; expires=Wednesday, 09-Jun-99 10:18:14 GMT,c=",
                ["a=1; Expires=Wed, 09 Jun 2100 10:18:14 GMT", "b=2; expires=Wednesday, 09-Jun-99 10:18:14 GMT", "c="]
            ),
            ("a=1, 2, 3; Path=/, b=4", ["a=1, 2, 3; Path=/", "b=4"]), ("a=1,", ["a=1,"]), ("a=1, =2", ["a=1, =2"]),
            ("a=1,,\t b[c]=2", ["a=1,", "b[c]=2"]), ("", [""]), ("=,=,=", ["=,=,="]), ("a=1, b ;c=d", ["a=1, b ;c=d"]),
            ("a=é, ü=x", ["a=é", "ü=x"]),
        ]
    )
    func joinedCookies(joined: String, fields: [String]) {
        let headers = HTTPHeaders(joined: ["set-cookie": joined, "Vary": "a=1, b=2"])
        expect(headers.values(for: "Set-Cookie"), equals: fields)
        expect(headers.values(for: "Vary"), equals: ["a=1, b=2"])
    }

    @Test("BEY-14: an answer in several parts has the first head and the bytes of all parts")
    func parts() throws {
        let url = try #require(URL(string: "http://127.0.0.1:1/"))
        let seen = Locked<[String]>([])
        let transport = URLSessionTransport(clock: ManualClock())
        let exchange = URLSessionExchange(TransportRequest(url: url), transport) { event in
            switch event {
            case .head(let head): seen.withLock { $0.append(head.headers["X"] ?? "") }
            case .body(let data): seen.withLock { $0.append(String(decoding: data, as: UTF8.self)) }
            case .sent, .end: break
            }
        }
        var goneOn = 0
        for number in ["1", "2"] {
            let fields = ["X": number, "Content-Type": "Multipart/x-mixed-replace;boundary=b"]
            let head = HTTPURLResponse(url: url, statusCode: 200, httpVersion: nil, headerFields: fields)
            exchange.received(try #require(head)) { goneOn += $0 == .allow ? 1 : 0 }
            exchange.received(Data("part \(number)".utf8))
        }
        expect(seen.withLock { $0 }, equals: ["1", "part 1", "part 2"])
        expect(goneOn, equals: 2)
    }

    @Test("RSP-6: a second head of an answer that has no parts ends the exchange: the session has begun it anew")
    func anew() async throws {
        let url = try #require(URL(string: "http://127.0.0.1:1/"))
        let transport = URLSessionTransport(clock: ManualClock())
        let failure = Locked<NetworkError?>(nil)
        let exchange = URLSessionExchange(TransportRequest(url: url), transport) { event in
            switch event {
            case .end(let how): failure.exchange(how.error)
            case .body(let data): expect(data, equals: Data("once".utf8))
            case .head, .sent: break
            }
        }
        let head = HTTPURLResponse(url: url, statusCode: 200, httpVersion: nil, headerFields: ["Content-Type": "a/b"])
        for body in ["once", "twice"] {
            exchange.received(try #require(head)) { _ in }
            exchange.received(Data(body.utf8))
        }
        await expect(eventually { failure.withLock { $0 } != nil })
        expect(failure.withLock { $0?.code } == .connectionLost && failure.withLock { $0?.phase } == .body)
    }

    @Test("SEC-2: a cancel of the session's own is a lost connection, or of TLS if the server was just refused")
    func cancelOfItsOwn() async throws {
        let (url, other) = (try #require(URL(string: "https://a:1/")), try #require(URL(string: "https://b:1/")))
        let clock = ManualClock()
        let transport = URLSessionTransport(clock: clock)
        func code(_ url: URL, refused: Bool = false) async -> NetworkError.Code? {
            let (ends, end) = AsyncStream.makeStream(of: NetworkError?.self)
            let exchange = URLSessionExchange(TransportRequest(url: url), transport) { event in
                if case .end(let how) = event { end.yield(how.error) }
            }
            if refused { transport.delegate.refuse(exchange.origin, at: clock.now) }
            exchange.completed(URLError(.cancelled))
            for await error in ends { return error?.code }
            return nil
        }
        await expect(code(url), equals: .connectionLost)
        await expect(code(url, refused: true), equals: .tls)
        await expect(code(other), equals: .connectionLost)
        clock.advance(by: 1)
        await expect(code(url), equals: .connectionLost)
    }

    @Test("RSP-6: no network, or none that may be used, has its own code, unlike a host that refuses")
    func notConnected() {
        func code(_ code: URLError.Code) -> NetworkError.Code {
            NetworkError(transport: URLError(code), isSecure: true, hasHead: false).code
        }
        for none in [URLError.Code.notConnectedToInternet, .dataNotAllowed, .internationalRoamingOff, .callIsActive] {
            expect(code(none), equals: .notConnected)
        }
        for there in [URLError.Code.cannotConnectToHost, .cannotFindHost, .dnsLookupFailed] {
            expect(code(there), equals: .cannotConnect)
        }
        expect(NetworkError(code: .notConnected, attempts: 1).mayHaveReachedServer, equals: false)
    }

    @Test("RSP-6: what App Transport Security refuses is an invalid request that names Info.plist")
    func transportSecurity() {
        let refusal = URLError(.appTransportSecurityRequiresSecureConnection)
        let error = NetworkError(transport: refusal, isSecure: false, hasHead: false)
        expect(error.code == .invalidRequest && error.message?.contains("Info.plist") == true)
    }

    @Test("RSP-6: Foundation's error texts contain no user or password of a proxy")
    func proxySecrets() {
        let words = "Unsupported proxy syntax in 'http://ada:s3 cret@h:1'"
        let below = NSError(domain: "NSURLErrorDomain", code: -1_000, userInfo: [NSLocalizedDescriptionKey: words])
        let error = NetworkError(transport: below, isSecure: false, hasHead: false)
        expect(error.message, equals: "Unsupported proxy syntax in 'http://REDACTED@h:1'")
    }

    #if canImport(Darwin)
    @Test(
        "SEC-2: the session finds each of the delegate's methods, which are optional in Apple's protocols",
        arguments: [
            "dataTask:didReceiveResponse:completionHandler:", "dataTask:didReceiveData:",
            "task:didSendBodyData:totalBytesSent:totalBytesExpectedToSend:",
            "task:willPerformHTTPRedirection:newRequest:completionHandler:",
            "task:didReceiveChallenge:completionHandler:", "task:didFinishCollectingMetrics:",
            "task:didCompleteWithError:",
        ]
    )
    func selectors(selector: String) {
        let delegate = URLSessionTransportDelegate(TLSConfiguration())
        expect(delegate.responds(to: NSSelectorFromString("URLSession:\(selector)")))
    }
    #endif

    @Test("REQ-3: a body that a session does not send with GET is an invalid request, which no repeat helps")
    func bodyOfGet() async throws {
        let refusal = NetworkError(transport: URLError(.dataLengthExceedsMaximum), isSecure: true, hasHead: false)
        expect(refusal.code, equals: .invalidRequest)
        #if canImport(Darwin)
        let fixture = try TransportFixture(.urlSession)
        var request = try fixture.request("/")
        request.body = .data(Data("a=b".utf8))
        let outcome = await fixture.start(request).end()
        expect(outcome.code == .invalidRequest && fixture.requests.isEmpty)
        #endif
    }

    @Test("SEC-2: the session's configuration can be changed before it is made")
    func hook() async throws {
        let server = try MockServer()
        server.route("GET", "/ok") { _ in .text("ok") }
        let transport = URLSessionTransport { $0.httpAdditionalHeaders = ["X-Session": "1"] }
        let service = EasyNetworkService(server.host(transport: transport))
        _ = try await service.send(Get(api: "ok"))
        expect(server.requests.first?.headers["X-Session"], equals: "1")
    }
}
