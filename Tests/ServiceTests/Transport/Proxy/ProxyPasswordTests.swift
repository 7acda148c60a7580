#if os(Linux)
import Foundation
import Testing

@testable import EasyNetwork
@testable import EasyNetworkTesting
@testable import TestSupport

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

@Suite("CurlTransport: passwords of proxies", .timeLimit(.minutes(10)))
struct ProxyPasswordTests {
    private static let target = "http://target.invalid:8080/a/b?c=d"
    private static let secureTarget = "https://target.invalid/a/b"
    private static let basic = "Basic realm=\"office\""
    private static let digest = "Digest realm=\"office\", nonce=\"n\", qop=\"auth\""
    private static let basicAnswer = "Basic " + Data("us er:se:cret".utf8).base64EncodedString()

    /// A proxy that asks for a password, and a transport that has one.
    private final class Place: Sendable {
        let server: MockServer
        let transport: CurlTransport

        /// - Parameters:
        ///   - challenges: the fields of each 407.
        ///   - isRefusing: whether no password is right.
        ///   - credentials: of the transport.
        ///   - clock: of its deadlines.
        init(
            _ challenges: [String],
            isRefusing: Bool = false,
            credentials: String = "us%20er:se%3Acret@",
            clock: any NetworkClock = SystemClock()
        ) throws {
            server = try MockServer()
            let url = "http://\(credentials)127.0.0.1:\(server.baseURL.port ?? 0)"
            transport = CurlTransport(TransportConfiguration(proxy: .url(try #require(URL(string: url)))), clock: clock)
            var asks = MockResponse(statusCode: 407, body: .chunks([Data("deni".utf8), Data("ed".utf8)]))
            for challenge in challenges { asks.headers.add(challenge, for: "Proxy-Authenticate") }
            asks.fault = .statusLine("HTTP/1.1 407 Not without a password")
            let isOpen: @Sendable (MockRequest) -> Bool = { request in
                !isRefusing && ProxyPasswordTests.isRight(request.headers["Proxy-Authorization"] ?? "", request)
            }
            server.route("*", "*") { [asks] in isOpen($0) ? .text("through the proxy") : asks }
            // Nobody speaks TLS behind this proxy.
            server.route("CONNECT", "*") { [asks] in isOpen($0) ? .status(502, headers: ["Retry-After": "7"]) : asks }
        }

        func outcome(
            _ address: String,
            _ method: NetworkService.Method = .get,
            _ body: TransportBody = .none
        ) async throws -> Recording.Contents {
            var request = TransportRequest(method: method, url: try #require(URL(string: address)), body: body)
            request.headers = ["X-Secret": "for the server"]
            let recording = Recording {}
            let exchange = transport.start(request) { recording.note($0) }
            return await RecordedExchange(exchange: exchange, recording: recording).end()
        }

        /// The passwords of the requests so far.
        var passwords: [String?] { server.requests.map { $0.headers["Proxy-Authorization"] } }
    }

    private static func isRight(_ value: String, _ request: MockRequest) -> Bool {
        if value == basicAnswer { return true }
        let fields = AuthenticationChallenge.all(in: ["WWW-Authenticate": value]).first?.parameters ?? [:]
        guard let algorithm = DigestSession.Algorithm(fields["algorithm"]), let uri = fields["uri"],
            let count = fields["nc"], let clientNonce = fields["cnonce"]
        else { return false }
        let key = algorithm.digest("us er:office:se:cret")
        let target = algorithm.digest("\(request.method):\(uri)")
        return fields["response"] == algorithm.digest("\(key):n:\(count):\(clientNonce):auth:\(target)")
            && request.target.hasSuffix(uri)
    }

    static let challenges = [
        ([basic], "Basic"), ([digest], "Digest"), ([basic, digest], "Digest"),
        (["\(digest), algorithm=SHA-256", "Negotiate", basic], "Digest"),
    ]

    @Test(
        "SEC-1: a proxy gets a password when it has asked for one, in the best scheme it offers",
        arguments: challenges
    )
    func asked(challenges: [String], scheme: String) async throws {
        let place = try Place(challenges)
        // Each body is whole, and only a 407 has it sent again.
        let stream = TransportBodyStream(pieces: {
            AsyncStream { continuation in
                for piece in ["ke", "pt"] { continuation.yield(Data(piece.utf8)) }
                continuation.finish()
            }
        })
        var count = 0
        let messages: [(NetworkService.Method, TransportBody)] = [
            (.post, .data(Data("kept".utf8))), (.put, .stream(stream)), (.get, .none),
        ]
        for (method, body) in messages {
            let contents = try await place.outcome(Self.target, method, body)
            expect(contents.head?.statusCode == 200 && contents.text == "through the proxy", "\(contents)")
            expect(contents.end?.error == nil && contents.faults.isEmpty, "\(contents)")
            if method != .get { expect(contents.sent.last, equals: 4) }
            let requests = place.server.requests[count...]
            count += requests.count
            expect(requests.allSatisfy { method == .get || $0.body == Data("kept".utf8) }, "\(requests)")
            // Basic has no nonce, so the proxy is not asked again.
            let isKnown = scheme == "Basic" && method != .post
            let schemes = requests.map { $0.headers["Proxy-Authorization"]?.prefix { $0 != " " } ?? "none" }
            expect(schemes, equals: isKnown ? ["Basic"] : ["none", Substring(scheme)])
        }
        expect(place.server.requests.allSatisfy { $0.headers["Authorization"] == nil && $0.target == Self.target })
        // Credentials in the URL are not sent, as without a proxy.
        _ = try await place.outcome(Self.target.replacingOccurrences(of: "//", with: "//me:mine@"))
        let last = try #require(place.server.requests.last)
        expect(last.headers["Authorization"] == nil && last.target == Self.target)
    }

    @Test(
        "SEC-1: a proxy gets the password for a tunnel when it has asked for it, and nothing else",
        arguments: challenges
    )
    func askedForTunnel(challenges: [String], scheme: String) async throws {
        let place = try Place(challenges)
        // Another message has taught the transport the scheme, but perhaps another proxy.
        _ = try await place.outcome(Self.target)
        let count = place.server.requests.count
        let contents = try await place.outcome(Self.secureTarget, .post, .data(Data("kept".utf8)))
        let error = try #require(contents.end?.error)
        expect(error.code == .cannotConnect && error.phase == .connect && !error.mayHaveReachedServer, "\(error)")
        expect(error.statusCode == 502 && error.headers["Retry-After"] == "7", "\(error)")
        expect(error.message, equals: "the proxy refused a tunnel: 502 Bad Gateway")
        let requests = place.server.requests[count...]
        let schemes = requests.map { $0.headers["Proxy-Authorization"]?.prefix { $0 != " " } ?? "none" }
        expect(schemes, equals: ["none", Substring(scheme)])
        expect(requests.allSatisfy { $0.method == "CONNECT" && $0.headers["X-Secret"] == nil && $0.body.isEmpty })
    }

    @Test(
        "SEC-1: a password that a proxy refuses goes out once for each request",
        arguments: [[basic], [digest], [basic, digest]]
    )
    func refused(challenges: [String]) async throws {
        let place = try Place(challenges, isRefusing: true)
        for number in 1...2 {
            let contents = try await place.outcome(Self.target, .post, .data(Data("kept".utf8)))
            expect(contents.head?.statusCode == 407 && contents.text == "denied", "\(contents)")
            expect(contents.end?.error == nil && contents.faults.isEmpty, "\(contents)")
            expect(place.passwords.count == 2 * number && place.passwords.compactMap(\.self).count == number)
        }
        let error = try #require(await place.outcome(Self.secureTarget).end?.error)
        expect(error.code == .cannotConnect && error.statusCode == 407 && !error.mayHaveReachedServer, "\(error)")
        expect(error.message, equals: "the proxy refused the user and the password: 407 Not without a password")
        expect(error.headers.values(for: "Proxy-Authenticate"), equals: challenges)
        expect(place.passwords.count == 6 && place.passwords.compactMap(\.self).count == 3)
    }

    @Test("SEC-1: a proxy that calls each nonce stale gets three answers, and its refusal is the outcome")
    func stale() async throws {
        let place = try Place(["\(Self.digest), stale=true"], isRefusing: true)
        let contents = try await place.outcome(Self.target, .post, .data(Data("kept".utf8)))
        expect(contents.head?.statusCode == 407 && contents.end?.error == nil && contents.faults.isEmpty, "\(contents)")
        expect(place.passwords.count, equals: 4)
        let error = try #require(await place.outcome(Self.secureTarget).end?.error)
        expect(error.code == .cannotConnect && error.statusCode == 407 && error.phase == .connect, "\(error)")
        expect(place.passwords.count, equals: 8)
    }

    @Test(
        "SEC-1: a proxy whose challenge has no answer gets none, and the error says why",
        arguments: [
            ("", [basic, digest], "the proxy requires a user and a password"),
            ("us%20er:se%3Acret@", ["Negotiate", "NTLM"], "the proxy accepts neither Basic nor Digest"),
            ("us%20er:se%3Acret@", [], "the proxy accepts neither Basic nor Digest"),
        ]
    )
    func unanswered(credentials: String, challenges: [String], reason: String) async throws {
        let place = try Place(challenges, credentials: credentials)
        let contents = try await place.outcome(Self.target)
        expect(contents.head?.statusCode == 407 && contents.text == "denied", "\(contents)")
        expect(contents.end?.error == nil && contents.faults.isEmpty, "\(contents)")
        let error = try #require(await place.outcome(Self.secureTarget).end?.error)
        expect(error.message, equals: "\(reason): 407 Not without a password")
        expect(place.passwords, equals: [nil, nil])
    }

    @Test("SEC-1: the refusal of a proxy that breaks off is delivered before the error")
    func brokenRefusal() async throws {
        let place = try Place([])
        place.server.route("*", "*") { _ in
            MockResponse(statusCode: 407, body: .data(Data("denied".utf8)), fault: .truncate(after: 0))
        }
        let contents = try await place.outcome(Self.target)
        expect(contents.head?.statusCode == 407 && contents.code == .connectionLost && contents.faults.isEmpty)
    }

    @Test("SEC-1: a message that is no longer wanted does not go out again with the password")
    func unwanted() async throws {
        let place = try Place([Self.digest])
        var request = TransportRequest(url: try #require(URL(string: Self.target)))
        let asked = Locked(0)
        request.isWanted = {
            asked.withLock {
                $0 += 1; return $0 == 1
            }
        }
        let recording = Recording {}
        let exchange = place.transport.start(request) { recording.note($0) }
        let contents = await RecordedExchange(exchange: exchange, recording: recording).end()
        expect(contents.code == .cancelled && contents.faults.isEmpty, "\(contents)")
        expect(place.passwords, equals: [nil])
    }

    @Test("BEY-3: the deadline of the response holds also for the one after the challenge")
    func deadline() async throws {
        let clock = ManualClock()
        let place = try Place([Self.basic], clock: clock)
        place.server.route("GET", "*") { request in
            let isFirst = request.headers["Proxy-Authorization"] == nil
            return isFirst ? .status(407, headers: ["Proxy-Authenticate": Self.basic]) : .fault(.stall)
        }
        var request = TransportRequest(url: try #require(URL(string: Self.target)))
        request.deadlines = TransportDeadlines(firstByte: 5, idle: nil)
        let recording = Recording {}
        let exchange = place.transport.start(request) { recording.note($0) }
        expect(await place.server.waitForFaults(1))
        clock.advance(by: 5)
        let contents = await RecordedExchange(exchange: exchange, recording: recording).end()
        expect(contents.code == .timedOut && contents.faults.isEmpty, "\(contents)")
    }

    // MARK: - Bodies that can be read once

    private static func once() -> TransportBody {
        .stream(TransportBodyStream(length: 4, isReplayable: false) { InputStream(data: Data("kept".utf8)) })
    }

    @Test(
        "SEC-1: a body that can be read once waits until the proxy has asked for the password",
        arguments: [basic, digest]
    )
    func bodyReadOnce(challenge: String) async throws {
        let proxy = try EarlyProxy(challenge)
        let url = try #require(URL(string: "http://us%20er:se%3Acret@127.0.0.1:\(proxy.port)"))
        let transport = CurlTransport(TransportConfiguration(proxy: .url(url)))
        let recording = Recording {}
        let target = try #require(URL(string: Self.target))
        let request = TransportRequest(method: .post, url: target, body: Self.once())
        let exchange = transport.start(request) { recording.note($0) }
        let contents = await RecordedExchange(exchange: exchange, recording: recording).end()
        withExtendedLifetime(transport) {}
        expect(contents.head?.statusCode == 200 && contents.end?.error == nil && contents.faults.isEmpty, "\(contents)")
        expect(contents.sent, equals: [4])
        expect(proxy.bodies, equals: ["", "kept"])
    }

    @Test("SEC-1: a body that can be read once, and that a proxy reads before it asks, is not sent again half")
    func bodyIsGone() async throws {
        let place = try Place([Self.basic])
        // The mock server reads the body before it answers.
        let contents = try await place.outcome(Self.target, .post, Self.once())
        let error = try #require(contents.end?.error)
        expect(error.code == .cannotSendAgain && contents.faults.isEmpty, "\(contents)")
        expect(place.server.requests.map(\.body), equals: [Data("kept".utf8)])
        // The scheme is known after any other message.
        _ = try await place.outcome(Self.target)
        let next = try await place.outcome(Self.target, .post, Self.once())
        expect(next.head?.statusCode == 200 && next.end?.error == nil, "\(next)")
        let last = try #require(place.server.requests.last)
        expect(last.body == Data("kept".utf8) && last.headers["Expect"] == nil)
    }
}

/// A proxy that refuses a message by its head unless that has a password, and then takes the body. It ends after that.
private final class EarlyProxy: Sendable {
    let port: UInt16
    private let listener: Int32
    private let found = Locked<[String]>([])

    init(_ challenge: String) throws {
        let (listener, port) = try Socket.listen()
        (self.listener, self.port) = (listener, port)
        Thread { [found] in
            var isRefused = true
            while isRefused {
                Self.wait(listener)
                guard case .connection(let client) = Socket.accept(listener) else { return }
                var text = Self.read(client) { $0.contains("\r\n\r\n") }
                isRefused = !text.contains("Proxy-Authorization:")
                if isRefused {
                    let head = "HTTP/1.1 407 Who\r\nProxy-Authenticate: \(challenge)\r\nConnection: close\r\n"
                    Self.send(head + "Content-Length: 0\r\n\r\n", client)
                } else {
                    Self.send("HTTP/1.1 100 Continue\r\n\r\n", client)
                    text += Self.read(client) { $0.contains("kept") }
                    Self.note(text, found)
                    Self.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", client)
                }
                Socket.finishWriting(client)
                text += Self.read(client) { _ in false }
                Socket.close(client)
                if isRefused { Self.note(text, found) }
            }
        }.start()
    }

    private static func note(_ text: String, _ found: Locked<[String]>) {
        found.withLock { $0.append(text.components(separatedBy: "\r\n\r\n").dropFirst().joined()) }
    }

    deinit { Socket.close(listener) }

    /// What came behind the head of each message.
    var bodies: [String] { found.withLock { $0 } }

    private static func wait(_ descriptor: Int32) {
        var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        _ = poll(&entry, 1, -1)
    }

    /// Reads until there is enough, or to the end.
    private static func read(_ client: Int32, _ isEnough: (String) -> Bool) -> String {
        var buffer = [UInt8](repeating: 0, count: 65_536)
        var text = ""
        while !isEnough(text) {
            wait(client)
            let transfer = buffer.withUnsafeMutableBytes { Socket.receive(client, into: $0) }
            guard case .count(let count) = transfer else { break }
            text += String(decoding: buffer[..<count], as: UTF8.self)
        }
        return text
    }

    private static func send(_ text: String, _ client: Int32) {
        _ = Array(text.utf8).withUnsafeBytes { Socket.send(client, $0) }
    }
}
#endif
