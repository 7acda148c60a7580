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
    func wire(closing: Bool, minorVersion: Int) -> [Data] {
        let framesChunks = isChunked && minorVersion > 0
        var segments: [Data] = []
        var current = Data(head(closing: closing, keepsTransferEncoding: minorVersion > 0).utf8)
        for piece in pieces {
            if framesChunks { current.append(contentsOf: "\(String(piece.promisedCount, radix: 16))\r\n".utf8) }
            if current.count + piece.data.count <= Self.copyLimit {
                current.append(piece.data)
            } else {
                if !current.isEmpty { segments.append(current) }
                segments.append(piece.data)
                current = Data()
            }
            if framesChunks && piece.data.count == piece.promisedCount { current.append(contentsOf: "\r\n".utf8) }
        }
        if framesChunks && isComplete { current.append(contentsOf: "0\r\n\r\n".utf8) }
        if !current.isEmpty { segments.append(current) }
        return segments
    }

    private func head(closing: Bool, keepsTransferEncoding: Bool) -> String {
        var text = "HTTP/1.1 \(statusCode) \(Self.reasons[statusCode] ?? "")\r\n"
        for field in headers {
            if !keepsTransferEncoding && field.name == "Transfer-Encoding" { continue }
            text += "\(field.name): \(field.value)\r\n"
        }
        if closing && !asksToClose { text += "Connection: close\r\n" }
        return text + "\r\n"
    }

    /// RFC 9110, section 15; a client ignores them, a person reading a trace does not.
    private static let reasons: [Int: String] = [
        100: "Continue", 101: "Switching Protocols", 103: "Early Hints",
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
