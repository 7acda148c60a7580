import EasyNetwork
import Foundation

/// The response of a route: a status, header fields and a body, or a fault.
///
/// ```swift
/// server.route("GET", "/slow") { _ in
///     var response = MockResponse.text("late")
///     response.delay = 0.5
///     return response
/// }
/// ```
///
/// The header fields are sent unchanged, except for `Content-Length` and `Transfer-Encoding`, which follow from the
/// body. A scripted `Content-Length` is kept in a response to HEAD and in a 304. A response that cannot be sent, for
/// example because a header field contains a line break, is replaced by a 500 whose body gives the reason.
public struct MockResponse: Sendable {
    /// The bytes of a body and their framing.
    ///
    /// ```swift
    /// server.route("GET", "/large") { _ in MockResponse(body: .repeating(0, count: 1_000_000_000)) }
    /// ```
    public enum Body: Hashable, Sendable {
        /// Bytes that are sent with a `Content-Length`.
        case data(Data)
        /// Bytes that are sent with `Transfer-Encoding: chunked`, one chunk for each element that is not empty.
        case chunks([Data])
        /// A repeated byte, sent with a `Content-Length`. The bytes are created while they are sent, so a body of many
        /// gigabytes needs no memory. A count below 0 counts as 0.
        case repeating(UInt8, count: Int)
    }

    /// A response before the final one (RFC 9110, section 15.2).
    ///
    /// ```swift
    /// let hints = MockResponse.Interim(103, headers: ["Link": "</style.css>; rel=preload"])
    /// server.route("GET", "/page") { _ in MockResponse(interim: [hints]) }
    /// ```
    public struct Interim: Hashable, Sendable {
        /// The status, from 100 to 199.
        public var statusCode: Int
        /// The header fields. Defaults to none.
        public var headers: HTTPHeaders

        /// Creates an interim response.
        public init(_ statusCode: Int, headers: HTTPHeaders = HTTPHeaders()) {
            self.statusCode = statusCode
            self.headers = headers
        }
    }

    /// The status, from 100 to 999. Defaults to 200. Responses with 1xx, 204 or 304, and all responses to HEAD, have no
    /// body.
    public var statusCode: Int
    /// The header fields. Defaults to none. `Connection: close` closes the connection after the response.
    public var headers: HTTPHeaders
    /// The body. Defaults to no bytes.
    public var body: Body
    /// The seconds between the closure's return and the first byte of the response, or its fault. Defaults to 0.
    public var delay: TimeInterval
    /// A failure for the client. Defaults to `nil`.
    public var fault: Fault?
    /// Interim responses that are sent before this one, after the delay: 100, 102, 103. Defaults to none. An HTTP/1.0
    /// client receives none (RFC 9110, section 15.2). ``InMemoryTransport`` ignores them, as transports do.
    public var interim: [Interim]
    /// The trailer fields after the body, which is then sent in chunks. Defaults to none. They are omitted if there is
    /// no chunked body: for HEAD, for a status without a body, for an HTTP/1.0 client, and in ``InMemoryTransport``.
    public var trailers: HTTPHeaders
    /// The highest speed of the response, including its head, in bytes per second. A value below 1 counts as 1.
    /// Defaults to `nil`: as fast as the client reads. ``InMemoryTransport`` ignores it.
    public var bytesPerSecond: Int?

    /// Creates a response. For the default values, see the properties.
    public init(
        statusCode: Int = 200,
        headers: HTTPHeaders = HTTPHeaders(),
        body: Body = .data(Data()),
        delay: TimeInterval = 0,
        fault: Fault? = nil,
        interim: [Interim] = [],
        trailers: HTTPHeaders = HTTPHeaders(),
        bytesPerSecond: Int? = nil
    ) {
        self.statusCode = statusCode
        self.headers = headers
        self.body = body
        self.delay = delay
        self.fault = fault
        self.interim = interim
        self.trailers = trailers
        self.bytesPerSecond = bytesPerSecond
    }
}

extension MockResponse {
    /// Returns a response without a body.
    public static func status(_ statusCode: Int, headers: HTTPHeaders = HTTPHeaders()) -> MockResponse {
        MockResponse(statusCode: statusCode, headers: headers)
    }

    /// Returns a response with a fault.
    public static func fault(_ fault: Fault) -> MockResponse {
        MockResponse(fault: fault)
    }

    /// Returns a response with bytes and a `Content-Length`.
    ///
    /// - Parameters:
    ///   - data: The body.
    ///   - status: The status. Defaults to 200.
    ///   - headers: The header fields. Defaults to none, so there is no `Content-Type` either.
    public static func data(
        _ data: Data,
        status: Int = 200,
        headers: HTTPHeaders = HTTPHeaders()
    ) -> MockResponse {
        MockResponse(statusCode: status, headers: headers, body: .data(data))
    }

