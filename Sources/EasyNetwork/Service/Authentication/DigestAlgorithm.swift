import Foundation

/// The algorithms of Digest authentication (RFC 7616, section 6.1), the strongest last.
enum DigestAlgorithm: Int, CaseIterable, Sendable {
    case md5
    case md5Session
    case sha256
    case sha256Session
    case sha512Half
    case sha512HalfSession

    /// - Parameter name: as a challenge has it; nil means MD5.
    init?(_ name: String?) {
        guard let name else {
            self = .md5
            return
        }
        guard let found = Self.allCases.first(where: { $0.name.isEqualIgnoringASCIICase(to: name) }) else { return nil }
        self = found
    }

    var name: String {
        switch self {
        case .md5: "MD5"
        case .md5Session: "MD5-sess"
        case .sha256: "SHA-256"
        case .sha256Session: "SHA-256-sess"
        case .sha512Half: "SHA-512-256"
        case .sha512HalfSession: "SHA-512-256-sess"
        }
    }

    /// Whether the key is made once for a session, with the nonces that it began with.
    var isSession: Bool {
        switch self {
        case .md5, .sha256, .sha512Half: false
        case .md5Session, .sha256Session, .sha512HalfSession: true
        }
    }

    /// In hexadecimal digits, in lower case.
    func digest(_ text: String) -> String {
        let data = Data(text.utf8)
        let digest =
            switch self {
            case .md5, .md5Session: MD5.digest(of: data)
            case .sha256, .sha256Session: SHA256.digest(of: data)
            case .sha512Half, .sha512HalfSession: SHA512Half.digest(of: data)
            }
        return digest.hexadecimal
    }
}
