import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork
@testable import EasyNetworkDiagnostics
@testable import TestSupport

@Suite("Bodies in gzip", .timeLimit(.minutes(10)))
struct GzippedBodyTests {
    private let text = String(repeating: "a line of a log\n", count: 20_000)

    private struct Post: APIRequest {
        typealias Item = NetworkResponse
        let api = "a"
        let method = NetworkService.Method.post
    }

    /// What a client with a decoder makes of the bytes.
    private func gunzip(_ bytes: Data) async throws -> Data {
        let server = try MockServer()
        server.route("GET", "/a") { _ in MockResponse(headers: ["Content-Encoding": "gzip"], body: .data(bytes)) }
        return try await EasyNetworkService(server.host()).send(Get(api: "a")).body
    }

    /// The bytes that are sent.
    private func bytes(_ body: TransportBody) async throws -> Data {
        guard let reader = try body.stream()?.reader() else { return Data() }
        var bytes = Data()
        while let piece = try await reader.next() { bytes += piece }
        return bytes
    }

    private func message(_ body: RequestBody, _ headers: HTTPHeaders = HTTPHeaders()) throws -> TransportRequest {
        let host = HostConfiguration(baseURL: URL(string: "https://h")) { $0.headers = headers }
        return try RequestBuilder.build(AnyRequest(method: .post, body: body), for: host)
    }

    /// Bytes that do not get smaller.
    private func noise(_ count: Int) -> Data {
        var random = SeededGenerator(seed: 7)
        return Data((0..<count).map { _ in UInt8.random(in: 0...255, using: &random) })
    }

    @Test(
        "REQ-11: data, files, streams and forms arrive in gzip, with their Content-Type, over each transport",
        arguments: TransportFixture.Kind.allCases
    )
    func kinds(kind: TransportFixture.Kind) async throws {
        let fixture = try TransportFixture(kind)
        fixture.route("POST", "/a") { _ in .status(204) }
        let folder = TestFolder()
        let file = folder.url.appendingPathComponent("a.log")
        try Data(text.utf8).write(to: file)
        let pieces = TransportBodyStream { [text] in InputStream(data: Data(text.utf8)) }
        var form = MultipartForm()
        form.append(text, name: "log")
        let service = EasyNetworkService(HostConfiguration(baseURL: fixture.baseURL, transport: fixture.transport))
        for (body, type) in [
            (RequestBody.text(text), "text/plain; charset=utf-8"),
            (.file(file, contentType: "text/x-log"), "text/x-log"),
            (.stream(pieces, contentType: nil), ""), (.multipart(form), "multipart/form-data"),
            (.text(text).paced(pieceSize: 1_000_000, delay: 0).gzipped(), "text/plain"),
        ] {
            _ = try await service.send(AnyRequest(api: "a", method: .post, body: body.gzipped()))
            let sent = try #require(fixture.requests.last)
            expect(sent.headers["Content-Encoding"], equals: "gzip")
            expect((sent.headers["Content-Type"] ?? "").hasPrefix(type))
            expect(sent.body.count < text.utf8.count / 20)
            let plain = String(decoding: try await gunzip(sent.body), as: UTF8.self)
            expect(type.hasPrefix("multipart") ? plain.contains(text) : plain == text)
        }
        let operation = UploadOperation(Post(), from: .file(file).gzipped(), service: service)
        NetworkQueue().addOperation(operation)
        _ = try await operation.value
        try await expect(gunzip(try #require(fixture.requests.last).body), equals: Data(text.utf8))
    }

    @Test("REQ-11: a body in memory has its length, others are sent in chunks; equal bodies become equal bytes")
    func lengths() async throws {
        let one = try message(.text(text).gzipped())
        let (count, length) = (try await bytes(one.body).count, try one.body.length())
        expect(length == count && count < 2_000)
        try expect(one.body, equals: message(.text(text).gzipped()).body)
        let stream = TransportBodyStream(length: 3) { InputStream(data: Data("abc".utf8)) }
        let other = try message(.stream(stream).gzipped())
        try expect(other.body.length() == nil && other.body.isReplayable)
        try await expect(bytes(other.body), equals: bytes(other.body))
        try await expect(gunzip(bytes(other.body)), equals: Data("abc".utf8))
        let placed = RequestBody.text("a").gzipped().placed { $0 }.gzipped()
        try expect(message(placed).headers["Content-Encoding"], equals: "gzip")
    }

    @Test("REQ-11: what is compressed already, and what has no bytes, is sent as it is")
    func asItIs() throws {
        let folder = TestFolder()
        let empty = folder.url.appendingPathComponent("empty")
        try Data().write(to: empty)
        for body in [RequestBody.data(Data()), .file(empty), .stream(TransportBodyStream(length: 0) { nil })] {
            let message = try message(body.gzipped())
            try expect(message.headers["Content-Encoding"] == nil && message.body.length() == 0)
        }
        let raw = Data("bytes".utf8)
        for type in [
            "image/jpeg", "IMAGE/PNG; q=1", "video/mp4", "audio/aac", "application/zip", "application/epub+zip",
            "application/pdf", "application/vnd.openxmlformats-officedocument.wordprocessingml.document", "font/woff2",
        ] {
            let message = try message(.data(raw, contentType: type).gzipped())
            expect(message.headers["Content-Encoding"] == nil && message.body == .data(raw), "\(type)")
        }
        for type in ["image/svg+xml", "image/bmp", "audio/wav", "text/html", "application/octet-stream", "odd", nil] {
            try expect(
                message(.data(raw, contentType: type).gzipped()).headers["Content-Encoding"],
                equals: "gzip",
                "\(type ?? "")"
            )
        }
        let own = try message(.data(raw).gzipped(), ["Content-Encoding": "br"])
        expect(own.headers["Content-Encoding"] == "br" && own.body == .data(raw))
        try expect(message(.data(raw)).headers["Content-Encoding"] == nil)
    }

    @Test("REQ-11: a retry and a redirect send the same bytes; a 303 and a stream that is gone send none")
    func again() async throws {
        let transport = InMemoryTransport()
        let isFirst = Locked(true)
        transport.route("PUT", "/a") { _ in
            isFirst.exchange(false) ? .status(503) : .status(307, headers: ["Location": "/b"])
        }
        transport.route("PUT", "/b") { _ in .status(303, headers: ["Location": "/c"]) }
        transport.route("GET", "/c") { _ in .status(204) }
        let host = HostConfiguration(baseURL: URL(string: "https://h"), transport: transport) {
            $0.retry = RetryPolicy(baseDelay: 0)
        }
        let service = EasyNetworkService(host)
        let stream = TransportBodyStream { [text] in InputStream(data: Data(text.utf8)) }
        _ = try await service.send(AnyRequest(api: "a", method: .put, body: .stream(stream).gzipped()))
        let sent = transport.requests
        expect(sent.map(\.path) == ["/a", "/a", "/b", "/c"] && Set(sent.prefix(3).map(\.body)).count == 1)
        expect(sent.map { $0.headers["Content-Encoding"] } == ["gzip", "gzip", "gzip", nil] && sent[3].body.isEmpty)
        try await expect(gunzip(sent[2].body), equals: Data(text.utf8))
        isFirst.exchange(true)
        let once = TransportBodyStream(isReplayable: false) { InputStream(data: Data("a".utf8)) }
        let error = await #expect(throws: NetworkError.self) {
            try await service.send(AnyRequest(api: "a", method: .put, body: .stream(once).gzipped()))
        }
        expect(error?.statusCode == 503 && error?.attempts == 1)
    }

    @Test("REQ-11: a stream with another number of bytes than it has said, or that fails, fails the request")
    func broken() async throws {
        for (length, word) in [(4, "3 instead of"), (2, "more than")] {
            let stream = TransportBodyStream(length: length) { InputStream(data: Data("abc".utf8)) }
            let body = try message(.stream(stream).gzipped()).body
            let error = await #expect(throws: NetworkError.self) { try await bytes(body) }
            expect(error?.code == .invalidRequest && error?.message?.contains(word) == true)
        }
        let transport = InMemoryTransport()
        transport.route("POST", "/a") { _ in .status(204) }
        let failing = TransportBodyStream(pieces: {
            AsyncThrowingStream<Data, any Error> { pieces in
                pieces.yield(Data("abc".utf8))
                pieces.finish(throwing: CocoaError(.fileReadUnknown))
            }
        })
        let host = HostConfiguration(baseURL: URL(string: "https://h"), transport: transport)
        let error = await #expect(throws: NetworkError.self) {
            let request = AnyRequest(api: "a", method: .post, body: .stream(failing).gzipped())
            _ = try await EasyNetworkService(host).send(request)
        }
        expect(error?.code == .invalidRequest && error?.underlying is CocoaError)
    }

