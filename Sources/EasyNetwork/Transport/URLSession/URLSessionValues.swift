import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

extension URLSessionConfiguration {
    /// Returns a configuration without cache, cookies and credentials, and with timeouts that never pass.
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
        session.tlsMinimumSupportedProtocolVersion = configuration.tls.requiresTLS13 ? .TLSv13 : .TLSv12
        switch configuration.proxy {
        case .system: break
        case .none: session.connectionProxyDictionary = [:]
        case .url(let url):
            let (host, port) = (url.host ?? "", url.port ?? 80)
            // The keys of CFNetwork, some of which have no constant on iOS.
            session.connectionProxyDictionary = [
                "HTTPEnable": 1, "HTTPProxy": host, "HTTPPort": port,
                "HTTPSEnable": 1, "HTTPSProxy": host, "HTTPSPort": port,
            ]
        }
        #endif
        return session
    }

    /// Returns the reason why a session does not support a configuration; nil if it does.
    static func problem(with configuration: TransportConfiguration) -> NetworkError? {
        func problem(_ what: String) -> NetworkError {
            .invalidRequest("URLSession does not support \(what) here; CurlTransport does")
        }
        let tls = configuration.tls
        if tls.clientCertificate != nil { return problem("client certificates from PEM files") }
        #if canImport(Darwin)
        if case .url(let url) = configuration.proxy {
            guard url.scheme?.lowercased() == "http", url.host?.isEmpty == false, url.port != nil, url.user == nil
            else {
                return problem("a proxy like \(url.withoutSecrets)")
            }
        }
        #else
        if tls.trust != .system { return problem("other trust than the system's") }
        if tls.requiresTLS13 { return problem("a choice of the TLS version") }
        if !tls.pinnedPublicKeys.isEmpty { return problem("pins") }
        if configuration.proxy != .system { return problem("another proxy than the system's") }
        #endif
        return nil
    }
}

extension HTTPHeaders {
    /// Creates headers from the fields of a session's response, ordered by name. A session keeps a dictionary and joins
    /// repeated fields with commas.
    ///
    /// `Set-Cookie` is split again, because one field would be one cookie with the attributes of all (RFC 6265, section
    /// 3). Foundation's `HTTPCookie` returns cookies instead of fields, by its own rules.
    init(joined fields: [AnyHashable: Any]) {
        self.init()
        for (name, value) in fields.map({ ("\($0.key)", "\($0.value)") }).sorted(by: { $0.0 < $1.0 }) {
            let isCookie = name.isEqualIgnoringASCIICase(to: "Set-Cookie")
            for value in isCookie ? Self.cookies(in: value) : [value] { add(value, for: name) }
        }
    }

    /// Splits at each comma that precedes a cookie's name and an equals sign. A comma in a date is not followed by
    /// these, and a value contains no comma (RFC 6265, section 4.1.1).
    private static func cookies(in joined: String) -> [String] {
        // Names are read as browsers read them (RFC 6265bis, section 5.6), except for blanks and quotes.
        func isOfName(_ byte: UInt8) -> Bool { byte > 0x20 && byte != 0x7F && !"=,;\"".utf8.contains(byte) }
        var cookies: [String] = []
        var rest = joined.utf8[...]
        var from = rest.startIndex
        while let comma = rest[from...].firstIndex(of: UInt8(ascii: ",")) {
            from = rest.index(after: comma)
            let next = rest[from...].drop(while: \.isBlank)
            let name = next.prefix(while: isOfName)
            guard !name.isEmpty, next[name.endIndex...].first == UInt8(ascii: "=") else { continue }
            cookies.append(String(decoding: rest[..<comma], as: UTF8.self))
            rest = next
            from = next.startIndex
        }
        return cookies + [String(decoding: rest, as: UTF8.self)]
    }
}

