import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("PasswordAuthentication")
struct PasswordAuthenticationTests {
    private static let digest = #"Digest realm="r", nonce="one", qop="auth", algorithm=SHA-256"#

    /// Authenticates requests like a call, with a closure as the server.
    private final class Client: Sendable {
        let authentication: RequestAuthentication
        let base: URL?

        init(_ authentication: RequestAuthentication, base: URL? = URL(string: "https://example.com/api")) {
            self.authentication = authentication
            self.base = base
        }

        convenience init(allowsBasicWithoutTLS: Bool = false) throws {
            let isAllowed = allowsBasicWithoutTLS
            self.init(try .password(user: "ada", password: "secret", allowsBasicWithoutTLS: isAllowed))
        }

        /// - Returns: The `Authorization` of each attempt, and the last response.
        func send(
            _ message: TransportRequest,
            _ server: (TransportRequest) -> NetworkResponse
        ) async throws -> (sent: [String?], status: Int) {
            var sent: [String?] = []
            let credentialState = authentication.begin(message.url, base: base)
            let first = try authentication.authorize(
                .init(message: message, state: credentialState) { EasyNetworkService(.shared) }
            )
            var next = try #require(first.message)
            while true {
                sent.append(next.message.headers["Authorization"])
                let response = server(next.message)
                guard let again = try review(response, message, next.credentialState) else {
                    return (sent, response.statusCode)
                }
                next = again
            }
        }

        func review(
            _ response: NetworkResponse,
            _ message: TransportRequest,
            _ credentialState: RequestAuthentication.CredentialState? = nil
        ) throws -> RequestAuthentication.Authorized? {
            let state = credentialState ?? authentication.begin(message.url, base: base)
            return try authentication.review(
                response,
                to: .init(message: message, state: state) { EasyNetworkService(.shared) }
            )?.message
        }
    }

