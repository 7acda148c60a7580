#if os(Linux)
import CCurl
import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("The meaning of libcurl's results")
struct CurlCodeTests {
    init() {
        // The texts come from the library, which may not have been loaded yet.
        expect(CurlLibrary.problem == nil)
    }

    /// The curl codes of each error code that an HTTP exchange can return, from libcurl's documentation.
    private static let meanings: [(NetworkError.Code, [ccurl_code])] = [
        (
            .cannotConnect,
            [
                CCURLE_COULDNT_RESOLVE_PROXY, CCURLE_COULDNT_RESOLVE_HOST, CCURLE_COULDNT_CONNECT,
                CCURLE_INTERFACE_FAILED,
                CCURLE_PROXY, CCURLE_FAILED_INIT, CCURLE_NO_CONNECTION_AVAILABLE,
            ]
        ),
        (
            .tls,
            [
                CCURLE_SSL_CONNECT_ERROR, CCURLE_SSL_CERTPROBLEM, CCURLE_SSL_CIPHER, CCURLE_PEER_FAILED_VERIFICATION,
                CCURLE_SSL_CACERT_BADFILE, CCURLE_SSL_ISSUER_ERROR, CCURLE_SSL_PINNEDPUBKEYNOTMATCH,
                CCURLE_SSL_INVALIDCERTSTATUS, CCURLE_SSL_CLIENTCERT, CCURLE_SSL_ENGINE_NOTFOUND,
            ]
        ),
        (.timedOut, [CCURLE_OPERATION_TIMEDOUT]),
        (.badServerResponse, [CCURLE_UNSUPPORTED_PROTOCOL, CCURLE_WEIRD_SERVER_REPLY, CCURLE_OUT_OF_MEMORY]),
        (.cannotParseResponse, [CCURLE_BAD_CONTENT_ENCODING, CCURLE_WRITE_ERROR]),
        (
            .invalidRequest,
            [
                CCURLE_URL_MALFORMAT, CCURLE_BAD_FUNCTION_ARGUMENT, CCURLE_READ_ERROR, CCURLE_NOT_BUILT_IN,
                CCURLE_UNKNOWN_OPTION, CCURLE_SETOPT_OPTION_SYNTAX,
            ]
        ),
        (
            .connectionLost,
            [
                CCURLE_PARTIAL_FILE, CCURLE_GOT_NOTHING, CCURLE_SEND_ERROR, CCURLE_RECV_ERROR, CCURLE_SEND_FAIL_REWIND,
                CCURLE_HTTP2, CCURLE_HTTP2_STREAM,
            ]
        ),
    ]

    @Test("CBK-7: each result that a user can meet has its code, and words")
    func codes() {
        for (code, results) in Self.meanings {
            for result in results {
                let error = NetworkError(curl: result, detail: "")
                expect(error.code, equals: code, "\(result)")
                expect(error.message?.isEmpty, equals: false, "\(result)")
                expect(NetworkError(curl: result, detail: "detail").message?.isEmpty, equals: false)
            }
        }
    }

    @Test(
        "RSP-6: libcurl's texts contain no user or password of a proxy, even with a malformed address",
        arguments: [
            "Unsupported proxy syntax in 'http://ada:s3cret@h:99999': Port number was not a decimal number",
            "Unsupported proxy syntax in 'ada:s3cret@h:port'", "Unsupported proxy scheme for 'ftp://ada:s3cret@h:1'",
            "Unsupported proxy syntax in 'http://ada:s3/cret@h:1': Port number was not a decimal number",
            "Unsupported proxy syntax in 'http://ada:s3 cret@h:1': Malformed input to a URL function",
            "Unsupported proxy syntax in 'http://ada:s3'cret@s3@h:1'", "ada:s3cret@h: no such proxy",
        ]
    )
    func proxySecrets(detail: String) {
        let text = NetworkError(curl: CCURLE_COULDNT_RESOLVE_PROXY, detail: detail).localizedDescription
        expect(!text.contains("s3") && !text.contains("cret") && !text.contains("ada"), "\(text)")
        expect(text.contains("@h:"), "\(text)")
    }

    @Test("RSP-6: an unreachable address is .notConnected; a refusal or an unknown name is not")
    func notConnected() {
        func code(_ result: ccurl_code, _ systemError: Int32) -> NetworkError.Code {
            NetworkError(curl: result, detail: "", systemError: Int(systemError)).code
        }
        expect(code(CCURLE_COULDNT_CONNECT, ENETUNREACH), equals: .notConnected)
        expect(code(CCURLE_COULDNT_CONNECT, ECONNREFUSED), equals: .cannotConnect)
        expect(code(CCURLE_COULDNT_CONNECT, EHOSTUNREACH), equals: .cannotConnect)
        expect(code(CCURLE_COULDNT_RESOLVE_HOST, ENETUNREACH), equals: .cannotConnect)
        expect(code(CCURLE_RECV_ERROR, ENETUNREACH), equals: .connectionLost)
    }

    @Test("CBK-7: an invalid chunk is a bad answer, a lost connection is not")
    func chunks() {
        expect(
            NetworkError(curl: CCURLE_RECV_ERROR, detail: "Malformed encoding found in chunked-encoding").code,
            equals: .badServerResponse
        )
        expect(
            NetworkError(curl: CCURLE_RECV_ERROR, detail: "Recv failure: Connection reset by peer").code,
            equals: .connectionLost
        )
    }

    @Test("SEC-2: a certificate that a server refuses after the handshake, as with TLS 1.3, is an error of TLS")
    func alerts() {
        let detail = "OpenSSL SSL_read: error:0A00045C:SSL routines::tlsv13 alert certificate required, errno 0"
        expect(NetworkError(curl: CCURLE_RECV_ERROR, detail: detail).code, equals: .tls)
        expect(NetworkError(curl: CCURLE_SEND_ERROR, detail: "SSL_write: tlsv1 alert unknown ca").code, equals: .tls)
        let others = ["Recv failure: alert certificate", "OpenSSL SSL_read: sslv3 alert bad record mac, errno 0"]
        for other in others {
            expect(NetworkError(curl: CCURLE_RECV_ERROR, detail: other).code, equals: .connectionLost)
        }
    }
}
#endif
