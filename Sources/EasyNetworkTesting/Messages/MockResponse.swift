import EasyNetwork
import Foundation

/// The answer of a route: a status, header fields and a body, or a fault.
///
/// ```swift
/// server.route("GET", "/slow") { _ in
///     var response = MockResponse.text("late")
///     response.delay = 0.5
///     return response
/// }
/// ```
///
/// The header fields are sent as they are, except for those that frame the message: `Content-Length` and
/// `Transfer-Encoding` follow from the body. A scripted `Content-Length` stays in the answer to HEAD and in a 304. A
/// response that cannot be sent, for example because of a line break in a header field, becomes a 500 whose body gives
/// the reason.
public struct MockResponse: Sendable {
    /// The bytes of a body and their framing.
    ///
    /// ```swift
    /// server.route("GET", "/large") { _ in MockResponse(body: .repeating(0, count: 1_000_000_000)) }
    /// ```
    public enum Body: Hashable, Sendable {
        /// Sent with a `Content-Length`.
        case data(Data)
        /// Sent with `Transfer-Encoding: chunked`, one chunk for each element that is not empty.
        case chunks([Data])
        /// A repeated byte, sent with a `Content-Length`. The bytes are made while they are sent, so that a body of
        /// many gigabytes takes no memory. A count below 0 counts as 0.
        case repeating(UInt8, count: Int)
    }

    /// An answer before the final one (RFC 9110, section 15.2).
    ///
    /// ```swift
    /// let hints = MockResponse.Interim(103, headers: ["Link": "</style.css>; rel=preload"])
    /// server.route("GET", "/page") { _ in MockResponse(interim: [hints]) }
    /// ```
    public struct Interim: Hashable, Sendable {
        /// The status, from 100 to 199.
        public var statusCode: Int
        /// The header fields. Default none.
        public var headers: HTTPHeaders

        /// Creates an interim answer.
        public init(_ statusCode: Int, headers: HTTPHeaders = HTTPHeaders()) {
            self.statusCode = statusCode
            self.headers = headers
        }
    }

    /// The status, from 100 to 999. Default 200. An answer with 1xx, 204 or 304 and each answer to HEAD has no body.
    public var statusCode: Int
    /// The header fields. Default none. A `Connection: close` closes the connection after the answer.
    public var headers: HTTPHeaders
    /// The body. Default no bytes.
    public var body: Body
    /// The seconds between the closure's return and the first byte of the answer, or its fault. Default 0.
    public var delay: TimeInterval
    /// A failure for the client. Default nil.
    public var fault: Fault?
    /// Answers before this one, after the delay: 100, 102, 103. Default none. A client of HTTP/1.0 gets none (RFC 9110,
    /// section 15.2). ``InMemoryTransport`` ignores them, as transports do.
    public var interim: [Interim]
    /// The fields after the body, which is then sent in chunks. Default none. They are left out without a chunked body:
    /// for HEAD, a status without body, a client of HTTP/1.0, and in ``InMemoryTransport``.
    public var trailers: HTTPHeaders
    /// The highest speed of the answer, head included, in bytes per second; a value below 1 counts as 1. Default nil,
    /// as fast as the client reads. ``InMemoryTransport`` ignores it.
    public var bytesPerSecond: Int?

    /// Creates an answer. The defaults are those of the properties.
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
    /// An answer without body.
    public static func status(_ statusCode: Int, headers: HTTPHeaders = HTTPHeaders()) -> MockResponse {
        MockResponse(statusCode: statusCode, headers: headers)
    }

    /// An answer with a fault.
    public static func fault(_ fault: Fault) -> MockResponse {
        MockResponse(fault: fault)
    }

    /// Bytes with a `Content-Length`.
    ///
    /// - Parameters:
    ///   - data: the body.
    ///   - status: default 200.
    ///   - headers: default none, so that there is no `Content-Type` either.
    public static func data(
        _ data: Data,
        status: Int = 200,
        headers: HTTPHeaders = HTTPHeaders()
    ) -> MockResponse {
        MockResponse(statusCode: status, headers: headers, body: .data(data))
    }

    /// Bytes in chunks, without a `Content-Length`.
    ///
    /// - Parameters:
    ///   - chunks: the chunks of the body.
    ///   - status: default 200.
    ///   - headers: default none.
    public static func chunked(
        _ chunks: [Data],
        status: Int = 200,
        headers: HTTPHeaders = HTTPHeaders()
    ) -> MockResponse {
        MockResponse(statusCode: status, headers: headers, body: .chunks(chunks))
    }

    /// Text in UTF-8 with its `Content-Type`, unless `headers` has one.
    public static func text(
        _ text: String,
        status: Int = 200,
        headers: HTTPHeaders = HTTPHeaders()
    ) -> MockResponse {
        typed("text/plain; charset=utf-8", Data(text.utf8), status, headers)
    }

    /// A dictionary, an array or a single value as JSON with sorted keys and its `Content-Type`, unless `headers` has
    /// one. A value that is no JSON gives a 500 whose body says so.
    public static func json(
        _ value: Any,
        status: Int = 200,
        headers: HTTPHeaders = HTTPHeaders()
    ) -> MockResponse {
        // On Apple's platforms the serialization would raise an exception that Swift cannot catch. The array makes a
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

    /// A dictionary literal of mixed values as JSON; see the other `json`.
    public static func json(
        _ object: [String: Any],
        status: Int = 200,
        headers: HTTPHeaders = HTTPHeaders()
    ) -> MockResponse {
        json(object as Any, status: status, headers: headers)
    }

    /// A value as JSON, written by a `JSONEncoder` with sorted keys, and its `Content-Type`, unless `headers` has one.
    /// A value that cannot be encoded gives a 500 whose body says so.
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

    /// The answer in place of a scripted response that cannot be sent.
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
    /// Bytes with `Content-Encoding: gzip`, in that format but not smaller.
    ///
    /// - Parameters:
    ///   - data: the decoded bytes.
    ///   - missing: the number of bytes that are cut from the end of the gzip stream, whose last 8 are the checksum and
    ///     the length. The answer is complete and its `Content-Length` correct. Default 0.
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

    /// A small gzip stream that inflates to `count` zeros, with a correct checksum.
    ///
    /// - Parameters:
    ///   - count: the inflated size in bytes; about a 1,032th of it is sent, 1 MB for 1 GiB. A value below 0 counts as
    ///     0.
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
