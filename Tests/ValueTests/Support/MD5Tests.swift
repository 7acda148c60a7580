import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("MD5")
struct MD5Tests {
    private static func hex(_ bytes: Data) -> String {
        bytes.map { String(format: "%02x", $0) }.joined()
    }

    @Test(
        "SEC-4: the digests are those of RFC 1321, A.5",
        arguments: [
            ("", "d41d8cd98f00b204e9800998ecf8427e"),
            ("a", "0cc175b9c0f1b6a831c399e269772661"),
            ("abc", "900150983cd24fb0d6963f7d28e17f72"),
            ("message digest", "f96b697d7cb7938d525a2f31aaf161d0"),
            ("abcdefghijklmnopqrstuvwxyz", "c3fcd3d76192e4007dfb496cca67e13b"),
            ("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789", "d174ab98d277d9f5a5611c2c9f419d9f"),
            (String(repeating: "1234567890", count: 8), "57edf4a22be3c955ac49da2e2107b67a"),
        ]
    )
    func examples(message: String, digest: String) {
        expect(Self.hex(MD5.digest(of: Data(message.utf8))), equals: digest)
    }

    @Test("SEC-4: the digests of 0 to 300 bytes are those of other implementations")
    func everyLength() {
        var digests = Data()
        for length in 0...300 {
            let message = Data((0..<length).map { UInt8(truncatingIfNeeded: $0 * 7 + length) })
            digests.append(MD5.digest(of: message))
        }
        expect(
            Self.hex(SHA256.digest(of: digests)),
            equals: "01f484cef341ddb5881905712187a8264e23e0a8882da88890874d86f771b102"
        )
    }
}
