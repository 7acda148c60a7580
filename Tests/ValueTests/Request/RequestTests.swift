import EasyNetwork
import EasyNetworkTesting
import Foundation
import Testing

@testable import TestSupport

// Imported without `@testable`, so that everything used here must be public.

@Suite("Requests without a type of their own")
struct RequestTests {
    private struct User: Decodable, Equatable { let name: String }
    private final class Picture: Sendable {
        let bytes: Data
        init(_ bytes: Data) { self.bytes = bytes }
    }

    private let transport = InMemoryTransport()
    private let queue = NetworkQueue()
    private var service: EasyNetworkService {
        EasyNetworkService(HostConfiguration(baseURL: URL(string: "https://api.example.com/v1"), transport: transport))
    }

    @Test("REQ-8: each kind of item is read as that of a request with a type")
    func items() async throws {
        transport.route("*", "*") { _ in .json([["name": "Ada"]]) }
        let users = try await queue.perform(Request<[User]>("users", params: ["page": 2]), service: service)
        expect(users, equals: [User(name: "Ada")])
        try await expect(
            queue.perform(Request<Data>("users"), service: service),
            equals: Data(#"[{"name":"Ada"}]"#.utf8)
        )
        try await expect(queue.perform(Request<NetworkResponse>("users"), service: service).statusCode, equals: 200)
        try await queue.perform(Request<Void>(.delete, "users/7"), service: service)
        let picture = Request("picture", item: { Picture($0.body) })
        try await expect(queue.perform(picture, service: service).bytes.count, equals: 16)
        expect(
            transport.requests.map(\.path),
            equals: ["/v1/users", "/v1/users", "/v1/users", "/v1/users/7", "/v1/picture"]
        )
        expect(transport.requests.map(\.method), equals: ["GET", "GET", "GET", "DELETE", "GET"])
        expect(transport.requests.first?.query, equals: "page=2")
    }

    @Test("REQ-8: parameters, header fields, a body and options are sent")
    func parts() async throws {
        transport.route("*", "*") { _ in .status(204) }
        let json = Request<Void>(
            .post,
            "users",
            params: ["name": "Ada", "tags": ["a"]],
            query: .json,
            headers: ["X-A": "1"]
        )
        try await queue.perform(json, service: service)
        var text = Request<Void>(.put, "notes", body: .text("hello"))
        text.options.idempotencyKey = "key"
        try await queue.perform(text, service: service)
        expect(
            transport.requests.map(\.body),
            equals: [Data(#"{"name":"Ada","tags":["a"]}"#.utf8), Data("hello".utf8)]
        )
        expect(transport.requests.first?.headers["X-A"], equals: "1")
        expect(transport.requests.last?.headers["Idempotency-Key"], equals: "key")
    }

    @Test("REQ-8: it goes into dependents, batches and results")
    func jobs() async throws {
        transport.route("GET", "*") { _ in .json(["name": "Ada"]) }
        let first = RequestOperation(Request<User>("me"), service: service)
        let next = first.then { user in Request<User>("users/\(segment: user.name)") }
        queue.addOperations([first, next], waitUntilFinished: false)
        try await expect(next.value, equals: User(name: "Ada"))
        var names: [Int: String] = [:]
        for await (index, result) in queue.results(of: (1...3).map { Request<User>("users/\($0)") }, service: service) {
            names[index] = try result.get().name
        }
        expect(names, equals: [0: "Ada", 1: "Ada", 2: "Ada"])
        expect(transport.requests.prefix(2).map(\.path), equals: ["/v1/me", "/v1/users/Ada"])
    }

    @Test(
        "REQ-11: a text from elsewhere is one segment of the path",
        arguments: [
            ("a b", "a%20b"), ("a/b", "a%2Fb"), ("é", "%C3%A9"), ("100%", "100%25"), ("a?b#c", "a%3Fb%23c"),
            ("...", "..."),
            ("%2e%2e", "%252e%252e"), ("a:b@c", "a%3Ab%40c"), ("\u{0}", "%00"), ("😀", "%F0%9F%98%80"),
        ]
    )
    func segments(text: String, path: String) async throws {
        transport.route("GET", "*") { _ in .status(204) }
        try await queue.perform(Request<Void>("files/\(segment: text)/info"), service: service)
        expect(transport.requests.first?.target, equals: "/v1/files/\(path)/info")
        expect("\(segment: 7)", equals: "7")
    }

    @Test("REQ-11: a segment that leads elsewhere is refused, and nothing is sent", arguments: ["", ".", ".."])
    func refusedSegments(text: String) async throws {
        for api in ["files/\(segment: text)", "https://example.com/\(segment: text)/files"] {
            let error = await #expect(throws: NetworkError.self) {
                try await queue.perform(Request<Void>(.delete, api), service: service)
            }
            expect(error?.code == .invalidRequest && error?.message?.contains("segment") == true)
        }
        expect(transport.requests.isEmpty)
    }

    private static let places: [@Sendable (String) -> Request<Void>] = [
        { Request(.post, "a?q=\($0)") }, { Request(.post, "a#\($0)") },
        { Request(.post, "a", headers: ["X-A": "é \($0)"]) },
        { Request(.post, "a", headers: ["X-A": $0.addingPercentEncoding(withAllowedCharacters: .letters) ?? ""]) },
        { Request(.post, "a", options: RequestOptions(baseURL: URL(string: "https://b.example/\($0)/"))) },
        { Request(.post, "a", params: ["q": $0], query: .path) },
        { Request(.post, "a", params: [$0: 1], query: .json) },
        { Request(.post, "a", params: ["q": [$0]], query: .form) },
        { Request(.post, "a", options: RequestOptions(idempotencyKey: $0)) },
        { Request(.post, "a", body: .text("é \u{FDCF}\($0)").gzipped()) }, { Request(.post, "a", body: .json([$0])) },
        { Request(.post, "a", body: .data(Data([0xFF, 0xEF] + $0.utf8))) },
        { Request(.post, "a", body: .propertyList([$0])) },
        { Request(.post, "a", body: .propertyList([$0], format: .binary)) },
        { Request(.post, "a", body: .form(["q": $0])) },
        { text in
            var form = MultipartForm()
            form.append(text, name: "a")
            return Request(.post, "a", body: .multipart(form))
        },
        { text in
            var form = MultipartForm()
            form.append(Data(), name: "a", filename: text)
            return Request(.post, "a", body: .multipart(form))
        },
    ]

    @Test("REQ-11: a refused segment is sent in no part of a request", arguments: places.indices)
    func refusedSegment(place: Int) async throws {
        transport.route("*", "*") { _ in .status(204) }
        let make = Self.places[place]
        for text in ["", ".", ".."] {
            let error = await #expect(throws: NetworkError.self) {
                try await queue.perform(make("\(segment: text)"), service: service)
            }
            expect(error?.code == .invalidRequest && error?.message?.contains("segment") == true, "\(error as Any)")
        }
        expect(transport.requests.isEmpty)
        // A noncharacter of the user's own is sent.
        let own = String(decoding: [0xFDD0, 0xFDD1, 0x61], as: UTF16.self)
        try await queue.perform(make("\(segment: "a")\(own)"), service: service)
        expect(transport.requests.count, equals: 1)
    }
}