    /// Returns a response with bytes in chunks, without a `Content-Length`.
    ///
    /// - Parameters:
    ///   - chunks: The chunks of the body.
    ///   - status: The status. Defaults to 200.
    ///   - headers: The header fields. Defaults to none.
    public static func chunked(
        _ chunks: [Data],
        status: Int = 200,
        headers: HTTPHeaders = HTTPHeaders()
    ) -> MockResponse {
        MockResponse(statusCode: status, headers: headers, body: .chunks(chunks))
    }

    /// Returns a response with a string in UTF-8 and its `Content-Type`, unless `headers` contains one.
    public static func text(
        _ text: String,
        status: Int = 200,
        headers: HTTPHeaders = HTTPHeaders()
    ) -> MockResponse {
        typed("text/plain; charset=utf-8", Data(text.utf8), status, headers)
    }

    /// Returns a response with a dictionary, an array or a single value as JSON with sorted keys, and its
    /// `Content-Type`, unless `headers` contains one. A value that is not valid JSON returns a 500 whose body says so.
    public static func json(
        _ value: Any,
        status: Int = 200,
        headers: HTTPHeaders = HTTPHeaders()
    ) -> MockResponse {
        // On Apple platforms, the serialization would raise an exception that Swift cannot catch. The array makes a
        // single value valid.
        guard JSONSerialization.isValidJSONObject([value]) else {
            return unsendable("the value of type \(type(of: value)) is not valid JSON")
        }
        do {
            let options: JSONSerialization.WritingOptions = [.fragmentsAllowed, .sortedKeys, .withoutEscapingSlashes]
            let data = try JSONSerialization.data(withJSONObject: value, options: options)
            return typed("application/json", data, status, headers)
        } catch {
            return unsendable("the value of type \(type(of: value)) is not valid JSON: \(error)")
        }
    }

    /// Returns a response with a dictionary literal of mixed values as JSON; see the other `json` methods.
    public static func json(
        _ object: [String: Any],
        status: Int = 200,
        headers: HTTPHeaders = HTTPHeaders()
    ) -> MockResponse {
        json(object as Any, status: status, headers: headers)
    }

    /// Returns a response with a value as JSON, encoded by a `JSONEncoder` with sorted keys, and its `Content-Type`,
    /// unless `headers` contains one. A value that cannot be encoded returns a 500 whose body says so.
    public static func json<Value: Encodable>(
        _ value: Value,
        status: Int = 200,
        headers: HTTPHeaders = HTTPHeaders()
    ) -> MockResponse {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        do {
            return typed("application/json", try encoder.encode(value), status, headers)
        } catch {
            return unsendable("the value of type \(Value.self) cannot be encoded: \(error)")
        }
    }

    /// Returns the response that replaces a scripted one that cannot be sent.
    static func unsendable(_ reason: String) -> MockResponse {
        error("the scripted response cannot be sent: \(reason)", status: 500)
    }

    static func error(_ message: String, status: Int) -> MockResponse {
        json(["error": message] as [String: String], status: status)
    }

    private static func typed(
        _ contentType: String,
        _ data: Data,
        _ status: Int,
        _ headers: HTTPHeaders
    ) -> MockResponse {
        var headers = headers
        if headers["Content-Type"] == nil { headers["Content-Type"] = contentType }
        return MockResponse(statusCode: status, headers: headers, body: .data(data))
    }
}

extension MockResponse {
    /// Returns a response with `Content-Encoding: gzip`. The bytes are in that format, but not smaller.
    ///
    /// - Parameters:
    ///   - data: The decoded bytes.
    ///   - missing: The number of bytes cut from the end of the gzip stream, whose last 8 bytes are the checksum and
    ///     the length. The response is complete, and its `Content-Length` is correct. Defaults to 0.
    ///   - status: The status. Defaults to 200.
    ///   - headers: The header fields. Defaults to none.
    public static func gzip(
        _ data: Data,
        missing: Int = 0,
        status: Int = 200,
        headers: HTTPHeaders = HTTPHeaders()
    ) -> MockResponse {
        compressed(Gzip.stored(data).dropLast(max(missing, 0)), status, headers)
    }

    /// Returns a response with a small gzip stream that inflates to `count` zeros and has a correct checksum.
    ///
    /// - Parameters:
    ///   - count: The inflated size in bytes. About a 1,032nd of it is sent: 1 MB for 1 GiB. A value below 0 counts as
    ///     0.
    ///   - status: The status. Defaults to 200.
    ///   - headers: The header fields. Defaults to none.
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

extension MockResponse: CustomStringConvertible {
    /// The status code, and the properties that differ from their defaults, without the secrets that `Redaction`
    /// recognizes.
    public var description: String {
        String(
            listing: "MockResponse",
            [
                ("statusCode", statusCode), ("headers", headers.isEmpty ? nil : headers.map(\.description)),
                ("body", body == .data(Data()) ? nil : body), ("delay", delay == 0 ? nil : delay),
                ("fault", fault?.kind),
                ("interim", interim.isEmpty ? nil : interim.map(\.statusCode)),
                ("trailers", trailers.isEmpty ? nil : trailers.map(\.description)), ("bytesPerSecond", bytesPerSecond),
            ]
        )
    }
}