    private static func message(_ url: String = "https://example.com/a?b=%20c") throws -> TransportRequest {
        TransportRequest(url: try #require(URL(string: url)))
    }

    private static func challenge(_ value: String) -> NetworkResponse {
        NetworkResponse(statusCode: 401, headers: ["WWW-Authenticate": value])
    }

    private static func field(_ name: String, _ authorization: String?) -> String? {
        AuthenticationChallenge.all(in: ["WWW-Authenticate": authorization ?? ""]).first?.parameters[name]
    }

    @Test("SEC-1: a challenge of Digest is answered, and the next request has its answer with it")
    func digest() async throws {
        let client = try Client()
        let server: (TransportRequest) -> NetworkResponse = { request in
            request.headers["Authorization"] == nil ? Self.challenge(Self.digest) : NetworkResponse()
        }
        let first = try await client.send(Self.message(), server)
        expect(first.status, equals: 200)
        expect(first.sent.count, equals: 2)
        expect(first.sent[0] == nil)
        expect(Self.field("uri", first.sent[1]), equals: "/a?b=%20c")
        expect(Self.field("nc", first.sent[1]), equals: "00000001")
        let second = try await client.send(Self.message("https://example.com"), server)
        expect(second.sent.count, equals: 1)
        expect(Self.field("uri", second.sent[0]), equals: "/")
        expect(Self.field("nc", second.sent[0]), equals: "00000002")
    }

    @Test("SEC-1: a nonce that has become stale is replaced, and the request is sent once more")
    func stale() async throws {
        let client = try Client()
        let nonce = Locked("one")
        let server: (TransportRequest) -> NetworkResponse = { request in
            let current = nonce.withLock { $0 }
            let isFresh = Self.field("nonce", request.headers["Authorization"]) == current
            return isFresh
                ? NetworkResponse() : Self.challenge("Digest realm=r, nonce=\(current), qop=auth, stale=TRUE")
        }
        try await expect(client.send(Self.message(), server).sent.count, equals: 2)
        nonce.withLock { $0 = "two" }
        let second = try await client.send(Self.message(), server)
        expect(second.status, equals: 200)
        expect(second.sent.map { Self.field("nonce", $0) }, equals: ["one", "two"])
        expect(second.sent.map { Self.field("nc", $0) }, equals: ["00000002", "00000001"])
    }

    @Test("SEC-1: the server may give the next nonce with an answer; one to an older challenge gives none")
    func nextNonce() async throws {
        let client = try Client()
        let server: (TransportRequest) -> NetworkResponse = { request in
            guard request.headers["Authorization"] != nil else { return Self.challenge(Self.digest) }
            return NetworkResponse(headers: ["Authentication-Info": "nextnonce=\"next\""])
        }
        _ = try await client.send(Self.message(), server)
        let second = try await client.send(Self.message(), server)
        expect(Self.field("nonce", second.sent[0]), equals: "next")
        let old = NetworkResponse(headers: ["Authentication-Info": "nextnonce=\"old\""])
        _ = try client.review(old, try Self.message(), RequestAuthentication.CredentialState(version: 0))
        expect(Self.field("nonce", try await client.send(Self.message(), server).sent[0]), equals: "next")
    }

    @Test("SEC-1: a wrong password is sent once more and no more, and the refusal is the answer")
    func wrongPassword() async throws {
        let client = try Client()
        let outcome = try await client.send(Self.message()) { _ in Self.challenge(Self.digest) }
        expect(outcome.status, equals: 401)
        expect(outcome.sent.count, equals: 2)
    }

    @Test("SEC-1: Basic is answered when there is nothing better, over https, and without TLS only if allowed")
    func basic() async throws {
        let basic = "Basic YWRhOnNlY3JldA=="
        let server: (TransportRequest) -> NetworkResponse = { request in
            request.headers["Authorization"] == nil ? Self.challenge("Basic realm=x") : NetworkResponse()
        }
        let client = try Client()
        try await expect(client.send(Self.message(), server).sent, equals: [nil, basic])
        try await expect(client.send(Self.message(), server).sent, equals: [basic])
        let both = try await Client().send(Self.message()) { request in
            request.headers["Authorization"] == nil
                ? Self.challenge("Basic realm=x, \(Self.digest)") : NetworkResponse()
        }
        expect(both.sent.last??.hasPrefix("Digest "), equals: true)

        for isAllowed in [false, true] {
            let client = Client(
                try .password(user: "ada", password: "secret", allowsBasicWithoutTLS: isAllowed),
                base: nil
            )
            let challenge = Self.challenge("Basic realm=x")
            let message = try Self.message("http://example.com/")
            if isAllowed {
                try expect(client.review(challenge, message)?.message.headers["Authorization"], equals: basic)
            } else {
                let error = #expect(throws: NetworkError.self) { try client.review(challenge, message) }
                expect(error?.code == .unauthorized && error?.statusCode == 401)
                expect(error?.message?.contains("allowsBasicWithoutTLS"), equals: true)
            }
        }
    }

    @Test("SEC-1: a challenge that cannot be answered is returned like other answers")
    func otherSchemes() async throws {
        for url in ["http://example.com/", "https://example.com/"] {
            let client = Client(try .password(user: "ada", password: "secret"), base: nil)
            try await expect(client.send(Self.message(url)) { _ in Self.challenge("Negotiate") }.status, equals: 401)
        }
    }

    @Test(
        "SEC-4: a challenge of Digest that is not supported is an error that says what the server wants",
        arguments: [
            ("Digest realm=a, nonce=b, qop=auth-int", "qop=auth-int"),
            ("Digest realm=a, nonce=b, algorithm=SHA-512-256", "algorithm=SHA-512-256"),
            ("Digest realm=a", "without a realm or nonce"), ("Digest nonce=b, Negotiate", "without a realm or nonce"),
        ]
    )
    func unsupported(value: String, reason: String) async throws {
        let client = try Client()
        let message = try Self.message()
        let error = #expect(throws: NetworkError.self) { try client.review(Self.challenge(value), message) }
        expect(error?.code == .unauthorized && error?.statusCode == 401)
        expect(error?.message?.contains(reason), equals: true, "\(String(describing: error))")
        // What comes beside it is answered.
        let basic = try client.review(Self.challenge("\(value), Basic realm=x"), message)
        expect(basic?.message.headers["Authorization"]?.hasPrefix("Basic "), equals: true)
    }

    @Test("SEC-1: another origin gets no password when it asks, nor does a request with its own credential")
    func otherOrigin() async throws {
        for url in ["https://evil.example/", "http://example.com/", "https://example.com:8443/"] {
            let outcome = try await Client().send(Self.message(url)) { _ in Self.challenge(Self.digest) }
            expect(outcome.sent, equals: [nil])
        }
        let same = try await Client().send(Self.message("HTTPS://EXAMPLE.com:443/")) { _ in
            Self.challenge(Self.digest)
        }
        expect(same.sent.count, equals: 2)
        var own = try Self.message()
        own.headers["Authorization"] = "Bearer mine"
        try await expect(Client().send(own) { _ in Self.challenge(Self.digest) }.sent, equals: ["Bearer mine"])
    }

    @Test("SEC-1: a user name that no server could read is refused at once")
    func badName() {
        let error = #expect(throws: NetworkError.self) { try RequestAuthentication.password(user: "a:b", password: "") }
        expect(error?.code, equals: .invalidRequest)
    }

    @Test("SEC-1: nonces of the client's own are long and never the same")
    func clientNonces() async throws {
        let client = Client(try .password(user: "ada", password: "secret"), base: nil)
        let message = try Self.message()
        var nonces: [String] = []
        for _ in 0..<100 {
            let answer = try client.review(Self.challenge(Self.digest), message)
            if let nonce = Self.field("cnonce", answer?.message.headers["Authorization"]) { nonces.append(nonce) }
        }
        expect(Set(nonces).count, equals: 100)
        expect(nonces.allSatisfy { $0.utf8.count > 16 })
    }
}