    @Test("REQ-11: a body of any size is read no further than it is sent")
    func backPressure() async throws {
        let (piece, made) = (noise(65_536), Locked(0))
        let all = TestLoad.count(1_600, part: 400)
        let stream = TransportBodyStream(pieces: {
            AsyncStream<Data> {
                let number = made.next()
                return number <= all ? piece : nil
            }
        })
        let reader = try #require(try message(.stream(stream).gzipped()).body.stream()?.reader())
        var (count, size) = (0, 0)
        while let bytes = try await reader.next() {
            (count, size) = (count + 1, size + bytes.count)
            expect(made.withLock { $0 } <= count + 2)
        }
        expect(made.withLock { $0 } == all + 1 && size > all * 65_536)
    }

    @Test("REQ-11: pieces of every size become the same bytes again")
    func sizes() async throws {
        let noise = noise(200_000)
        for data in [noise, Data(count: 3_000_000), noise.prefix(65_536), noise.prefix(1), noise.suffix(65_517)] {
            let packed = try #require(try TransportBody.data(data).gzipped())
            try await expect(gunzip(bytes(packed)), equals: data)
            let pieces = TransportBodyStream(pieces: {
                AsyncStream<Data> { pieces in
                    for start in stride(from: 0, to: data.count, by: 70_001) {
                        pieces.yield(data.dropFirst(start).prefix(70_001))
                    }
                    pieces.finish()
                }
            })
            let streamed = try #require(try TransportBody.stream(pieces).gzipped())
            try await expect(gunzip(bytes(streamed)), equals: data)
        }
    }

    @Test("REQ-11: the cURL command has the bytes or their number, log and HAR none of them")
    func shown() async throws {
        let request = AnyRequest(api: "a", method: .post, body: .json(["password": "secret"]).gzipped())
        let host = HostConfiguration(baseURL: URL(string: "https://h"))
        let message = try RequestBuilder.build(request, for: host)
        let count = try #require(try message.body.length())
        expect(message.curlCommand().hasPrefix("# A body of \(count) bytes is left out"))
        expect(message.curlCommand().contains("-H 'Content-Encoding: gzip'"))
        expect(message.curlCommand(redaction: nil).hasPrefix(#"printf -- '\037\213\010"#))
        let event = NetworkEvent(
            .attemptStarted(NetworkAttempt(request: .init(method: "POST", url: message.url)), message)
        )
        let log = try #require(LogMessage(event, .bodies, bodyCount: 1_000)).text
        expect(log.contains("(\(count) bytes, left out: its secrets cannot be found)"))
    }
}
