import Foundation

extension RequestAuthentication {
    /// Creates an authentication with user and password, for Digest (RFC 7616) or, if the server does not offer it,
    /// Basic (RFC 7617).
    ///
    /// The first request is sent without a credential and is refused. It is sent once more with the response to the
    /// server's challenge. Later requests carry a credential from the beginning; for Digest, they use the server's
    /// nonce and a count.
    ///
    /// ```swift
    /// let password = try RequestAuthentication.password(user: "ada", password: "secret")
    /// let host = HostConfiguration(baseURL: url) { $0.authentication = password }
    /// ```
    ///
    /// Digest is supported with MD5 and SHA-256, each also with `-sess`. The strongest offered algorithm is used. If
    /// the server offers only another form of Digest, such as `auth-int` or SHA-512-256, the request ends with
    /// ``NetworkError/Code/unauthorized`` and this reason. A request that has an `Authorization` field keeps it.
    ///
    /// - Parameters:
    ///   - user: The name of the user.
    ///   - password: The password.
    ///   - allowsBasicWithoutTLS: Whether the password can be sent over plain http, where every node on the way can
    ///     read it. Defaults to `false`: the request ends with ``NetworkError/Code/unauthorized`` and this reason.
    /// - Throws: ``NetworkError/Code/invalidRequest`` for a user name with a colon, and for control characters.
    public static func password(
        user: String,
        password: String,
        allowsBasicWithoutTLS: Bool = false
    ) throws(NetworkError) -> RequestAuthentication {
        try PasswordAuthentication(user: user, password: password, allowsBasicWithoutTLS: allowsBasicWithoutTLS)
    }
}

/// The authentication that ``RequestAuthentication/password(user:password:allowsBasicWithoutTLS:)`` creates.
final class PasswordAuthentication: RequestAuthentication, @unchecked Sendable {
    // Sendable because every property is constant or protected by a lock. `@unchecked` repeats the superclass's
    // conformance, as subclasses must.

    private enum Scheme {
        /// The scheme with its field, which is the same for all requests.
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
    /// The scheme of the server's last challenge, nil before the first; and a number that is incremented with each
    /// accepted challenge.
    private let state = Locked<(scheme: Scheme?, version: Int)>((nil, 0))

    override var userName: String? { user }

    init(user: String, password: String, allowsBasicWithoutTLS: Bool) throws(NetworkError) {
        basic = try .basic(user: user, password: password)
        self.user = user
        self.password = password
        self.allowsBasicWithoutTLS = allowsBasicWithoutTLS
    }

    override func authorize(_ input: Input) throws(NetworkError) -> Authorization {
        var (message, credentialState) = (input.message, input.state)
        guard isWanted(message, credentialState) else { return .ready((message, credentialState)) }
        state.withLock { state in
            credentialState.version = state.version
            if case .basic = state.scheme, !isBasicSafe(for: message) { return }
            message.headers["Authorization"] = state.scheme?.authorization(for: message)
        }
        return .ready((message, credentialState))
    }

    override func review(_ response: NetworkResponse, to input: Input) throws(NetworkError) -> Authorization? {
        var message = input.message
        let credentialState = input.state
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
        // A nonce of 128 random bits is practically unique.
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
            // A response to an older challenge does not concern the current nonce.
            guard credentialState.version == state.version, case .digest(var session) = state.scheme else { return }
            session.take(response.headers)
            state.scheme = .digest(session)
        }
    }
}
