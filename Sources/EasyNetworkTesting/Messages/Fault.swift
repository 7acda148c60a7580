import Foundation

extension MockResponse {
    /// A failure for the client. It is a struct rather than an enum, so that adding a fault breaks no `switch`.
    ///
    /// A fault breaks off the exchange at a ``Place``, in one of several ways, or makes the bytes of the response
    /// malformed:
    ///
    /// ```swift
    /// server.route("GET", "/lost") { _ in
    ///     MockResponse(body: .repeating(0, count: 1_000_000), fault: .reset(at: .responseBody(after: 500_000)))
    /// }
    /// server.route("POST", "/upload", fault: .close(at: .requestBody(after: 4_096)))
    /// server.failNextRequests(with: .reset(at: .requestStart))
    /// ```
    public struct Fault: Hashable, Sendable {
        /// The way in which the exchange breaks off.
        enum Action: Hashable, Sendable {
            case stall
            case close
            case reset
            case halfOpen
            case refuse(statusCode: Int)
        }

        /// The error in the bytes of the response.
        enum Malformation: Hashable, Sendable {
            case statusLine(String)
            case noReasonPhrase
            case lineFeedsOnly
            case latin1Headers
            case manyHeaders(Int)
            case longHeader(Int)
            case contentLength(offBy: Int)
            case badChunk(after: Int)
        }

        enum Kind: Hashable, Sendable {
            case breaksOff(Action, Place)
            case malformed(Malformation)
            case raw(Data, keepsConnection: Bool)
        }

        let kind: Kind

        private static func breaksOff(_ action: Action, _ place: Place) -> Fault {
            Fault(kind: .breaksOff(action, place))
        }

        /// Never responds. The connection stays open until the client closes it or the server stops.
        public static let stall = stall(at: .responseStart)
        /// Closes the connection instead of sending a response.
        public static let close = close(at: .responseStart)
        /// Resets the connection instead of sending a response. The client sees a TCP reset.
        public static let reset = reset(at: .responseStart)
        /// Stops reading and writing, like a machine that lost power. See ``halfOpen(at:)``.
        public static let halfOpen = halfOpen(at: .responseStart)

        /// Sends nothing after this place. The server reads and discards further bytes from the client. The connection
        /// stays open until the client closes it or the server stops.
        public static func stall(at place: Place) -> Fault { breaksOff(.stall, place) }

        /// Closes the connection at this place in an orderly way. The client sees the end of the stream (a FIN). The
        /// head still announces the missing bytes.
        public static func close(at place: Place) -> Fault { breaksOff(.close, place) }

        /// Resets the connection at this place. The client sees a TCP reset (RST). Bytes in the buffers of the
        /// connection can be lost.
        public static func reset(at place: Place) -> Fault { breaksOff(.reset, place) }

        /// Stops reading and writing at this place, and keeps the connection until the server stops, even if the client
        /// closes it. A client that continues to send fills the buffers of the connection and then blocks.
        public static func halfOpen(at place: Place) -> Fault { breaksOff(.halfOpen, place) }

        /// Responds with this status before the request is complete, and closes the connection, such as `413` for a
        /// long body. The server reads further bytes from the client for a while and discards them.
        ///
        /// - Parameters:
        ///   - statusCode: The status of the response.
        ///   - count: See ``Place/requestBody(after:)``.
        public static func refuse(_ statusCode: Int, afterBody count: Int = 0) -> Fault {
            breaksOff(.refuse(statusCode: statusCode), .requestBody(after: count))
        }

        /// Sends the head for the whole body, then `count` bytes of the body, and closes the connection.
        ///
        /// - Parameter count: The number of bytes of the body, without the framing of chunks. With a `Content-Length`,
        ///   a count of at least the whole body makes the response complete. A chunked body lacks its last chunk.
        public static func truncate(after count: Int) -> Fault { close(at: .responseBody(after: count)) }

        /// Sends these bytes instead of the whole response. ``InMemoryTransport`` doesn't parse bytes, so there the
        /// exchange ends with `NetworkError.Code.badServerResponse`.
        ///
        /// - Parameters:
        ///   - bytes: The bytes of the response, including its head.
        ///   - keepsConnection: Whether the connection stays open for the next request. Defaults to `false`.
        public static func raw(_ bytes: Data, keepsConnection: Bool = false) -> Fault {
            Fault(kind: .raw(bytes, keepsConnection: keepsConnection))
        }
    }
}

extension MockResponse.Fault {
    private static func malformed(_ malformation: Malformation) -> MockResponse.Fault {
        MockResponse.Fault(kind: .malformed(malformation))
    }

    /// Sends this line, in UTF-8, instead of the status line; the rest of the response is correct. In
    /// ``InMemoryTransport``, the exchange ends with `NetworkError.Code.badServerResponse`.
    public static func statusLine(_ line: String) -> MockResponse.Fault { malformed(.statusLine(line)) }

    /// Sends `?!@ garbage` instead of the status line.
    public static let garbageStatusLine = statusLine("?!@ garbage")

    /// Ends the status line with the status code, without the required space after it (RFC 9112, section 4). For a
    /// status without a known reason phrase, `MockServer` normally sends only the space, which is valid.
    public static let noReasonPhrase = malformed(.noReasonPhrase)

