import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("PublicKeyPin")
struct PublicKeyPinTests {
    /// A pin that begins with a slash, which is also a base64 character.
    private static let slashed = "/1oa4BKvpdTIicUK1Ceq9UXTGk+sBP/BxNA9QDukJQo="

    private static let headers: [([UInt8], Data)] = [
        (
            [
                0x30, 0x76, 0x30, 0x10, 0x06, 0x07, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x02, 0x01, 0x06, 0x05, 0x2B, 0x81,
                0x04, 0x00, 0x22, 0x03, 0x62, 0x00,
            ], Data([0x04]) + Data(repeating: 7, count: 96)
        ),
        (
            [
                0x30, 0x81, 0x9B, 0x30, 0x10, 0x06, 0x07, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x02, 0x01, 0x06, 0x05, 0x2B,
                0x81, 0x04, 0x00, 0x23, 0x03, 0x81, 0x86, 0x00,
            ], Data([0x04]) + Data(repeating: 7, count: 132)
        ),
        (
            [
                0x30, 0x82, 0x02, 0x22, 0x30, 0x0D, 0x06, 0x09, 0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x01, 0x01,
                0x05, 0x00, 0x03, 0x82, 0x02, 0x0F, 0x00,
            ], Data([0x30]) + Data(repeating: 7, count: 525)
        ),
    ]

    @Test("SEC-1: a pin matches its own key and no other", arguments: TestCertificate.all)
    func matches(certificate: TestCertificate) throws {
        let pin = try PublicKeyPin("sha256//" + certificate.keyDigest)
        for other in TestCertificate.all {
            guard let key = try other.key else { continue }
            expect(pin.matches(key: key), equals: (other.keyDigest == certificate.keyDigest), "\(other)")
            expect(!pin.matches(key: key.dropLast()) && !pin.matches(key: key.dropFirst()))
        }
        expect(!pin.matches(key: Data()))
    }

    @Test("SEC-1: a pin matches keys of the curves P-384 and P-521 and of RSA 4096, as openssl encodes them")
    func otherKeys() throws {
        // The expected digests come from SubjectPublicKeyInfo structures with the headers that openssl writes.
        for (header, key) in Self.headers {
            let digest = SHA256.digest(of: Data(header) + key).base64EncodedString()
            try expect(PublicKeyPin("sha256//" + digest).matches(key: key), "\(key.count)")
        }
    }

    @Test("SEC-1: a pin is read with one slash and with two, and written with two")
    func forms() throws {
        for digest in TestCertificate.all.map(\.keyDigest) + [Self.slashed] {
            let pin = try PublicKeyPin("sha256//" + digest)
            try expect(PublicKeyPin("sha256/" + digest), equals: pin)
            expect(pin.description, equals: "sha256//" + digest)
        }
    }

    @Test("SEC-1: pins are equal when their digests are")
    func equality() throws {
        let digests = TestCertificate.all.map(\.keyDigest)
        let pins =
            try digests.map { try PublicKeyPin("sha256//" + $0) } + digests.map { try PublicKeyPin("sha256/" + $0) }
        expect(Set(pins).count, equals: digests.count)
    }

    private static let noPins: [(String, String)] = [
        ("", prefixMessage),
        (slashed, prefixMessage),
        ("sha1//2jmj7l5rSw0yVb/vlWAYkK/YBwk=", prefixMessage),
        ("SHA256//" + slashed, prefixMessage),
        (" sha256//" + slashed, prefixMessage),
        ("sha256" + slashed.dropFirst(), prefixMessage),
        ("sha256///" + slashed, base64Message),
        ("sha256//" + slashed + "\n", base64Message),
        ("sha256//" + slashed.dropLast(), base64Message),
        ("sha256//" + slashed.replacingOccurrences(of: "+", with: "-"), base64Message),
        ("sha256//" + slashed.replacingOccurrences(of: "o=", with: "p="), base64Message),
        ("sha256//" + slashed + ";sha256//" + slashed, base64Message),
        ("sha256//é", base64Message),
        ("sha256//", "a SHA-256 digest has 32 bytes, but this has 0"),
        ("sha256//2jmj7l5rSw0yVb/vlWAYkK/YBwk=", "a SHA-256 digest has 32 bytes, but this has 20"),
        ("sha256/2jmj7l5rSw0yVb/vlWAYkK/YBwk=", "a SHA-256 digest has 32 bytes, but this has 20"),
    ]
    private static let prefixMessage = "it must begin with sha256//"
    private static let base64Message = "the text after the prefix is not base64"

    @Test("SEC-1: a malformed pin is refused with what to mend", arguments: noPins)
    func refused(text: String, reason: String) throws {
        let error = try #require(throws: NetworkError.self) { try PublicKeyPin(text) }
        expect(error.code, equals: .invalidRequest)
        let message = try #require(error.message)
        let line = text.replacingOccurrences(of: "\n", with: " ")
        expect(message.contains("'\(line.prefix(80))' is not a public key pin: "))
        expect(message.contains(reason))
    }
}
