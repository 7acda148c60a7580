import Foundation

/// The digest of a public key that a server's certificate must have: SHA-256 of the SubjectPublicKeyInfo (RFC 7469,
/// section 2.4).
///
/// It stays the same when a certificate is renewed with its old key. To get the pin of a server:
///
/// ```sh
/// openssl s_client -connect api.example.com:443 -servername api.example.com </dev/null |
///     openssl x509 -pubkey -noout | openssl pkey -pubin -outform der | openssl dgst -sha256 -binary | base64
/// ```
public struct PublicKeyPin: Hashable, Sendable, CustomStringConvertible {
    private static let digestLength = 32
    /// 32 bytes in base64, with the `=` at their end.
    private static let base64Length = 44

    private let digest: Data

    /// Reads `sha256//` followed by base64, as libcurl writes a pin, or `sha256/` followed by base64, as OkHttp does.
    ///
    /// - Throws: ``NetworkError/Code/invalidRequest`` for any other text, with what to mend.
    public init(_ text: String) throws(NetworkError) {
        guard let base64 = Self.base64(of: text) else {
            throw Self.failure(text, "it has to begin with sha256// and go on with the digest in base64")
        }
        guard let digest = Data(base64Encoded: base64), digest.base64EncodedString() == base64 else {
            throw Self.failure(text, "what follows the prefix is not base64 (A-Z, a-z, 0-9, +, / and the = at the end)")
        }
        guard digest.count == Self.digestLength else {
            throw Self.failure(text, "a SHA-256 has \(Self.digestLength) bytes, this has \(digest.count)")
        }
        self.digest = digest
    }

    /// `sha256//` and base64, as libcurl reads it.
    public var description: String { "sha256//" + digest.base64EncodedString() }

    /// False also for bytes that are no certificate.
    func matches(certificate der: Data) -> Bool {
        CertificateDER.publicKeyInfo(in: der).map(SHA256.digest(of:)) == digest
    }

    /// A slash is a character of base64 too: after one slash, a second one belongs to the digest when it is needed to
    /// make up the digest's length.
    private static func base64(of text: String) -> String? {
        let prefix = "sha256/"
        guard text.hasPrefix(prefix) else { return nil }
        let rest = text.dropFirst(prefix.count)
        let isDigest = rest.utf8.count == base64Length && rest.hasSuffix("=")
        return String(rest.hasPrefix("/") && !isDigest ? rest.dropFirst() : rest)
    }

    private static func failure(_ text: String, _ reason: String) -> NetworkError {
        NetworkError(code: .invalidRequest, message: "'\(text.prefix(80))' is no public key pin: \(reason)")
    }
}
