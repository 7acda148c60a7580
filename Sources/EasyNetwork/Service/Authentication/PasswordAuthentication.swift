import Foundation

extension RequestAuthentication {
    /// Answers a server's challenge with user and password: by Digest (RFC 7616), or else by Basic (RFC 7617).
    ///
    /// The first request is sent without a credential and is refused; it is sent once more with the answer to the
    /// challenge. Later requests carry a credential from the beginning, for Digest with the server's nonce and a count.
    ///
    /// ```swift
    /// let password = try RequestAuthentication.password(user: "ada", password: "secret")
    /// let host = HostConfiguration(baseURL: url) { $0.authentication = password }
    /// ```
    ///
    /// Digest is supported with MD5 and SHA-256, each also with `-sess`; the strongest offered algorithm is used.
    /// A request to which the server answers with Digest in another form, such as `auth-int` or SHA-512-256, and with
    /// nothing else, ends with ``NetworkError/Code/unauthorized`` and this reason. A request that has an `Authorization`
    /// field keeps it.
    ///
    /// - Parameters:
    ///   - user: the name of the user.
    ///   - password: the password.
    ///   - allowsBasicWithoutTLS: whether the password may go over plain http, where every node on the way can read it.
    ///     Default false: such a Basic challenge is not answered, and the request ends with
    ///     ``NetworkError/Code/unauthorized`` and this reason.
    /// - Throws: ``NetworkError/Code/invalidRequest`` for a user name with a colon, and for control characters.
    public static func password(
        user: String,
        password: String,
        allowsBasicWithoutTLS: Bool = false
    ) throws(NetworkError) -> RequestAuthentication {
        try PasswordAuthentication(user: user, password: password, allowsBasicWithoutTLS: allowsBasicWithoutTLS)
    }
}

/// See ``RequestAuthentication/password(user:password:allowsBasicWithoutTLS:)``.
final class PasswordAuthentication: RequestAuthentication, @unchecked Sendable {
    // Sendable because all of it is constant or behind a lock. `@unchecked` repeats that of the superclass, as
    // subclasses must.

    private enum Scheme {
        /// With the field, which is the same for all requests.
        case basic(String)
        case digest(DigestSession)

        mutating func authorization(for message: TransportRequest) -> String {
            switch self {
            case .basic(let field): return field
            case .digest(var session):
                defer { self = .digest(session) }
                return session.authorization(method: message.method.rawValue, target: message.url.requestTarget)
            }
        }
    }

    private let user: String
    private let password: String
    private let basic: HTTPCredential
    private let allowsBasicWithoutTLS: Bool
    /// The last challenge of the server, nil before the first; and a number that grows with each one that is answered.
    private let state = Locked<(scheme: Scheme?, version: Int)>((nil, 0))

    init(user: String, password: String, allowsBasicWithoutTLS: Bool) throws(NetworkError) {
        basic = try .basic(user: user, password: password)
        self.user = user
        self.password = password
        self.allowsBasicWithoutTLS = allowsBasicWithoutTLS
    }

    override func authorize(
        _ message: TransportRequest,
        _ credentialState: CredentialState,
        after refresh: Refresh?,
        over service: @autoclosure () -> EasyNetworkService
    ) throws(NetworkError) -> Authorization {
        guard isWanted(message, credentialState) else { return .ready((message, credentialState)) }
        return state.withLock { state in
            var message = message
            var credentialState = credentialState
            credentialState.version = state.version
            if case .basic = state.scheme, !isBasicSafe(for: message) { return .ready((message, credentialState)) }
            message.headers["Authorization"] = state.scheme?.authorization(for: message)
            return .ready((message, credentialState))
        }
    }

    override func review(
        _ response: NetworkResponse,
        to message: TransportRequest,
        _ credentialState: CredentialState,
        after refresh: Refresh?,
        over service: @autoclosure () -> EasyNetworkService
    ) throws(NetworkError) -> Authorization? {
        guard isWanted(message, credentialState) else { return nil }
        guard response.statusCode == 401 else {
            takeNextNonce(response, credentialState)
            return nil
        }
        guard !credentialState.isReplay else { return nil }
        let challenges = AuthenticationChallenge.all(in: response.headers)
        guard var scheme = scheme(for: challenges, to: message) else {
            if challenges.contains(where: { $0.scheme == "basic" }) {
                let reason = "the server requires Basic over http; to send the password, set allowsBasicWithoutTLS"
                throw response.error(.unauthorized, message: reason)
            }
            let problems = challenges.filter { $0.scheme == "digest" }.compactMap(DigestSession.problem)
            guard !problems.isEmpty else { return nil }
            let wanted = problems.prefix(3).joined(separator: " or ")
            throw response.error(.unauthorized, message: "the server requires \(wanted), which is not supported")
        }
        var message = message
        message.headers["Authorization"] = scheme.authorization(for: message)
        let version = state.withLock { [scheme] state in
            state = (scheme, state.version + 1)
            return state.version
        }
        return .ready((message, CredentialState(version: version, isReplay: true)))
    }

    private func isWanted(_ message: TransportRequest, _ credentialState: CredentialState) -> Bool {
        !credentialState.isExempt && message.headers["Authorization"] == nil
    }

    private func isBasicSafe(for message: TransportRequest) -> Bool {
        allowsBasicWithoutTLS || message.url.scheme?.lowercased() == "https"
    }

    private func scheme(for challenges: [AuthenticationChallenge], to message: TransportRequest) -> Scheme? {
        // 128 bits, so that no two are the same.
        let clientNonce = (0..<2).map { _ in String(UInt64.random(in: .min ... .max), radix: 16) }.joined()
        if let challenge = DigestSession.strongest(of: challenges),
            let session = DigestSession(challenge, user: user, password: password, clientNonce: clientNonce)
        {
            return .digest(session)
        }
        guard challenges.contains(where: { $0.scheme == "basic" }), isBasicSafe(for: message) else { return nil }
        return .basic(basic.authorization)
    }

    private func takeNextNonce(_ response: NetworkResponse, _ credentialState: CredentialState) {
        state.withLock { state in
            // The answer to an older challenge does not concern the nonce in use.
            guard credentialState.version == state.version, case .digest(var session) = state.scheme else { return }
            session.take(response.headers)
            state.scheme = .digest(session)
        }
    }
}
