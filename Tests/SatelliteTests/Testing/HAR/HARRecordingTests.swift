import EasyNetwork
import EasyNetworkTesting
import Foundation
import Testing

@testable import TestSupport

@Suite("Answers from a HAR file", .timeLimit(.minutes(10)))
struct HARRecordingTests {
    /// As Chrome writes it: fields of HTTP/2, a coding that is gone, and repeated fields joined by a line break.
    private static let text = #"""
        {"log": {"version": "1.2", "creator": {"name": "WebInspector", "version": "537.36"}, "pages": [], "entries": [
        {"request": {"method": "GET", "url": "https://api.example.com/list?page=1&token=REDACTED"}, "response":
        {"status": 200, "headers": [{"name": ":status", "value": "200"}, {"name": "content-encoding", "value": "br"},
        {"name": "content-length", "value": "3"}, {"name": "set-cookie", "value": "a=1\nb=2"}],
        "content": {"size": 4, "mimeType": "text/plain", "text": "b25lIQ==", "encoding": "base64"}}},
        {"request": {"method": "GET", "url": "https://api.example.com/list?page=1&token=REDACTED"}, "response":
        {"status": 200, "headers": [], "content": {"size": 3, "text": "two"}}},
        {"request": {"method": "POST", "url": "https://api.example.com/list", "postData": {"mimeType": "a",
        "text": "{\"a\": [1, true], \"password\": \"REDACTED\"}"}}, "response":
        {"status": 201, "headers": [], "content": {"size": 1, "text": "A"}}},
        {"request": {"method": "POST", "url": "https://api.example.com/list", "postData": {"mimeType": "b", "text":
        "key=REDACTED&b=2"}}, "response": {"status": 201, "headers": [], "content": {"size": 1, "text": "B"}}},
        {"request": {"method": "GET", "url": "https://api.example.com/lost"}, "response":
        {"status": 0, "headers": [], "content": {"size": 0}, "_error": "net::ERR_INTERNET_DISCONNECTED"}},
        {"request": {"method": "GET", "url": "https://api.example.com/late"}, "response":
        {"status": 0, "headers": [], "content": {"size": 0}, "_error": "timedOut"}},
        {"request": {"method": "GET", "url": "https://api.example.com/film"}, "response":
        {"status": 200, "headers": [], "content": {"size": 100, "comment": "left out"}}},
        {"request": {"method": "GET", "url": "https://api.example.com/kept"}, "response":
        {"status": 304, "headers": [{"name": "ETag", "value": "\"1\""}], "content": {"size": 4, "text": "kept"}}}
        ]}}
        """#

    private let transport: InMemoryTransport

    init() throws {
        let file = FileManager.default.temporaryDirectory.appendingPathComponent("EasyNetwork-\(UUID().uuidString).har")
        defer { try? FileManager.default.removeItem(at: file) }
        try Data(Self.text.utf8).write(to: file)
        transport = try InMemoryTransport(har: file)
    }

    private func answer(
        _ address: String,
        method: NetworkService.Method = .get,
        headers: HTTPHeaders = HTTPHeaders(),
        body: String? = nil
    ) async throws -> Recorder {
        let url = try #require(URL(string: address))
        let body = body.map { TransportBody.data(Data($0.utf8)) } ?? .none
        let recorder = Recorder()
        recorder.start(
            TransportRequest(
                method: method,
                url: url,
                headers: headers,
                body: body,
                deadlines: TransportDeadlines(idle: nil)
            ),
            on: transport
        )
        _ = await recorder.ended()
        return recorder
    }

    @Test("TOL-1: equal requests have their answers in order, and the last one again; a redacted value is any value")
    func order() async throws {
        let address = "https://API.example.com:443/list?page=1&token=abc"
        let first = try await answer(address)
        await expect(first.ended(), equals: "200 body:one! end")
        expect(first.headers?["content-encoding"] == nil && first.headers?[":status"] == nil)
        expect(first.headers?.values(for: "set-cookie"), equals: ["a=1", "b=2"])
        for _ in 1...2 { await expect((try answer(address + "#x")).ended(), equals: "200 body:two end") }
    }

    @Test("TOL-1: of answers to one address, the body of the request decides")
    func body() async throws {
        let address = "https://api.example.com/list"
        let form = try await answer(address, method: .post, body: "key=s3cret&b=2")
        await expect(form.ended(), equals: "201 body:B end")
        let json = try await answer(address, method: .post, body: #"{"password":"p","a":[1,true]}"#)
        await expect(json.ended(), equals: "201 body:A end")
    }

    @Test("TOL-1: a recorded failure is one again, and a body that is not in the file is a clear error")
    func failures() async throws {
        for (path, code) in [
            ("lost", NetworkError.Code.notConnected), ("late", .timedOut), ("film", .cannotParseResponse),
        ] {
            try await expect(answer("https://api.example.com/" + path).error?.code, equals: code, "\(path)")
        }
    }

    @Test("TOL-1: a request without an answer is an error that names the nearest ones, without secrets")
    func missing() async throws {
        for address in [
            "https://api.example.com/list?page=2&token=abc", "https://api.example.com/list?page=1&token=abc&x=1",
        ] {
            let error = try #require(try await answer(address).error)
            expect(error.code, equals: .invalidRequest)
            let message = try #require(error.message)
            expect(message.contains("no response for GET https://api.example.com/list?page="), "\(message)")
            expect(message.contains("nearest: GET https://api.example.com/list?page=1&token=REDACTED"), "\(message)")
            expect(!message.contains("abc"), "\(message)")
        }
        transport.route("GET", "/other") { _ in .text("routed") }
        await expect((try answer("https://api.example.com/other")).ended(), equals: "200 body:routed end")
    }

    @Test("TOL-1: a confirmation is the whole answer for a program that has nothing to confirm")
    func confirmation() async throws {
        let address = "https://api.example.com/kept"
        await expect((try answer(address)).ended(), equals: "200 body:kept end")
        await expect((try answer(address, headers: ["If-None-Match": "\"1\""])).ended(), equals: "304 end")
    }

    @Test("TOL-1: a file that is no HAR is an error")
    func noFile() {
        let file = FileManager.default.temporaryDirectory.appendingPathComponent("none-\(UUID().uuidString)")
        let error = #expect(throws: NetworkError.self) { try InMemoryTransport(har: file) }
        expect(error?.code, equals: .cannotParseResponse)
    }
}
