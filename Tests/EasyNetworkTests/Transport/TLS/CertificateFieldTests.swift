import Foundation
import Testing

@testable import EasyNetwork

@Suite("CertificateDER: fields")
struct CertificateFieldTests {
    private typealias Change = @Sendable (inout CertificateParts) -> Void

    private static func key(_ change: Change) -> (found: Data?, there: Data) {
        let parts = CertificateParts(change)
        return (CertificateDER.publicKeyInfo(in: parts.der), parts.publicKeyInfo)
    }

    @Test("SEC-1: certificates of the versions 1, 2 and 3 are read, with and without their optional fields")
    func versions() {
        let changes: [(String, Change)] = [
            ("3 with extensions", { _ in }),
            ("3 without", { $0.extensions = Data() }),
            ("3 with all", { $0.extensions = Self.identifiers + $0.extensions }),
            (
                "2",
                {
                    $0.version = CertificateParts.version(1); $0.extensions = Data()
                }
            ),
            (
                "2 with identifiers",
                {
                    $0.version = CertificateParts.version(1); $0.extensions = Self.identifiers
                }
            ),
            (
                "1",
                {
                    $0.version = Data(); $0.extensions = Data()
                }
            ),
        ]
        for (name, change) in changes {
            let key = Self.key(change)
            #expect(key.found == key.there, "version \(name)")
        }
    }

    private static let identifiers =
        DERBytes.element(0x81, Data([0, 1])) + DERBytes.element(0x82, Data([0, 2]))

    @Test("SEC-1: a certificate with a malformed field has no key")
    func malformed() {
        let sequence = DERBytes.element(0x30)
        let changes: [(String, Change)] = [
            ("bytes behind it", { $0.behindAll = Data([0]) }),
            ("a field behind the signature", { $0.behindSignature = sequence }),
            ("no signature", { $0.signature = Data() }),
            ("no signature algorithm", { $0.signatureAlgorithm = Data() }),
            ("version 1 written out", { $0.version = CertificateParts.version(0) }),
            ("version 4", { $0.version = CertificateParts.version(3) }),
            ("an empty version", { $0.version = DERBytes.element(0xA0) }),
            ("two versions in one", { $0.version = DERBytes.element(0xA0, $0.serial, $0.serial) }),
            ("extensions in version 1", { $0.version = Data() }),
            ("extensions in version 2", { $0.version = CertificateParts.version(1) }),
            (
                "identifiers in version 1",
                {
                    $0.version = Data(); $0.extensions = Self.identifiers
                }
            ),
            ("identifiers behind the extensions", { $0.extensions += Self.identifiers }),
            ("no serial number", { $0.serial = Data() }),
            ("a serial number of another type", { $0.serial = sequence }),
            ("no algorithm", { $0.algorithm = Data() }),
            ("an issuer of another type", { $0.issuer = $0.serial }),
            ("a validity of another type", { $0.validity = $0.serial }),
            ("a subject of another type", { $0.subject = $0.serial }),
            ("a field too many before the key", { $0.subject += sequence }),
            ("no algorithm of the key", { $0.keyAlgorithm = Data() }),
            ("a key's algorithm without its name", { $0.keyAlgorithm = sequence }),
            ("no key", { $0.key = Data() }),
            ("a key of no bytes", { $0.key = DERBytes.element(0x03) }),
            ("a key with eight unused bits", { $0.key = DERBytes.element(0x03, Data([8, 0])) }),
            ("a field behind the key", { $0.behindKey = sequence }),
        ]
        for (name, change) in changes { #expect(Self.key(change).found == nil, "\(name)") }
    }
}
