import EasyNetwork
import Foundation

extension MockResponse {
    /// Bytes with `Content-Encoding: gzip`, in the format but not made smaller.
    ///
    /// - Parameters:
    ///   - data: what the client gets when it has taken off the coding.
    ///   - missing: how many bytes at the end of the gzip stream are left off, to cut it short: the last 8 are the
    ///     checksum and the length. The answer is whole and its `Content-Length` right. Default 0.
    ///   - status: default 200.
    ///   - headers: default none.
    public static func gzip(
        _ data: Data,
        missing: Int = 0,
        status: Int = 200,
        headers: HTTPHeaders = HTTPHeaders()
    ) -> MockResponse {
        compressed(Gzip.stored(data).dropLast(max(missing, 0)), status, headers)
    }

    /// A small gzip stream that inflates to `count` bytes of zero, its checksum right.
    ///
    /// - Parameters:
    ///   - count: bytes when inflated; what is sent is about a 1,032th of it, 1 MB for 1 GiB. Below 0 is taken for 0.
    ///   - status: default 200.
    ///   - headers: default none.
    public static func inflationBomb(
        _ count: Int,
        status: Int = 200,
        headers: HTTPHeaders = HTTPHeaders()
    ) -> MockResponse {
        compressed(Gzip.zeros(max(count, 0)), status, headers)
    }

    private static func compressed(_ data: Data, _ status: Int, _ headers: HTTPHeaders) -> MockResponse {
        var headers = headers
        headers["Content-Encoding"] = "gzip"
        return MockResponse(statusCode: status, headers: headers, body: .data(data))
    }
}
