import Foundation

/// The speed at which a body is sent.
struct BodyPace: Sendable {
    /// The largest number of bytes of the next piece.
    let pieceSize: @Sendable () -> Int
    /// The seconds until the next piece, after one with this number of bytes.
    let delay: @Sendable (_ count: Int) -> TimeInterval
}

/// Reads a body in small pieces, with a pause before each but the first.
final class PacedReader: BodyReader {
    private typealias Completion = @Sendable (Result<Data?, NetworkError>) -> Void

    private struct State {
        /// The bytes that were read and not delivered yet.
        var rest = Data()
        /// The time at which the next piece may be delivered.
        var opens = -TimeInterval.infinity
        /// Receives the piece after the current pause.
        var waiting: Completion?
        var timer: (any ClockTimer)?
        var isCancelled = false
    }

    private let reader: any BodyReader
    private let pace: BodyPace
    private let clock: any NetworkClock
    private let state = Locked(State())

    init(_ reader: any BodyReader, _ pace: BodyPace, clock: any NetworkClock) {
        self.reader = reader
        self.pace = pace
        self.clock = clock
    }

    func next(_ completion: @escaping @Sendable (Result<Data?, NetworkError>) -> Void) {
        if let piece = takePiece() { return pause(before: piece, completion) }
        // Read before the pause, so that none follows the last piece.
        reader.next { result in
            guard case .success(let data?) = result else { return completion(result) }
            self.state.withLock { $0.rest = data }
            guard let piece = self.takePiece() else { return self.next(completion) }
            self.pause(before: piece, completion)
        }
    }

    func cancel() {
        let (waiting, timer) = state.withLock { state in
            state.isCancelled = true
            return (state.waiting.take(), state.timer.take())
        }
        timer?.cancel()
        reader.cancel()
        waiting?(.failure(NetworkError(code: .cancelled)))
    }

    private func takePiece() -> Data? {
        let size = max(1, pace.pieceSize())
        return state.withLock { state in
            guard !state.rest.isEmpty else { return nil }
            let piece = state.rest.prefix(size)
            state.rest = state.rest.dropFirst(piece.count)
            return piece
        }
    }

    private func pause(before piece: Data, _ completion: @escaping Completion) {
        let now = clock.now
        let (delay, isCancelled) = state.withLock { state in
            let delay = state.opens - now
            if delay > 0, !state.isCancelled { state.waiting = completion }
            return (delay, state.isCancelled)
        }
        if isCancelled { return completion(.failure(NetworkError(code: .cancelled))) }
        guard delay > 0 else { return hand(over: piece, completion) }
        let timer = clock.schedule(after: delay) {
            if let completion = self.state.withLock({ $0.waiting.take() }) { self.hand(over: piece, completion) }
        }
        let isWanted = state.withLock { state in
            if !state.isCancelled { state.timer = timer }
            return !state.isCancelled
        }
        if !isWanted { timer.cancel() }
    }

    private func hand(over piece: Data, _ completion: Completion) {
        let opens = clock.now + pace.delay(piece.count)
        state.withLock { $0.opens = opens }
        completion(.success(piece))
    }
}

extension TransportBody {
    /// The same bytes as a stream that is held back; the body itself when it has none.
    func paced(_ pace: BodyPace, clock: any NetworkClock) throws(NetworkError) -> TransportBody {
        guard let stream = try stream() else { return self }
        return .stream(
            TransportBodyStream(length: stream.length, isReplayable: stream.isReplayable) {
                PacedReader(try stream.reader(), pace, clock: clock)
            }
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
    /// A body in memory or from a file is then sent as a stream. ``URLSessionTransport`` writes streams to a file before
    /// it sends them, so that the delays apply to the writing and not to the sending.
    ///
    /// - Parameters:
    ///   - pieceSize: in bytes, at least 1.
    ///   - delay: the seconds between two pieces, not negative. Keep it below the idle deadline.
    ///   - clock: default ``SystemClock``.
    /// - Returns: a body that fails its request with ``NetworkError/Code/invalidRequest`` for other values.
    public func paced(pieceSize: Int, delay: TimeInterval, clock: any NetworkClock = SystemClock()) -> RequestBody {
        RequestBody { () throws(NetworkError) in
            guard pieceSize > 0, delay >= 0, delay.isFinite else {
                throw NetworkError(
                    code: .invalidRequest,
                    message: "a body is paced by pieces of at least 1 byte and a delay of 0 seconds or more"
                )
            }
            let (body, contentType) = try self.build()
            let pace = BodyPace(pieceSize: { pieceSize }, delay: { _ in delay })
            return (try body.paced(pace, clock: clock), contentType)
        }
    }
}
