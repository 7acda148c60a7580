import Foundation
import Testing

@testable import EasyNetwork

@Suite("CertificateDER")
struct CertificateDERTests {
    @Test("SEC-1: the key of a certificate is found as openssl gives it", arguments: TestCertificate.all)
    func keys(certificate: TestCertificate) throws {
        let key = try #require(CertificateDER.publicKeyInfo(in: certificate.der))
        #expect(key.count == certificate.keyLength)
        #expect(SHA256.digest(of: key).base64EncodedString() == certificate.keyDigest)
    }

    @Test("SEC-1: a certificate inside other bytes is read at its place, and its key begins at index 0")
    func slice() throws {
        let certificate = TestCertificate.elliptic
        let der = try certificate.der
        let slice = (Data(repeating: 0x30, count: 5) + der).dropFirst(5)
        let key = try #require(CertificateDER.publicKeyInfo(in: slice))
        #expect(key.startIndex == 0)
        #expect(SHA256.digest(of: key).base64EncodedString() == certificate.keyDigest)
    }

    @Test("SEC-1: a certificate that is cut off anywhere has no key", arguments: TestCertificate.all)
    func truncated(certificate: TestCertificate) throws {
        let der = try certificate.der
        for count in 0..<der.count {
            #expect(CertificateDER.publicKeyInfo(in: der.prefix(count)) == nil, "the first \(count) bytes")
        }
    }

    @Test("SEC-1: whatever bytes are changed, a key is a part of the certificate or none", arguments: UInt64(1)...8)
    func mutated(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        for certificate in TestCertificate.all {
            let der = try certificate.der
            for _ in 0..<500 {
                let changed = Self.mutation(of: der, &generator)
                guard let key = CertificateDER.publicKeyInfo(in: changed) else { continue }
                var reader = DERReader(key)
                let whole = reader.next(DERReader.Tag.sequence)
                #expect(whole != nil && reader.isAtEnd, "seed \(seed)")
                #expect(changed.range(of: key) != nil, "seed \(seed)")
            }
        }
    }

    /// One to four bytes changed, taken out, put in or cut off, most of them where the lengths are.
    private static func mutation(of der: Data, _ generator: inout SeededGenerator) -> Data {
        var bytes = Array(der)
        for _ in 0..<Int.random(in: 1...4, using: &generator) where !bytes.isEmpty {
            let limit = Bool.random(using: &generator) ? bytes.count : min(bytes.count, 24)
            let index = Int.random(in: 0..<limit, using: &generator)
            let byte = UInt8.random(in: 0...255, using: &generator)
            switch Int.random(in: 0..<8, using: &generator) {
            case 0: bytes.remove(at: index)
            case 1: bytes.insert(byte, at: index)
            case 2: bytes.removeSubrange(index...)
            case 3: bytes[index] = 0xFF
            case 4: bytes[index] = 0x80
            default: bytes[index] = byte
            }
        }
        return Data(bytes)
    }

    @Test("SEC-1: random bytes behind a plausible beginning have no key that is not among them")
    func random() {
        var generator = SeededGenerator(seed: 9)
        for _ in 0..<2_000 {
            var bytes = Data([0x30, UInt8.random(in: 0...0x84, using: &generator)])
            for _ in 0..<Int.random(in: 0...40, using: &generator) {
                bytes.append([0x30, 0x02, 0x03, 0x80, 0x84, 0xFF, 0x00, 0x01].randomElement(using: &generator) ?? 0)
            }
            let key = CertificateDER.publicKeyInfo(in: bytes)
            #expect(key == nil || bytes.range(of: key ?? Data()) != nil, "seed 9: \(Array(bytes))")
        }
    }
}
