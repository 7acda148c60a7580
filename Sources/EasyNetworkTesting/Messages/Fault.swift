import Foundation

extension MockResponse {
    /// A failure that the client is to meet. A struct and not an enum, so that a new fault breaks no `switch`.
    ///
    /// An exchange can be broken off at any ``Place`` of it, in four ways; or the bytes of the answer are malformed:
    ///
    /// ```swift
    /// server.route("GET", "/lost") { _ in
    ///     MockResponse(body: .repeating(0, count: 1_000_000), fault: .reset(at: .responseBody(after: 500_000)))
    /// }
    /// server.route("POST", "/upload", fault: .close(at: .requestBody(after: 4_096)))
    /// server.failNextRequests(with: .reset(at: .requestStart))
    /// ```
    public struct Fault: Hashable, Sendable {
        /// How an exchange is broken off.
        enum Action: Hashable, Sendable {
            case stall
            case close
            case reset
            case halfOpen
            case refuse(statusCode: Int)
        }

        /// What is wrong with the bytes of the answer.
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
        /// Breaks the connection off in place of an answer: the client sees a TCP reset.
        public static let reset = reset(at: .responseStart)
        /// Neither reads nor writes any more, as a machine that has lost its power. See ``halfOpen(at:)``.
        public static let halfOpen = halfOpen(at: .responseStart)

        /// Sends nothing from there on. What the client still sends is read and thrown away; the connection stays open
        /// until the client closes it or the server stops.
        public static func stall(at place: Place) -> Fault { breaksOff(.stall, place) }

        /// Closes the connection there, in good order: the client sees the end of the stream (a FIN). The bytes cut off
        /// are announced as if they followed.
        public static func close(at place: Place) -> Fault { breaksOff(.close, place) }

        /// Breaks the connection off there: the client sees a TCP reset (RST). Bytes that the system has not passed on by
        /// then are lost, which happens to those beyond what the two buffers of the connection hold.
        public static func reset(at place: Place) -> Fault { breaksOff(.reset, place) }

        /// Neither reads nor writes from there on, and keeps the connection until the server stops, even when the client
        /// has closed it. A client that goes on sending fills the buffers of the connection and is then held up.
        public static func halfOpen(at place: Place) -> Fault { breaksOff(.halfOpen, place) }

        /// Answers with this status before the request is whole, and closes the connection: `413` to a body that is too
        /// long. What the client still sends is read for a while and thrown away.
        ///
        /// - Parameter count: as for ``Place/requestBody(after:)``.
        public static func refuse(_ statusCode: Int, afterBody count: Int = 0) -> Fault {
            breaksOff(.refuse(statusCode: statusCode), .requestBody(after: count))
        }

        /// Sends the head as if the whole body followed, then that many bytes of the body, and closes.
        ///
        /// - Parameter count: bytes of the body, chunk framing not counted. With a `Content-Length`, as many as there
        ///   are or more make a complete answer; a chunked body still lacks its last chunk.
        public static func truncate(after count: Int) -> Fault { close(at: .responseBody(after: count)) }

        /// Sends these bytes in place of the answer, head included. ``InMemoryTransport``, which reads no bytes, ends with
        /// `NetworkError.Code.badServerResponse`.
        ///
        /// - Parameter keepsConnection: whether the next request may come on the connection, which is closed otherwise.
        ///   Default false.
        public static func raw(_ bytes: Data, keepsConnection: Bool = false) -> Fault {
            Fault(kind: .raw(bytes, keepsConnection: keepsConnection))
        }
    }
}
