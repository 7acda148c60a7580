import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

extension NetworkError {
    /// What an error of `URLSession` means.
    ///
    /// - Parameters:
    ///   - isSecure: whether the URL was https.
    ///   - hasHead: whether the answer had begun.
    init(transport error: any Error, isSecure: Bool, hasHead: Bool) {
        let kind = (error as? URLError)?.code ?? .unknown
        self.init(
            code: Code(kind, isSecure: isSecure, hasHead: hasHead),
            // On Linux they are libcurl's.
            message: Redaction.standard.transportWords((error as NSError).localizedDescription),
            underlying: error
        )
    }
}

extension NetworkError.Code {
    fileprivate init(_ code: URLError.Code, isSecure: Bool, hasHead: Bool) {
        switch code {
        case .cancelled:
            self = .cancelled
        case .timedOut:
            self = .timedOut
        case .badURL, .fileDoesNotExist, .fileIsDirectory, .noPermissionsToReadFile:
            self = .invalidRequest
        case .notConnectedToInternet, .internationalRoamingOff, .callIsActive, .dataNotAllowed:
            self = .notConnected
        case .cannotFindHost, .dnsLookupFailed, .cannotConnectToHost, .appTransportSecurityRequiresSecureConnection:
            self = .cannotConnect
        case .secureConnectionFailed, .serverCertificateHasBadDate, .serverCertificateUntrusted,
            .serverCertificateHasUnknownRoot, .serverCertificateNotYetValid, .clientCertificateRejected,
            .clientCertificateRequired:
            self = .tls
        case .cannotDecodeRawData, .cannotDecodeContentData:
            self = .cannotParseResponse
        case .cannotParseResponse:
            self = .badServerResponse
        #if canImport(Darwin)
        case .badServerResponse:
            self = .badServerResponse
        case .unsupportedURL:
            self = .invalidRequest
        #else
        case .unsupportedURL:
            // Other schemes than http and https never get here; this is what bytes that are no HTTP become.
            self = .badServerResponse
        case .unknown:
            // Every TLS failure, every cut body and every malformed header is this.
            self = hasHead || !isSecure ? .connectionLost : .tls
        #endif
        default:
            self = .connectionLost
        }
    }
}

extension URL {
    var isHTTPS: Bool {
        scheme?.isEqualIgnoringASCIICase(to: "https") ?? false
    }
}
