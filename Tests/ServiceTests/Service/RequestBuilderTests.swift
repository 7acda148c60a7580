import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("RequestBuilder")
struct RequestBuilderTests {
    private struct Defaults: BaseAPIRequest { let api = "ping" }
    private struct Payload: Codable, Sendable, Equatable {
        var name: String
        var path: String
    }

    private func build(
        _ request: some BaseAPIRequest,
        headers: HTTPHeaders = HTTPHeaders(),
        deadlines: TransportDeadlines = TransportDeadlines()
    ) throws -> TransportRequest {
        let base = try #require(URL(string: "https://h/v1"))
        let host = HostConfiguration(baseURL: base, headers: headers, deadlines: deadlines) { $0.standardHeaders = [:] }
        return try RequestBuilder.build(request, for: host)
    }

    private func text(_ body: TransportBody) -> String? {
        guard case .data(let data) = body else { return nil }
        return String(decoding: data, as: UTF8.self)
    }

    private func message(_ request: some BaseAPIRequest, headers: HTTPHeaders = HTTPHeaders()) -> String {
        let error = #expect(throws: NetworkError.self) { try build(request, headers: headers) }
        expect(error?.code, equals: .invalidRequest)
        return error?.message ?? ""
    }

    @Test("REQ-1: a request with only an api is a GET without body, at normal priority")
    func defaults() throws {
        let request = Defaults()
        let built = try build(request, headers: ["Accept": "a"], deadlines: TransportDeadlines(idle: 5, total: 9))
        expect(built.method, equals: .get)
        expect(built.url.absoluteString, equals: "https://h/v1/ping")
        expect(built.headers, equals: ["Accept": "a"])
        expect(built.body, equals: .none)
        expect(built.deadlines, equals: TransportDeadlines(idle: 5, total: 9))
        expect(request.options.priority, equals: .normal)
        expect(request.options.validation == nil)
        expect(request.defaultJsonHeader(), equals: ["Content-Type": "application/json", "Accept": "application/json"])
    }

    @Test("REQ-1: methods are sent in upper case; a method that is no token is refused")
    func methods() throws {
        for (raw, sent) in [("get", "GET"), ("Patch", "PATCH"), ("PROPFIND", "PROPFIND"), ("m-search", "M-SEARCH")] {
            try expect(build(AnyRequest(method: .init(rawValue: raw))).method.rawValue, equals: sent)
        }
        for raw in ["", "GET ", "GE T", "GET\r\nX: y", "GÉT", "GET/", "(GET)"] {
            expect(message(AnyRequest(method: .init(rawValue: raw))).contains("be a token"), "\(raw.debugDescription)")
        }
    }

    @Test("CFG-1: a request may override the base of its host")
    func baseOverride() throws {
        let base = URL(string: "https://other/v2")
        try expect(build(AnyRequest(baseURL: base)).url.absoluteString, equals: "https://other/v2/users")
    }

    @Test("REQ-2: params go into the query, behind the one of the api; with none there is no question mark")
    func pathParams() throws {
        let request = AnyRequest(api: "users?a=1#f", makeParams: { ["q": "x y", "n": 1] })
        try expect(build(request).url.absoluteString, equals: "https://h/v1/users?a=1&n=1&q=x%20y#f")
        try expect(build(AnyRequest(makeParams: { [:] })).url.absoluteString, equals: "https://h/v1/users")
        try expect(build(AnyRequest(makeParams: { ["e": [Int]()] })).url.absoluteString, equals: "https://h/v1/users")
        let post = AnyRequest(method: .post, makeParams: { ["q": 1] }, body: .text("b"))
        try expect(build(post).url.query, equals: "q=1")
        expect(text(try build(post).body), equals: "b")
    }

    /// A request without a query type.
    private struct Unsaid: BaseAPIRequest {
        let api = "login"
        var method = NetworkService.Method.get
        var body: RequestBody?
        var params: [String: Any]? { ["password": "s3cret"] }
    }

