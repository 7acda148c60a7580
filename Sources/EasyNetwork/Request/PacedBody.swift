import Foundation

/// The bytes of a body in small pieces, with a pause before each piece except the first.
private struct PacedPieces: AsyncSequence, AsyncIteratorProtocol, Sendable {
    let reader: any BodyReader
    /// The maximum number of bytes in the next piece.
    let pieceSize: @Sendable () -> Int
    /// The seconds until the next piece, after a piece with this number of bytes.
    let delay: @Sendable (_ count: Int) -> TimeInterval
    let clock: any NetworkClock
    /// Bytes that were read but not delivered yet.
    var rest = Data()
    /// The time of the clock at which the next piece can be delivered, in seconds.
    var opens = -TimeInterval.infinity

    func makeAsyncIterator() -> PacedPieces { self }

    mutating func next() async throws -> Data? {
        // Read before the pause, so that no pause follows the last piece.
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
    /// Returns the same bytes as a paced stream, or the body itself if it has no bytes.
    ///
    /// - Parameters:
    ///   - pieceSize: returns the maximum number of bytes in the next piece.
    ///   - delay: returns the seconds until the next piece, after a piece with this number of bytes.
    func paced(
        pieceSize: @escaping @Sendable () -> Int,
        delay: @escaping @Sendable (_ count: Int) -> TimeInterval,
        clock: any NetworkClock
    ) throws(NetworkError) -> TransportBody {
        guard let stream = try stream() else { return self }
        let paced = TransportBodyStream(length: stream.length, isReplayable: stream.isReplayable) {
            PacedPieces(reader: try stream.reader(), pieceSize: pieceSize, delay: delay, clock: clock)
        }
        return .stream(paced)
    }
}

extension RequestBody {
    /// Returns the body, sent no faster than one piece for each delay. Use it on a connection that more urgent work
    /// shares.
    ///
    /// ```swift
    /// let body = RequestBody.multipart(form).paced(pieceSize: 16_384, delay: 0.2)     // at most 80 KiB a second
    /// ```
    ///
    /// Even a body in memory or from a file is then sent as a stream. ``URLSessionTransport`` writes a stream to a file
    /// before it sends it, so the delays apply to writing the file, not to sending it.
    ///
    /// - Parameters:
    ///   - pieceSize: the size of a piece in bytes, at least 1.
    ///   - delay: the seconds between two pieces, not negative. Keep it below the idle deadline.
    ///   - clock: the clock that measures the delays. Defaults to ``SystemClock``.
    /// - Returns: the paced body. With an invalid `pieceSize` or `delay`, its request fails with
    ///   ``NetworkError/Code/invalidRequest``.
    public func paced(pieceSize: Int, delay: TimeInterval, clock: any NetworkClock = SystemClock()) -> RequestBody {
        RequestBody(isGzipped: isGzipped) { (places) throws(NetworkError) in
            guard pieceSize > 0, delay >= 0, delay.isFinite else {
                throw .invalidRequest("pieceSize must be at least 1, and delay must be at least 0 seconds and finite")
            }
            let (body, contentType) = try build(places)
            return (try body.paced(pieceSize: { pieceSize }, delay: { _ in delay }, clock: clock), contentType)
        }
    }
}
