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
        var headers: [String: String]? { (wrapped.headers ?? [:]).merging(["X-Mark": "1"]) { $1 } }
    }

    private struct Bare: BaseAPIRequest {
        let api = "bare"
    }

    private struct Passing: RequestInterceptor {}

    private struct Refusal: Error {}

    /// Every property differs from its default.
    private struct Full: BaseAPIRequest {
        var api: String { "full" }
        var method: NetworkService.Method { .post }
        var query: NetworkService.QueryType { .form }
        var params: [String: Any]? { ["a": [1, 2]] }
        var encodableParams: (any Encodable & Sendable)? { ["b": 1] }
        var queryEncoder: QueryEncoder? { QueryEncoder(arrays: .repeated) }
        var headers: [String: String]? { ["X-Own": "own"] }
        var credential: HTTPCredential? { try? .bearer("token") }
        var isAuthenticated: Bool { false }
        var body: RequestBody? { .text("body") }
        var timeout: TimeInterval? { 1 }
        var overallTimeout: TimeInterval? { 2 }
        var retry: RetryPolicy? { .never }
        var idempotencyKey: String? { "idempotency" }
        var redirects: RedirectPolicy? { .never }
        var cache: CachePolicy? { .http }
        var interceptors: [any RequestInterceptor] { [Passing()] }
        func validateParameters() throws { throw Refusal() }
        var customURLRequest: URLRequest? { URL(string: "https://custom.example/").map { URLRequest(url: $0) } }
        var allowsCellularAccess: Bool { false }
        var networkServiceType: URLRequest.NetworkServiceType { .video }
        var priority: Operation.QueuePriority { .high }
        var baseURL: URL? { URL(string: "https://base.example/") }
        var useCDN: Bool { true }
        var validation: ResponseValidation? { ResponseValidation(statusCodes: [418]) }
        var repeatPolicy: RepeatPolicy { .ignoreNewer }
        var repeatKey: String? { "repeat" }
    }

    /// A valid request that sets as many properties as can be combined.
    private struct Form: BaseAPIRequest {
        var usesQuery: Bool
        var api: String { "form" }
        var method: NetworkService.Method { .post }
        var query: NetworkService.QueryType { usesQuery ? .path : .form }
        var encodableParams: (any Encodable & Sendable)? { ["b": [1, 2]] }
        var queryEncoder: QueryEncoder? { QueryEncoder(arrays: .repeated) }
        var headers: [String: String]? { ["X-Own": "own"] }
        var credential: HTTPCredential? { try? .bearer("token") }
        var body: RequestBody? { usesQuery ? .text("body") : nil }
        var timeout: TimeInterval? { 1 }
        var idempotencyKey: String? { "idempotency" }
        var allowsCellularAccess: Bool { false }
        var networkServiceType: URLRequest.NetworkServiceType { .video }
        var baseURL: URL? { URL(string: "https://base.example/") }
    }

    /// The properties by name.
    private func properties(_ request: any BaseAPIRequest) -> [String: String] {
        func text(_ value: Any) -> String { String(describing: value) }
        return [
            "api": request.api,
            "method": text(request.method),
            "query": text(request.query),
            "params": text(request.params as Any),
            "encodableParams": text(request.encodableParams as Any),
            "queryEncoder": text(request.queryEncoder as Any),
            "headers": text(request.headers as Any),
            "credential": text(request.credential?.authorization as Any),
            "isAuthenticated": text(request.isAuthenticated),
            "body": text(request.body as Any),
            "timeout": text(request.timeout as Any),
            "overallTimeout": text(request.overallTimeout as Any),
            "retry": text(request.retry?.maximumRetryCount as Any),
            "idempotencyKey": text(request.idempotencyKey as Any),
            "redirects": text(request.redirects?.limit as Any),
            "cache": text(request.cache?.reading as Any),
            "interceptors": text(request.interceptors),
            "validateParameters": text(Result { try request.validateParameters() }),
            "customURLRequest": text(request.customURLRequest?.url as Any),
            "allowsCellularAccess": text(request.allowsCellularAccess),
            "networkServiceType": text(request.networkServiceType),
            "priority": text(request.priority.rawValue),
            "baseURL": text(request.baseURL as Any),
            "useCDN": text(request.useCDN),
            "validation": text(request.validation?.statusCodes as Any),
            "repeatPolicy": text(request.repeatPolicy),
            "repeatKey": text(request.repeatKey as Any),
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
