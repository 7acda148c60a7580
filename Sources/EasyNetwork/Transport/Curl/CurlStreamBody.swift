#if os(Linux) && canImport(CCurl)
import Foundation

/// A body whose bytes others read or make, off the loop's thread: it holds the piece that is being sent, and asks for
/// the next one when that is out.
final class CurlStreamBody: CurlBody {
    /// What comes in from other threads.
    private struct Inbox {
        /// The next piece, nil after the last; an error when there is none.
        var arrived: Result<Data?, NetworkError>?
        var reader: (any BodyReader)?
        /// The number of this sending; what belongs to an earlier one is not wanted any more.
        var sending = 0
        var isOver = false
    }

    private let stream: TransportBodyStream
    private let wakeUp: @Sendable () -> Void
    private let inbox = Locked(Inbox())

    private var piece = Data()
    /// How many bytes have been handed on.
    private var position = 0
    private var isAsking = false
    private var hasBegun = false
    /// Whether the source has said that there is no more.
    private var isWhole = false

    /// - Parameter wakeUp: called on any thread when there are bytes again.
    init(_ stream: TransportBodyStream, wakeUp: @escaping @Sendable () -> Void) {
        self.stream = stream
        self.wakeUp = wakeUp
    }

    deinit {
        end()
    }

    var count: Int? { stream.length }
    var isAtEnd: Bool { isWhole && piece.isEmpty }

    /// Whether the piece that makes up the length waits until its source says that it was the last: libcurl would not
    /// ask for more.
    private var isHeld: Bool { !isWhole && position + piece.count == stream.length }

    func read(into buffer: UnsafeMutableRawBufferPointer) throws(NetworkError) -> Int? {
        if !isWhole && (piece.isEmpty || isHeld) { try takeIn() }
        guard !piece.isEmpty, !isHeld else {
            if isAtEnd { return 0 }
            ask()
            return nil
        }
        let count = min(buffer.count, piece.count)
        piece.copyBytes(to: buffer, count: count)
        piece = piece.dropFirst(count)
        position += count
        return count
    }

    func rewind() -> Bool {
        guard stream.isReplayable || !hasBegun else { return false }
        end()
        inbox.withLock { inbox in
            inbox.arrived = nil
            inbox.sending += 1
            inbox.isOver = false
        }
        piece = Data()
        position = 0
        isAsking = false
        isWhole = false
        return true
    }

    private func takeIn() throws(NetworkError) {
        guard let arrived = inbox.withLock({ $0.arrived.take() }) else { return }
        isAsking = false
        if let next = try arrived.get() {
            // Sent to its end, it would be the beginning of another message.
            let count = position + piece.count + next.count
            if count > stream.length ?? .max, let error = stream.lengthError(count) { throw error }
            piece = next
        } else {
            if let error = stream.lengthError(position + piece.count) { throw error }
            isWhole = true
        }
    }

    private func ask() {
        guard !isAsking else { return }
        isAsking = true
        hasBegun = true
        let sending = inbox.withLock { $0.sending }
        // Not here: it is the user's code that makes the bytes.
        WorkQueue.shared.async { [stream, inbox, wakeUp] in
            Self.ask(stream, inbox, sending, wakeUp)
        }
    }

    private static func ask(
        _ stream: TransportBodyStream,
        _ inbox: Locked<Inbox>,
        _ sending: Int,
        _ wakeUp: @escaping @Sendable () -> Void
    ) {
        @Sendable func arrived(_ result: Result<Data?, NetworkError>) {
            let isWanted = inbox.withLock { inbox in
                guard inbox.sending == sending, !inbox.isOver else { return false }
                inbox.arrived = result
                return true
            }
            if isWanted { wakeUp() }
        }
        let (isOver, known) = inbox.withLock { ($0.sending != sending || $0.isOver, $0.reader) }
        // What is not wanted any more is not begun: it would be the user's code once more than it was sent.
        guard !isOver else { return }
        do throws(NetworkError) {
            let reader = if let known { known } else { try stream.reader() }
            let isWanted = inbox.withLock { inbox in
                guard inbox.sending == sending, !inbox.isOver else { return false }
                inbox.reader = reader
                return true
            }
            if isWanted { reader.next(arrived) } else { reader.cancel() }
        } catch {
            arrived(.failure(error))
        }
    }

    /// What is being read or made is not wanted any more.
    private func end() {
        let reader = inbox.withLock { inbox in
            inbox.isOver = true
            return inbox.reader.take()
        }
        guard let reader else { return }
        WorkQueue.shared.async { reader.cancel() }
    }
}
#endif
