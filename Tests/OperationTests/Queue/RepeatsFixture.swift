import EasyNetworkTesting
import Foundation
import Testing

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

@testable import EasyNetwork
@testable import TestSupport

/// A server, a service and a queue for repeated requests.
struct RepeatsFixture {
    let server: MockServer
    let service: EasyNetworkService
    let queue = NetworkQueue(maxConcurrentOperationCount: 2)

    init() throws {
        server = try MockServer()
        service = EasyNetworkService(server.host())
        server.route("GET", "/a") { _ in .text("one two") }
        server.route("GET", "/stall") { _ in .fault(.stall) }
    }

    func operation(_ request: Repeated) -> RequestOperation<Repeated> {
        RequestOperation(request, service: service)
    }
}

struct Repeated: APIRequest {
    typealias Item = NetworkResponse
    var api = "a"
    var params: [String: Any]? { text.map { ["text": $0, "limit": 20] } }
    var text: String?
    var headers: [String: String]?
    var timeout: TimeInterval?
    var repeatPolicy = RepeatPolicy.join
    var repeatKey: String?
    var isAuthenticated = true
    var customURLRequest: URLRequest?
    var options: RequestOptions {
        RequestOptions(
            timeout: timeout,
            isAuthenticated: isAuthenticated,
            repeatPolicy: repeatPolicy,
            repeatKey: repeatKey,
            customURLRequest: customURLRequest
        )
    }
}

/// A request whose own interceptor puts a user into it.
struct Personal: APIRequest {
    typealias Item = NetworkResponse

    private struct Credential: RequestInterceptor {
        let user: String

        func adapt(_ message: TransportRequest, context: AttemptContext) async throws -> TransportRequest {
            var message = message
            message.headers["Authorization"] = user
            return message
        }
    }

    var api = "stall"
    var user: String?
    var repeatPolicy = RepeatPolicy.join
    var repeatKey: String?
    var redirects: RedirectPolicy?
    var options: RequestOptions {
        RequestOptions(
            interceptors: user.map { [Credential(user: $0)] } ?? [],
            redirects: redirects,
            repeatPolicy: repeatPolicy,
            repeatKey: repeatKey
        )
    }
}

extension NetworkOperation {
    /// The number of tasks that wait for the end.
    var waiterCount: Int { core.withLock { Int($0.waitingTaskCount) } }
}

extension NetworkQueue {
    /// Whether the queue holds no jobs, hidden ones included.
    var keepsNothing: Bool {
        state.withLock { $0.graph.totalCount == 0 }
            && repeats.withLock { $0.registry.jobs.count + $0.carriers.count } == 0
    }

    /// Whether the operation's task waits for a shared answer, so that a cancel makes it leave at once. It is counted
    /// before.
    func isJoined(_ operation: NetworkOperation) -> Bool {
        state.withLock { state in
            state.graph.allJobs.contains { job in
                job.payload is RequestCarrier && job.dependents.contains { $0.job.payload === operation }
            }
        }
    }

    /// The number of operations that wait for a shared answer.
    var joinedCount: Int {
        repeats.withLock { $0.carriers.values.reduce(0) { $0 + $1.waiterCount } }
    }
}
