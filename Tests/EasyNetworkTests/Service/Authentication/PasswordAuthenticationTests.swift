import Foundation
import Testing

@testable import EasyNetwork

@Suite("PasswordAuthentication")
struct PasswordAuthenticationTests {
    private static let digest = #"Digest realm="r", nonce="one", qop="auth", algorithm=SHA-256"#

    /// What a landing does, with a server that is a closure.
    private final class Client: Sendable {
        let authentication: PasswordAuthentication
        let base: URL?

        init(_ authentication: PasswordAuthentication, base: URL? = URL(string: "https://example.com/api")) {
            self.authentication = authentication
            self.base = base
        }

        convenience init(allowsBasicWithoutTLS: Bool = false) throws {
            self.init(
                try PasswordAuthentication(
                    user: "ada",
                    password: "secret",
                    allowsBasicWithoutTLS: allowsBasicWithoutTLS
                ) { "cnonce" }
            )
        }

        /// - Returns: the `Authorization` of each attempt, and the last answer.
        func send(
            _ message: TransportRequest,
            _ server: (TransportRequest) -> NetworkResponse
        ) -> (sent: [String?], status: Int) {
            var stamp = authentication.begin(message.url, base: base)
            var sent: [String?] = []
            var step = authentication.prepare(message, stamp, over: Self.noService)
            while case .send(let outgoing, let next) = step {
                stamp = next
                sent.append(outgoing.headers["Authorization"])
                let response = server(outgoing)
                step = authentication.review(response, to: message, stamp, over: Self.noService)
                if case .accept = step { return (sent, response.statusCode) }
            }
            return (sent, 0)
        }

        private static let noService: @Sendable () -> EasyNetworkService = { EasyNetworkService(.shared) }
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
    func digest() throws {
        let client = try Client()
        let server: (TransportRequest) -> NetworkResponse = { request in
            request.headers["Authorization"] == nil ? Self.challenge(Self.digest) : NetworkResponse()
        }
        let first = client.send(try Self.message(), server)
        #expect(first.status == 200)
        #expect(first.sent.count == 2)
        #expect(first.sent[0] == nil)
        #expect(Self.field("uri", first.sent[1]) == "/a?b=%20c")
        #expect(Self.field("nc", first.sent[1]) == "00000001")
        let second = client.send(try Self.message("https://example.com"), server)
        #expect(second.sent.count == 1)
        #expect(Self.field("uri", second.sent[0]) == "/")
        #expect(Self.field("nc", second.sent[0]) == "00000002")
    }

    @Test("SEC-1: a nonce that has become stale is replaced, and the request is sent once more")
    func stale() throws {
        let client = try Client()
        let nonce = Locked("one")
        let server: (TransportRequest) -> NetworkResponse = { request in
            let current = nonce.withLock { $0 }
            let isFresh = Self.field("nonce", request.headers["Authorization"]) == current
            return isFresh
                ? NetworkResponse() : Self.challenge("Digest realm=r, nonce=\(current), qop=auth, stale=TRUE")
        }
        #expect(client.send(try Self.message(), server).sent.count == 2)
        nonce.withLock { $0 = "two" }
        let second = client.send(try Self.message(), server)
        #expect(second.status == 200)
        #expect(second.sent.map { Self.field("nonce", $0) } == ["one", "two"])
        #expect(second.sent.map { Self.field("nc", $0) } == ["00000002", "00000001"])
    }

    @Test("SEC-1: the server may give the next nonce with an answer; one to an older challenge gives none")
    func nextNonce() throws {
        let client = try Client()
        let server: (TransportRequest) -> NetworkResponse = { request in
            guard request.headers["Authorization"] != nil else { return Self.challenge(Self.digest) }
            return NetworkResponse(headers: ["Authentication-Info": "nextnonce=\"next\""])
        }
        _ = client.send(try Self.message(), server)
        let second = client.send(try Self.message(), server)
        #expect(Self.field("nonce", second.sent[0]) == "next")
        let old = NetworkResponse(headers: ["Authentication-Info": "nextnonce=\"old\""])
        let stamp = RequestAuthentication.Stamp(version: 0)
        _ = client.authentication.review(
            old,
            to: try Self.message(),
            stamp,
            over: { EasyNetworkService(.shared) }
        )
        #expect(Self.field("nonce", client.send(try Self.message(), server).sent[0]) == "next")
    }

