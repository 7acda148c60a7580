import Foundation

/// Answers a server's challenge with user and password: by Digest (RFC 7616), or else by Basic (RFC 7617).
///
/// The first request is sent without a credential and is refused; it is sent once more with the answer to the
/// challenge. Later requests carry a credential from the beginning, for Digest with the server's nonce and a count.
///
/// ```swift
/// let authentication = try PasswordAuthentication(user: "ada", password: "secret")
/// ```
///
/// Digest is supported with MD5 and SHA-256, each also with `-sess`; the strongest offered algorithm is used.
/// `auth-int` is not supported. A request that has an `Authorization` field keeps it.
public final class PasswordAuthentication: RequestAuthentication, @unchecked Sendable {
    // Sendable because all of it is constant or behind a lock. `@unchecked` repeats that of the superclass, as
    // subclasses must.

    private enum Scheme {
        case basic
        case digest(DigestSession)
    }

    private struct State {
        /// The last challenge of the server; nil before the first.
        var scheme: Scheme?
        /// Grows with each challenge that is answered.
        var version = 0
    }

    private let user: String
    private let password: String
    private let basic: HTTPCredential
    private let allowsBasicWithoutTLS: Bool
    private let makeClientNonce: @Sendable () -> String
    private let state = Locked(State())

    /// - Parameter allowsBasicWithoutTLS: whether the password may go over plain http, where every node on the way can
    ///   read it. Default false: such a Basic challenge is not answered, and the request ends with
    ///   ``NetworkError/Code/unauthorized`` and this reason.
    /// - Throws: ``NetworkError/Code/invalidRequest`` for a user name with a colon, and for control characters.
    public convenience init(
        user: String,
        password: String,
        allowsBasicWithoutTLS: Bool = false
    ) throws(NetworkError) {
        try self.init(user: user, password: password, allowsBasicWithoutTLS: allowsBasicWithoutTLS) {
            (0..<2).map { _ in String(UInt64.random(in: .min ... .max), radix: 16) }.joined()
        }
    }

    /// - Parameter makeClientNonce: returns a different unpredictable nonce each time.
    init(
        user: String,
        password: String,
        allowsBasicWithoutTLS: Bool,
        makeClientNonce: @escaping @Sendable () -> String
    ) throws(NetworkError) {
        basic = try .basic(user: user, password: password)
        self.user = user
        self.password = password
        self.allowsBasicWithoutTLS = allowsBasicWithoutTLS
        self.makeClientNonce = makeClientNonce
        super.init()
    }

    override func prepare(
        _ message: TransportRequest,
        _ stamp: Stamp,
        over service: @escaping @Sendable () -> EasyNetworkService
    ) -> Step {
        guard isWanted(message, stamp) else { return .send(message, stamp) }
        return state.withLock { state in
            var message = message
            var stamp = stamp
            stamp.version = state.version
            switch state.scheme {
            case nil:
                break
            case .basic:
                if isBasicSafe(for: message) { message.headers["Authorization"] = basic.authorization }
            case .digest(var session):
                message.headers["Authorization"] = session.authorization(for: message)
                state.scheme = .digest(session)
            }
            return .send(message, stamp)
        }
    }

    override func review(
        _ response: NetworkResponse,
        to message: TransportRequest,
        _ stamp: Stamp,
        over service: @escaping @Sendable () -> EasyNetworkService
    ) -> Step {
        guard isWanted(message, stamp) else { return .accept }
        guard response.statusCode == 401 else {
            takeNextNonce(response, stamp)
            return .accept
        }
        guard !stamp.isReplay else { return .accept }
        let challenges = AuthenticationChallenge.all(in: response.headers)
        guard let (scheme, authorization) = answer(challenges, to: message) else {
            guard challenges.contains(where: \.isBasic) else { return .accept }
            let reason = "the server wants Basic over http, which is not answered; see allowsBasicWithoutTLS"
            return .fail(response.error(.unauthorized, message: reason))
        }
        return state.withLock { state in
            state.scheme = scheme
            state.version += 1
            var message = message
            message.headers["Authorization"] = authorization
            return .send(message, Stamp(version: state.version, isReplay: true))
        }
    }

    private func isWanted(_ message: TransportRequest, _ stamp: Stamp) -> Bool {
        !stamp.isExempt && message.headers["Authorization"] == nil
    }

    private func isBasicSafe(for message: TransportRequest) -> Bool {
        allowsBasicWithoutTLS || message.url.scheme?.lowercased() == "https"
    }

    private func answer(_ challenges: [AuthenticationChallenge], to message: TransportRequest) -> (Scheme, String)? {
        if let challenge = DigestSession.strongest(of: challenges),
            var session = DigestSession(challenge, user: user, password: password, clientNonce: makeClientNonce())
        {
            let authorization = session.authorization(for: message)
            return (.digest(session), authorization)
        }
        guard challenges.contains(where: \.isBasic), isBasicSafe(for: message) else { return nil }
        return (.basic, basic.authorization)
    }

    private func takeNextNonce(_ response: NetworkResponse, _ stamp: Stamp) {
        state.withLock { state in
            // The answer to an older challenge does not concern the nonce in use.
            guard stamp.version == state.version, case .digest(var session) = state.scheme else { return }
            session.take(response.headers)
            state.scheme = .digest(session)
        }
    }
}

extension AuthenticationChallenge {
    fileprivate var isBasic: Bool { scheme == "basic" }
}

extension DigestSession {
    fileprivate mutating func authorization(for message: TransportRequest) -> String {
        authorization(method: message.method.rawValue, target: message.url.requestTarget)
    }
}
