import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("What a request declares, and its options", .timeLimit(.minutes(10)))
struct RequestOptionsTests {
    private struct Filter: Encodable { var q: String, page: Int? }

    private struct Numbers: BaseAPIRequest { let api = "a", params = ["n": 1], headers = ["X": "1"] }
    private struct Anything: BaseAPIRequest {
        let api = "a"
        var params: [String: Any] { ["n": 1] }
        var headers: HTTPHeaders { ["X": "1"] }
    }
    private struct Optionals: BaseAPIRequest {
        let api = "a"
        var params: [String: Int]? = ["n": 1]
        var headers: [String: String]?? = ["X": "1"]
    }
    private struct Encoded: BaseAPIRequest {
        let api = "a"
        var params: Filter? = Filter(q: "x", page: nil)
    }
    private struct Erased: BaseAPIRequest {
        let api = "a"
        let params: (any Encodable & Sendable)?
        let headers: (any Sendable)?
    }

    private func built(_ request: any BaseAPIRequest) throws -> TransportRequest { try Built(request).message }

    @Test("REQ-9: params and headers of any type that can be read count, and nil of each is none")
    func types() throws {
        for request in [Numbers(), Anything(), Optionals()] as [any BaseAPIRequest] {
            let message = try built(request)
            expect(message.url.query, equals: "n=1", "\(request)")
            expect(message.headers["X"], equals: "1", "\(request)")
        }
        let none = try built(Optionals(params: nil, headers: nil))
        expect(none.url.query == nil && none.headers["X"] == nil)
        try expect(built(Optionals(headers: .some(nil))).headers["X"] == nil)
        try expect(built(Encoded()).url.query, equals: "q=x")
        try expect(built(Encoded(params: nil)).url.query == nil)
        try expect(built(Erased(params: Filter(q: "y", page: 2), headers: ["X": "2"])).url.query, equals: "page=2&q=y")
        try expect(built(Erased(params: nil, headers: nil)).url.query == nil)
        // As in a `[String: Any]`, where nil is a key without a value.
        try expect(
            built(Erased(params: ["a": 1, "b": nil] as [String: Int?], headers: nil)).url.query,
            equals: "a=1&b"
        )
    }

    @Test(
        "REQ-9: a body that is no optional, an optional, or nothing is read; another one is an error that names its type"
    )
    func bodies() throws {
        struct Plain: BaseAPIRequest {
            let api = "a", method = NetworkService.Method.post
            var body: RequestBody { .text("x") }
        }
        struct Maybe: BaseAPIRequest {
            let api = "a", method = NetworkService.Method.post
            var body: RequestBody?
        }
        struct Bytes: BaseAPIRequest {
            // A type of this name is none of the protocol's.
            struct Body: Encodable { let text: String }
            let api = "a", method = NetworkService.Method.post
            let body = Data("x".utf8)
        }
        for request in [Plain(), Maybe(body: .text("x"))] as [any BaseAPIRequest] {
            try expect(built(request).body, equals: .data(Data("x".utf8)), "\(request)")
        }
        try expect(built(Maybe()).body == .none && built(Numbers()).body == .none)
        expect(Built.failure(Bytes()).hasPrefix("body must be a RequestBody, but is a Data; create one, such as"))
        struct Comment: BaseAPIRequest {
            typealias DeclaredBody = RequestBody?
            let api = "a", method = NetworkService.Method.post, body = "text"
            var params: [String: String] { ["body": body] }
        }
        try expect(built(Comment()).body, equals: .data(Data("body=text".utf8)))
    }

    @Test("REQ-9: a request of unknown type has what it declares, for filters and interceptors that look")
    func unknownType() {
        for request in [Numbers(), Anything(), Optionals()] as [any BaseAPIRequest] {
            let params = request.params as? [String: Any]
            expect(params?["n"] as? Int, equals: 1, "\(request)")
        }
        let request: any BaseAPIRequest = Numbers()
        expect(request.headers as? [String: String], equals: ["X": "1"])
        func headers<Request: BaseAPIRequest>(_ request: Request) -> [String: String]? {
            request.headers as? [String: String]
        }
        expect(headers(Numbers()), equals: ["X": "1"])
    }

