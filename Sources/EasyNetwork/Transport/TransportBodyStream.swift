import Foundation

/// A body that is read or made while it is sent, in constant memory.
///
/// Its closure is called each time the message is sent, so it can be sent again unless ``isReplayable`` is false:
///
/// ```swift
/// let body = TransportBodyStream(length: size) { InputStream(url: file) }
/// ```
///
/// A transport asks for the next bytes when there is room for them. The idle deadline of the exchange keeps counting.
/// While ``CurlTransport`` waits for them, it notices that a server closes the connection without an error answer only
/// with the next bytes or by that deadline.
public final class TransportBodyStream: Sendable {
    /// The number of bytes. Any other number ends the exchange with ``NetworkError/Code/invalidRequest``. Default nil:
    /// over HTTP/1.1 the body is sent in chunks (RFC 9112, section 7.1).
    public let length: Int?
    /// Whether the body can be made again from its beginning. If false, no retry and no redirect sends it again; to
    /// start it again is ``NetworkError/Code/invalidRequest``. Default true.
    public let isReplayable: Bool
    private let makeReader: @Sendable () throws -> any BodyReader
    /// Whether the body has been begun; kept only if that may happen once.
    private let hasBegun = Locked(false)

    /// A body from an input stream, which is opened, read and closed on a background queue.
    ///
    /// - Parameters:
    ///   - length: In bytes. Default nil, unknown.
    ///   - isReplayable: False for bytes that are gone once they have been read. Default true.
    ///   - makeStream: Returns a new stream. Called on a background queue, once each time the body is sent. A stream
    ///     that was read before is ``NetworkError/Code/invalidRequest``, as is nil. An error it throws becomes
    ///     ``NetworkError/underlying``.
    public convenience init(
        length: Int? = nil,
        isReplayable: Bool = true,
        _ makeStream: @escaping @Sendable () throws -> InputStream?
    ) {
        self.init(length: length, isReplayable: isReplayable) {
            guard let stream = try makeStream() else { throw CocoaError(.fileReadUnknown) }
            return InputStreamReader(stream)
        }
    }

    /// A body from an asynchronous sequence, whose next piece is awaited when there is room for it.
    ///
    /// - Parameters:
    ///   - length: In bytes. Default nil, unknown.
    ///   - isReplayable: False for bytes that are gone once they have been read. Default true.
    ///   - makePieces: Returns the sequence. Called on a background queue, once each time the body is sent. An error
    ///     that it or the sequence throws becomes ``NetworkError/underlying``. If the exchange ends first, the
    ///     iterating task is cancelled.
    public convenience init<Pieces: AsyncSequence & Sendable>(
        length: Int? = nil,
        isReplayable: Bool = true,
        pieces makePieces: @escaping @Sendable () throws -> Pieces
    ) where Pieces.Element == Data {
        self.init(length: length, isReplayable: isReplayable) { PiecesReader(try makePieces()) }
    }

    init(length: Int?, isReplayable: Bool, reader makeReader: @escaping @Sendable () throws -> any BodyReader) {
        self.length = length
        self.isReplayable = isReplayable
        self.makeReader = makeReader
    }

    /// The error of a body with this many bytes; nil if the length is right.
    package func lengthError(_ count: Int) -> NetworkError? {
        guard let length, length != count else { return nil }
        return NetworkError(
            code: .invalidRequest,
            message: "the body has \(count > length ? "more than" : "\(count) instead of") the \(length) bytes that it "
                + "was said to have"
        )
    }

    /// Begins the body. Calls the user's code, so never on a transport's thread.
    package func reader() throws(NetworkError) -> any BodyReader {
        guard isReplayable || !hasBegun.exchange(true) else {
            throw NetworkError(
                code: .invalidRequest,
                message: "the body can be read once only, and has been; make a new one to send it again"
            )
        }
        do {
            return try makeReader()
        } catch {
            throw .body(error)
        }
    }
}

extension TransportBodyStream: Hashable {
    /// Whether both are the same object.
    public static func == (one: TransportBodyStream, other: TransportBodyStream) -> Bool {
        one === other
    }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(ObjectIdentifier(self))
    }
}

extension NetworkError {
    /// The error of a body that cannot be read to its end.
    static func body(_ error: any Error) -> NetworkError {
        .thrown(error, otherwise: .invalidRequest, prefix: "the body cannot be read: ")
    }
}
