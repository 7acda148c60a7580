#if os(Linux) && canImport(CCurl)
internal import CCurl
import Foundation

extension CurlExchange {
    /// Writes the request into a handle that is new, or prepared for the next message.
    ///
    /// - Parameter waitsForConnection: Whether to wait for a connection that is being established, because it might be
    ///   shared.
    func configure(_ handle: CurlHandle, waitsForConnection: Bool) throws(NetworkError) {
        self.handle = handle
        handle.exchange = self
        guard let worker, let request else { return }
        guard target.isHTTPS || target.isHTTP else {
            throw .invalidRequest("\(request.url.withoutSecrets) must be an absolute http(s) URL")
        }
        if !handle.hasCommonOptions { try setCommonOptions(of: handle, worker) }
        if target.isHTTPS, !handle.hasTLSOptions { try setTLSOptions(of: handle, worker.configuration.tls) }
        try handle.setAddress(target.address)
        if target.hasCredentials {
            // libcurl would derive an Authorization field from them.
            handle.needsReset = true
            try handle.set(CCURLOPT_USERNAME, "")
            try handle.set(CCURLOPT_HTTPAUTH, 0)
        }
        let hasBody = if case .none = request.body { false } else { true }
        // Without a body, libcurl's default method is GET.
        if hasBody || request.method != .get || handle.method != nil { try configureMethod(request, handle) }
        if body == nil, let known = worker.headerList, known.headers?.hasStorage(of: request.headers) == true {
            try handle.setHeaders(known)
        } else {
            let list = try CurlHeaderList(try headerLines(request, worker), of: body == nil ? request.headers : nil)
            try handle.setHeaders(list)
            worker.headerList = list
        }
        if handle.waitsForConnection != waitsForConnection {
            try handle.set(CCURLOPT_PIPEWAIT, waitsForConnection ? 1 : 0)
            handle.waitsForConnection = waitsForConnection
        }
        if needsNewConnection {
            handle.needsReset = true
            try handle.set(CCURLOPT_FRESH_CONNECT, 1)
        }
        if worker.hasProxyPassword {
            // libcurl would keep the scheme that this message's proxy requires, and another proxy can require another.
            handle.needsReset = true
            if target.isHTTP, worker.isBasicWanted { try handle.set(CCURLOPT_PROXYAUTH, CCURLAUTH_BASIC) }
        }
    }

    /// Sets the options that depend only on the loop's configuration.
    private func setCommonOptions(of handle: CurlHandle, _ worker: CurlWorker) throws(NetworkError) {
        // Signals belong to the process: libcurl would use one to end a name lookup.
        try handle.set(CCURLOPT_NOSIGNAL, 1)
        // This is the numeric option. libcurl 7.85 and later have another one for strings.
        try handle.set(CCURLOPT_PROTOCOLS, CCURLPROTO_HTTP | CCURLPROTO_HTTPS)
        try handle.set(CCURLOPT_HTTP_VERSION, CCURL_HTTP_VERSION_2TLS)
        // By default libcurl sends Basic credentials without a challenge. With two schemes it waits for the challenge.
        if worker.hasProxyPassword { try handle.set(CCURLOPT_PROXYAUTH, CCURLAUTH_BASIC | CCURLAUTH_DIGEST) }
        // The exchange has its own deadlines. By default libcurl stops connecting after 300 seconds.
        try handle.set(CCURLOPT_CONNECTTIMEOUT_MS, 7 * 24 * 3_600 * 1_000)
        // If each message has a new handle, a buffer of 64 KiB makes malloc consolidate its memory each time, and large
        // bodies arrive no faster. libcurl rejects the option while a reused handle still has its buffer, which has
        // this size already.
        _ = ccurl_set_long(handle.easy, CCURLOPT_BUFFERSIZE, 32_768)
        // Without this option, a cancellation during a name lookup blocks the loop until the system's resolver returns.
        // libcurl before 7.87 does not have it.
        if CurlLibrary.version >= 0x07_57_00 { try handle.set(CCURLOPT_QUICK_EXIT, 1) }
        try handle.set(CCURLOPT_PATH_AS_IS, 1)
        if let proxy = try worker.proxy.get() {
            try handle.set(CCURLOPT_PROXY, proxy)
            // Without this option, the exceptions of the environment would apply to this proxy, too.
            try handle.set(CCURLOPT_NOPROXY, "")
        } else if !worker.hasSystemProxy {
            // libcurl would look for five variables of the environment for each message.
            try handle.set(CCURLOPT_NOPROXY, "*")
        }
        setCallbacks(of: handle)
        handle.hasCommonOptions = true
    }

