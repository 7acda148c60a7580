import EasyNetwork
import EasyNetworkOpenAPI
import Foundation
import Testing

@testable import EasyNetworkTesting
@testable import TestSupport

@Suite("Answers from a document")
struct OpenAPIRoutesTests {
    private static let file = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .appendingPathComponent("../../../GenerateTests/OpenAPI/shop.json").standardizedFileURL
    private let routes: OpenAPIRoutes

    init() throws { routes = try OpenAPIRoutes(Self.file) }

    private func answer(
        _ method: String,
        _ target: String,
        _ headers: HTTPHeaders = HTTPHeaders(),
        body: String = "",
        type: String = "application/json"
    ) -> (status: Int, text: String) {
        var headers = headers
        if !body.isEmpty { headers["Content-Type"] = type }
        let request = MockRequest(method: method, target: target, headers: headers, body: Data(body.utf8))
        let answer = routes.answer(to: request)
        guard case .data(let data) = answer.body else { return (answer.statusCode, "?") }
        return (answer.statusCode, String(decoding: data, as: UTF8.self))
    }

    @Test("TOL-2: the first example of the lowest success answers, or the one that Prefer names")
    func examples() {
        expect(answer("GET", "/things?size=1").text.hasPrefix(#"[{"id":1,"name":"Lamp""#))
        expect(answer("GET", "/v1/things?size=1").status, equals: 200)
        expect(answer("GET", "/things?size=1", ["Prefer": "example=empty"]).text, equals: "[]")
        expect(answer("GET", "/things?size=1", ["Prefer": "code=401"]) == (401, #"{"title":"Sign in first"}"#))
        expect(answer("GET", "/things?size=1", ["Prefer": "code=500"]) == (500, #"{"title":"Closed","status":503}"#))
        expect(answer("GET", "/orders", ["Prefer": "code=403"]).status, equals: 400)
        expect(answer("PUT", "/things/1/photos/2", body: "x", type: "image/png") == (204, ""))
        expect(
            answer("POST", "/things/import", body: "x", type: "multipart/form-data; boundary=y") == (200, "2 things")
        )
    }

    static let complaints: [(String, String, String, Int, String)] = [
        ("GET", "/nothing", "", 404, "the document has no path like /nothing"),
        ("DELETE", "/orders", "", 405, "the document has no DELETE /orders, only POST, GET"),
        ("GET", "/things", "", 400, #"GET /things: the parameter "size" of the query is missing"#),
        (
            "GET", "/things?size=x", "", 400,
            #"GET /things: the parameter "size" of the query is a string, not an integer"#
        ),
        ("GET", "/things?size=1&page=0", "", 400, #"GET /things: the parameter "page" of the query is below 1"#),
        (
            "GET", "/things?size=1&ids=1,x", "", 400,
            #"GET /things: the parameter "ids" of the query is a string, not an integer"#
        ),
        (
            "GET", "/things?size=1&order=x", "", 400,
            #"GET /things: the parameter "order" of the query is "x", not one of "name", "-name", "price""#
        ),
        (
            "GET", "/things?size=1&colour=x", "", 400,
            #"GET /things: the query has "colour", which the document does not"#
        ),
        (
            "GET", "/things/x/photos/1", "", 400,
            #"GET /things/{thing-id}/photos/{number}: the parameter "thing-id" of the path is a string, not an integer"#
        ),
        ("POST", "/things", "", 400, "POST /things: the body is missing"),
        (
            "POST", "/things", "{", 400,
            "POST /things: the body is not valid JSON: expected a key in quotes, but the text ends"
        ),
        ("POST", "/things", #"{"price": 1, "note": null}"#, 400, #"POST /things: the body has no "name""#),
        (
            "POST", "/things", #"{"name": "a", "price": "1", "note": null}"#, 400,
            "POST /things: the body .price is a string, not a number"
        ),
        (
            "POST", "/things", #"{"name": "", "price": 1, "note": null}"#, 400,
            "POST /things: the body .name is shorter than 1 characters"
        ),
        (
            "POST", "/things", #"{"name": "a", "price": -1, "note": "b"}"#, 400,
            "POST /things: the body .price is below 0"
        ),
        (
            "POST", "/things", #"{"name": "a", "price": 1, "note": "b", "labels": ["a", 1]}"#, 400,
            "POST /things: the body .labels[1] matches none of 2 schemas; for the first: .labels[1] is an integer, not a string"
        ),
    ]

    @Test("TOL-2: a request that breaks the document is told where", arguments: complaints)
    func complaint(method: String, target: String, body: String, status: Int, message: String) {
        let found = answer(method, target, body: body)
        expect(found.status, equals: status)
        expect(found.text, equals: #"{"error":\#(JSON(.string(message), offset: 0).text)}"#)
    }

    @Test("TOL-2: a body of another type, and a form without what is required")
    func types() {
        expect(answer("POST", "/things", body: "a", type: "text/plain").status, equals: 415)
        let found = answer("POST", "/orders", body: "count=1", type: "application/x-www-form-urlencoded")
        expect(found == (400, #"{"error":"POST /orders: the form has no \"thing\""}"#))
        let fits = answer(
            "POST",
            "/orders",
            body: "thing=1&address%5Bcity%5D=Rome",
            type: "application/x-www-form-urlencoded"
        )
        expect(fits.status, equals: 200)
    }

    @Test("TOL-2: a value that is made fits its schema")
    func made() throws {
        let document = try OpenAPIDocument(Data(contentsOf: Self.file))
        let (maker, check) = (ExampleMaker(document: document), SchemaCheck(document: document))
        var count = 0
        for (key, schema) in document.schemas where key != "Elsewhere" {
            let media = OpenAPIContent.Media(
                type: "application/json",
                json: JSON(.object([]), offset: 0),
                schema: schema
            )
            let value = try #require(maker.example(of: media, named: nil), "\(key)")
            expect(check.mismatch(value, schema) == nil, "\(key): \(value.text)")
            count += 1
        }
        expect(count > 10)
        let loop = try #require(document.schema(named: "Loop"))
        expect(maker.example(of: .init(type: "", json: loop, schema: loop), named: nil)?.text, equals: "[[]]")
    }

    @Test("TOL-2: a real server answers from a document, and a route that is set later goes first")
    func server() async throws {
        let server = try MockServer()
        try server.routes(openAPI: Self.file)
        let host = HostConfiguration(baseURL: server.baseURL) { $0.retry = .never }
        let service = EasyNetworkService(host)
        let things = try await service.send(Request<Void>("things", params: ["size": 1]))
        expect(things.headers["Content-Type"] == "application/json" && things.statusCode == 200)
        let error = await #expect(throws: NetworkError.self) { try await service.send(Request<Void>("things")) }
        expect(error?.serverMessage, equals: #"GET /things: the parameter "size" of the query is missing"#)
        server.route("GET", "/things") { _ in .text("mine") }
        try await expect(service.send(Request<Void>("things")).text(), equals: "mine")
    }

    @Test("TOL-2: a file that is no document is an error with its place")
    func refused() throws {
        let file = FileManager.default.temporaryDirectory.appendingPathComponent("\(UUID().uuidString).json")
        defer { try? FileManager.default.removeItem(at: file) }
        let transport = InMemoryTransport()
        #expect(throws: NetworkError.self) { try transport.routes(openAPI: file) }
        try Data("{\n\"openapi\": }".utf8).write(to: file)
        let error = #expect(throws: NetworkError.self) { try transport.routes(openAPI: file) }
        expect(
            error?.code == .cannotParseResponse
                && error?.message?.contains("line 2, column 12: expected a value") == true
        )
    }
}
