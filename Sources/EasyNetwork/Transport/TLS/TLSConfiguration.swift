import Foundation

/// The trust of a transport in https servers, and the client's certificate.
///
/// ```swift
/// var configuration = TransportConfiguration()
/// configuration.tls = TLSConfiguration(trust: .certificateFile(authorities), requiresTLS13: true)
/// let host = HostConfiguration(baseURL: url, transport: configuration.makeTransport())
/// ```
///
/// If a server is not trusted, the exchange ends with ``NetworkError/Code/tls`` before anything is sent.
///
/// | setting | CurlTransport (Linux) | URLSessionTransport, Apple | URLSessionTransport, Linux |
/// |-|-|-|-|
/// | ``Trust/system`` | yes | yes | yes |
/// | other ``trust`` | yes | yes | no |
/// | ``requiresTLS13`` | yes | yes | no |
/// | ``pinnedPublicKeys`` | yes | yes | no |
/// | ``clientCertificate`` | yes | no | no |
///
/// In an app on Apple platforms, ``trust`` can only be stricter than App Transport Security. A server whose certificate
/// is signed by your own authority also needs `NSExceptionAllowsInsecureHTTPLoads` for its domain in the app's
/// `Info.plist`.
///
/// A setting that a transport does not support ends every exchange at its start with
/// ``NetworkError/Code/invalidRequest``, and nothing is sent. A transport never weakens the trust. On Apple platforms,
/// pins match RSA keys and keys of the curves P-256, P-384 and P-521.
public struct TLSConfiguration: Hashable, Sendable {
    /// The authorities whose signature makes a server's certificate valid. The host's name and the dates are checked as
    /// well.
    ///
    /// ```swift
    /// let tls = TLSConfiguration(trust: .certificateFile(authorities))
    /// ```
    public enum Trust: Hashable, Sendable {
        /// The authorities that the system trusts.
        case system
        /// Only the authorities in a file of PEM certificates (RFC 7468).
        case certificateFile(URL)
        /// Only the authorities in a folder of PEM files that are named by their hashes, as `openssl rehash` does.
        case certificateDirectory(URL)
        /// No check except for the pins. An attacker on the path can read and change everything. Use it only for tests
        /// against your own server.
        case dangerouslyTrustingEveryServer
    }

    /// The certificate that identifies this program to a server.
    ///
    /// ```swift
    /// let certificate = TLSConfiguration.ClientCertificate(certificateFile: certificateFile, keyFile: keyFile)
    /// let tls = TLSConfiguration(clientCertificate: certificate)
    /// ```
    public struct ClientCertificate: Hashable, Sendable {
        /// A PEM file with the certificate, followed by the intermediate certificates.
        public var certificateFile: URL
        /// A PEM file with its private key.
        public var keyFile: URL
        /// The password of an encrypted key; nil if the key is not encrypted.
        public var keyPassword: String?

        /// Creates a certificate from two PEM files.
        public init(certificateFile: URL, keyFile: URL, keyPassword: String? = nil) {
            self.certificateFile = certificateFile
            self.keyFile = keyFile
            self.keyPassword = keyPassword
        }
    }

    /// The trust. Defaults to ``Trust/system``.
    public var trust: Trust
    /// Whether TLS 1.3 (RFC 8446) is the minimum version. Defaults to `false`: TLS 1.2 (RFC 5246) is the minimum.
    public var requiresTLS13: Bool
    /// The keys of which the server must have one, in addition to being trusted by ``trust``. Empty by default, which
    /// allows any key.
    public var pinnedPublicKeys: [PublicKeyPin]
    /// The client's certificate. Defaults to `nil`.
    public var clientCertificate: ClientCertificate?

    /// Creates a configuration. The default arguments are the defaults of the properties.
    public init(
        trust: Trust = .system,
        requiresTLS13: Bool = false,
        pinnedPublicKeys: [PublicKeyPin] = [],
        clientCertificate: ClientCertificate? = nil
    ) {
        self.trust = trust
        self.requiresTLS13 = requiresTLS13
        self.pinnedPublicKeys = pinnedPublicKeys
        self.clientCertificate = clientCertificate
    }
}

extension TLSConfiguration.ClientCertificate: CustomStringConvertible, CustomReflectable {
    /// The two files, without the password.
    public var description: String {
        "ClientCertificate(\(certificateFile.path), key \(keyFile.path)\(keyPassword == nil ? "" : ", with a password"))"
    }

    /// An empty mirror, so that a dump shows no secret.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

extension TLSConfiguration {
    /// Returns the certificates of a PEM file (RFC 7468) as DER, in order. Malformed blocks and other text are skipped.
    static func certificates(inPEM file: Data) -> [Data] {
        let blocks = String(decoding: file, as: UTF8.self).components(separatedBy: "-----BEGIN CERTIFICATE-----")
        return blocks.dropFirst().compactMap { block in
            let parts = block.components(separatedBy: "-----END CERTIFICATE-----")
            let certificate = Data(base64Encoded: parts[0].filter { !$0.isWhitespace })
            return parts.count == 1 || certificate?.isEmpty == true ? nil : certificate
        }
    }
}

#if canImport(Darwin)
extension TLSConfiguration {
    /// Checks the server's certificates. This can take a while, because the system might query other servers about
    /// them.
    func trusts(_ server: SecTrust) -> Bool {
        isAuthorized(server) && isPinned(server)
    }

    private func isAuthorized(_ server: SecTrust) -> Bool {
        switch trust {
        case .system: break
        case .dangerouslyTrustingEveryServer: return true
        case .certificateFile(let file): guard useAuthorities(in: [file], for: server) else { return false }
        case .certificateDirectory(let directory):
            let files = try? FileManager.default.contentsOfDirectory(at: directory, includingPropertiesForKeys: nil)
            guard useAuthorities(in: files ?? [], for: server) else { return false }
        }
        return SecTrustEvaluateWithError(server, nil)
    }

    /// - Returns: False if the files contain no certificate. No server is trusted then.
    private func useAuthorities(in files: [URL], for server: SecTrust) -> Bool {
        let authorities = files.compactMap { try? Data(contentsOf: $0) }
            .flatMap(Self.certificates)
            .compactMap { SecCertificateCreateWithData(nil, $0 as CFData) }
        guard !authorities.isEmpty else { return false }
        return SecTrustSetAnchorCertificates(server, authorities as CFArray) == errSecSuccess
            && SecTrustSetAnchorCertificatesOnly(server, true) == errSecSuccess
    }

    private func isPinned(_ server: SecTrust) -> Bool {
        guard !pinnedPublicKeys.isEmpty else { return true }
        guard let chain = SecTrustCopyCertificateChain(server) as? [SecCertificate], let leaf = chain.first,
            let key = SecCertificateCopyKey(leaf), let bytes = SecKeyCopyExternalRepresentation(key, nil) as Data?
        else { return false }
        return pinnedPublicKeys.contains { $0.matches(key: bytes) }
    }
}
#endif
