import Foundation

/// Whom a transport trusts on https, and how it makes itself known.
///
/// A server that is not trusted ends the exchange with ``NetworkError/Code/tls``, before anything is sent.
///
/// | setting | CurlTransport (Linux) | URLSessionTransport, Apple | URLSessionTransport, Linux |
/// |-|-|-|-|
/// | ``Trust/system`` | yes | yes | yes |
/// | other ``trust`` | yes | yes | no |
/// | ``minimumVersion`` other than 1.2 | yes | yes | no |
/// | ``pinnedPublicKeys`` | yes | yes | no |
/// | ``clientCertificate`` | yes | no | no |
///
/// What a transport cannot honour ends every exchange with ``NetworkError/Code/invalidRequest`` at its start, and nothing
/// is sent: less trust than was asked for is never taken.
public struct TLSConfiguration: Hashable, Sendable {
    /// Whose signature makes a server's certificate good. The host's name and the dates are checked too.
    public enum Trust: Hashable, Sendable {
        /// The authorities that the system knows.
        case system
        /// Only those in a file of PEM certificates (RFC 7468).
        case certificateFile(URL)
        /// Only those in a folder of PEM files, named by their hashes as `openssl rehash` does.
        case certificateDirectory(URL)
        /// Anybody, unless a pin says otherwise: whoever is in between can read and change everything. For a test
        /// against a server of one's own and nothing else.
        case dangerouslyTrustingEveryServer
    }

    /// The lowest version of the protocol that is spoken.
    public enum Version: Hashable, Sendable {
        /// RFC 5246.
        case tls12
        /// RFC 8446.
        case tls13
    }

    /// What a server knows this program by.
    public struct ClientCertificate: Hashable, Sendable {
        /// A PEM file: the certificate, then those between it and its authority.
        public var certificateFile: URL
        /// A PEM file with its private key.
        public var keyFile: URL
        /// What the key is encrypted with; nil when it is not.
        public var keyPassword: String?

        public init(certificateFile: URL, keyFile: URL, keyPassword: String? = nil) {
            self.certificateFile = certificateFile
            self.keyFile = keyFile
            self.keyPassword = keyPassword
        }
    }

    /// Default ``Trust/system``.
    public var trust: Trust
    /// Default ``Version/tls12``.
    public var minimumVersion: Version
    /// The keys of which the server has to have one, in addition to ``trust``. Default none, which means any.
    public var pinnedPublicKeys: [PublicKeyPin]
    /// Default none.
    public var clientCertificate: ClientCertificate?

    public init(
        trust: Trust = .system,
        minimumVersion: Version = .tls12,
        pinnedPublicKeys: [PublicKeyPin] = [],
        clientCertificate: ClientCertificate? = nil
    ) {
        self.trust = trust
        self.minimumVersion = minimumVersion
        self.pinnedPublicKeys = pinnedPublicKeys
        self.clientCertificate = clientCertificate
    }
}

extension TLSConfiguration.ClientCertificate: CustomStringConvertible, CustomReflectable {
    /// The two files, without the password.
    public var description: String {
        "ClientCertificate(\(certificateFile.path), key \(keyFile.path)\(keyPassword == nil ? "" : ", with a password"))"
    }

    /// Without children, so that a dump has no secret either.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}
