import Foundation

extension MockResponse {
    /// A failure for the client. It is a struct and not an enum, so that a new fault breaks no `switch`.
    ///
    /// An exchange breaks off at any ``Place``, in four ways, or the bytes of the answer are malformed:
    ///
    /// ```swift
    /// server.route("GET", "/lost") { _ in
    ///     MockResponse(body: .repeating(0, count: 1_000_000), fault: .reset(at: .responseBody(after: 500_000)))
    /// }
    /// server.route("POST", "/upload", fault: .close(at: .requestBody(after: 4_096)))
    /// server.failNextRequests(with: .reset(at: .requestStart))
    /// ```
    public struct Fault: Hashable, Sendable {
        /// The way in which an exchange breaks off.
        enum Action: Hashable, Sendable {
            case stall
            case close
            case reset
            case halfOpen
            case refuse(statusCode: Int)
        }

        /// The error in the bytes of the answer.
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

        /// Never answers. The connection stays open until the client closes it or the server stops.
        public static let stall = stall(at: .responseStart)
        /// Closes the connection in place of an answer.
        public static let close = close(at: .responseStart)
        /// Resets the connection in place of an answer: the client sees a TCP reset.
        public static let reset = reset(at: .responseStart)
        /// Stops reading and writing, like a machine without power. See ``halfOpen(at:)``.
        public static let halfOpen = halfOpen(at: .responseStart)

        /// Sends nothing after this place. Further bytes of the client are read and discarded; the connection stays
        /// open until the client closes it or the server stops.
        public static func stall(at place: Place) -> Fault { breaksOff(.stall, place) }

        /// Closes the connection at this place in an orderly way: the client sees the end of the stream (a FIN). The
        /// head still announces the missing bytes.
        public static func close(at place: Place) -> Fault { breaksOff(.close, place) }

        /// Resets the connection at this place: the client sees a TCP reset (RST). Bytes in the buffers of the
        /// connection may be lost.
        public static func reset(at place: Place) -> Fault { breaksOff(.reset, place) }

        /// Stops reading and writing at this place, and keeps the connection until the server stops, even if the client
        /// has closed it. A client that continues to send fills the buffers of the connection and then blocks.
        public static func halfOpen(at place: Place) -> Fault { breaksOff(.halfOpen, place) }

        /// Answers with this status before the request is complete, and closes the connection: `413` for a long body.
        /// Further bytes of the client are read for a while and discarded.
        ///
        /// - Parameters:
        ///   - statusCode: the status of the answer.
        ///   - count: see ``Place/requestBody(after:)``.
        public static func refuse(_ statusCode: Int, afterBody count: Int = 0) -> Fault {
            breaksOff(.refuse(statusCode: statusCode), .requestBody(after: count))
        }

        /// Sends the head of the whole body, then `count` bytes of the body, and closes the connection.
        ///
        /// - Parameter count: bytes of the body, without the framing of chunks. With a `Content-Length`, a count of the
        ///   whole body or more makes a complete answer; a chunked body lacks its last chunk.
        public static func truncate(after count: Int) -> Fault { close(at: .responseBody(after: count)) }

        /// Sends these bytes in place of the whole answer. ``InMemoryTransport``, which reads no bytes, ends with
        /// `NetworkError.Code.badServerResponse`.
        ///
        /// - Parameters:
        ///   - bytes: the bytes of the answer, its head included.
        ///   - keepsConnection: whether the connection stays open for the next request. Default false.
        public static func raw(_ bytes: Data, keepsConnection: Bool = false) -> Fault {
            Fault(kind: .raw(bytes, keepsConnection: keepsConnection))
        }
    }
}

extension MockResponse.Fault {
    private static func malformed(_ malformation: Malformation) -> MockResponse.Fault {
        MockResponse.Fault(kind: .malformed(malformation))
    }

    /// Sends this line, in UTF-8, in place of the status line; the rest of the answer is correct. ``InMemoryTransport``
    /// ends with `NetworkError.Code.badServerResponse`.
    public static func statusLine(_ line: String) -> MockResponse.Fault { malformed(.statusLine(line)) }

    /// Sends `?!@ garbage` in place of the status line.
    public static let garbageStatusLine = statusLine("?!@ garbage")

    /// Ends the status line with the status code, without the required space after it (RFC 9112, section 4). A status
    /// without a known reason phrase is sent with the space alone, which is valid.
    public static let noReasonPhrase = malformed(.noReasonPhrase)

