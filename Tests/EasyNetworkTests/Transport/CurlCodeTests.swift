#if os(Linux)
import CCurl
import Testing

@testable import EasyNetwork

@Suite("What libcurl's results mean")
struct CurlCodeTests {
    /// Of each, those that an exchange over HTTP can come to, as libcurl's documentation has them.
    private static let meanings: [(NetworkError.Code, [CURLcode])] = [
        (
            .cannotConnect,
            [
                CURLE_COULDNT_RESOLVE_PROXY, CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_CONNECT, CURLE_INTERFACE_FAILED,
                CURLE_PROXY, CURLE_FAILED_INIT, CURLE_NO_CONNECTION_AVAILABLE,
            ]
        ),
        (
            .tls,
            [
                CURLE_SSL_CONNECT_ERROR, CURLE_SSL_CERTPROBLEM, CURLE_SSL_CIPHER, CURLE_PEER_FAILED_VERIFICATION,
                CURLE_SSL_CACERT_BADFILE, CURLE_SSL_ISSUER_ERROR, CURLE_SSL_PINNEDPUBKEYNOTMATCH,
                CURLE_SSL_INVALIDCERTSTATUS, CURLE_SSL_CLIENTCERT, CURLE_SSL_ENGINE_NOTFOUND,
            ]
        ),
        (.timedOut, [CURLE_OPERATION_TIMEDOUT]),
        (.badServerResponse, [CURLE_UNSUPPORTED_PROTOCOL, CURLE_WEIRD_SERVER_REPLY, CURLE_OUT_OF_MEMORY]),
        (.cannotParseResponse, [CURLE_BAD_CONTENT_ENCODING, CURLE_WRITE_ERROR]),
        (
            .invalidRequest,
            [
                CURLE_URL_MALFORMAT, CURLE_BAD_FUNCTION_ARGUMENT, CURLE_READ_ERROR, CURLE_NOT_BUILT_IN,
                CURLE_UNKNOWN_OPTION, CURLE_SETOPT_OPTION_SYNTAX,
            ]
        ),
        (
            .connectionLost,
            [
                CURLE_PARTIAL_FILE, CURLE_GOT_NOTHING, CURLE_SEND_ERROR, CURLE_RECV_ERROR, CURLE_SEND_FAIL_REWIND,
                CURLE_HTTP2, CURLE_HTTP2_STREAM,
            ]
        ),
    ]

    @Test("CBK-7: each result that a user can meet has its code, and words")
    func codes() {
        for (code, results) in Self.meanings {
            for result in results {
                let error = NetworkError(curl: result, detail: "")
                #expect(error.code == code, "\(result.rawValue)")
                #expect(error.message?.isEmpty == false, "\(result.rawValue)")
                #expect(NetworkError(curl: result, detail: "detail").message?.isEmpty == false)
            }
        }
    }

    @Test("CBK-7: a chunk that is none is a bad answer, a lost connection is not")
    func chunks() {
        #expect(
            NetworkError(curl: CURLE_RECV_ERROR, detail: "Malformed encoding found in chunked-encoding").code
                == .badServerResponse
        )
        #expect(
            NetworkError(curl: CURLE_RECV_ERROR, detail: "Recv failure: Connection reset by peer").code
                == .connectionLost
        )
    }

    @Test("SEC-2: a certificate that a server refuses after the handshake, as with TLS 1.3, is an error of TLS")
    func alerts() {
        let detail = "OpenSSL SSL_read: error:0A00045C:SSL routines::tlsv13 alert certificate required, errno 0"
        #expect(NetworkError(curl: CURLE_RECV_ERROR, detail: detail).code == .tls)
        #expect(NetworkError(curl: CURLE_SEND_ERROR, detail: "SSL_write: tlsv1 alert unknown ca").code == .tls)
        let others = ["Recv failure: alert certificate", "OpenSSL SSL_read: sslv3 alert bad record mac, errno 0"]
        for other in others { #expect(NetworkError(curl: CURLE_RECV_ERROR, detail: other).code == .connectionLost) }
    }
}
#endif
