import Foundation

@testable import EasyNetwork

/// Tokens of a test: numbered, refreshed by a closure.
struct TestTokens: Authenticator {
    var refreshed: @Sendable (String?) async throws -> String
    var expired: @Sendable (String) -> Bool = { _ in false }
    var refused: @Sendable (NetworkResponse) -> Bool = { $0.statusCode == 401 }
    var applied: @Sendable (String) throws -> Void = { _ in }

    func apply(_ credential: String, to request: inout TransportRequest) throws {
        try applied(credential)
        request.headers["Authorization"] = try HTTPCredential.bearer(credential).authorization
    }

    func isRefused(_ response: NetworkResponse) -> Bool {
        refused(response)
    }

    func isExpired(_ credential: String, at date: Date) -> Bool {
        expired(credential)
    }

    func refresh(_ credential: String?, over service: EasyNetworkService) async throws -> String {
        try await refreshed(credential)
    }
}

/// Does with a session what a call does, with a server that is a closure.
final class SessionClient: Sendable {
    typealias Server = @Sendable (_ token: String?) -> NetworkResponse

    /// One request on its way.
    final class Job: Sendable {
        private struct State {
            var task: Task<Void, Never>?
            var isHeld = false
            var sent: [String?] = []
            var results: [Result<NetworkResponse, NetworkError>] = []
        }

        private let session: RequestAuthentication
        private let message: TransportRequest
        private let server: Server
        private let state = Locked(State())
        private let done = Gate()

        fileprivate init(_ session: RequestAuthentication, _ message: TransportRequest, _ server: @escaping Server) {
            self.session = session
            self.message = message
            self.server = server
        }

        var isHeld: Bool { state.withLock { $0.isHeld } }
        /// The tokens that went out.
        var sent: [String?] { state.withLock { $0.sent } }
        /// How often it ended: once.
        var endCount: Int { state.withLock { $0.results.count } }

        var result: Result<NetworkResponse, NetworkError> {
            get async {
                await done.opened()
                return state.withLock { $0.results[0] }
            }
        }

        func cancel() {
            state.withLock { $0.task }?.cancel()
        }

        fileprivate func start(_ stamp: RequestAuthentication.Stamp) {
            act(session.prepare(message, stamp, over: Self.service))
        }

        private func goOn(
            _ result: Result<(message: TransportRequest, stamp: RequestAuthentication.Stamp), NetworkError>
        ) {
            state.withLock { $0.isHeld = false }
            switch result {
            case .success(let (message, stamp)): act(.send(message, stamp))
            case .failure(let error): end(.failure(error))
            }
        }

        private func act(_ step: RequestAuthentication.Step) {
            switch step {
            case .send(let outgoing, let stamp):
                let token = outgoing.headers["Authorization"].map { String($0.dropFirst("Bearer ".count)) }
                state.withLock { $0.sent.append(token) }
                let response = server(token)
                let next = session.review(response, to: message, stamp, over: Self.service)
                if case .accept = next { end(.success(response)) } else { act(next) }
            case .wait(let waiting):
                state.withLock { $0.isHeld = true }
                let task = Task {
                    let result: Result<(message: TransportRequest, stamp: RequestAuthentication.Stamp), NetworkError>
                    do throws(NetworkError) { result = .success(try await waiting()) } catch {
                        result = .failure(error)
                    }
                    // As a call, it is over when it is cancelled.
                    if !Task.isCancelled { goOn(result) }
                }
                state.withLock { $0.task = task }
            case .fail(let error):
                end(.failure(error))
            case .accept:
                break
            }
        }

        private func end(_ result: Result<NetworkResponse, NetworkError>) {
            state.withLock { $0.results.append(result) }
            done.open()
        }

        private static let service: @Sendable () -> EasyNetworkService = { EasyNetworkService(.shared) }
    }

    let session: RequestAuthentication
    private let server: Server

    init(_ session: RequestAuthentication, _ server: @escaping Server) {
        self.session = session
        self.server = server
    }

    /// Starts a request; when this returns it has ended or is held.
    func start() -> Job {
        let message = TransportRequest(url: URL(fileURLWithPath: "/"))
        let job = Job(session, message, server)
        job.start(session.begin(message.url, base: nil))
        return job
    }
}
