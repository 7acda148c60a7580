import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("Every transport, multipart forms", .timeLimit(.minutes(10)))
struct MultipartTransportTests {
    typealias Kind = TransportFixture.Kind

    private func request(_ fixture: TransportFixture, _ form: MultipartForm) throws -> TransportRequest {
        fixture.route("POST", "/form") { _ in .status(201) }
        var request = try fixture.request("/form", .post)
        request.headers["Content-Type"] = form.contentType
        request.body = .stream(try form.stream())
        return request
    }

    @Test("REQ-4: texts, files and streams arrive complete, several times", arguments: Kind.allCases)
    func whole(kind: Kind) async throws {
        let fixture = try TransportFixture(kind)
        let folder = TestFolder()
        let file = folder.url.appendingPathComponent("photo.png")
        let bytes = bodyBytes(300_000)
        try bytes.write(to: file)
        var form = MultipartForm()
        form.append("Ada é", name: "who")
        form.append(file: file, name: "photo")
        form.append(
            stream: TransportBodyStream(pieces: {
                AsyncStream { continuation in
                    for piece in ["one ", "", "two"] { continuation.yield(Data(piece.utf8)) }
                    continuation.finish()
                }
            }),
            name: "made",
            filename: "made.txt"
        )
        let request = try request(fixture, form)
        for _ in 0..<2 {
            let outcome = await fixture.start(request).end()
            expect(outcome.head?.statusCode == 201 && outcome.faults.isEmpty)
            let received = try #require(fixture.requests.last)
            expect(received.headers["Content-Type"], equals: "multipart/form-data; boundary=\(form.boundary)")
            expect(
                MultipartText.parts(received.body, boundary: form.boundary),
                equals: [
                    .init(name: "who", filename: nil, data: Data("Ada é".utf8)),
                    .init(name: "photo", filename: "photo.png", data: bytes),
                    .init(name: "made", filename: "made.txt", data: Data("one two".utf8)),
                ]
            )
        }
    }

    @Test("REQ-4: with all lengths known the message has a length", arguments: Kind.allCases)
    func length(kind: Kind) async throws {
        let fixture = try TransportFixture(kind)
        var form = MultipartForm()
        form.append("x", name: "a")
        form.append(stream: TransportBodyStream(length: 3) { InputStream(data: Data("abc".utf8)) }, name: "b")
        let request = try request(fixture, form)
        await expect(fixture.start(request).end().head?.statusCode, equals: 201)
        let received = try #require(fixture.requests.last)
        expect(received.headers["Content-Length"], equals: "\(received.body.count)")
        expect(received.headers["Transfer-Encoding"] == nil)
        expect(MultipartText.parts(received.body, boundary: form.boundary)?.count, equals: 2)
    }

    @Test(
        "REQ-4: a file whose length changes while it is sent ends the exchange with an error",
        arguments: Kind.allCases
    )
    func changed(kind: Kind) async throws {
        let fixture = try TransportFixture(kind)
        let folder = TestFolder()
        let file = folder.url.appendingPathComponent("f.bin")
        for change in [-1, 1, -200_000] {
            try Data(count: 200_000).write(to: file)
            var form = MultipartForm()
            form.append(file: file, name: "f")
            let request = try request(fixture, form)
            try Data(count: 200_000 + change).write(to: file)
            let outcome = await fixture.start(request).end()
            expect(outcome.code, equals: .invalidRequest)
            expect(outcome.end?.error?.message?.contains("part \"f\" of the form"), equals: true, "\(outcome)")
        }
        try Data().write(to: file)
        var form = MultipartForm()
        form.append(file: file, name: "f")
        let request = try request(fixture, form)
        try FileManager.default.removeItem(at: file)
        await expect(fixture.start(request).end().code, equals: .invalidRequest)
    }

    @Test("REQ-4: a request sends a form through the whole service")
    func service() async throws {
        let server = try MockServer()
        server.route("POST", "/form") { _ in .status(201) }
        var form = MultipartForm()
        form.append("Ada", name: "who")
        let request = AnyRequest(api: "form", method: .post, makeParams: { ["q": 1] }, body: .multipart(form))
        _ = try await EasyNetworkService(server.host()).send(request)
        let received = try #require(server.requests.first)
        expect(received.query, equals: "q=1")
        expect(
            MultipartText.parts(received.body, boundary: form.boundary),
            equals: [.init(name: "who", filename: nil, data: Data("Ada".utf8))]
        )
    }

    private struct Upload: BaseAPIRequest {
        let api = "form"
        let method = NetworkService.Method.post
        var body: RequestBody?
        var retry: RetryPolicy? {
            var policy = RetryPolicy()
            policy.methods = [.post]
            policy.baseDelay = 0
            return policy
        }
        var options: RequestOptions { RequestOptions(retry: retry) }
    }

    /// A server that redirects the form to an address that fails at first.
    private func movedServer() throws -> MockServer {
        let server = try MockServer()
        server.route("POST", "/form") { _ in .status(307, headers: ["Location": "/moved"]) }
        server.route("POST", "/moved") { [weak server] _ in
            .status((server?.requests.count ?? 0) > 2 ? 201 : 503)
        }
        return server
    }

    @Test("REQ-4: a redirect and a retry send a whole form again")
    func replay() async throws {
        let server = try movedServer()
        let folder = TestFolder()
        let file = folder.url.appendingPathComponent("f.bin")
        try Data(count: 100_000).write(to: file)
        var form = MultipartForm()
        form.append("Ada", name: "who")
        form.append(file: file, name: "f")
        form.append(stream: TransportBodyStream { InputStream(data: Data("made".utf8)) }, name: "s")
        let response = try await EasyNetworkService(server.host()).send(Upload(body: .multipart(form)))
        expect(response.statusCode, equals: 201)
        expect(server.requests.map(\.path), equals: ["/form", "/moved", "/form", "/moved"])
        for received in server.requests {
            let parts = MultipartText.parts(received.body, boundary: form.boundary)
            expect(parts?.map(\.data.count), equals: [3, 100_000, 4])
        }
    }

    @Test("REQ-4: a form with a part that can be read once is sent once")
    func once() async throws {
        let server = try movedServer()
        var form = MultipartForm()
        let stream = TransportBodyStream(isReplayable: false) { InputStream(data: Data("once".utf8)) }
        form.append(stream: stream, name: "s")
        let request = Upload(body: .multipart(form))
        await #expect(throws: NetworkError.self) { try await EasyNetworkService(server.host()).send(request) }
        expect(server.requests.map(\.path), equals: ["/form"])
    }
}
