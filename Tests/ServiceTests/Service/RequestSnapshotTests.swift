import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("RequestSnapshot", .timeLimit(.minutes(10)))
struct RequestSnapshotTests {
    /// How often each property was read.
    private final class Reads: Sendable {
        private let counts = Locked<[String: Int]>([:])

        var all: [String: Int] { counts.withLock { $0 } }

        func note(_ name: String = #function) { counts.withLock { $0[name, default: 0] += 1 } }
    }

    private struct Counted: APIRequest {
        typealias Item = Data
        let reads: Reads
        var repeatPolicy = RepeatPolicy.allow
        let api = "a"

        var method: NetworkService.Method {
            reads.note()
            return .post
        }
        var query: NetworkService.QueryType {
            reads.note()
            return .json
        }
        var params: [String: Any] {
            reads.note()
            return ["n": 1]
        }
        var headers: [String: String] {
            reads.note()
            return ["X": "1"]
        }
        var options: RequestOptions {
            reads.note()
            return RequestOptions(repeatPolicy: repeatPolicy)
        }
        func validateParameters() { reads.note("validateParameters") }
    }

    /// A server that fails once.
    private func host(_ transport: InMemoryTransport) -> HostConfiguration {
        let count = Locked(0)
        transport.route("POST", "/a") { _ in
            let isFirst = count.withLock { count in
                count += 1
                return count == 1
            }
            return isFirst ? .status(503) : .text("ok")
        }
        return HostConfiguration(baseURL: URL(string: "http://one.example"), transport: transport) { host in
            host.retry = RetryPolicy(maximumRetryCount: 1, baseDelay: 0)
            host.retry.methods.insert(.post)
        }
    }

    @Test(
        "REQ-1, OPQ-6: a request is read once for its retries and for the queue that compares it with others",
        arguments: [RepeatPolicy.allow, .join, .ignoreNewer, .cancelOlder]
    )
    func once(policy: RepeatPolicy) async throws {
        let (reads, transport) = (Reads(), InMemoryTransport())
        let request = Counted(reads: reads, repeatPolicy: policy)
        let operation = RequestOperation(request, service: EasyNetworkService(host(transport)))
        let queue = NetworkQueue()
        queue.addOperation(operation)
        try await expect(operation.value, equals: Data("ok".utf8))
        expect(transport.requests.count, equals: 2)
        var counts = reads.all
        // A request that may join is asked for it before, as the cache's policy depends on it.
        let methodCount = counts.removeValue(forKey: "method")
        expect(policy == .join || methodCount == 1)
        expect(counts, equals: ["query": 1, "params": 1, "headers": 1, "options": 1, "validateParameters": 1])
    }

    @Test("REQ-1: filters, interceptors and notifications get the request as its user made it")
    func original() async throws {
        struct Witness: RequestInterceptor {
            let seen: Locked<[String]>

            func adapt(_ message: TransportRequest, context: AttemptContext) async throws -> TransportRequest {
                seen.withLock { $0.append("\(type(of: context.request))") }
                return message
            }
        }
        let seen = Locked<[String]>([])
        let transport = InMemoryTransport()
        transport.route("POST", "/a") { .text(String(decoding: $0.body, as: UTF8.self)) }
        let host = HostConfiguration(baseURL: URL(string: "http://one.example"), transport: transport) { host in
            host.filters = [{ draft in seen.withLock { $0.append("\(type(of: draft.request))") } }]
            host.interceptors = [Witness(seen: seen)]
        }
        struct Put: APIRequest {
            typealias Item = Data
            let api = "a"
            let method = NetworkService.Method.post
            let query = NetworkService.QueryType.form
            let params = ["n": 1]
            let body: RequestBody? = .text("own")
        }
        let upload = UploadOperation(Put(), from: .text("other"), service: EasyNetworkService(host))
        NetworkQueue().addOperation(upload)
        try await expect(upload.value, equals: Data("other".utf8))
        expect(transport.requests.first?.query, equals: "n=1")
        expect(seen.withLock { $0 }, equals: ["Put", "Put"])
    }
}
