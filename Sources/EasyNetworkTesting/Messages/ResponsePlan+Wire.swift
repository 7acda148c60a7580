import EasyNetwork
import Foundation

extension ResponsePlan {
    /// Up to this many bytes are copied together, to go out in one system call; more are sent from where they are.
    private static let copyLimit = 65_536

    /// The answer as bytes, in runs.
    ///
    /// - Parameters:
    ///   - closing: whether the connection is closed afterwards; the client is then told.
    ///   - minorVersion: of the request. A client of HTTP/1.0 knows no chunks and gets the bare bytes, whose end is
    ///     that of the connection.
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
        default: return Data(text.utf8)
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
        fields.map { "\($0.name): \($0.value)\r\n" }.joined()
    }

    /// RFC 9110, section 15; a client ignores them, a person reading a trace does not.
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
