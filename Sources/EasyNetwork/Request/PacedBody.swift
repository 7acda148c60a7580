import Foundation

/// The bytes of a body in small pieces, with a pause before each but the first.
private struct PacedPieces: AsyncSequence, AsyncIteratorProtocol, Sendable {
    let reader: any BodyReader
    /// The largest number of bytes of the next piece.
    let pieceSize: @Sendable () -> Int
    /// The seconds until the next piece, after one with this number of bytes.
    let delay: @Sendable (_ count: Int) -> TimeInterval
    let clock: any NetworkClock
    /// The bytes that were read and not delivered yet.
    var rest = Data()
    /// The time at which the next piece may be delivered.
    var opens = -TimeInterval.infinity

    func makeAsyncIterator() -> PacedPieces { self }

    mutating func next() async throws -> Data? {
        // Read before the pause, so that none follows the last piece.
        guard let data = rest.isEmpty ? try await reader.next() : rest else { return nil }
        let pause = opens - clock.now
        if pause > 0 { await clock.sleep(pause) }
        try Task.checkCancellation()
        let piece = data.prefix(Swift.max(1, pieceSize()))
        rest = data.dropFirst(piece.count)
        opens = clock.now + delay(piece.count)
        return piece
    }
}

extension TransportBody {
    /// The same bytes as a stream that is held back; the body itself when it has none.
    ///
    /// - Parameters:
    ///   - pieceSize: returns the largest number of bytes of the next piece.
    ///   - delay: returns the seconds until the next piece, after one with this number of bytes.
    func paced(
        pieceSize: @escaping @Sendable () -> Int,
        delay: @escaping @Sendable (_ count: Int) -> TimeInterval,
        clock: any NetworkClock
    ) throws(NetworkError) -> TransportBody {
        guard let stream = try stream() else { return self }
        return .stream(
            TransportBodyStream(
                length: stream.length,
                isReplayable: stream.isReplayable,
                pieces: { PacedPieces(reader: try stream.reader(), pieceSize: pieceSize, delay: delay, clock: clock) }
            )
        )
    }
}

extension RequestBody {
    /// The body sent no faster than one piece for each delay, for a connection that more urgent work shares.
    ///
    /// ```swift
    /// let body = RequestBody.multipart(form).paced(pieceSize: 16_384, delay: 0.2)     // at most 80 KiB a second
    /// ```
    ///
    /// A body in memory or from a file is then sent as a stream. ``URLSessionTransport`` writes streams to a file
    /// before it sends them, so that the delays apply to the writing and not to the sending.
    ///
    /// - Parameters:
    ///   - pieceSize: in bytes, at least 1.
    ///   - delay: the seconds between two pieces, not negative. Keep it below the idle deadline.
    ///   - clock: default ``SystemClock``.
    /// - Returns: a body that fails its request with ``NetworkError/Code/invalidRequest`` for other values.
    public func paced(pieceSize: Int, delay: TimeInterval, clock: any NetworkClock = SystemClock()) -> RequestBody {
        var paced = RequestBody { (places) throws(NetworkError) in
            guard pieceSize > 0, delay >= 0, delay.isFinite else {
                throw .invalidRequest("a body is paced by pieces of at least 1 byte and a delay of 0 seconds or more")
            }
            let (body, contentType) = try self.build(places)
            return (try body.paced(pieceSize: { pieceSize }, delay: { _ in delay }, clock: clock), contentType)
        }
        paced.isGzipped = isGzipped
        return paced
    }
}
