import Foundation
import Testing

@testable import EasyNetwork

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

@Suite("A request around another")
struct RequestWrapperTests {
    private struct Plain: RequestWrapper {
        let wrapped: any BaseAPIRequest
    }

    private struct Marked: RequestWrapper {
        let wrapped: any BaseAPIRequest
        var headers: HTTPHeaders? {
            (try? RequestBuilder.headers(of: wrapped.headers))?.merging(["X-Mark": "1"])
        }
    }

    private struct Bare: BaseAPIRequest {
        let api = "bare"
    }

    private struct Refusal: Error {}

    /// Every property differs from its default.
    private struct Full: BaseAPIRequest {
        var api: String { "full" }
        var method: NetworkService.Method { .post }
        var query: NetworkService.QueryType { .form }
        var params: [String: Any]? { ["a": [1, 2]] }
        var headers: [String: String]? { ["X-Own": "own"] }
        var body: RequestBody? { .text("body") }
        func validateParameters() throws { throw Refusal() }
        var options: RequestOptions {
            RequestOptions(timeout: 1, cache: .http, retry: .never, priority: .high, useCDN: true)
        }
    }

    /// A valid request that sets as many properties as can be combined.
    private struct Form: BaseAPIRequest {
        var usesQuery: Bool
        var api: String { "form" }
        var method: NetworkService.Method { .post }
        var query: NetworkService.QueryType { usesQuery ? .path : .form }
        var params: [String: [Int]] { ["b": [1, 2]] }
        var headers: [String: String]? { ["X-Own": "own"] }
        var body: RequestBody? { usesQuery ? .text("body") : nil }
        var options: RequestOptions {
            RequestOptions(
                timeout: 1,
                baseURL: URL(string: "https://base.example/"),
                queryEncoder: QueryEncoder(arrays: .repeated),
                idempotencyKey: "idempotency",
                credential: try? .bearer("token"),
                allowsCellularAccess: false,
                networkServiceType: .video
            )
        }
    }

    /// The properties by name.
    private func properties(_ request: any BaseAPIRequest) -> [String: String] {
        func text(_ value: Any) -> String { String(describing: value) }
        return [
            "api": request.api,
            "method": text(request.method),
            "query": text(request.query),
            "params": text(request.params),
            "headers": text(request.headers),
            "body": text(request.body as Any),
            "options": text((request.options.timeout, request.options.cache?.reading, request.options.useCDN)),
            "validateParameters": text(Result { try request.validateParameters() }),
        ]
    }

    @Test("REQ-1: a wrapper has each property of its request")
    func forwards() {
        let (full, bare) = (properties(Full()), properties(Bare()))
        let (wrapped, twice) = (properties(Plain(wrapped: Full())), properties(Plain(wrapped: Plain(wrapped: Full()))))
        for (name, value) in full {
            #expect(bare[name] != value, "\(name) has its default, so that this test says nothing of it")
            #expect(wrapped[name] == value, "\(name)")
            #expect(twice[name] == value, "\(name)")
        }
    }

    @Test("REQ-1: the message is the same", arguments: [false, true])
    func message(usesQuery: Bool) throws {
        let form = Form(usesQuery: usesQuery)
        let (direct, wrapped) = (try Built(form), try Built(Plain(wrapped: form)))
        #expect(wrapped.url == direct.url)
        #expect(wrapped.message.method == direct.message.method)
        #expect(wrapped.message.headers == direct.message.headers)
        #expect(wrapped.data == direct.data)
        #expect(wrapped.data?.isEmpty == false)
        #expect(wrapped.message.deadlines == direct.message.deadlines)
        #expect(wrapped.message.allowsCellularAccess == direct.message.allowsCellularAccess)
        #expect(wrapped.message.networkServiceType == direct.message.networkServiceType)
        // The values must differ from the defaults.
        #expect(direct.message.networkServiceType == .video && !direct.message.allowsCellularAccess)
        #expect(direct.message.deadlines.total == 1 && direct.message.headers["Idempotency-Key"] == "idempotency")
        let marked = try Built(Marked(wrapped: form))
        #expect(marked.message.headers["X-Mark"] == "1")
        #expect(marked.message.headers["X-Own"] == "own")
    }

    @Test("REQ-1: filters get the original request")
    func original() throws {
        let seen = Locked<(any BaseAPIRequest)?>(nil)
        let host = HostConfiguration(baseURL: URL(string: "https://h")) { host in
            host.filters = [
                { draft in
                    seen.exchange(draft.request)
                    #expect(draft.headers["X-Mark"] == "1")
                }
            ]
        }
        _ = try RequestBuilder.build(Plain(wrapped: Marked(wrapped: Bare())), for: host)
        #expect(seen.withLock { $0 } is Bare)
    }

    #if os(Linux)
    @Test("REQ-1: the first of these tests knows every property that a request has")
    func complete() throws {
        let source = URL(fileURLWithPath: #filePath)
            .deletingLastPathComponent()
            .appendingPathComponent("../../../Sources/EasyNetwork/Request/BaseAPIRequest.swift")
        let text = try String(contentsOf: source.standardized, encoding: .utf8)
        let requirements = text.prefix(upTo: try #require(text.range(of: "\nextension")?.lowerBound))
        let names = requirements.split(separator: "\n").compactMap { line -> String? in
            guard let match = line.firstMatch(of: /^    (?:var|func) (\w+)/) else { return nil }
            return String(match.1)
        }
        #expect(Set(names) == Set(properties(Bare()).keys))
    }
    #endif
}
