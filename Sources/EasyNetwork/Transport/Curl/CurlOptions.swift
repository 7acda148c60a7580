#if os(Linux) && canImport(CCurl)
import Foundation

/// What a ``TransportConfiguration`` says to libcurl; worked out once for a transport.
struct CurlOptions: Sendable {
    var maximumDecodedBodyCount: Int?
    /// Whether no certificate is looked at.
    var trustsEveryServer = false
    /// Nil means libcurl's own; `path` nil with the other one set means none of this kind.
    var authorities: (file: String?, directory: String?)?
    var needsTLS13 = false
    /// Nil means no pin.
    var pins: String?
    var clientCertificate: (file: String, key: String, password: String?)?
    /// Nil means what the environment says; empty means none.
    var proxy: String?
    /// Why nothing can be sent with this configuration.
    var problem: NetworkError?

    init(_ configuration: TransportConfiguration) {
        maximumDecodedBodyCount = configuration.maximumDecodedBodyCount
        let tls = configuration.tls
        switch tls.trust {
        case .system: break
        case .certificateFile(let file): authorities = (file.path, nil)
        case .certificateDirectory(let directory): authorities = (nil, directory.path)
        case .dangerouslyTrustingEveryServer: trustsEveryServer = true
        }
        needsTLS13 = tls.minimumVersion == .tls13
        if !tls.pinnedPublicKeys.isEmpty { pins = tls.pinnedPublicKeys.map(\.description).joined(separator: ";") }
        clientCertificate = tls.clientCertificate.map { ($0.certificateFile.path, $0.keyFile.path, $0.keyPassword) }
        switch configuration.proxy {
        case .system: break
        case .none: proxy = ""
        case .url(let url):
            proxy = url.absoluteString
            if !Self.proxySchemes.contains(url.scheme?.lowercased() ?? "") || url.host?.isEmpty ?? true
                || url.port == nil
            {
                problem = NetworkError(
                    code: .invalidRequest,
                    message: "\(url.withoutSecrets) is no proxy: it needs one of the schemes "
                        + Self.proxySchemes.joined(separator: ", ") + ", a host and a port"
                )
            }
        }
    }

    private static let proxySchemes = ["http", "https", "socks4", "socks4a", "socks5", "socks5h"]
}
#endif