    /// Ends the lines of the head with LF in place of CR LF, which a reader may accept (RFC 9112, section 2.2).
    public static let lineFeedsOnly = malformed(.lineFeedsOnly)

    /// Sends the head in Latin-1 in place of UTF-8; a character beyond U+00FF becomes a question mark.
    public static let latin1Headers = malformed(.latin1Headers)

    /// Adds header fields: `X-Field-1: 1` and so on.
    ///
    /// - Parameter count: the number of fields; default 10,000.
    public static func manyHeaders(_ count: Int = 10_000) -> MockResponse.Fault {
        malformed(.manyHeaders(max(count, 0)))
    }

    /// Adds a header field `X-Long` with a long value.
    ///
    /// - Parameter count: the length of the value in bytes; default 1 MiB.
    public static func longHeader(_ count: Int = 1_048_576) -> MockResponse.Fault {
        malformed(.longHeader(max(count, 0)))
    }

    /// Sends a wrong `Content-Length`, also for a body that would be sent in chunks.
    ///
    /// - Parameter difference: bytes. Above 0 the length is too long, and the connection closes after the body; use
    ///   ``stall(at:)`` in the body to keep the client waiting for the rest. Below 0 it is too short, down to a length
    ///   of 0, and the rest of the body follows on the connection like a next answer.
    public static func contentLength(offBy difference: Int) -> MockResponse.Fault {
        malformed(.contentLength(offBy: difference))
    }

    /// Sends a part of the body in chunks, then the line `zz` in place of the size of a chunk, and closes the
    /// connection.
    ///
    /// - Parameter count: the bytes before that line; default 0.
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

        /// After the first byte of the request has arrived, before it is read. It applies to
        /// ``MockServer/failNextRequests(_:with:)`` only; on a route it means ``requestBody(after:)`` with 0, and as
        /// the fault of an answer it means ``responseStart``.
        public static let requestStart = Place(kind: .requestStart)

        /// After the head of the request and `count` bytes of its body, or a shorter body, have been read. More bytes
        /// may have been read with them. An expected `100 Continue` is sent only for a count above 0. As the fault of
        /// an answer it means ``responseStart``.
        public static func requestBody(after count: Int) -> Place { Place(kind: .requestBody(after: max(count, 0))) }

        /// In place of the answer: after the request has been read and the delay has passed.
        public static let responseStart = Place(kind: .responseStart)

        /// After `count` bytes of the answer's head, or after a shorter head. Interim answers before it are sent in
        /// full.
        public static func responseHead(after count: Int) -> Place { Place(kind: .responseHead(after: max(count, 0))) }

        /// After `count` bytes of the answer's body, without the framing of chunks, or after a shorter body. The latter
        /// is a complete answer with a `Content-Length`; a chunked body lacks its last chunk.
        public static func responseBody(after count: Int) -> Place { Place(kind: .responseBody(after: max(count, 0))) }

        /// After the last byte of the complete answer.
        public static let responseEnd = Place(kind: .responseEnd)
    }

    /// The action for a request of which `bodyCount` bytes of the body have been read; nil for none yet.
    ///
    /// - Parameter isComplete: whether no more bytes follow.
    func actionInRequest(bodyCount: Int, isComplete: Bool) -> Action? {
        guard case .breaksOff(let action, let place) = kind else { return nil }
        switch place.kind {
        case .requestStart: return action
        case .requestBody(let count): return isComplete || bodyCount >= count ? action : nil
        case .responseStart, .responseHead, .responseBody, .responseEnd: return nil
        }
    }

    /// The action before a request is read; nil for none.
    var actionAtRequestStart: Action? {
        guard case .breaksOff(let action, let place) = kind, place == .requestStart else { return nil }
        return action
    }
}

extension MockResponse.Fault.Place {
    /// Whether no byte of the answer is sent.
    var isBeforeResponse: Bool {
        switch kind {
        case .requestStart, .requestBody, .responseStart: true
        case .responseHead, .responseBody, .responseEnd: false
        }
    }

    /// Whether the request may not have arrived.
    var isInRequest: Bool {
        switch kind {
        case .requestStart, .requestBody: true
        case .responseStart, .responseHead, .responseBody, .responseEnd: false
        }
    }

    /// Whether the client does not get the answer's head.
    var isBeforeHead: Bool {
        if case .responseHead = kind { return true }
        return isBeforeResponse
    }
}
