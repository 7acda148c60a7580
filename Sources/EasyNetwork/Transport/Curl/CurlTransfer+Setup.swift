#if os(Linux) && canImport(CCurl)
internal import CCurl
import Foundation

extension CurlTransfer {
    /// Writes the request into a handle that is new or fit for the next message.
    ///
    /// - Parameter waitsForConnection: whether one that is being made is waited for, as it may be shared.
    func configure(_ handle: CurlHandle, waitsForConnection: Bool) throws(NetworkError) {
        self.handle = handle
        if !handle.hasCommonOptions { try setCommonOptions(of: handle) }
        if target.isHTTPS, !handle.hasTLSOptions { try setTLSOptions(of: handle) }
        try configureTarget(handle)
        try configureMethod(handle)
        if body != nil || !handle.hasHeaders(request.headers) {
            try handle.setHeaders(try headerLines(), of: body == nil ? request.headers : nil)
        }
        try handle.set(CCURLOPT_PIPEWAIT, waitsForConnection ? 1 : 0)
        if needsNewConnection {
            handle.needsReset = true
            try handle.set(CCURLOPT_FRESH_CONNECT, 1)
        }
        setContext(of: handle)
    }

    /// What depends on nothing but the loop's configuration.
    private func setCommonOptions(of handle: CurlHandle) throws(NetworkError) {
        try handle.useErrorText()
        // Signals belong to the process: libcurl would use one to end the look-up of a name.
        try handle.set(CCURLOPT_NOSIGNAL, 1)
        // By its number, as 7.85 and later have a name for texts beside it.
        try handle.set(CCURLOPT_PROTOCOLS, CCURLPROTO_HTTP | CCURLPROTO_HTTPS)
        try handle.set(CCURLOPT_HTTP_VERSION, CCURL_HTTP_VERSION_2TLS)
        try handle.set(CCURLOPT_FOLLOWLOCATION, 0)
        try handle.set(CCURLOPT_SUPPRESS_CONNECT_HEADERS, 1)
        if let codings = CurlDecoder.names { try handle.set(CCURLOPT_ACCEPT_ENCODING, codings) }
        try handle.set(CCURLOPT_HTTP_CONTENT_DECODING, 0)
        // The deadlines are ours. Left alone, libcurl gives up connecting after 300 seconds.
        try handle.set(CCURLOPT_CONNECTTIMEOUT_MS, 7 * 24 * 3_600 * 1_000)
        // Refused while a handle that was used before still has its buffer, which then is of this size already.
        _ = ccurl_set_long(handle.easy, CCURLOPT_BUFFERSIZE, 65_536)
        // A cancel during the look-up of a name would otherwise stop the loop until the system's resolver returns.
        // Before 7.87 there is no such option, and it does.
        if CurlLibrary.version >= 0x07_57_00 { try handle.set(CCURLOPT_QUICK_EXIT, 1) }
        try handle.set(CCURLOPT_PATH_AS_IS, 1)
        if let problem = options.problem { throw problem }
        if let proxy = options.proxy {
            try handle.set(CCURLOPT_PROXY, proxy)
            // Left alone, the environment's exceptions hold for this one, too, and the message would go past it.
            try handle.set(CCURLOPT_NOPROXY, "")
        }
        setCallbacks(of: handle)
        setSocketCallbacks(of: handle)
        handle.hasCommonOptions = true
    }

    private func setTLSOptions(of handle: CurlHandle) throws(NetworkError) {
        try handle.set(
            CCURLOPT_SSLVERSION,
            options.needsTLS13 ? CCURL_SSLVERSION_TLSv1_3 : CCURL_SSLVERSION_TLSv1_2
        )
        if options.trustsEveryServer {
            try handle.set(CCURLOPT_SSL_VERIFYPEER, 0)
            try handle.set(CCURLOPT_SSL_VERIFYHOST, 0)
        }
        if let (file, directory) = options.authorities {
            // Both, as one that is left alone goes on to be the system's.
            try handle.set(CCURLOPT_CAINFO, file)
            try handle.set(CCURLOPT_CAPATH, directory)
        }
        if let pins = options.pins { try handle.set(CCURLOPT_PINNEDPUBLICKEY, pins) }
        if let certificate = options.clientCertificate {
            try handle.set(CCURLOPT_SSLCERT, certificate.file)
            try handle.set(CCURLOPT_SSLKEY, certificate.key)
            // Without one, OpenSSL asks on the terminal for that of an encrypted key, and everything waits.
            try handle.set(CCURLOPT_KEYPASSWD, certificate.password ?? "")
        }
        setSecuringCallback(of: handle)
        handle.hasTLSOptions = true
    }

    private func configureTarget(_ handle: CurlHandle) throws(NetworkError) {
        guard target.isHTTPS || target.isHTTP else {
            throw NetworkError(code: .invalidRequest, message: "\(target.address) is no absolute http or https URL")
        }
        try handle.setAddress(target.address)
        if target.hasCredentials {
            // libcurl would make an Authorization field of them.
            handle.needsReset = true
            try handle.set(CCURLOPT_USERNAME, "")
            try handle.set(CCURLOPT_HTTPAUTH, 0)
        }
    }

    private func configureMethod(_ handle: CurlHandle) throws(NetworkError) {
        try request.checkMethod()
        let method = request.method.rawValue
        switch request.body {
        case .none:
            // RFC 9110, section 8.6: these say that they have no body.
            if ["POST", "PUT", "PATCH"].contains(method) { body = CurlDataBody(Data()) }
        case .data(let data):
            body = CurlDataBody(data)
        case .file(let file):
            body = try CurlFileBody(file)
        case .stream(let stream):
            body = CurlStreamBody(stream, wakeUp: exchange.bodyHasBytes)
        }
        if method == "HEAD" {
            // Otherwise libcurl waits for the body that the answer's Content-Length speaks of.
            guard body == nil else {
                throw NetworkError(code: .invalidRequest, message: "a HEAD request has no body")
            }
            handle.needsReset = true
            try handle.set(CCURLOPT_NOBODY, 1)
        } else if let body {
            handle.needsReset = true
            try handle.set(CCURLOPT_UPLOAD, 1)
            try handle.setBodyCount(body.count ?? -1)
        }
        try handle.setMethod(method)
    }

    /// The fields as libcurl wants them: `Name: value`, and `Name;` for one without value.
    private func headerLines() throws(NetworkError) -> [String] {
        var lines: [String] = []
        // A name alone takes back the field that libcurl would add to a body.
        if body != nil, request.headers["Expect"] == nil { lines.append("Expect:") }
        try request.checkHeaders()
        for field in request.headers where !field.isFraming {
            let isBlank = field.value.utf8.allSatisfy { $0 == 0x20 || $0 == 0x09 }
            lines.append(isBlank ? "\(field.name);" : "\(field.name): \(field.value)")
        }
        return lines
    }
}
#endif