    @Test(
        "REQ-2: by default the parameters of POST, PUT and PATCH are a form in the body, never in the URL",
        arguments: [NetworkService.Method.post, .put, .patch]
    )
    func unsaidBody(method: NetworkService.Method) throws {
        let built = try build(Unsaid(method: method))
        expect(built.url.absoluteString, equals: "https://h/v1/login")
        expect(text(built.body), equals: "password=s3cret")
        expect(built.headers["Content-Type"], equals: "application/x-www-form-urlencoded")
    }

    @Test("REQ-2: by default the parameters of other methods, and beside a body, go into the query")
    func unsaidQuery() throws {
        for method in [NetworkService.Method.get, .head, .delete, .init(rawValue: "OPTIONS")] {
            let built = try build(Unsaid(method: method))
            expect(built.url.query == "password=s3cret" && built.body == .none)
        }
        let built = try build(Unsaid(method: .post, body: .text("b")))
        expect(built.url.query == "password=s3cret" && text(built.body) == "b")
    }

    @Test("REQ-2: a host may say where the parameters of POST, PUT and PATCH go; a request that says it itself wins")
    func hostQuery() throws {
        struct Form: BaseAPIRequest {
            let api = "login"
            let method = NetworkService.Method.post
            let query = NetworkService.QueryType.form
            var params: [String: Any]? { ["a": 1] }
        }
        func host(_ query: NetworkService.QueryType) -> HostConfiguration {
            HostConfiguration(baseURL: URL(string: "https://h/v1")) { $0.query = query }
        }
        for method in [NetworkService.Method.post, .put, .patch] {
            let json = try RequestBuilder.build(Unsaid(method: method), for: host(.json))
            expect(text(json.body) == #"{"password":"s3cret"}"# && json.url.query == nil)
            expect(json.headers["Content-Type"], equals: "application/json")
            let path = try RequestBuilder.build(Unsaid(method: method), for: host(.path))
            expect(path.body == .none && path.url.query == "password=s3cret")
            let automatic = try RequestBuilder.build(Unsaid(method: method), for: host(.automatic))
            expect(text(automatic.body), equals: "password=s3cret")
        }
        for request in [Unsaid(), Unsaid(method: .delete), Unsaid(method: .post, body: .text("b"))] {
            try expect(RequestBuilder.build(request, for: host(.json)).url.query, equals: "password=s3cret")
        }
        expect(text(try RequestBuilder.build(Form(), for: host(.json)).body), equals: "a=1")
    }

    @Test("REQ-2: params become JSON with sorted keys")
    func jsonParams() throws {
        var request = AnyRequest(
            method: .post,
            query: .json,
            makeParams: { ["b": true, "a": [1, NSNull()] as [Any]] }
        )
        let built = try build(request, headers: ["content-type": "host/type"])
        expect(text(built.body), equals: #"{"a":[1,null],"b":true}"#)
        expect(built.headers.values(for: "Content-Type"), equals: ["application/json"])
        expect(built.url.query == nil)
        request.headers = ["content-TYPE": "application/vnd.api+json"]
        try expect(build(request).headers.values(for: "Content-Type"), equals: ["application/vnd.api+json"])
        request.makeParams = { [:] }
        expect(text(try build(request).body), equals: "{}")
        request.makeParams = { nil }
        try expect(build(request).body, equals: .none)
    }

    @Test("REQ-2: params become a form")
    func formParams() throws {
        let request = AnyRequest(method: .put, query: .form, makeParams: { ["q": "a b&c", "l": [1, 2]] })
        let built = try build(request)
        expect(text(built.body), equals: "l%5B%5D=1&l%5B%5D=2&q=a+b%26c")
        expect(built.headers["Content-Type"], equals: "application/x-www-form-urlencoded")
    }

    @Test("REQ-2: a parameter that cannot be sent fails the request, wherever it goes")
    func badParams() {
        for query in [NetworkService.QueryType.path, .json, .form] {
            let request = AnyRequest(method: .post, query: query, makeParams: { ["a": ["b": Double.nan]] })
            expect(message(request).contains("parameter a.b"))
        }
    }

    @Test("REQ-3: bodies carry their bytes and their Content-Type")
    func bodies() throws {
        let file = FileManager.default.temporaryDirectory.appendingPathComponent("RequestBody-\(UUID().uuidString)")
        try Data("file".utf8).write(to: file)
        defer { try? FileManager.default.removeItem(at: file) }
        let stream = TransportBodyStream { InputStream(data: Data()) }
        let table: [(RequestBody, TransportBody, String?)] = [
            (.stream(stream), .stream(stream), "application/octet-stream"),
            (.stream(stream, contentType: nil), .stream(stream), nil),
            (.data(Data("x".utf8)), .data(Data("x".utf8)), nil),
            (.data(Data(), contentType: "image/png"), .data(Data()), "image/png"),
            (.text("é"), .data(Data("é".utf8)), "text/plain; charset=utf-8"),
            (
                .json(Payload(name: "n", path: "a/b")), .data(Data(#"{"name":"n","path":"a/b"}"#.utf8)),
                "application/json"
            ),
            (.form(["b": true, "a": 1]), .data(Data("a=1&b=true".utf8)), "application/x-www-form-urlencoded"),
            (.file(file), .file(file), "application/octet-stream"),
        ]
        for (body, expected, contentType) in table {
            let built = try build(AnyRequest(method: .post, body: body))
            expect(built.body, equals: expected)
            expect(built.headers["Content-Type"], equals: contentType)
        }
        let encoder = JSONEncoder()
        encoder.keyEncodingStrategy = .convertToSnakeCase
        let body = RequestBody.json(["firstName": 1], encoder: encoder)
        expect(text(try build(AnyRequest(method: .post, body: body)).body) != nil)
    }

    @Test("REQ-3: a body that cannot be built fails the request and says why")
    func badBodies() throws {
        struct Failing: Encodable, Sendable {
            func encode(to encoder: any Encoder) throws { throw CocoaError(.fileNoSuchFile) }
        }
        let missing = FileManager.default.temporaryDirectory.appendingPathComponent("missing-\(UUID().uuidString)")
        let web = try #require(URL(string: "https://u:secret@h/x?secret"))
        let table: [(RequestBody, String)] = [
            (.json(["list": [1, Double.nan]]), "list[1]"), (.json(Failing()), "type Failing"),
            (.form(["a": ["b": Double.nan]]), "parameter a.b"), (.file(missing), "does not exist"),
            (.file(FileManager.default.temporaryDirectory), "is a directory"), (.file(web), "is not a file URL"),
        ]
        for (body, fragment) in table {
            let text = message(AnyRequest(method: .post, body: body))
            expect(text.contains(fragment), "\(text)")
            expect(!text.contains("secret"))
        }
    }

    private static let types: [(RequestBody, given: String, isKept: Bool)] = {
        var form = MultipartForm()
        form.append("a", name: "a")
        let multipart = RequestBody.multipart(form)
        let file = { (name: String) in
            RequestBody.data(Data(), contentType: RequestBody.contentType(forExtension: name))
        }
        return [
            (multipart, "multipart/form-data", false), (multipart, "application/json", false),
            (multipart, "multipart/form-data; boundary=x", false),
            (multipart, "multipart/related; boundary=\"\(form.boundary)\"", true),
            (.form(["a": 1]), "application/json", false), (.form(["a": 1]), "multipart/form-data", false),
            (.form(["a": 1]), "application/x-www-form-urlencoded; charset=utf-8", true),
            (.json([1]), "application/x-www-form-urlencoded", false), (.json([1]), "application/vnd.api+json", true),
            (.json([1]), "application/x-amz-json-1.1", true), (.json([1]), "text/plain", true),
            (.propertyList([1]), "application/json", false), (.propertyList([1]), "application/xml", true),
            (.text("{}"), "application/json", true), (.data(Data()), "application/json", true),
            (file("png"), "application/json", false), (file("json"), "application/json; charset=utf-8", true),
            (file("unknown"), "multipart/mixed; boundary=x", true), (.form(["a": 1]), "nonsense", true),
        ]
    }()

    @Test("REQ-3: the type of a body replaces a header that contradicts it, and no other", arguments: types.indices)
    func contentTypes(index: Int) throws {
        let (body, given, isKept) = Self.types[index]
        let request = AnyRequest(method: .post, headers: ["content-type": given], body: body)
        let host = HostConfiguration(baseURL: URL(string: "https://h/v1"))
        var noted: [String] = []
        let built = try RequestBuilder.build(request, request.options, for: host) { noted = [$0, $1] }
        let type = try body.build().contentType
        expect(built.headers.values(for: "Content-Type"), equals: [isKept ? given : type ?? ""])
        expect(noted, equals: isKept ? [] : [given, type ?? ""])
        let params = AnyRequest(
            method: .post,
            query: .form,
            makeParams: { ["a": 1] },
            headers: request.defaultJsonHeader()
        )
        try expect(self.build(params).headers["Content-Type"], equals: "application/x-www-form-urlencoded")
    }

    @Test("SEC-4: a message whose address was given a user later is refused")
    func user() throws {
        let url = try #require(URL(string: "https://ada:s3cret@h/a"))
        let error = #expect(throws: NetworkError.self) { try RequestBuilder.check(TransportRequest(url: url)) }
        expect(
            error?.message?.contains("credential") == true && error?.localizedDescription.contains("s3cret") == false
        )
    }

    @Test("REQ-3: GET, HEAD and TRACE with a body, and a body given twice, are refused")
    func bodyConflicts() throws {
        let url = try #require(URL(string: "https://h/a"))
        let trace = TransportRequest(method: .init(rawValue: "trace"), url: url, body: .data(Data("x".utf8)))
        #expect(throws: NetworkError.self) { try trace.check() }
        for method in [NetworkService.Method.get, .head, .init(rawValue: "TRACE")] {
            expect(message(AnyRequest(method: method, body: .text("x"))).hasPrefix("a \(method) request takes no body"))
            expect(message(AnyRequest(method: method, query: .json, makeParams: { ["a": 1] })).contains("no body"))
        }
        for query in [NetworkService.QueryType.json, .form] {
            let request = AnyRequest(method: .post, query: query, makeParams: { ["a": 1] }, body: .text("x"))
            expect(message(request).contains("has a body, so params cannot be sent"))
        }
    }

    @Test("CFG-6: the request's headers beat the host's, whatever the case")
    func headers() throws {
        let request = AnyRequest(headers: ["accept": "mine", "X-A": "1"])
        let built = try build(request, headers: ["Accept": "host", "User-Agent": "agent"])
        expect(built.headers.values(for: "Accept"), equals: ["mine"])
        expect(built.headers["User-Agent"], equals: "agent")
        expect(built.headers["x-a"], equals: "1")
    }

    @Test("REQ-1: headers that would break the message are refused by name, without their value")
    func badHeaders() {
        for name in ["", "A B", "A:", "Ä", "A\r\nB", "A\u{0}"] {
            expect(message(AnyRequest(headers: [name: "v"])).contains("be a token"), "\(name.debugDescription)")
        }
        for value in ["a\r\nX: y", "a\nb", "a\rb", "a\u{0}", "secret\n"] {
            let text = message(AnyRequest(headers: ["X-Key": value]))
            expect(text.contains("X-Key"), "\(value.debugDescription)")
            expect(!text.contains("secret"))
        }
        expect(message(AnyRequest(), headers: ["X-Host": "a\r\nb"]).contains("X-Host"))
        expect(message(AnyRequest(headers: ["X-A": "1", "x-a": "2"])).contains("twice"))
        #expect(throws: Never.self) { try build(AnyRequest(headers: ["X-A": "é \t~"])) }
    }

    @Test("REQ-5: the timeout of the request becomes the total of each attempt; it has to be positive and finite")
    func timeouts() throws {
        let built = try build(AnyRequest(timeout: 0.5), deadlines: TransportDeadlines(idle: 7, total: 100))
        expect(built.deadlines, equals: TransportDeadlines(idle: 7, total: 0.5))
        for timeout in [0, -1, .infinity, .nan] as [TimeInterval] {
            expect(message(AnyRequest(timeout: timeout)).contains("timeout"))
        }
    }
}