    private func setTLSOptions(of handle: CurlHandle, _ tls: TLSConfiguration) throws(NetworkError) {
        let version = tls.requiresTLS13 ? CCURL_SSLVERSION_TLSv1_3 : CCURL_SSLVERSION_TLSv1_2
        try handle.set(CCURLOPT_SSLVERSION, version)
        if let sessions = worker?.tlsSessions {
            try handle.check(ccurl_set_pointer(handle.easy, CCURLOPT_SHARE, sessions))
        }
        switch tls.trust {
        case .system:
            guard CurlLibrary.keepsAuthorities else { break }
            // The securing callback adds the folder again.
            try handle.set(CCURLOPT_CAPATH, nil)
            // The system's file of authorities is parsed again after an hour.
            try handle.set(CCURLOPT_CA_CACHE_TIMEOUT, 3_600)
        case .dangerouslyTrustingEveryServer:
            try handle.set(CCURLOPT_SSL_VERIFYPEER, 0)
            try handle.set(CCURLOPT_SSL_VERIFYHOST, 0)
        // Set both options: an option that is not set keeps the system's value.
        case .certificateFile(let file):
            try handle.set(CCURLOPT_CAINFO, file.path)
            try handle.set(CCURLOPT_CAPATH, nil)
        case .certificateDirectory(let directory):
            try handle.set(CCURLOPT_CAINFO, nil)
            try handle.set(CCURLOPT_CAPATH, directory.path)
        }
        if !tls.pinnedPublicKeys.isEmpty {
            try handle.set(CCURLOPT_PINNEDPUBLICKEY, tls.pinnedPublicKeys.map(\.description).joined(separator: ";"))
        }
        if let certificate = tls.clientCertificate {
            try handle.set(CCURLOPT_SSLCERT, certificate.certificateFile.path)
            try handle.set(CCURLOPT_SSLKEY, certificate.keyFile.path)
            // Without a password, OpenSSL would ask for an encrypted key's password on the terminal, and block the
            // loop.
            try handle.set(CCURLOPT_KEYPASSWD, certificate.keyPassword ?? "")
        }
        setSecuringCallback(of: handle)
        handle.hasTLSOptions = true
    }

    private func configureMethod(_ request: TransportRequest, _ handle: CurlHandle) throws(NetworkError) {
        let method = request.method.rawValue
        // Requests with these methods state that they have no body (RFC 9110, section 8.6).
        let saysLength = method == "POST" || method == "PUT" || method == "PATCH"
        let content = request.body == .none && saysLength ? .data(Data()) : request.body
        body = content == .none ? nil : try CurlBody(content, wakeUp: bodyHasBytes)
        if method == "HEAD" {
            // Without NOBODY, libcurl waits for the body that the response's Content-Length announces.
            guard body == nil else { throw .invalidRequest("a HEAD request takes no body") }
            handle.needsReset = true
            try handle.set(CCURLOPT_NOBODY, 1)
        } else if let body {
            handle.needsReset = true
            try handle.set(CCURLOPT_UPLOAD, 1)
            try handle.check(ccurl_set_offset(handle.easy, CCURLOPT_INFILESIZE_LARGE, body.count ?? -1))
            setBodyCallbacks(of: handle)
        }
        if method != handle.method || body != nil { try request.checkMethod() }
        try handle.setMethod(method)
    }

