import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("DigestSession")
struct DigestSessionTests {
    private static let rfcNonce = "7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v"
    private static let rfcClientNonce = "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ"

    private static func challenges(_ values: String...) -> [AuthenticationChallenge] {
        AuthenticationChallenge.all(in: HTTPHeaders(values.map { .init(name: "WWW-Authenticate", value: $0) }))
    }

    private static func session(
        _ value: String,
        user: String = "Mufasa",
        password: String = "Circle of Life",
        clientNonce: String = rfcClientNonce
    ) throws -> DigestSession {
        let challenge = try #require(DigestSession.strongest(of: challenges(value)))
        return try #require(
            DigestSession(challenge, user: user, password: password, clientNonce: clientNonce)
        )
    }

    /// The parameters of an `Authorization` field.
    private static func fields(_ authorization: String) throws -> [String: String] {
        let read = try #require(challenges(authorization).first)
        expect(read.scheme, equals: "digest")
        return read.parameters
    }

    @Test(
        "SEC-4: the response is that of RFC 7616, section 3.9.1, also with a session key; it names the algorithm as the server",
        arguments: [
            ("MD5", "8ca523f5e9506fed4657c9700eebdbec"),
            ("MD5-sess", "e783283f46242139c486a698fec7211d"),
            ("SHA-256", "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1"),
            ("sha-256-SESS", "2fd51b3a77ad75bad6afad6003e818d767133c46d9e2749e7f5232ae1ea3efd7"),
        ]
    )
    func answers(algorithm: String, response: String) throws {
        var session = try Self.session(
            #"Digest realm="http-auth@example.org", qop="auth, auth-int", algorithm=\#(algorithm), "#
                + #"nonce="\#(Self.rfcNonce)", opaque="FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS""#
        )
        let fields = try Self.fields(session.authorization(method: "GET", target: "/dir/index.html"))
        expect(
            fields,
            equals: [
                "username": "Mufasa", "realm": "http-auth@example.org", "uri": "/dir/index.html",
                "algorithm": algorithm, "nonce": Self.rfcNonce, "nc": "00000001",
                "cnonce": Self.rfcClientNonce, "qop": "auth", "response": response,
                "opaque": "FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS",
            ]
        )
    }

    @Test(
        "SEC-4: a user name that is not ASCII is hashed if asked for, else extended if the server knows UTF-8, else as it is"
    )
    func userHash() throws {
        let challenge =
            #"Digest realm="api@example.org", qop="auth", algorithm=SHA-256, "#
            + #"nonce="5TsQWLVdgBdmrQ0XsxbDODV+57QdFR34I9HAbC/RVvkK", "#
            + #"opaque="HRPCssKJSGjCrkzDg8OhwpzCiGPChXYjwrI2QmXDnsOS", charset=UTF-8"#
        let clientNonce = "NTg6RKcb9boFIAS3KrFK9BGeh+iDa/sm6jUMp2wds69v"
        let response = "b6d5cb9c3000ea2385250005e294d7132b260b8fd08940d2377373493cee8cc4"
        // The name is not normalized yet.
        var hashed = try Self.session(
            challenge + ", userhash=true",
            user: "Ja\u{308}s\u{F8}n Doe",
            password: "Secret, or not?",
            clientNonce: clientNonce
        )
        let fields = try Self.fields(hashed.authorization(method: "GET", target: "/doe.json"))
        expect(fields["username"], equals: "5a1a8a47df5c298551b9b42ba9b05835174a5bd7d511ff7fe9191d8e946fc4e7")
        expect(fields["userhash"], equals: "true")
        expect(fields["response"], equals: response)

        var plain = try Self.session(
            challenge,
            user: "Jäsøn Doe",
            password: "Secret, or not?",
            clientNonce: clientNonce
        )
        let authorization = plain.authorization(method: "GET", target: "/doe.json")
        expect(authorization.contains("username*=UTF-8''J%C3%A4s%C3%B8n%20Doe,"))
        expect(!authorization.contains("userhash"))
        expect(authorization.contains(response))

        for charset in ["", ", charset=ISO-8859-1"] {
            let other = challenge.replacingOccurrences(of: ", charset=UTF-8", with: charset)
            var session = try Self.session(
                other,
                user: "Jäsøn Doe",
                password: "Secret, or not?",
                clientNonce: clientNonce
            )
            let authorization = session.authorization(method: "GET", target: "/doe.json")
            expect(authorization.hasPrefix("Digest username=\"Jäsøn Doe\", realm="), "\(authorization)")
            expect(authorization.contains(response))
        }
    }

    @Test(
        "SEC-4: a challenge without qop, or with an empty one, is answered as in RFC 2069",
        arguments: ["", ", qop=\"\""]
    )
    func legacy(quality: String) throws {
        var session = try Self.session(
            #"Digest realm="testrealm@host.com", nonce="dcd98b7102dd2f0e8b11d0f600bfb0c093""# + quality,
            password: "Circle Of Life"
        )
        let fields = try Self.fields(session.authorization(method: "GET", target: "/dir/index.html"))
        expect(
            fields,
            equals: [
                "username": "Mufasa", "realm": "testrealm@host.com", "nonce": "dcd98b7102dd2f0e8b11d0f600bfb0c093",
                "uri": "/dir/index.html", "response": "670fd8c2df070c60b045671b8b24ff02",
            ]
        )
    }

    @Test("SEC-4: each request increments the count, which a new nonce resets")
    func counting() throws {
        var session = try Self.session(#"Digest realm="r", nonce="one", qop=auth, algorithm=SHA-256-sess"#)
        var counts: [String?] = []
        for _ in 0..<17 {
            counts.append(try Self.fields(session.authorization(method: "GET", target: "/"))["nc"])
        }
        expect(counts.first, equals: "00000001")
        expect(counts.last, equals: "00000011")
        session.take(["Authentication-Info": "nextnonce=\"two\", qop=auth"])
        let next = try Self.fields(session.authorization(method: "GET", target: "/"))
        expect(next["nonce"], equals: "two")
        expect(next["nc"], equals: "00000001")
        // The session key stays that of the first challenge (section 3.4.2).
        let algorithm = try #require(DigestSession.Algorithm("SHA-256-sess"))
        let secret = algorithm.digest("Mufasa:r:Circle of Life")
        let key = algorithm.digest("\(secret):one:\(Self.rfcClientNonce)")
        let request = algorithm.digest("GET:/")
        let answer = algorithm.digest("\(key):two:00000001:\(Self.rfcClientNonce):auth:\(request)")
        expect(next["response"], equals: answer)
        session.take(["Authentication-Info": "qop=auth"])
        session.take(["Authentication-Info": "nextnonce=\"two\""])
        expect(session.nonceCount, equals: 1)
    }

    @Test("SEC-4: the first challenge with the strongest supported algorithm is answered")
    func choice() {
        let found = DigestSession.strongest(
            of: Self.challenges(
                "Basic realm=x, Digest realm=a, nonce=n, algorithm=MD5, qop=auth",
                "Digest realm=b, nonce=n, algorithm=SHA3-1024, qop=auth",
                "Digest realm=c, nonce=n, algorithm=SHA-256, qop=auth, Digest realm=d, nonce=n, algorithm=SHA-256",
                "Digest realm=e, nonce=n, algorithm=SHA-512-256, qop=auth"
            )
        )
        expect(found?.parameters["realm"], equals: "c")
    }

    @Test(
        "SEC-4: a challenge that is malformed or not supported is not answered",
        arguments: [
            "Basic realm=x", "Digest realm=a", "Digest nonce=a", "Digest realm=a, nonce=b, qop=auth-int",
            "Digest realm=a, nonce=b, algorithm=SHA-1", "Digest abc", "Digest",
        ]
    )
    func unknown(value: String) throws {
        let all = Self.challenges(value)
        expect(DigestSession.strongest(of: all) == nil)
        let challenge = try #require(all.first)
        expect(DigestSession(challenge, user: "u", password: "p", clientNonce: "c") == nil)
    }

    @Test("SEC-4: quotes and backslashes are escaped in the field, and not in the digest")
    func quoting() throws {
        var session = try Self.session(
            #"Digest realm="a\"b\\c", nonce="n\"", qop="auth", opaque="\"""#,
            user: #"x"y\z"#
        )
        let authorization = session.authorization(method: "GET", target: "/")
        expect(authorization.contains(#"username="x\"y\\z", realm="a\"b\\c", nonce="n\"""#))
        let fields = try Self.fields(authorization)
        expect(fields["opaque"], equals: "\"")
        let algorithm = try #require(DigestSession.Algorithm("MD5"))
        let key = algorithm.digest(#"x"y\z:a"b\c:Circle of Life"#)
        let request = algorithm.digest("GET:/")
        let answer = algorithm.digest("\(key):n\":00000001:\(Self.rfcClientNonce):auth:\(request)")
        expect(fields["response"], equals: answer)
    }
}
