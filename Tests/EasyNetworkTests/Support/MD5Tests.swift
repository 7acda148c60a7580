import Foundation
import Testing

@testable import EasyNetwork

@Suite("MD5 and SHA-512/256")
struct MD5Tests {
    private static func hex(_ bytes: Data) -> String {
        bytes.map { String(format: "%02x", $0) }.joined()
    }

    @Test(
        "SEC-1: the digests are those of RFC 1321, A.5",
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
        #expect(Self.hex(MD5.digest(of: Data(message.utf8))) == digest)
    }

    @Test("SEC-1: the digest of SHA-512/256 is that of the standard's examples")
    func half() {
        let abc = "53048e2681941ef99b2e29b76b4c7dabe4c2d0c634fc6d46e0e2f13107e7af23"
        #expect(Self.hex(SHA512Half.digest(of: Data("abc".utf8))) == abc)
        let long =
            "abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu"
        let digest = "3928e184fb8690f840da3988121d31be65cb9d3ef83ee6146feac861e19b563a"
        #expect(Self.hex(SHA512Half.digest(of: Data(long.utf8))) == digest)
    }

    @Test("SEC-1: messages of 0 to 300 bytes have the digests that others give")
    func everyLength() {
        var both = Data()
        for length in 0...300 {
            let message = Data((0..<length).map { UInt8(truncatingIfNeeded: $0 * 7 + length) })
            both.append(MD5.digest(of: message))
            both.append(SHA512Half.digest(of: message))
        }
        #expect(Self.hex(SHA256.digest(of: both)) == "e6b5e78dd63cd6f578e3b4d4bac7cfbd04ce6365a0988fafc12a31cbcd12f618")
    }
}
