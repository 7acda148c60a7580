import Foundation

/// What of a form is sent in one go.
enum MultipartSegment: Sendable {
    case bytes(Data)
    /// - Parameter part: for messages.
    case stream(TransportBodyStream, part: String)

    var length: Int? {
        switch self {
        case .bytes(let data): data.count
        case .stream(let stream, _): stream.length
        }
    }

    var isReplayable: Bool {
        if case .stream(let stream, _) = self { stream.isReplayable } else { true }
    }
}

/// One sending of a ``MultipartForm``: its segments, one after the other, each begun when it is its turn.
final class MultipartReader: BodyReader {
    private typealias Completion = @Sendable (Result<Data?, NetworkError>) -> Void

    /// A stream that is being read.
    private struct Current: Sendable {
        let stream: TransportBodyStream
        let part: String
        let reader: any BodyReader
        var count = 0
    }

    private struct State {
        /// Those that have not been begun, the last one first.
        var segments: [MultipartSegment]
        var current: Current?
        var isCancelled = false
    }

    private let state: Locked<State>

    init(_ segments: [MultipartSegment]) {
        state = Locked(State(segments: segments.reversed()))
    }

    func next(_ completion: @escaping @Sendable (Result<Data?, NetworkError>) -> Void) {
        do throws(NetworkError) {
            if let current = try begun() {
                current.reader.next { self.take($0, from: current, completion) }
            } else {
                try nextSegment(completion)
            }
        } catch {
            completion(.failure(error))
        }
    }

    func cancel() {
        let current = state.withLock { state in
            state.isCancelled = true
            return state.current.take()
        }
        current?.reader.cancel()
    }

    private func begun() throws(NetworkError) -> Current? {
        let (current, isCancelled) = state.withLock { ($0.current, $0.isCancelled) }
        if isCancelled { throw NetworkError(code: .cancelled) }
        return current
    }

    private func nextSegment(_ completion: @escaping Completion) throws(NetworkError) {
        switch state.withLock({ $0.segments.popLast() }) {
        case nil: completion(.success(nil))
        // Nothing would be taken for the end.
        case .bytes(let data) where data.isEmpty: next(completion)
        case .bytes(let data): completion(.success(data))
        case .stream(let stream, let part):
            let reader: any BodyReader
            do throws(NetworkError) {
                reader = try stream.reader()
            } catch {
                throw error.of(part)
            }
            let current = Current(stream: stream, part: part, reader: reader)
            let isWanted = state.withLock { state in
                if !state.isCancelled { state.current = current }
                return !state.isCancelled
            }
            if !isWanted { reader.cancel() }
            next(completion)
        }
    }

    private func take(_ result: Result<Data?, NetworkError>, from current: Current, _ completion: @escaping Completion)
    {
        do throws(NetworkError) {
            guard let piece = try result.get() else {
                if let error = current.stream.lengthError(current.count) { throw error }
                state.withLock { $0.current = nil }
                current.reader.cancel()
                return next(completion)
            }
            let count = current.count + piece.count
            // Sent to its end, it would push the other parts beyond the length of the whole.
            if count > current.stream.length ?? .max, let error = current.stream.lengthError(count) { throw error }
            state.withLock { $0.current?.count = count }
            completion(.success(piece))
        } catch {
            completion(.failure(error.of(current.part)))
        }
    }
}

extension NetworkError {
    /// The error with the name of the part in its message.
    fileprivate func of(_ part: String) -> NetworkError {
        var error = self
        if code != .cancelled { error.message = "\(part): \(message ?? code.description)" }
        return error
    }
}
