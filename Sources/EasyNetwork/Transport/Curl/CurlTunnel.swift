#if os(Linux) && canImport(CCurl)

/// The responses of a proxy to the tunnel requests of one exchange (RFC 9110, section 9.3.6).
struct CurlTunnel {
    /// The number of challenges after which the exchange ends. libcurl would endlessly reply to a proxy that declares
    /// each nonce stale.
    static let challengeLimit = 3

    /// The status of the last response; 0 before the first.
    private(set) var statusCode = 0
    /// The number of 407 responses.
    private var challengeCount = 0
    /// Whether a response has begun and its head is incomplete.
    private(set) var isInHead = false
    private var reason = ""
    private var headers = HTTPHeaders()
    private var head = CurlHead()
    private var byteCount = 0

    /// Adds a line of a response.
    ///
    /// - Throws: The reason why the proxy must receive no further replies.
    mutating func add(_ line: UnsafeRawBufferPointer) throws(NetworkError) {
        byteCount += line.count
        guard byteCount <= CurlHead.byteLimit else {
            throw NetworkError(code: .badServerResponse, message: "the header fields of the proxy are too long")
        }
        isInHead = line.count > 2
        if line.starts(with: "HTTP/".utf8) {
            let words = String(decoding: line.prefix(200), as: UTF8.self).split(separator: " ", maxSplits: 2)
            statusCode = words.count > 1 ? Int(words[1].trimmed) ?? 0 : 0
            reason = words.count > 2 ? words[2].trimmed : ""
            if statusCode == 407 { challengeCount += 1 }
            (headers, head) = (HTTPHeaders(), CurlHead())
        }
        // A malformed line costs the fields, but not the tunnel, because libcurl has read the line as well.
        if let whole = try? head.add(line) { headers = whole.head.headers }
        if challengeCount > Self.challengeLimit, let refusal = refusal(hasPassword: true) { throw refusal }
    }

    /// Returns the reason why there is no tunnel; nil if the proxy did not refuse one.
    func refusal(hasPassword: Bool) -> NetworkError? {
        guard statusCode >= 300 else { return nil }
        var words = "the proxy refused a tunnel"
        if statusCode == 407 {
            words = "the proxy requires a user and a password"
            if hasPassword { words = "the proxy accepts neither Basic nor Digest" }
            if challengeCount > 1 { words = "the proxy refused the user and the password" }
        }
        let message = "\(words): \(statusCode) \(reason)".trimmed
        return NetworkError(code: .cannotConnect, message: message, statusCode: statusCode, headers: headers)
    }
}
#endif
