#if os(Linux)
import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("CurlTransport", .timeLimit(.minutes(10)))
struct CurlTransportTests {
    /// Starts an exchange and records its events.
    private func start(_ request: TransportRequest, over transport: CurlTransport) -> RecordedExchange {
        let recording = Recording {}
        return RecordedExchange(exchange: transport.start(request) { recording.note($0) }, recording: recording)
    }

    private func request(_ server: MockServer, _ path: String) throws -> TransportRequest {
        TransportRequest(
            url: try #require(URL(string: server.baseURL.absoluteString + path)),
            deadlines: TransportDeadlines(idle: nil)
        )
    }

    /// Sends a GET that is answered with these bytes.
    private func outcome(ofAnswer bytes: some Sequence<UInt8>) async throws -> Recording.Contents {
        let server = try MockServer()
        let bytes = Data(bytes)
        server.route("GET", "/raw") { _ in .fault(.raw(bytes)) }
        let transport = CurlTransport()
        // Releasing the transport would end the exchanges.
        defer { withExtendedLifetime(transport) {} }
        return await start(try request(server, "/raw"), over: transport).end()
    }

    // MARK: - Early responses

    @Test(
        "RSP-10: a response that arrived before the rest of the body could not be sent is read, whole or not",
        arguments: [
            ("Content-Length: 3\r\n\r\nbig", 3, nil), ("Content-Length: 0\r\n\r\n", 0, nil),
            ("Content-Length: 9\r\n\r\nbig", 3, .connectionLost),
            ("Transfer-Encoding: chunked\r\n\r\n3\r\nbig\r\n0\r\n\r\n", 0, .connectionLost),
        ] as [(String, Int, NetworkError.Code?)],
        [false, true]
    )
    func earlyResponse(answer: (String, count: Int, code: NetworkError.Code?), isKept: Bool) async throws {
        let listener = try DeafListener(.open)
        let transport = CurlTransport()
        defer { withExtendedLifetime(transport) {} }
        let peer = Locked<Int32?>(nil)
        @Sendable func send(_ text: String) {
            let descriptor = peer.withLock { $0 } ?? -1
            let bytes = Data("HTTP/1.1 \(text)".utf8)
            _ = bytes.withUnsafeBytes { Foundation.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
        }
        if isKept {
            let first = start(TransportRequest(url: listener.url), over: transport)
            let descriptor = listener.accept()
            peer.exchange(descriptor)
            var buffer = [UInt8](repeating: 0, count: 65_536)
            _ = recv(descriptor, &buffer, buffer.count, 0)
            send("200 OK\r\nContent-Length: 0\r\n\r\n")
            await expect(first.end().code == nil)
        }
        let request = TransportRequest(method: .put, url: listener.url, body: .data(Data(count: 20_000_000)))
        let sentCount = Locked(0)
        let recording = Recording {}
        let exchange = transport.start(request) { event in
            // On libcurl's thread, which has looked for input and is about to send. A part has been sent and not read:
            // the server's end closes with a reset.
            if case .sent = event { sentCount.withLock { $0 += 1 } }
            if case .sent = event, sentCount.withLock({ $0 == 3 }) {
                peer.withLock { $0 = $0 ?? listener.accept() }
                send("413 Content Too Large\r\n\(answer.0)")
                if let descriptor = peer.exchange(nil) { close(descriptor) }
            }
            recording.note(event)
        }
        let outcome = await RecordedExchange(exchange: exchange, recording: recording).end()
        expect(outcome.head?.statusCode, equals: 413)
        // On a slow machine libcurl may look for input once more, and then it reads the chunks itself.
        let isReadByLibcurl = answer.0.hasPrefix("Transfer-Encoding") && outcome.code == nil
        expect(outcome.body.count == (isReadByLibcurl ? 3 : answer.count) && outcome.faults.isEmpty)
        expect(isReadByLibcurl || outcome.code == answer.code)
    }

    // MARK: - Chunks

    @Test(
        "BEY-17: a chunk whose size is followed by anything but blanks, an extension or the line break is a bad answer",
        arguments: [
            "0x5\r\n\r\n", "0x5\r\nhello\r\n0\r\n\r\n", "0 x\r\n\r\n", "0_1\r\n\r\n", "5\r\nhello\r\n0x\r\n\r\n",
            "5\r\nhello\r\n0 1\r\n\r\n", "0\r\r\n\r\n", "+0\r\n\r\n", "\r\n\r\n", ";a\r\n\r\n", "-0\r\n\r\n",
            "5\r\nhello\r\n0x0\r\nT: x\r\n\r\n",
        ]
    )
    func malformedChunkSize(body: String) async throws {
        // A kept connection: the answer is not to be ended by its close.
        let server = try MockServer()
        let bytes = Data(("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + body).utf8)
        server.route("GET", "/raw") { _ in .fault(.raw(bytes, keepsConnection: true)) }
        server.route("GET", "/ok") { _ in .text("ok") }
        let transport = CurlTransport()
        for _ in 0..<2 {
            let outcome = await start(try request(server, "/raw"), over: transport).end()
            expect(outcome.code, equals: .badServerResponse, "\(outcome)")
            await expect(start(try request(server, "/ok"), over: transport).end().body, equals: Data("ok".utf8))
        }
    }

    @Test(
        "RSP-3: chunks may have extensions, digits of either case, leading zeros and trailers",
        arguments: [
            "5;a=b\r\nhello\r\n0\r\n\r\n", "5 ;a\r\nhello\r\n0;b=\"x\"\r\n\r\n", "0005\r\nhello\r\n000\r\nT: x\r\n\r\n",
            "5 \t\r\nhello\r\n0  \r\n\r\n", "2\nhe\n3\nllo\n0\n\n", "1\r\nh\r\n4\r\nello\r\n0\r\n\r\n",
        ],
        ["chunked", "Chunked", "identity\r\nTransfer-Encoding: chunked"]
    )
    func chunks(body: String, coding: String) async throws {
        let outcome = try await outcome(
            ofAnswer: "HTTP/1.1 200 OK\r\nTransfer-Encoding: \(coding)\r\n\r\n\(body)".utf8
        )
        expect(outcome.code == nil && outcome.body == Data("hello".utf8), "\(outcome)")
    }

    @Test("RSP-3: large chunks arrive whole, whatever their sizes", arguments: ["7ff", "ABCDE", "aBcDe"])
    func largeChunks(size: String) async throws {
        let count = try #require(Int(size, radix: 16))
        // The content looks like sizes and line breaks.
        let content = Data(String(repeating: "0x5\r\n", count: count / 5 + 1).utf8.prefix(count))
        let chunk = Data("\(size)\r\n".utf8) + content + Data("\r\n".utf8)
        let head = Data("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".utf8)
        let outcome = try await outcome(ofAnswer: head + chunk + chunk + chunk + Data("0\r\n\r\n".utf8))
        expect(outcome.code == nil && outcome.body == content + content + content)
    }

    // MARK: - Ending

    @Test("SEC-2: the release of a transport ends its exchanges, its connections and its thread")
    func closes() async throws {
        let server = try MockServer()
        server.route("GET", "/ok") { _ in .text("ok") }
        server.route("GET", "/stall") { _ in .fault(.stall) }
        weak var loop: CurlLoop?
        var transport: CurlTransport? = CurlTransport(TransportConfiguration(maximumConnectionsPerHost: 2))
        loop = transport?.loop
        var exchanges: [RecordedExchange] = []
        if let transport {
            await expect(start(try request(server, "/ok"), over: transport).end().end?.error == nil)
            exchanges = try (0..<5).map { _ in start(try request(server, "/stall"), over: transport) }
            await server.waitForRequests(3)
        }
        transport = nil
        for exchange in exchanges {
            let outcome = await exchange.end()
            expect(outcome.code == .cancelled && outcome.faults.isEmpty)
            exchange.exchange.cancel()
        }
        await expect(server.waitForConnections(0))
        exchanges = []
        await expect(eventually { loop == nil })
    }

    @Test("BEY-1: thousands of requests with random faults and cancels end once each and leave nothing behind")
    func mixedFates() async throws {
        #if compiler(>=6.2)
        // Runs in a separate process, because it counts descriptors.
        await #expect(processExitsWith: .success) {
            try await CurlFates().run(count: 20, seed: 0)
            let count = TestLoad.count(1_000)
            for seed in 1...2 { try await CurlFates().run(count: count, seed: UInt64(seed)) }
            let (descriptors, memory) = (CurlFates.descriptorCount, CurlFates.residentBytes)
            for seed in 3...TestLoad.count(20, part: 12) { try await CurlFates().run(count: count, seed: UInt64(seed)) }
            // The system opens some descriptors on first use; a leak in every run would be at least ten.
            await expect(eventually { CurlFates.descriptorCount < descriptors + 8 })
            // The allocator retains some freed memory; the bodies of 20,000 requests are a gigabyte.
            expect(CurlFates.residentBytes < memory + 128 << 20 || Sanitizer.isThere)
        }
        #else
        for seed in 1...2 { try await CurlFates().run(count: 1_000, seed: UInt64(seed)) }
        #endif
    }

    // MARK: - Places

    @Test("BEY-6: the limits per host and in all hold, and every exchange ends")
    func limits() async throws {
        for (perHost, inAll) in [(3, 100), (100, 4)] {
            let server = try MockServer()
            server.route("GET", "/stall") { _ in .fault(.stall) }
            server.route("GET", "/ok") { _ in .text("ok") }
            let limit = min(perHost, inAll)
            let transport = CurlTransport(
                TransportConfiguration(maximumConnectionsPerHost: perHost, maximumConnections: inAll)
            )
            let other = CurlTransport()
            defer { withExtendedLifetime(transport) {} }
            let exchanges = try (0..<20).map { _ in start(try request(server, "/stall"), over: transport) }
            for cancelled in 0...10 {
                await server.waitForRequests(limit + cancelled * 2)
                // Any further request would have arrived before this one.
                await expect(start(try request(server, "/ok"), over: other).end().end?.error == nil)
                expect(server.requests(to: "/stall").count, equals: limit + cancelled)
                exchanges[cancelled].exchange.cancel()
                await expect(exchanges[cancelled].end().code, equals: .cancelled)
            }
            // Cancels both the waiting and the running exchanges.
            for exchange in exchanges.reversed() { exchange.exchange.cancel() }
            for exchange in exchanges { await expect(exchange.end().faults.isEmpty) }
            await expect(start(try request(server, "/ok"), over: transport).end().end?.error == nil)
        }
    }

    @Test("REQ-5: deadlines do not begin while an exchange waits for a place")
    func waitingIsNotSending() async throws {
        let server = try MockServer()
        let clock = ManualClock()
        server.route("GET", "/stall") { _ in .fault(.stall) }
        server.route("GET", "/ok") { _ in .text("ok") }
        let transport = CurlTransport(TransportConfiguration(maximumConnectionsPerHost: 1), clock: clock)
        defer { withExtendedLifetime(transport) {} }
        var first = try request(server, "/stall")
        first.deadlines = TransportDeadlines(idle: nil)
        let stalled = start(first, over: transport)
        var second = try request(server, "/ok")
        second.deadlines = TransportDeadlines(idle: 1, total: 1)
        let waiting = start(second, over: transport)
        await server.waitForRequests(1)
        clock.advance(by: 100)
        stalled.exchange.cancel()
        await expect(stalled.end().code, equals: .cancelled)
        await expect(waiting.end().end?.error == nil)
    }

    @Test("BEY-1: ten thousand waiting exchanges that cannot be sent end without recursion")
    func manyThatCannotBegin() async throws {
        let server = try MockServer()
        server.route("GET", "/stall") { _ in .fault(.stall) }
        let transport = CurlTransport(TransportConfiguration(maximumConnectionsPerHost: 1))
        defer { withExtendedLifetime(transport) {} }
        let stalled = start(try request(server, "/stall"), over: transport)
        var bad = try request(server, "/bad")
        bad.headers = ["Bad Name": "x"]
        let message = bad
        let exchanges = (0..<10_000).map { _ in start(message, over: transport) }
        await server.waitForRequests(1)
        stalled.exchange.cancel()
        for exchange in exchanges { await expect(exchange.end().code, equals: .invalidRequest) }
        expect(server.requests.count, equals: 1)
    }

    @Test("REQ-5: with the machine's clock, deadlines of fractions of a second end an exchange")
    func realDeadlines() async throws {
        let server = try MockServer()
        server.route("GET", "/stall") { _ in .fault(.stall) }
        let transport = CurlTransport()
        defer { withExtendedLifetime(transport) {} }
        for deadlines in [
            TransportDeadlines(idle: 0.05), TransportDeadlines(idle: nil, total: 0.05), TransportDeadlines(idle: 0),
        ] {
            var message = try request(server, "/stall")
            message.deadlines = deadlines
            await expect(start(message, over: transport).end().code, equals: .timedOut)
        }
    }

    // MARK: - Messages

    @Test("RSP-1: 1xx answers are passed over; fields keep their order and repeats; trailers are no fields")
    func heads() async throws {
        let answer = """
            HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\nHTTP/1.1 200 OK\r\nZulu: 1\r\nSet-Cookie: a=1\r\n\
            Alpha:  two words \r\nSet-Cookie: b=2\r\nEmpty:\r\nTransfer-Encoding: chunked\r\n\r\n\
            2\r\nok\r\n0\r\nLate: 1\r\n\r\n
            """
        let outcome = try await outcome(ofAnswer: answer.utf8)
        let head = try #require(outcome.head)
        expect(head.statusCode == 200 && outcome.body == Data("ok".utf8))
        expect(outcome.end?.error == nil && outcome.faults.isEmpty)
        expect(
            head.headers.map(\.name),
            equals: ["Zulu", "Set-Cookie", "Alpha", "Set-Cookie", "Empty", "Transfer-Encoding"]
        )
        expect(head.headers.values(for: "Set-Cookie"), equals: ["a=1", "b=2"])
        expect(head.headers["Alpha"] == "two words" && head.headers["Empty"] == "")
    }

    @Test("SEC-2: endless header fields, and a field without colon, are a bad answer")
    func badHeads() async throws {
        let start = "HTTP/1.1 200 OK\r\n"
        let nines = String(repeating: "9", count: 9_000)
        let many = start + String(repeating: "A: b\r\n", count: CurlHead.fieldLimit + 1) + "\r\n"
        let long = start + String(repeating: "A: \(nines)\r\n", count: 30) + "\r\n"
        let endless = start + "A: " + String(repeating: "b", count: 300_000)
        for answer in [many, long, endless, start + "no colon\r\n\r\n"] {
            let outcome = try await outcome(ofAnswer: answer.utf8)
            expect(outcome.code, equals: .badServerResponse, "\(answer.prefix(60)): \(String(describing: outcome.end))")
            expect(outcome.head == nil && outcome.faults.isEmpty)
        }
    }

    @Test("RSP-3: gzip is requested and removed, member by member; a broken member is an error")
    func contentCoding() async throws {
        let hello: [UInt8] = [
            0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 3, 0xCB, 0x48, 0xCD, 0xC9, 0xC9, 7, 0, 0x86, 0xA6, 0x10, 0x36, 5, 0, 0, 0,
        ]
        func answer(_ coding: String, _ body: [UInt8]) -> [UInt8] {
            Array("HTTP/1.1 200 OK\r\nContent-Encoding: \(coding)\r\nContent-Length: \(body.count)\r\n\r\n".utf8) + body
        }
        let good = try await outcome(ofAnswer: answer("gzip", hello))
        expect(good.body == Data("hello".utf8) && good.end?.error == nil)
        try await expect(outcome(ofAnswer: answer("gzip", Array("hello".utf8))).code, equals: .cannotParseResponse)
        // A second gzip member is decoded; trailing bytes are ignored, as in browsers.
        try await expect(outcome(ofAnswer: answer("x-gzip", hello + hello)).body, equals: Data("hellohello".utf8))
        try await expect(outcome(ofAnswer: answer("gzip", hello + [0, 0x1F, 9])).body, equals: Data("hello".utf8))
        try await expect(outcome(ofAnswer: answer("gzip", hello + hello.prefix(9))).code, equals: .cannotParseResponse)
        try await expect(outcome(ofAnswer: answer("identity, gzip", hello)).body, equals: Data("hello".utf8))
        try await expect(outcome(ofAnswer: answer("gzip", [])).end?.error == nil)
    }

    @Test("REQ-3: a POST without body says so, and lengths, signs of waiting and credentials are not passed on")
    func framing() async throws {
        let server = try MockServer()
        server.route("*", "/a") { _ in .status(200) }
        let transport = CurlTransport()
        defer { withExtendedLifetime(transport) {} }
        let address = server.baseURL.absoluteString.replacingOccurrences(of: "//", with: "//user:secret@")
        var message = TransportRequest(method: .post, url: try #require(URL(string: address + "/a")))
        message.headers = ["Content-Length": "7", "transfer-encoding": "chunked", "Empty": "", "A": "1", "a": "2"]
        await expect(start(message, over: transport).end().head?.statusCode, equals: 200)
        let bare = try #require(server.requests.last)
        expect(bare.headers.values(for: "Content-Length"), equals: ["0"])
        expect(bare.headers["Transfer-Encoding"] == nil && bare.headers["Expect"] == nil)
        expect(bare.headers["Authorization"] == nil && bare.headers["Content-Type"] == nil)
        expect(bare.headers["Empty"] == "" && bare.headers.values(for: "A") == ["1", "2"])
        message.body = .data(Data(repeating: 1, count: 3_000_000))
        await expect(start(message, over: transport).end().head?.statusCode, equals: 200)
        expect(server.requests.last?.body.count == 3_000_000 && server.requests.last?.headers["Expect"] == nil)
    }

    @Test("SEC-2: a request on a reused connection contains nothing of the one before")
    func nothingIsLeft() async throws {
        let server = try MockServer()
        server.route("*", "/a") { _ in .text("answer") }
        let transport = CurlTransport()
        var secret = try request(server, "/a")
        secret.method = .put
        secret.headers = ["Authorization": "secret", "Accept": "text/plain", "Expect": "nothing"]
        secret.body = .data(Data("body".utf8))
        await expect(start(secret, over: transport).end().end?.error == nil)
        await expect(start(try request(server, "/a"), over: transport).end().body, equals: Data("answer".utf8))
        var head = try request(server, "/a")
        head.method = .head
        await expect(start(head, over: transport).end().head?.headers["Content-Length"], equals: "6")
        await expect(start(try request(server, "/a"), over: transport).end().body, equals: Data("answer".utf8))
        for received in server.requests.dropFirst() {
            expect(Set(received.headers.map { $0.name.lowercased() }), equals: ["host", "accept", "accept-encoding"])
            expect(received.body.isEmpty && received.connection == server.requests.first?.connection)
        }
        expect(server.requests.map(\.method), equals: ["PUT", "GET", "HEAD", "GET"])
    }

    @Test("BEY-1: no server, no such name and no TLS are errors with libcurl's text")
    func cannotConnect() async throws {
        let server = try MockServer()
        let address = server.baseURL.absoluteString
        let transport = CurlTransport()
        defer { withExtendedLifetime(transport) {} }
        let secure = try #require(URL(string: address.replacingOccurrences(of: "http:", with: "https:")))
        let tls = await start(TransportRequest(url: secure), over: transport).end()
        expect(tls.code == .tls && tls.end?.error?.message?.isEmpty == false)
        let closed = try DeafListener(.closed)
        let refused = await start(TransportRequest(url: closed.url), over: transport).end()
        defer { withExtendedLifetime(closed) {} }
        expect(refused.code == .cannotConnect && refused.end?.error?.message?.contains("127.0.0.1") == true)
        let name = try #require(URL(string: "http://nowhere.invalid/"))
        var unknown = TransportRequest(url: name)
        // Without a network, the resolver may try for longer than the idle deadline.
        unknown.deadlines = TransportDeadlines(idle: nil)
        await expect(start(unknown, over: transport).end().code, equals: .cannotConnect)
        // TCP has no route to this address, so the system reports an unreachable network.
        let broadcast = TransportRequest(url: try #require(URL(string: "http://255.255.255.255/")))
        let unreachable = await start(broadcast, over: transport).end()
        expect(unreachable.code == .notConnected && unreachable.end?.error?.phase == .connect, "\(unreachable)")
        await expect(start(TransportRequest(url: closed.url), over: transport).end().code, equals: .cannotConnect)
        // A failure must not leave state in libcurl's handle that affects the next request.
        let next = try MockServer()
        next.route("GET", "/ok") { _ in .text("ok") }
        await expect(start(try request(next, "/ok"), over: transport).end().end?.error == nil)
    }
}
#endif
