import Foundation

/// A body that is read or made while it is sent, in constant memory.
///
/// What makes it is called anew each time the message is sent, so that it can be sent again, unless it says that it
/// cannot (``isReplayable``):
///
/// ```swift
/// let body = TransportBodyStream(length: size) { InputStream(url: file) }
/// ```
///
/// It is asked for the next bytes only when there is room for them. It may be slow; the idle deadline of the exchange
/// counts while it is. While ``CurlTransport`` waits for them, it hears of a connection that the server closes without
/// an error as its answer only with the next bytes, or by that deadline.
public final class TransportBodyStream: Sendable {
    /// How many bytes it has. Other than that many end the exchange with ``NetworkError/Code/invalidRequest``. When it is
    /// nil, the default, HTTP/1.1 sends it in chunks (RFC 9112, section 7.1).
    public let length: Int?
    /// Whether it can be made again from its beginning. When it is false, no retry and no redirect sends it a second
    /// time; sent again nevertheless, it is ``NetworkError/Code/invalidRequest``.
    public let isReplayable: Bool
    private let makeReader: @Sendable () throws -> any BodyReader
    /// Whether it has been begun; only kept when that may happen once.
    private let hasBegun = Locked(false)

    /// A body from an input stream, which is opened, read and closed on a background queue of the package's.
    ///
    /// - Parameters:
    ///   - length: in bytes; default nil, unknown.
    ///   - isReplayable: default true; false for what is gone once it has been read.
    ///   - makeStream: called on a background queue, once for each time the body is sent, for a new stream each time: one
    ///     that was read before is ``NetworkError/Code/invalidRequest``. What it throws is ``NetworkError/underlying``;
    ///     nil, as `InputStream(url:)` may be, is an error too.
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

    /// A body from a producer, such as an `AsyncStream`, whose next piece is awaited when there is room for it.
    ///
    /// - Parameters:
    ///   - length: in bytes; default nil, unknown.
    ///   - isReplayable: default true; false for what is gone once it has been read.
    ///   - makePieces: called on a background queue, once for each time the body is sent. What it, or the sequence,
    ///     throws is ``NetworkError/underlying``. When the exchange ends before the sequence, the task that iterates
    ///     over it is cancelled.
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

    /// What is wrong with a body of this many bytes; nil when it is as long as it was said to be.
    package func lengthError(_ count: Int) -> NetworkError? {
        guard let length, length != count else { return nil }
        return NetworkError(
            code: .invalidRequest,
            message: "the body has \(count > length ? "more than" : "\(count) instead of") the \(length) bytes that it "
                + "was said to have"
        )
    }

    /// Begins the body. Not on a transport's thread: it calls what the user gave.
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
    /// Whether they are the same one.
    public static func == (one: TransportBodyStream, other: TransportBodyStream) -> Bool {
        one === other
    }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(ObjectIdentifier(self))
    }
}

extension NetworkError {
    /// What a body that cannot be made to its end means.
    static func body(_ error: any Error) -> NetworkError {
        .thrown(error, otherwise: .invalidRequest, prefix: "the body cannot be read: ")
    }
}