    /// Returns the fields as libcurl requires them: `Name: value`, or `Name;` without a value.
    private func headerLines(_ request: TransportRequest, _ worker: CurlWorker) throws(NetworkError) -> [String] {
        var lines: [String] = []
        if body != nil, request.headers["Expect"] == nil {
            // A body that could not be sent again waits until the proxy has requested the credentials.
            let mayBeChallenged = worker.hasProxyPassword && target.isHTTP && !worker.isBasicWanted
            let waits = mayBeChallenged && !request.body.isReplayable
            // A line with only a name removes the field that libcurl would add to a body.
            lines.append(waits ? "Expect: 100-continue" : "Expect:")
        }
        try request.headers.checkSyntax()
        // libcurl's own option is not used, because libcurl would create the line again for each message.
        if let codings = CurlDecoder.names, request.headers["Accept-Encoding"] == nil {
            lines.append("Accept-Encoding: \(codings)")
        }
        for field in request.headers where !field.isFraming {
            let isBlank = field.raw.utf8.allSatisfy(\.isBlank)
            lines.append(isBlank ? "\(field.name);" : "\(field.name): \(field.raw)")
        }
        return lines
    }
}

extension ProxyConfiguration {
    private static let curlSchemes = ["http", "https", "socks4", "socks4a", "socks5", "socks5h"]

    /// The proxy in the form that libcurl requires: nil for the environment's proxy, empty for no proxy. A failure is
    /// the reason why libcurl cannot use the proxy.
    var curlProxy: Result<String?, NetworkError> {
        switch self {
        case .system: return .success(nil)
        case .none: return .success("")
        case .url(let url):
            let isKnown = Self.curlSchemes.contains(url.scheme?.lowercased() ?? "")
            if isKnown, url.host?.isEmpty == false, url.port != nil { return .success(url.absoluteString) }
            let needs = "it needs one of the schemes \(Self.curlSchemes.joined(separator: ", ")), a host and a port"
            return .failure(.invalidRequest("\(url.withoutSecrets) is not a proxy URL: \(needs)"))
        }
    }

    /// The proxies of the environment that libcurl can use.
    static var systemProxies: [String] {
        let names = ["http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"]
        return names.compactMap { name in getenv(name).map { String(cString: $0) } }
    }

    /// Whether the transport can send a user and a password to a proxy over HTTP.
    var hasPassword: Bool {
        switch self {
        case .none: false
        case .url(let url): url.user != nil && url.scheme?.lowercased().hasPrefix("http") == true
        case .system: Self.systemProxies.contains { $0.contains("@") }
        }
    }
}

/// The destination of a message, parsed from the bytes of its URL. Requesting the components of a `URL` costs as much
/// as sending a small message.
final class CurlTarget: Sendable {
    /// The complete URL, as it is passed to libcurl.
    let address: String
    /// Scheme, host and port: `https://api.example.com:8443`. The complete URL if it is not absolute.
    let origin: String
    let isHTTP: Bool
    let isHTTPS: Bool
    /// Whether the URL contains a user or a password.
    let hasCredentials: Bool

    init(address: String) {
        self.address = address
        // The syntax is scheme "://" [ userinfo "@" ] host [ ":" port ], up to a slash, question mark or hash (RFC
        // 3986, section 3).
        let bytes = address.utf8
        let slash = UInt8(ascii: "/")
        guard let colon = bytes.firstIndex(of: UInt8(ascii: ":")),
            bytes[bytes.index(after: colon)...].starts(with: [slash, slash])
        else {
            (origin, isHTTP, isHTTPS, hasCredentials) = (address, false, false, false)
            return
        }
        let start = bytes.index(colon, offsetBy: 3)
        let end = bytes[start...].firstIndex { $0 == slash || $0 == UInt8(ascii: "?") || $0 == UInt8(ascii: "#") }
        let authority = address[start..<(end ?? bytes.endIndex)]
        let scheme = String(address[..<colon])
        isHTTP = scheme.isEqualIgnoringASCIICase(to: "http")
        isHTTPS = scheme.isEqualIgnoringASCIICase(to: "https")
        let at = authority.utf8.lastIndex(of: UInt8(ascii: "@"))
        hasCredentials = at != nil
        origin = "\(scheme)://\(at.map { authority[bytes.index(after: $0)...] } ?? authority)"
    }
}
#endif
