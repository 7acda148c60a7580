import Foundation

@testable import EasyNetwork
@testable import TestSupport

/// Uses a session like a call, with a closure as the server.
final class SessionClient: Sendable {
    typealias Server = @Sendable (_ token: String?) -> NetworkResponse

    /// A request in progress.
    final class Job: Sendable {
        private struct State {
            var task: Task<Void, Never>?
            var isHeld = false
            var sent: [String?] = []
            var results: [Result<NetworkResponse, NetworkError>] = []
        }

        private let state = Locked(State())
        /// Opens when the request has ended or is held.
        fileprivate let settled = Gate()
        private let done = Gate()

        var isHeld: Bool { state.withLock { $0.isHeld } }
        /// The tokens that were sent.
        var sent: [String?] { state.withLock { $0.sent } }
        /// The number of its endings, which must be one.
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

        fileprivate func start(_ session: RequestAuthentication, _ server: @escaping Server) {
            let task = Task {
                let result = await answer(session, server)
                // Like a call, it ends when it is cancelled.
                guard !Task.isCancelled else { return }
                state.withLock { $0.results.append(result) }
                done.open()
                settled.open()
            }
            state.withLock { $0.task = task }
        }

        private func answer(
            _ session: RequestAuthentication,
            _ server: Server
        ) async -> Result<NetworkResponse, NetworkError> {
            let message = TransportRequest(url: URL(fileURLWithPath: "/"))
            do throws(NetworkError) {
                let credentialState = session.begin(message.url, base: nil)
                func input(
                    _ state: RequestAuthentication.CredentialState,
                    _ refresh: RequestAuthentication.Refresh?
                ) -> RequestAuthentication.Input {
                    .init(message: message, state: state, refresh: refresh) { EasyNetworkService(.shared) }
                }
                guard
                    var next = try await ready({ refresh throws(NetworkError) in
                        try session.authorize(input(credentialState, refresh))
                    })
                else { return .failure(NetworkError(code: .cancelled)) }
                while true {
                    let token = next.message.headers["Authorization"].map { String($0.dropFirst("Bearer ".count)) }
                    state.withLock { $0.sent.append(token) }
                    let response = server(token)
                    let sent = next.credentialState
                    guard
                        let again = try await ready({ refresh throws(NetworkError) in
                            try session.review(response, to: input(sent, refresh))
                        })
                    else { return .success(response) }
                    next = again
                }
            } catch {
                return .failure(error)
            }
        }

        /// Asks, and asks again when it has waited for a refresh.
        private func ready(
            _ ask: (RequestAuthentication.Refresh?) throws(NetworkError) -> RequestAuthentication.Authorization?
        ) async throws(NetworkError) -> RequestAuthentication.Authorized? {
            var refresh: RequestAuthentication.Refresh?
            while true {
                switch try ask(refresh) {
                case .ready(let authorized): return authorized
                case .wait(let other):
                    refresh = other
                    state.withLock { $0.isHeld = true }
                    settled.open()
                    await other.wait()
                    state.withLock { $0.isHeld = false }
                case nil: return nil
                }
            }
        }
    }

    let session: RequestAuthentication
    private let server: Server

    init(_ session: RequestAuthentication, _ server: @escaping Server) {
        self.session = session
        self.server = server
    }

    /// Starts a request, and returns when it has ended or is held.
    func start() async -> Job {
        let job = Job()
        job.start(session, server)
        await job.settled.opened()
        return job
    }

    /// Starts requests in order.
    func start(_ count: Int) async -> [Job] {
        var jobs: [Job] = []
        for _ in 0..<count { jobs.append(await start()) }
        return jobs
    }
}

extension RequestAuthentication.Authorization {
    /// The message with its credential; nil when it is to wait for a refresh.
    var message: RequestAuthentication.Authorized? {
        if case .ready(let authorized) = self { authorized } else { nil }
    }
}
