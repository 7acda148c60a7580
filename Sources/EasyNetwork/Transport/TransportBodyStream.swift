import Foundation

/// A body that is read or created while it is sent, in constant memory.
///
/// The closure is called each time the message is sent, so the body can be sent again unless ``isReplayable`` is false:
///
/// ```swift
/// let body = TransportBodyStream(length: size) { InputStream(url: file) }
/// ```
///
/// A transport requests the next bytes when it has room for them. The idle deadline of the exchange continues
/// meanwhile. While ``CurlTransport`` waits for bytes, it notices that the server has closed the connection without an
/// error response only with the next bytes or at that deadline.
public final class TransportBodyStream: Sendable {
    /// The number of bytes. Any other number ends the exchange with ``NetworkError/Code/invalidRequest``. Defaults to
    /// `nil`: over HTTP/1.1 the body is sent in chunks (RFC 9112, section 7.1).
    public let length: Int?
    /// Whether the body can be restarted from its beginning. If false, no retry and no redirect sends it again, and an
    /// attempt to do so fails with ``NetworkError/Code/invalidRequest``. Defaults to `true`.
    public let isReplayable: Bool
    private let makeReader: @Sendable () throws -> any BodyReader
    /// Whether the body has been started. This is recorded only for a body that can be started only once.
    private let hasBegun = Locked(false)

    /// Creates a body from an input stream. The stream is opened, read and closed on a background queue.
    ///
    /// - Parameters:
    ///   - length: The length in bytes. Defaults to `nil`, for an unknown length.
    ///   - isReplayable: False for bytes that can be read only once. Defaults to `true`.
    ///   - makeStream: A closure that returns a new stream. It is called on a background queue, once each time the body
    ///     is sent. If it returns nil or a stream that was already read, the exchange ends with
    ///     ``NetworkError/Code/invalidRequest``. An error that it throws becomes ``NetworkError/underlying``.
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

    /// Creates a body from an asynchronous sequence. The next piece is awaited when there is room for it.
    ///
    /// - Parameters:
    ///   - length: The length in bytes. Defaults to `nil`, for an unknown length.
    ///   - isReplayable: False for bytes that can be read only once. Defaults to `true`.
    ///   - makePieces: A closure that returns the sequence. It is called on a background queue, once each time the body
    ///     is sent. An error that the closure or the sequence throws becomes ``NetworkError/underlying``. If the
    ///     exchange ends first, the iterating task is cancelled.
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

    /// Returns the error of a body with this number of bytes; nil if the length is correct.
    package func lengthError(_ count: Int) -> NetworkError? {
        guard let length, length != count else { return nil }
        let words = count > length ? "more than" : "\(count) instead of"
        return .invalidRequest("the body has \(words) the \(length) bytes of its declared length")
    }

    /// Starts the body. This calls user code, so it must never happen on a transport's thread.
    package func reader() throws(NetworkError) -> any BodyReader {
        guard isReplayable || !hasBegun.exchange(true) else {
            let fix = "create a new one to send it again"
            throw .invalidRequest("the body can be read only once, and has been read; \(fix)")
        }
        do {
            return try makeReader()
        } catch {
            throw .body(error)
        }
    }
}

extension TransportBodyStream: Hashable {
    /// Compares identities: returns whether both are the same object.
    public static func == (one: TransportBodyStream, other: TransportBodyStream) -> Bool {
        one === other
    }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(ObjectIdentifier(self))
    }
}

extension NetworkError {
    /// Returns the error of a body that cannot be read to its end.
    static func body(_ error: any Error) -> NetworkError {
        .thrown(error, otherwise: .invalidRequest, prefix: "the body cannot be read: ")
    }
}
