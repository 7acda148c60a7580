import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

extension URLSessionConfiguration {
    /// A session's without cache, cookies and credentials of its own, and with time limits that are never met.
    static func transport(_ configuration: TransportConfiguration) -> URLSessionConfiguration {
        let session = URLSessionConfiguration.ephemeral
        session.urlCache = nil
        session.urlCredentialStorage = nil
        session.httpCookieStorage = nil
        session.httpCookieAcceptPolicy = .never
        session.httpShouldSetCookies = false
        session.requestCachePolicy = .reloadIgnoringLocalCacheData
        session.timeoutIntervalForRequest = URLSessionExchange.noTimeout
        session.timeoutIntervalForResource = URLSessionExchange.noTimeout
        session.httpMaximumConnectionsPerHost = max(configuration.maximumConnectionsPerHost, 1)
        #if canImport(Darwin)
        session.tlsMinimumSupportedProtocolVersion = configuration.tls.minimumVersion == .tls13 ? .TLSv13 : .TLSv12
        switch configuration.proxy {
        case .system: break
        case .none: session.connectionProxyDictionary = [:]
        case .url(let url): session.connectionProxyDictionary = proxyDictionary(url)
        }
        #endif
        return session
    }

    /// Why a session cannot do what a configuration asks for; nil when it can.
    static func problem(with configuration: TransportConfiguration) -> NetworkError? {
        func problem(_ what: String) -> NetworkError {
            NetworkError(code: .invalidRequest, message: "URLSession knows no \(what) here; CurlTransport does")
        }
        let tls = configuration.tls
        if tls.clientCertificate != nil { return problem("client certificates from PEM files") }
        #if canImport(Darwin)
        if case .url(let url) = configuration.proxy {
            guard url.scheme?.lowercased() == "http", url.host?.isEmpty == false, url.port != nil, url.user == nil
            else {
                return problem("proxy like \(url.withoutSecrets)")
            }
        }
        #else
        // Less trust than was asked for is never taken.
        if tls.trust != .system { return problem("trust but the system's") }
        if tls.minimumVersion != .tls12 { return problem("choice of the TLS version") }
        if !tls.pinnedPublicKeys.isEmpty { return problem("pins") }
        if configuration.proxy != .system { return problem("proxy but the system's") }
        #endif
        return nil
    }

    #if canImport(Darwin)
    /// The keys of CFNetwork, some of which have no name on iOS.
    private static func proxyDictionary(_ url: URL) -> [AnyHashable: Any] {
        let host = url.host ?? ""
        let port = url.port ?? 80
        return [
            "HTTPEnable": 1, "HTTPProxy": host, "HTTPPort": port,
            "HTTPSEnable": 1, "HTTPSProxy": host, "HTTPSPort": port,
        ]
    }
    #endif
}

#if canImport(Darwin)
extension NetworkServiceType {
    var ofURLRequest: URLRequest.NetworkServiceType {
        switch self {
        case .standard: .default
        case .background: .background
        case .responsiveData: .responsiveData
        case .video: .video
        case .voice: .voice
        case .callSignaling: .callSignaling
        case .avStreaming: .avStreaming
        case .responsiveAV: .responsiveAV
        }
    }
}
#endif
