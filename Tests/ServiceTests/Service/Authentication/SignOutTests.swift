import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

/// Signs out, or signs another user in, at each moment at which code of the user runs on the way of a request.
@Suite("Sign-out during a request")
struct SignOutTests {
    private enum Change: CaseIterable {
        case signOut, signIn
    }

    private enum Moment: CaseIterable {
        case expiry, apply, refresh, save, response
    }

    /// One run: the change is made when the moment comes for the `turn`th time.
    private struct Run {
        let change: Change
        let moment: Moment
        let turn: Int
        /// Whether the first credential has expired; otherwise the server refuses it.
        let isExpired: Bool
    }

    /// Makes the change of a run, and notes what is sent after it.
    private final class Script: Sendable {
        private struct State {
            var session: AuthenticationSession<TestTokens>?
            var turn = 0
            var hasChanged = false
            var sentAfterwards: [String?] = []
        }

        let run: Run
        private let state = Locked(State())

        init(_ run: Run) {
            self.run = run
        }

        func use(_ session: AuthenticationSession<TestTokens>?) {
            state.withLock { $0.session = session }
        }

        var hasChanged: Bool { state.withLock { $0.hasChanged } }
        var sentAfterwards: [String?] { state.withLock { $0.sentAfterwards } }

        func reach(_ moment: Moment) {
            guard moment == run.moment else { return }
            let session = state.withLock { state in
                state.turn += 1
                return state.turn == run.turn ? state.session : nil
            }
            guard let session else { return }
            switch run.change {
            case .signOut: session.signOut()
            case .signIn: session.signIn("bob")
            }
            state.withLock { $0.hasChanged = true }
        }

        func send(_ token: String?) {
            state.withLock { if $0.hasChanged { $0.sentAfterwards.append(token) } }
        }
    }

    /// - Returns: the tokens that were sent after the change; nil when it was not made.
    private static func tokens(of run: Run) async throws -> [String?]? {
        let script = Script(run)
        var tokens = TestTokens { old in
            script.reach(.refresh)
            return old == nil ? "anybody" : "ada2"
        }
        tokens.expired = { token in
            script.reach(.expiry)
            return run.isExpired && token == "ada1"
        }
        tokens.applied = { _ in script.reach(.apply) }
        let session = AuthenticationSession(tokens, credential: "ada1") { _ in script.reach(.save) }
        script.use(session)
        let transport = InMemoryTransport()
        transport.route("GET", "*") { request in
            let token = request.headers["Authorization"].map { String($0.dropFirst("Bearer ".count)) }
            script.send(token)
            script.reach(.response)
            return token == nil || token == "ada1" ? .status(401) : .status(200)
        }
        let url = try #require(URL(string: "https://api.example.com"))
        let host = HostConfiguration(baseURL: url, transport: transport) { $0.authentication = session }
        do {
            _ = try await EasyNetworkService(host).send(Get(api: "a"))
        } catch {
            expect(error.code, equals: .unauthorized)
        }
        script.use(nil)
        return script.hasChanged ? script.sentAfterwards : nil
    }

    @Test("CBK-7, BEY-3: no request goes out with a credential after its user has signed out, or another one signed in")
    func everyMoment() async throws {
        for change in Change.allCases {
            for moment in Moment.allCases {
                var sent: [[String?]] = []
                for turn in 1...2 {
                    for isExpired in [false, true] {
                        let run = Run(change: change, moment: moment, turn: turn, isExpired: isExpired)
                        if let tokens = try await Self.tokens(of: run) { sent.append(tokens) }
                    }
                }
                let allowed: [String?] = change == .signIn ? ["bob"] : [nil, "anybody"]
                let wrong = sent.joined().filter { !allowed.contains($0) }
                expect(!sent.isEmpty && wrong.isEmpty, "\(change) at \(moment): \(sent)")
            }
        }
    }
}
