import EasyNetwork
import Foundation

/// A scripted response to one request: the header fields including the framing, and the bytes to send.
struct ResponsePlan {
    /// A part of the body. The size in a chunk's head can be larger than the part.
    struct Piece: Equatable {
        var promisedCount: Int
        var content: WireSegment
    }

    let statusCode: Int
    let headers: HTTPHeaders
    private(set) var pieces: [Piece]
    let isChunked: Bool
    /// The trailer fields after a complete chunked body.
    let trailers: HTTPHeaders
    let interim: [MockResponse.Interim]
    let malformation: MockResponse.Fault.Malformation?
    /// Whether the response is complete. If `false`, the client must notice missing bytes.
    private(set) var isComplete = true
    /// Whether the framing of the body is complete.
    private(set) var isFramedToEnd = true
    /// The number of bytes of the head that are sent; `nil` for the whole head.
    private(set) var headCount: Int?
    /// Whether the header fields announce that the connection closes.
    let asksToClose: Bool
    /// The unannounced action after the bytes; `nil` if the header fields decide.
    private(set) var ending: MockResponse.Fault.Action?
    let bytesPerSecond: Int?

    init(_ scripted: MockResponse, method: String) {
        let response = Self.problem(of: scripted).map(MockResponse.unsendable) ?? scripted
        statusCode = response.statusCode
        interim = response.interim
        bytesPerSecond = response.bytesPerSecond
        if case .malformed(let kind) = response.fault?.kind { malformation = kind } else { malformation = nil }

        let statusHasBody = statusCode >= 200 && statusCode != 204 && statusCode != 304
        let hasBody = statusHasBody && method != "HEAD"
        var pieces = Self.pieces(of: response.body)
        let count = pieces.reduce(0) { $0 + $1.content.count }
        var framesChunks = !response.trailers.isEmpty
        if case .chunks = response.body { framesChunks = true }
        if case .badChunk = malformation { framesChunks = true }
        var length = count
        if case .contentLength(let difference) = malformation {
            framesChunks = false
            let (sum, isOver) = count.addingReportingOverflow(difference)
            length = isOver ? Int.max : max(sum, 0)
        }
        if !hasBody { pieces = [] }
        self.pieces = pieces
        isChunked = hasBody && framesChunks
        trailers = isChunked ? response.trailers : HTTPHeaders()

        var headers = response.headers
        let scriptedLength = headers["Content-Length"]
        headers.remove("Content-Length")
        headers.remove("Transfer-Encoding")
        if let scriptedLength, statusCode == 304 || (statusHasBody && method == "HEAD") {
            // RFC 9110, section 8.6: this is the length of the body that a GET would receive.
            headers["Content-Length"] = scriptedLength
        } else if statusHasBody {
            if framesChunks {
                headers["Transfer-Encoding"] = "chunked"
            } else {
                headers["Content-Length"] = "\(length)"
            }
        }
        self.headers = Self.with(headers, malformation)
        asksToClose = headers.hasToken("close", in: "Connection")

        switch response.fault?.kind {
        case .breaksOff(let action, let place): breakOff(action, place.kind)
        case .malformed(.badChunk(let count)):
            keep(count, inWholeChunks: true)
            isComplete = !isChunked
            isFramedToEnd = !isChunked
            ending = .close
        case .malformed(.contentLength) where hasBody && length > count:
            isComplete = false
            ending = .close
        case .malformed, .raw, nil: break
        }
    }

    private mutating func breakOff(_ action: MockResponse.Fault.Action, _ place: MockResponse.Fault.Place.Kind) {
        ending = action
        switch place {
        case .requestStart, .requestBody, .responseStart, .responseEnd: break
        case .responseHead(let count):
            headCount = count
            pieces = []
            isComplete = false
            isFramedToEnd = false
        case .responseBody(let count):
            isComplete = !isChunked && count >= pieces.reduce(0) { $0 + $1.content.count }
            isFramedToEnd = false
            keep(count, inWholeChunks: false)
        }
    }

    private mutating func keep(_ count: Int, inWholeChunks: Bool) {
        var left = count
        var kept: [Piece] = []
        for piece in pieces where left > 0 {
            let content = piece.content.prefix(left)
            kept.append(Piece(promisedCount: inWholeChunks ? content.count : piece.promisedCount, content: content))
            left -= content.count
        }
        pieces = kept
    }

    private static func pieces(of body: MockResponse.Body) -> [Piece] {
        let segments: [WireSegment] =
            switch body {
            case .data(let data): [.bytes(data)]
            case .chunks(let chunks): chunks.map(WireSegment.bytes)
            case .repeating(let byte, let count): [.repeating(byte, count: max(count, 0))]
            }
        return segments.filter { $0.count > 0 }.map { Piece(promisedCount: $0.count, content: $0) }
    }

    private static func with(
        _ headers: HTTPHeaders,
        _ malformation: MockResponse.Fault.Malformation?
    ) -> HTTPHeaders {
        switch malformation {
        case .manyHeaders(let count) where count > 0:
            HTTPHeaders(
                Array(headers) + (1...count).map { HTTPHeaders.Field(name: "X-Field-\($0)", value: "\($0)") }
            )
        case .longHeader(let count):
            HTTPHeaders(
                Array(headers) + [HTTPHeaders.Field(name: "X-Long", value: String(repeating: "x", count: count))]
            )
        default: headers
        }
    }