    /// Ends the lines of the head with LF instead of CR LF, which a recipient may accept (RFC 9112, section 2.2).
    public static let lineFeedsOnly = malformed(.lineFeedsOnly)

    /// Sends the head in Latin-1 instead of UTF-8. A character beyond U+00FF becomes a question mark.
    public static let latin1Headers = malformed(.latin1Headers)

    /// Adds header fields: `X-Field-1: 1` and so on.
    ///
    /// - Parameter count: The number of fields. Defaults to 10,000.
    public static func manyHeaders(_ count: Int = 10_000) -> MockResponse.Fault {
        malformed(.manyHeaders(max(count, 0)))
    }

    /// Adds a header field `X-Long` with a long value.
    ///
    /// - Parameter count: The length of the value in bytes. Defaults to 1 MiB.
    public static func longHeader(_ count: Int = 1_048_576) -> MockResponse.Fault {
        malformed(.longHeader(max(count, 0)))
    }

    /// Sends a wrong `Content-Length`, even for a body that would be sent in chunks.
    ///
    /// - Parameter difference: The error in bytes. Above 0, the length is too long, and the connection closes after the
    ///   body; to keep the client waiting for the rest, use ``stall(at:)`` in the body. Below 0, the length is too
    ///   short, with a minimum of 0, and the rest of the body follows on the connection like the next response.
    public static func contentLength(offBy difference: Int) -> MockResponse.Fault {
        malformed(.contentLength(offBy: difference))
    }

    /// Sends a part of the body in chunks, then the line `zz` instead of the size of a chunk, and closes the
    /// connection.
    ///
    /// - Parameter count: The number of bytes before that line. Defaults to 0.
    public static func badChunk(after count: Int = 0) -> MockResponse.Fault {
        malformed(.badChunk(after: max(count, 0)))
    }
}

extension MockResponse.Fault {
    /// A place in an exchange. A count below 0 counts as 0.
    ///
    /// ```swift
    /// server.failNextRequests(with: .reset(at: .responseBody(after: 1_000)))
    /// ```
    public struct Place: Hashable, Sendable {
        enum Kind: Hashable, Sendable {
            case requestStart
            case requestBody(after: Int)
            case responseStart
            case responseHead(after: Int)
            case responseBody(after: Int)
            case responseEnd
        }

        let kind: Kind

        /// After the first byte of the request has arrived, before it is read. This place applies only to
        /// ``MockServer/failNextRequests(_:with:)``. For a route it means ``requestBody(after:)`` with 0, and as the
        /// fault of a response it means ``responseStart``.
        public static let requestStart = Place(kind: .requestStart)

        /// After the head of the request and `count` bytes of its body, or a shorter body, have been read. The server
        /// may have read more bytes with them. It sends an expected `100 Continue` only for a count above 0. As the
        /// fault of a response, this place means ``responseStart``.
        public static func requestBody(after count: Int) -> Place { Place(kind: .requestBody(after: max(count, 0))) }

        /// Instead of the response, after the request has been read and the delay has passed.
        public static let responseStart = Place(kind: .responseStart)

        /// After `count` bytes of the response's head, or after a shorter head. Interim responses before it are sent in
        /// full.
        public static func responseHead(after count: Int) -> Place { Place(kind: .responseHead(after: max(count, 0))) }

        /// After `count` bytes of the response's body, without the framing of chunks, or after a shorter body. A
        /// shorter body with a `Content-Length` is a complete response; a chunked body lacks its last chunk.
        public static func responseBody(after count: Int) -> Place { Place(kind: .responseBody(after: max(count, 0))) }

        /// After the last byte of the complete response.
        public static let responseEnd = Place(kind: .responseEnd)
    }

    /// Returns the action for a request after `bodyCount` bytes of its body have been read; `nil` if there is none yet.
    ///
    /// - Parameter isComplete: Whether the request has been read completely.
    func actionInRequest(bodyCount: Int, isComplete: Bool) -> Action? {
        guard case .breaksOff(let action, let place) = kind else { return nil }
        switch place.kind {
        case .requestStart: return action
        case .requestBody(let count): return isComplete || bodyCount >= count ? action : nil
        case .responseStart, .responseHead, .responseBody, .responseEnd: return nil
        }
    }

    /// The action before a request is read; `nil` if there is none.
    var actionAtRequestStart: Action? {
        guard case .breaksOff(let action, let place) = kind, place == .requestStart else { return nil }
        return action
    }
}

extension MockResponse.Fault.Place {
    /// Whether no byte of the response is sent.
    var isBeforeResponse: Bool {
        switch kind {
        case .requestStart, .requestBody, .responseStart: true
        case .responseHead, .responseBody, .responseEnd: false
        }
    }

    /// Whether the place is in the request, which the server might not have received.
    var isInRequest: Bool {
        switch kind {
        case .requestStart, .requestBody: true
        case .responseStart, .responseHead, .responseBody, .responseEnd: false
        }
    }

    /// Whether the client does not receive the head of the response.
    var isBeforeHead: Bool {
        if case .responseHead = kind { return true }
        return isBeforeResponse
    }
}