extension NetworkError {
    /// Creates an error from an error of `URLSession`. A cancellation is one that the exchange did not request, and
    /// counts as a lost connection.
    ///
    /// - Parameters:
    ///   - isSecure: Whether the URL was https.
    ///   - hasHead: Whether the response had begun.
    init(transport error: any Error, isSecure: Bool, hasHead: Bool) {
        let kind = (error as? URLError)?.code ?? .unknown
        let isRefusedBySystem = kind == .appTransportSecurityRequiresSecureConnection
        // On Linux the message comes from libcurl.
        let words = Redaction.standard.transportWords((error as NSError).localizedDescription)
        let message = isRefusedBySystem ? Self.transportSecurity : words
        self.init(code: Code(kind, isSecure: isSecure, hasHead: hasHead), message: message, underlying: error)
    }

    private static let transportSecurity = """
        App Transport Security forbids http to this host: use https, or declare an exception under \
        NSAppTransportSecurity in the app's Info.plist
        """
}

extension NetworkError.Code {
    fileprivate init(_ code: URLError.Code, isSecure: Bool, hasHead: Bool) {
        switch code {
        case .timedOut: self = .timedOut
        case .badURL, .fileDoesNotExist, .fileIsDirectory, .noPermissionsToReadFile, .dataLengthExceedsMaximum,
            .appTransportSecurityRequiresSecureConnection:
            // A retry does not help: a session never sends the body of a GET, and App Transport Security refuses each
            // attempt.
            self = .invalidRequest
        case .notConnectedToInternet, .internationalRoamingOff, .callIsActive, .dataNotAllowed:
            self = .notConnected
        case .cannotFindHost, .dnsLookupFailed, .cannotConnectToHost: self = .cannotConnect
        case .secureConnectionFailed, .serverCertificateHasBadDate, .serverCertificateUntrusted,
            .serverCertificateHasUnknownRoot, .serverCertificateNotYetValid, .clientCertificateRejected,
            .clientCertificateRequired:
            self = .tls
        case .cannotDecodeRawData, .cannotDecodeContentData: self = .cannotParseResponse
        case .cannotParseResponse: self = .badServerResponse
        #if canImport(Darwin)
        case .badServerResponse: self = .badServerResponse
        case .unsupportedURL: self = .invalidRequest
        #else
        case .unsupportedURL:
            // Schemes other than http and https never reach this point. Foundation reports bytes that are not HTTP like
            // this.
            self = .badServerResponse
        case .unknown:
            // Foundation reports every TLS failure, every truncated body and every malformed header as unknown.
            self = hasHead || !isSecure ? .connectionLost : .tls
        #endif
        default: self = .connectionLost
        }
    }
}

#if canImport(Darwin)
extension TransportMetrics {
    /// Creates metrics from a session's metrics. The exchange adds the total and the wait.
    init(_ transaction: URLSessionTaskTransactionMetrics) {
        let begin = transaction.fetchStartDate
        func seconds(_ date: Date?) -> TimeInterval? { begin.flatMap { date?.timeIntervalSince($0) } }
        self.init(total: 0)
        if !transaction.isReusedConnection {
            nameLookup = seconds(transaction.domainLookupEndDate)
            // A session's connect phase includes the TLS handshake, so use the start of the handshake.
            connect = seconds(transaction.secureConnectionStartDate ?? transaction.connectEndDate)
            tls = seconds(transaction.secureConnectionEndDate)
        }
        firstByte = seconds(transaction.responseStartDate)
        bytesSent = Int(clamping: transaction.countOfRequestHeaderBytesSent + transaction.countOfRequestBodyBytesSent)
        bytesReceived = Int(
            clamping: transaction.countOfResponseHeaderBytesReceived + transaction.countOfResponseBodyBytesReceived
        )
        // The name in the status line for an ALPN name (RFC 7301, section 6).
        networkProtocol = transaction.networkProtocolName.map {
            ["h2": "HTTP/2", "h3": "HTTP/3"][$0] ?? $0.uppercased()
        }
        isReusedConnection = transaction.isReusedConnection
        remoteAddress = transaction.remoteAddress.map { address in
            let host = address.contains(":") ? "[\(address)]" : address
            return transaction.remotePort.map { "\(host):\($0)" } ?? host
        }
    }
}
#endif
