import Foundation
import Testing

@testable import EasyNetwork

@Suite("PublicKeyPin")
struct PublicKeyPinTests {
    /// Begins with a slash, which is a character of base64 too.
    private static let slashed = "/1oa4BKvpdTIicUK1Ceq9UXTGk+sBP/BxNA9QDukJQo="

    @Test("SEC-1: a pin matches the certificates with its key and no others", arguments: TestCertificate.all)
    func matches(certificate: TestCertificate) throws {
        let pin = try PublicKeyPin("sha256//" + certificate.keyDigest)
        for other in TestCertificate.all {
            #expect(try pin.matches(certificate: other.der) == (other.keyDigest == certificate.keyDigest))
        }
        #expect(!pin.matches(certificate: Data()))
        #expect(try !pin.matches(certificate: certificate.der.dropLast()))
    }

    @Test("SEC-1: a pin is read with one slash and with two, and written with two")
    func forms() throws {
        for digest in TestCertificate.all.map(\.keyDigest) + [Self.slashed] {
            let pin = try PublicKeyPin("sha256//" + digest)
            #expect(try PublicKeyPin("sha256/" + digest) == pin)
            #expect(pin.description == "sha256//" + digest)
        }
    }

    @Test("SEC-1: pins are equal when their digests are")
    func equality() throws {
        let digests = TestCertificate.all.map(\.keyDigest)
        let pins =
            try digests.map { try PublicKeyPin("sha256//" + $0) } + digests.map { try PublicKeyPin("sha256/" + $0) }
        #expect(Set(pins).count == digests.count)
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
        ("sha256//", "a SHA-256 has 32 bytes, this has 0"),
        ("sha256//2jmj7l5rSw0yVb/vlWAYkK/YBwk=", "a SHA-256 has 32 bytes, this has 20"),
        ("sha256/2jmj7l5rSw0yVb/vlWAYkK/YBwk=", "a SHA-256 has 32 bytes, this has 20"),
    ]
    private static let prefixMessage = "it has to begin with sha256//"
    private static let base64Message = "what follows the prefix is not base64"

    @Test("SEC-1: a text that is no pin is refused with what to mend", arguments: noPins)
    func refused(text: String, reason: String) throws {
        let error = try #require(throws: NetworkError.self) { try PublicKeyPin(text) }
        #expect(error.code == .invalidRequest)
        let message = try #require(error.message)
        let line = text.replacingOccurrences(of: "\n", with: " ")
        #expect(message.contains("'\(line.prefix(80))' is no public key pin: "))
        #expect(message.contains(reason))
    }
}
