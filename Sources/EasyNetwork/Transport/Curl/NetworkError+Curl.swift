#if os(Linux) && canImport(CCurl)
internal import CCurl
import Foundation

extension NetworkError {
    /// Creates an error from a result of libcurl.
    ///
    /// - Parameters:
    ///   - detail: libcurl's message for this case; can be empty.
    ///   - systemError: The `errno` of the last connection that libcurl tried; 0 if there was none.
    init(curl result: ccurl_code, detail: String, systemError: Int = 0) {
        let words = detail.isEmpty ? String(cString: ccurl_easy_strerror(result)) : detail
        self.init(code: Code(curl: result), message: Redaction.standard.transportWords(words))
        if result == CCURLE_COULDNT_CONNECT, [ENETUNREACH, ENETDOWN].contains(where: { $0 == systemError }) {
            code = .notConnected
        }
        // libcurl reports a malformed chunk with the code of a lost connection. Only the message shows the difference.
        if result == CCURLE_RECV_ERROR, detail.contains("chunk") { code = .badServerResponse }
        // With TLS 1.3, a server rejects the client's certificate after the client's part of the handshake. Other
        // alerts do not show whether the request was sent before.
        let isAlert = detail.contains("SSL") && detail.contains(" alert ")
        let isOfCertificate = detail.contains("certificate") || detail.contains("unknown ca")
        if result == CCURLE_RECV_ERROR || result == CCURLE_SEND_ERROR, isAlert, isOfCertificate { code = .tls }
        if result == CCURLE_OUT_OF_MEMORY || result == CCURLE_TOO_LARGE {
            message = "a header line is longer than libcurl accepts, or no memory is left"
        }
    }
}

extension NetworkError.Code {
    init(curl result: ccurl_code) {
        switch result {
        case CCURLE_COULDNT_RESOLVE_PROXY, CCURLE_COULDNT_RESOLVE_HOST, CCURLE_COULDNT_CONNECT, CCURLE_INTERFACE_FAILED,
            CCURLE_PROXY, CCURLE_FAILED_INIT, CCURLE_NO_CONNECTION_AVAILABLE:
            self = .cannotConnect
        case CCURLE_SSL_CONNECT_ERROR, CCURLE_SSL_ENGINE_NOTFOUND, CCURLE_SSL_ENGINE_SETFAILED,
            CCURLE_SSL_ENGINE_INITFAILED, CCURLE_SSL_CERTPROBLEM, CCURLE_SSL_CIPHER, CCURLE_PEER_FAILED_VERIFICATION,
            CCURLE_USE_SSL_FAILED, CCURLE_SSL_CACERT_BADFILE, CCURLE_SSL_SHUTDOWN_FAILED, CCURLE_SSL_CRL_BADFILE,
            CCURLE_SSL_ISSUER_ERROR, CCURLE_SSL_PINNEDPUBKEYNOTMATCH, CCURLE_SSL_INVALIDCERTSTATUS,
            CCURLE_SSL_CLIENTCERT:
            self = .tls
        case CCURLE_OPERATION_TIMEDOUT: self = .timedOut
        case CCURLE_UNSUPPORTED_PROTOCOL, CCURLE_WEIRD_SERVER_REPLY, CCURLE_OUT_OF_MEMORY, CCURLE_TOO_LARGE:
            // Schemes other than http and https never reach this point. libcurl reports bytes that are not HTTP with
            // the first two codes, and a header line that is too long with either of the others.
            self = .badServerResponse
        case CCURLE_BAD_CONTENT_ENCODING, CCURLE_WRITE_ERROR:
            // A write error without a failure of this package's callback comes from removing a coding.
            self = .cannotParseResponse
        case CCURLE_URL_MALFORMAT, CCURLE_BAD_FUNCTION_ARGUMENT, CCURLE_READ_ERROR, CCURLE_LOGIN_DENIED,
            CCURLE_NOT_BUILT_IN, CCURLE_UNKNOWN_OPTION, CCURLE_SETOPT_OPTION_SYNTAX, CCURLE_RECURSIVE_API_CALL:
            self = .invalidRequest
        default:
            // These are a partial file, an empty response, send and receive errors, and broken HTTP/2 streams; and a
            // body that cannot be restarted for the new connection that libcurl would use after such a loss.
            self = .connectionLost
        }
    }
}
#endif