    @Test("SEC-1: a wrong password is sent once more and no more, and the refusal is the answer")
    func wrongPassword() throws {
        let client = try Client()
        let outcome = client.send(try Self.message()) { _ in Self.challenge(Self.digest) }
        #expect(outcome.status == 401)
        #expect(outcome.sent.count == 2)
    }

    @Test("SEC-1: Basic is answered when there is nothing better, over https, and without TLS only if allowed")
    func basic() throws {
        let basic = "Basic YWRhOnNlY3JldA=="
        let server: (TransportRequest) -> NetworkResponse = { request in
            request.headers["Authorization"] == nil ? Self.challenge("Basic realm=x") : NetworkResponse()
        }
        let client = try Client()
        #expect(client.send(try Self.message(), server).sent == [nil, basic])
        #expect(client.send(try Self.message(), server).sent == [basic])
        let both = try Client().send(try Self.message()) { request in
            request.headers["Authorization"] == nil
                ? Self.challenge("Basic realm=x, \(Self.digest)") : NetworkResponse()
        }
        #expect(both.sent.last??.hasPrefix("Digest ") == true)

        for isAllowed in [false, true] {
            let authentication = try PasswordAuthentication(
                user: "ada",
                password: "secret",
                allowsBasicWithoutTLS: isAllowed
            )
            let message = try Self.message("http://example.com/")
            let step = authentication.review(
                Self.challenge("Basic realm=x"),
                to: message,
                authentication.begin(message.url, base: nil),
                over: { EasyNetworkService(.shared) }
            )
            if case .send(let outgoing, _) = step {
                #expect(isAllowed)
                #expect(outgoing.headers["Authorization"] == basic)
            } else if case .fail(let error) = step {
                #expect(!isAllowed)
                #expect(error.code == .unauthorized && error.statusCode == 401)
                #expect(error.message?.contains("allowsBasicWithoutTLS") == true)
            } else {
                Issue.record("neither answered nor refused")
            }
        }
    }

    @Test("SEC-1: a challenge that nothing here can answer is an answer like others")
    func otherSchemes() throws {
        for url in ["http://example.com/", "https://example.com/"] {
            let client = Client(try PasswordAuthentication(user: "ada", password: "secret"), base: nil)
            #expect(client.send(try Self.message(url)) { _ in Self.challenge("Negotiate") }.status == 401)
        }
    }

    @Test("SEC-1: another origin gets no password, though it asks, and no more does a request with its own credential")
    func otherOrigin() throws {
        for url in ["https://evil.example/", "http://example.com/", "https://example.com:8443/"] {
            let outcome = try Client().send(try Self.message(url)) { _ in Self.challenge(Self.digest) }
            #expect(outcome.sent == [nil])
        }
        let same = try Client().send(try Self.message("HTTPS://EXAMPLE.com:443/")) { _ in Self.challenge(Self.digest) }
        #expect(same.sent.count == 2)
        var own = try Self.message()
        own.headers["Authorization"] = "Bearer mine"
        #expect(try Client().send(own) { _ in Self.challenge(Self.digest) }.sent == ["Bearer mine"])
    }

    @Test("SEC-1: a user name that no server could read is refused at once")
    func badName() {
        let error = #expect(throws: NetworkError.self) { try PasswordAuthentication(user: "a:b", password: "") }
        #expect(error?.code == .invalidRequest)
    }

    @Test("SEC-1: nonces of the client's own are long and never the same")
    func clientNonces() throws {
        let authentication = try PasswordAuthentication(user: "ada", password: "secret")
        let message = try Self.message()
        let nonces = (0..<100).compactMap { _ -> String? in
            let step = authentication.review(
                Self.challenge(Self.digest),
                to: message,
                authentication.begin(message.url, base: nil),
                over: { EasyNetworkService(.shared) }
            )
            guard case .send(let outgoing, _) = step else { return nil }
            return Self.field("cnonce", outgoing.headers["Authorization"])
        }
        #expect(Set(nonces).count == 100)
        #expect(nonces.allSatisfy { $0.utf8.count > 16 })
    }
}
