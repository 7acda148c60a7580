#if os(Linux) && canImport(CCurl)
internal import CCurl

extension NetworkError {
    /// What a result of libcurl's means.
    ///
    /// - Parameter detail: libcurl's own words for this case; empty when it has none.
    init(curl result: CURLcode, detail: String) {
        self.init(
            code: Code(curl: result),
            message: detail.isEmpty ? String(cString: curl_easy_strerror(result)) : detail
        )
        // A chunk that is none comes with the code of a lost connection, and only the text tells.
        if result == CURLE_RECV_ERROR, detail.contains("chunk") { code = .badServerResponse }
        // With TLS 1.3 a server refuses the client's certificate when the handshake is over for the client. Of other alerts
        // nobody knows what went before.
        let isAlert = detail.contains("SSL") && detail.contains(" alert ")
        if result == CURLE_RECV_ERROR || result == CURLE_SEND_ERROR, isAlert,
            detail.contains("certificate") || detail.contains("unknown ca")
        {
            code = .tls
        }
        if result == CURLE_OUT_OF_MEMORY || result == .tooLarge {
            message = "a header line is longer than libcurl takes, or no memory is left"
        }
    }
}

extension CURLcode {
    /// `CURLE_TOO_LARGE`, which headers older than 8.6 do not have.
    fileprivate static let tooLarge = CURLcode(rawValue: 100)
}

extension NetworkError.Code {
    init(curl result: CURLcode) {
        switch result {
        case CURLE_COULDNT_RESOLVE_PROXY, CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_CONNECT, CURLE_INTERFACE_FAILED,
            CURLE_PROXY, CURLE_FAILED_INIT, CURLE_NO_CONNECTION_AVAILABLE:
            self = .cannotConnect
        case CURLE_SSL_CONNECT_ERROR, CURLE_SSL_ENGINE_NOTFOUND, CURLE_SSL_ENGINE_SETFAILED,
            CURLE_SSL_ENGINE_INITFAILED, CURLE_SSL_CERTPROBLEM, CURLE_SSL_CIPHER, CURLE_PEER_FAILED_VERIFICATION,
            CURLE_USE_SSL_FAILED, CURLE_SSL_CACERT_BADFILE, CURLE_SSL_SHUTDOWN_FAILED, CURLE_SSL_CRL_BADFILE,
            CURLE_SSL_ISSUER_ERROR, CURLE_SSL_PINNEDPUBKEYNOTMATCH, CURLE_SSL_INVALIDCERTSTATUS, CURLE_SSL_CLIENTCERT:
            self = .tls
        case CURLE_OPERATION_TIMEDOUT:
            self = .timedOut
        case CURLE_UNSUPPORTED_PROTOCOL, CURLE_WEIRD_SERVER_REPLY:
            // Other schemes than http and https never get here; this is what bytes that are no HTTP become.
            self = .badServerResponse
        case CURLE_OUT_OF_MEMORY, .tooLarge:
            // Both are libcurl's words for a header line longer than it takes.
            self = .badServerResponse
        case CURLE_BAD_CONTENT_ENCODING, CURLE_WRITE_ERROR:
            // A write error that is not ours comes from taking a content coding off.
            self = .cannotParseResponse
        case CURLE_URL_MALFORMAT, CURLE_BAD_FUNCTION_ARGUMENT, CURLE_READ_ERROR, CURLE_LOGIN_DENIED,
            CURLE_NOT_BUILT_IN, CURLE_UNKNOWN_OPTION, CURLE_SETOPT_OPTION_SYNTAX, CURLE_RECURSIVE_API_CALL:
            self = .invalidRequest
        default:
            // Partial file, got nothing, send and receive errors, broken HTTP/2 streams; a body that cannot be made
            // again for the new connection that libcurl would take after such a loss.
            self = .connectionLost
        }
    }
}
#endif