    /// Returns the reason why a response would corrupt the stream; `nil` for a valid response.
    private static func problem(of response: MockResponse) -> String? {
        guard (100...999).contains(response.statusCode) else { return "\(response.statusCode) is not a status code" }
        for interim in response.interim where !(100...199).contains(interim.statusCode) {
            return "\(interim.statusCode) is not the status code of an interim response (100 to 199)"
        }
        for fields in [response.headers, response.trailers] + response.interim.map(\.headers) {
            for field in fields {
                guard HTTPSyntax.isToken(field.name.utf8) else {
                    return "\(field.name.debugDescription) is not a field name"
                }
                guard HTTPSyntax.isFieldValue(field.raw.utf8) else {
                    return "the value of \(field.name) has a control character in it"
                }
            }
        }
        return nil
    }
}

/// Bytes to send: data, or a repeated byte, which needs no memory.
enum WireSegment: Hashable, Sendable {
    case bytes(Data)
    case repeating(UInt8, count: Int)

    var count: Int {
        switch self {
        case .bytes(let data): data.count
        case .repeating(_, let count): count
        }
    }

    func prefix(_ length: Int) -> WireSegment {
        switch self {
        case .bytes(let data): .bytes(data.prefix(length))
        case .repeating(let byte, let count): .repeating(byte, count: min(count, length))
        }
    }

    /// Returns the bytes from an offset: the rest of the data, or at most `runLength` bytes of a repeated byte.
    func data(from offset: Int, runLength: Int = 65_536) -> Data {
        switch self {
        case .bytes(let data): data.dropFirst(offset)
        case .repeating(let byte, let count): Data(repeating: byte, count: max(0, min(count - offset, runLength)))
        }
    }
}

extension ResponsePlan {
    /// The largest number of bytes that are copied into one system call. Larger data is sent separately.
    private static let copyLimit = 65_536

    /// Returns the bytes of the response.
    ///
    /// - Parameters:
    ///   - closing: Whether the connection is closed afterwards, which a header field announces.
    ///   - minorVersion: The minor version of the request. An HTTP/1.0 client receives the bytes without chunks, up to
    ///     the end of the connection.
    func wire(closing: Bool, minorVersion: Int) -> [WireSegment] {
        let framesChunks = isChunked && minorVersion > 0
        var segments: [WireSegment] = []
        var current = minorVersion > 0 ? Data(interimHeads().utf8) : Data()
        let head = head(closing: closing, keepsTransferEncoding: minorVersion > 0)
        current.append(head.prefix(headCount ?? head.count))
        for piece in pieces {
            if framesChunks { current.append(contentsOf: "\(String(piece.promisedCount, radix: 16))\r\n".utf8) }
            if case .bytes(let data) = piece.content, current.count + data.count <= Self.copyLimit {
                current.append(data)
            } else {
                if !current.isEmpty { segments.append(.bytes(current)) }
                segments.append(piece.content)
                current = Data()
            }
            if framesChunks && piece.content.count == piece.promisedCount { current.append(contentsOf: "\r\n".utf8) }
        }
        if framesChunks { current.append(contentsOf: lastChunk().utf8) }
        if !current.isEmpty { segments.append(.bytes(current)) }
        return segments
    }

    private func lastChunk() -> String {
        if case .badChunk = malformation { return "zz\r\n" }
        return isFramedToEnd ? "0\r\n" + Self.lines(trailers) + "\r\n" : ""
    }

    private func interimHeads() -> String {
        interim.map { answer in
            Self.statusLine(answer.statusCode) + "\r\n" + Self.lines(answer.headers) + "\r\n"
        }.joined()
    }

    private func head(closing: Bool, keepsTransferEncoding: Bool) -> Data {
        var sent = headers
        if !keepsTransferEncoding { sent.remove("Transfer-Encoding") }
        var text = statusLine + "\r\n" + Self.lines(sent)
        if closing && !asksToClose { text += "Connection: close\r\n" }
        text += "\r\n"
        switch malformation {
        case .lineFeedsOnly: return Data(text.utf8.filter { $0 != 0x0D })
        case .latin1Headers: return Data(text.unicodeScalars.map { UInt8(exactly: $0.value) ?? UInt8(ascii: "?") })
        default: return Data(text.fieldBytes)
        }
    }

    private var statusLine: String {
        switch malformation {
        case .statusLine(let line): line
        case .noReasonPhrase: "HTTP/1.1 \(statusCode)"
        default: Self.statusLine(statusCode)
        }
    }

    private static func statusLine(_ statusCode: Int) -> String {
        "HTTP/1.1 \(statusCode) \(reasons[statusCode] ?? "")"
    }

    private static func lines(_ fields: HTTPHeaders) -> String {
        fields.map { "\($0.name): \($0.raw)\r\n" }.joined()
    }

    /// The reason phrases of RFC 9110, section 15, for people who read a trace.
    private static let reasons: [Int: String] = [
        100: "Continue", 101: "Switching Protocols", 102: "Processing", 103: "Early Hints",
        200: "OK", 201: "Created", 202: "Accepted", 203: "Non-Authoritative Information", 204: "No Content",
        205: "Reset Content", 206: "Partial Content",
        300: "Multiple Choices", 301: "Moved Permanently", 302: "Found", 303: "See Other", 304: "Not Modified",
        307: "Temporary Redirect", 308: "Permanent Redirect",
        400: "Bad Request", 401: "Unauthorized", 403: "Forbidden", 404: "Not Found", 405: "Method Not Allowed",
        406: "Not Acceptable", 408: "Request Timeout", 409: "Conflict", 410: "Gone", 411: "Length Required",
        412: "Precondition Failed", 413: "Content Too Large", 415: "Unsupported Media Type",
        416: "Range Not Satisfiable", 417: "Expectation Failed", 422: "Unprocessable Content",
        425: "Too Early", 428: "Precondition Required", 429: "Too Many Requests",
        431: "Request Header Fields Too Large",
        500: "Internal Server Error", 501: "Not Implemented", 502: "Bad Gateway", 503: "Service Unavailable",
        504: "Gateway Timeout", 505: "HTTP Version Not Supported",
    ]
}
