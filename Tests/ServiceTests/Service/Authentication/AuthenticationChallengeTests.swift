import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("AuthenticationChallenge")
struct AuthenticationChallengeTests {
    private typealias Challenge = AuthenticationChallenge

    private static func parse(_ values: String...) -> [AuthenticationChallenge] {
        AuthenticationChallenge.all(in: HTTPHeaders(values.map { .init(name: "WWW-Authenticate", value: $0) }))
    }

    @Test("SEC-1: one field may have several challenges, with commas between and inside them")
    func several() {
        let found = Self.parse(
            #"Basic realm="simple", Newauth realm="apps", type=1, title="Login to \"apps\"", Negotiate, Bearer"#
        )
        expect(
            found,
            equals: [
                Challenge(scheme: "basic", parameters: ["realm": "simple"]),
                Challenge(scheme: "newauth", parameters: ["realm": "apps", "type": "1", "title": #"Login to "apps""#]),
                Challenge(scheme: "negotiate"),
                Challenge(scheme: "bearer"),
            ]
        )
    }

    @Test("SEC-1: the field may be repeated, and have empty elements and blanks around the signs")
    func repeats() {
        let found = Self.parse(", ,Digest  Realm = \"a,b=c\" ,, NONCE\t=\tx ,", "", "NTLM  TlRMTVNTUA== , Basic a=b")
        expect(
            found,
            equals: [
                Challenge(scheme: "digest", parameters: ["realm": "a,b=c", "nonce": "x"]),
                Challenge(scheme: "ntlm"),
                Challenge(scheme: "basic", parameters: ["a": "b"]),
            ]
        )
    }

    @Test(
        "SEC-1: malformed text is no challenge",
        arguments: [
            "", " ", ",", "=", "\"", "Basic realm=\"unfinished", "Basic realm=\"x\\", "Basic realm=\"a\" garbage=",
            "Digest nonce=\"x\", realm=\"unfinished", "Basic a=1, a=2", "Basic realm=\"a\"b", "Basic=x", "Basic\"x\"",
            "@ realm=x", "realm=x", "Basic a=x\"y\"", "Basic a==b",
        ]
    )
    func malformed(value: String) {
        expect(Self.parse(value).isEmpty)
    }

    @Test("SEC-1: a malformed challenge is left out; those before and after it count, and so do other fields")
    func mistake() {
        let digest = Challenge(scheme: "digest", parameters: ["realm": "r", "nonce": "n"])
        let others = [
            "Basic realm=\"unfinished", "Basic realm=\"a\"b", "Basic a==b", "Bearer a=1, a=2", "@", "realm=x",
            "Basic\"x\"", "Basic realm=\"a\\\"",
        ]
        for other in others {
            expect(Self.parse(#"\#(other), Digest realm="r", nonce="n""#), equals: [digest], "\(other)")
            let before = Self.parse(#"Digest realm="r", nonce="n", \#(other)"#, "Negotiate")
            expect(before.last?.scheme, equals: "negotiate")
        }
        let found = Self.parse("Basic realm=a, Digest realm=\", Bearer realm=b", "Negotiate")
        expect(found.map(\.scheme), equals: ["basic", "bearer", "negotiate"])
    }

    @Test(
        "SEC-1: missing quotes and commas, and those at a wrong place, leave the meaning as it is",
        arguments: [
            #"Digest realm="My realm" nonce="n==" qop="auth""#, #"Digest, realm="My realm", nonce="n==", qop="auth""#,
            "Digest realm=My realm, nonce=n==, qop=auth", "Digest realm=My realm nonce=n==\tqop = auth",
            "Digest realm='My realm', nonce='n==', qop='auth'", "Digest realm = 'My realm' nonce='n==' ,, qop=auth ,",
        ]
    )
    func lenient(value: String) {
        let digest = Challenge(scheme: "digest", parameters: ["realm": "My realm", "nonce": "n==", "qop": "auth"])
        let basic = Challenge(scheme: "basic", parameters: ["realm": "x"])
        expect(Self.parse(value), equals: [digest])
        expect(Self.parse(#"Basic realm="x" \#(value)"#), equals: [basic, digest])
        expect(Self.parse("\(value), Basic realm='x'"), equals: [digest, basic])
    }

    @Test("SEC-1: other fields are not read, and information has no scheme")
    func otherFields() {
        let headers: HTTPHeaders = [
            "Proxy-Authenticate": "Basic realm=p", "Authentication-Info": #"nextnonce="a,b", qop=auth , nc=00000001"#,
        ]
        expect(Challenge.all(in: headers).isEmpty)
        expect(Challenge.information(in: headers), equals: ["nextnonce": "a,b", "qop": "auth", "nc": "00000001"])
        for value in ["nextnonce", "a=1, a=2", "nextnonce=\"x", "Digest a=b c"] {
            expect(Challenge.information(in: ["Authentication-Info": value]).isEmpty)
        }
    }

    @Test("SEC-1: no bytes trap, and a parsed challenge can be written and read again", arguments: UInt64(1)...20)
    func garbage(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        let pieces = [
            "Basic", "Digest", "realm", "nonce", "=", "\"", "\\", ",", " ", "\t", "a", "==", "é", "\u{0}", ";", "x=y",
            "\"q\"", "=\"v\"",
        ]
        for _ in 0..<2_000 {
            let count = Int.random(in: 0...12, using: &generator)
            let value = (0..<count).compactMap { _ in pieces.randomElement(using: &generator) }.joined()
            for challenge in Self.parse(value) {
                let parameters = challenge.parameters.map { name, value in
                    let escaped = value.unicodeScalars.map { "\\\($0)" }.joined()
                    return "\(name)=\"\(escaped)\""
                }
                let text = challenge.scheme + (parameters.isEmpty ? "" : " " + parameters.joined(separator: ", "))
                // A backslash escapes a single byte, so only ASCII survives the round trip.
                guard challenge.parameters.values.allSatisfy({ $0.utf8.allSatisfy { $0 < 0x80 } }) else { continue }
                expect(Self.parse(text), equals: [challenge], "seed \(seed): \(value.debugDescription)")
            }
        }
    }
}
