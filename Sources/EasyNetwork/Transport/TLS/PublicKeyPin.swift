import Foundation

/// The digest of the public key that a server's certificate must have: the SHA-256 of its SubjectPublicKeyInfo (RFC
/// 7469, section 2.4).
///
/// ```swift
/// var tls = TLSConfiguration()
/// tls.pinnedPublicKeys = [try PublicKeyPin("sha256//47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=")]
/// ```
///
/// The pin stays the same if a certificate is renewed with its old key. To get the pin of a server:
///
/// ```sh
/// openssl s_client -connect api.example.com:443 -servername api.example.com </dev/null |
///     openssl x509 -pubkey -noout | openssl pkey -pubin -outform der | openssl dgst -sha256 -binary | base64
/// ```
public struct PublicKeyPin: Hashable, Sendable, CustomStringConvertible {
    private let digest: Data

    /// Creates a pin from `sha256//` followed by base64, as libcurl writes it, or from `sha256/` followed by base64, as
    /// OkHttp does.
    ///
    /// - Throws: ``NetworkError/Code/invalidRequest`` for any other string, with a message that explains how to fix it.
    public init(_ text: String) throws(NetworkError) {
        guard let base64 = Self.base64(of: text) else {
            throw Self.failure(text, "it must begin with sha256//, followed by the digest in base64")
        }
        guard let digest = Data(base64Encoded: base64), digest.base64EncodedString() == base64 else {
            throw Self.failure(text, "the text after the prefix is not base64 (A-Z, a-z, 0-9, +, / and the final =)")
        }
        guard digest.count == 32 else {
            throw Self.failure(text, "a SHA-256 digest has 32 bytes, but this has \(digest.count)")
        }
        self.digest = digest
    }

    /// The pin in libcurl's format: `sha256//` and base64.
    public var description: String { "sha256//" + digest.base64EncodedString() }

    /// Returns whether the pin matches a key in the format of Apple's Security framework. That format omits the
    /// algorithm, which the pin includes.
    ///
    /// - Parameter key: A key in the format PKCS #1 for RSA, or X9.63 for the curves P-256, P-384 and P-521. No other
    ///   key matches a pin.
    func matches(key: Data) -> Bool {
        guard let algorithm = Self.algorithm(of: key) else { return false }
        // SubjectPublicKeyInfo (RFC 5280, section 4.1) consists of the algorithm and a bit string without unused bits.
        let info = Self.element(0x30, Data(algorithm) + Self.element(0x03, Data([0]) + key))
        return SHA256.digest(of: info) == digest
    }

    /// Returns the AlgorithmIdentifier of a key (RFC 3279, section 2.3.1; RFC 5480, section 2.1).
    private static func algorithm(of key: Data) -> [UInt8]? {
        let curve: [UInt8] = [0x06, 0x07, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x02, 0x01]
        switch (key.first, key.count) {
        case (0x30, _):
            return [0x30, 0x0D, 0x06, 0x09, 0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x01, 0x01, 0x05, 0x00]
        case (0x04, 65): return [0x30, 0x13] + curve + [0x06, 0x08, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x03, 0x01, 0x07]
        case (0x04, 97): return [0x30, 0x10] + curve + [0x06, 0x05, 0x2B, 0x81, 0x04, 0x00, 0x22]
        case (0x04, 133): return [0x30, 0x10] + curve + [0x06, 0x05, 0x2B, 0x81, 0x04, 0x00, 0x23]
        default: return nil
        }
    }

    /// Returns an element in DER (X.690, section 10).
    private static func element(_ tag: UInt8, _ contents: Data) -> Data {
        var length = [UInt8(truncatingIfNeeded: contents.count)]
        if contents.count >= 0x80 {
            let bytes = withUnsafeBytes(of: UInt32(clamping: contents.count).bigEndian) { Array($0.drop { $0 == 0 }) }
            length = [0x80 | UInt8(bytes.count)] + bytes
        }
        return Data([tag] + length) + contents
    }

    /// Returns the base64 part of a pin. After one slash, a second slash belongs to the digest if the digest would
    /// otherwise be too short, because base64 also contains slashes.
    private static func base64(of text: String) -> String? {
        let prefix = "sha256/"
        guard text.hasPrefix(prefix) else { return nil }
        let rest = text.dropFirst(prefix.count)
        // 32 bytes have 44 digits in base64, including the final `=`.
        let isDigest = rest.utf8.count == 44 && rest.hasSuffix("=")
        return String(rest.hasPrefix("/") && !isDigest ? rest.dropFirst() : rest)
    }

    private static func failure(_ text: String, _ reason: String) -> NetworkError {
        .invalidRequest("'\(text.prefix(80))' is not a public key pin: \(reason)")
    }
}
