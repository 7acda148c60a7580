import Foundation

/// How a body is held back while it is handed out.
struct BodyPace: Sendable {
    /// How many bytes the next piece may have.
    let pieceSize: @Sendable () -> Int
    /// A piece of so many bytes is handed out: how many seconds later the next one may be.
    let delay: @Sendable (_ count: Int) -> TimeInterval
}

/// Hands a body out in small pieces, with a pause before each but the first.
final class PacedReader: BodyReader {
    private typealias Completion = @Sendable (Result<Data?, NetworkError>) -> Void

    private struct State {
        /// What has been read and not been handed out.
        var rest = Data()
        /// When the next piece may be handed out.
        var opens = -TimeInterval.infinity
        /// Whoever waits for the end of a pause.
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
    /// The same bytes as a stream that is held back.
    ///
    /// - Returns: itself when there are none.
    func paced(_ pace: BodyPace, clock: any NetworkClock) throws(NetworkError) -> TransportBody {
        guard let stream = try stream() else { return self }
        return .stream(
            TransportBodyStream(length: stream.length, isReplayable: stream.isReplayable) {
                PacedReader(try stream.reader(), pace, clock: clock)
            }
        )
    }

    private func stream() throws(NetworkError) -> TransportBodyStream? {
        switch self {
        case .none: return nil
        case .data(let data): return TransportBodyStream(length: data.count) { InputStream(data: data) }
        case .file(let file): return TransportBodyStream(length: try length()) { InputStream(url: file) }
        case .stream(let stream): return stream
        }
    }

    /// How many bytes it has; nil when nobody knows.
    ///
    /// - Throws: ``NetworkError/Code/invalidRequest`` for a file that is none.
    func length() throws(NetworkError) -> Int? {
        switch self {
        case .none: 0
        case .data(let data): data.count
        case .file(let file): try BodyFile.length(of: file, role: "the body")
        case .stream(let stream): stream.length
        }
    }
}