    @Test("REQ-9: params and headers that cannot be read are errors that name their type")
    func unreadable() {
        let list = Erased(params: nil, headers: ["X"])
        expect(
            Built.failure(list),
            equals: "headers must be a [String: String] or HTTPHeaders, but is a Array<String>"
        )
        expect(Built.failure(Erased(params: 5, headers: nil)).contains("Int have no keys"))
        struct Odd: BaseAPIRequest {
            let api = "a"
            var params: [Int: String] { [1: "a"] }
            var headers: [String: Int] { ["X": 1] }
        }
        expect(Built.failure(Odd()).contains("headers must be a [String: String] or HTTPHeaders"))
    }

    private struct Call: APIRequest {
        typealias Item = [String: Date]
        var api = "a"
        var options = RequestOptions()
    }

    @Test("REQ-10: filters, deadlines and omitted headers of a request stand in for those of its host")
    func message() throws {
        let host = HostConfiguration(baseURL: URL(string: "https://h")) { host in
            host.standardHeaders = ["Accept": "a", "X-Standard": "s"]
            host.headers = ["X-Host": "h"]
            host.deadlines = TransportDeadlines(idle: 5, total: 9)
            host.filters = [{ $0.parameters["by"] = "host" }]
        }
        func built(_ options: RequestOptions) throws -> TransportRequest {
            try RequestBuilder.build(Call(options: options), for: host)
        }
        let plain = try built(RequestOptions())
        expect(plain.url.query == "by=host" && plain.deadlines == TransportDeadlines(idle: 5, total: 9))
        expect(plain.headers, equals: ["Accept": "a", "X-Standard": "s", "X-Host": "h"])
        let other = try built(
            RequestOptions(
                deadlines: TransportDeadlines(idle: 2),
                omittedHeaders: ["x-standard", "X-HOST"],
                filters: [{ $0.parameters["by"] = "request" }]
            )
        )
        expect(other.url.query == "by=request" && other.deadlines == TransportDeadlines(idle: 2))
        expect(other.headers, equals: ["Accept": "a"])
        try expect(built(RequestOptions(filters: [])).url.query == nil)
        let both = RequestOptions(timeout: 3, deadlines: TransportDeadlines(idle: 2))
        try expect(built(both).deadlines, equals: TransportDeadlines(idle: 2, total: 3))
        let error = #expect(throws: NetworkError.self) {
            try built(RequestOptions(deadlines: TransportDeadlines(idle: -1)))
        }
        let words = "the request's deadline \"idle\" must be a positive number of seconds, but is -1.0"
        expect(error?.message, equals: words)
    }

    @Test("REQ-10: a request has cookies of its own, or none")
    func cookies() async throws {
        let server = try MockServer()
        server.route("GET", "/a") { request in
            var response = MockResponse.text(request.headers["Cookie"] ?? "none")
            response.headers["Set-Cookie"] = "set=1"
            return response
        }
        let (jar, own) = (CookieJar(), CookieJar())
        jar.store(["Set-Cookie": "who=host"], from: server.baseURL, at: Date())
        own.store(["Set-Cookie": "who=own"], from: server.baseURL, at: Date())
        let service = EasyNetworkService(server.host { $0.cookies = jar })
        func text(_ options: RequestOptions) async throws -> String {
            try await service.send(Call(options: options)).text()
        }
        try await expect(text(RequestOptions(usesCookies: false)), equals: "none")
        try await expect(text(RequestOptions(cookies: own)), equals: "who=own")
        try await expect(text(RequestOptions(cookies: own, usesCookies: false)), equals: "none")
        // The answers of the three before stored nothing in the host's.
        try await expect(text(RequestOptions()), equals: "who=host")
        try await expect(text(RequestOptions()).contains("set=1"))
    }

    @Test("REQ-10, RSP-2: a request's decoder reads its answer")
    func decoder() async throws {
        let server = try MockServer()
        server.route("GET", "/a") { _ in .text(#"{"d":0}"#) }
        let service = EasyNetworkService(server.host { $0.decoder = .json(dates: .rfc3339) })
        let call = Call(options: RequestOptions(decoder: .json(dates: .secondsSince1970)))
        let operation = RequestOperation(call, service: service)
        NetworkQueue().addOperation(operation)
        try await expect(operation.value, equals: ["d": Date(timeIntervalSince1970: 0)])
    }

    private func family(_ change: (inout RequestOptions) -> Void) -> RequestOptions {
        RequestOptions(timeout: 10, retry: .never).with(change)
    }

    @Test("REQ-10: a copy with changes leaves the rest as it is")
    func changes() throws {
        let options = family { $0.timeout = 5 }
        expect(options.timeout == 5 && options.retry?.maximumRetryCount == 0)
        expect(family { _ in }.timeout, equals: 10)
    }
}
