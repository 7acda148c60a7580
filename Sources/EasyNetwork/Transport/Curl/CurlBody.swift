#if os(Linux) && canImport(CCurl)
import Foundation

/// The bytes of a request's body, read in pieces on the loop's thread.
///
/// The bytes of a stream are read or created on other threads. The body holds the piece that is being sent, and
/// requests the next piece when this one has been sent.
final class CurlBody {
    /// The data that arrives from other threads.
    private struct Inbox {
        /// The next piece, nil after the last; or an error.
        var arrived: Result<Data?, NetworkError>?
        var reader: (any BodyReader)?
        /// Whether the transmission has ended. Its data is then ignored.
        var isOver = false
    }

    /// The number of bytes to send, even if the source changes; nil if unknown.
    let count: Int64?
    /// The piece that is being sent; the complete data of a body in memory.
    private var piece = Data()
    /// The number of bytes that have been passed on.
    private var position: Int64 = 0
    /// The descriptor of the open file; -1 if there is none.
    private let descriptor: Int32

    private let stream: TransportBodyStream?
    private let wakeUp: @Sendable () -> Void
    /// The inbox of this transmission.
    private var inbox = Locked(Inbox())
    private var isAsking = false
    private var hasBegun = false
    /// Whether the stream has reported its end.
    private var isWhole = false

    /// Creates a body.
    ///
    /// - Parameter wakeUp: A closure to call on any thread when bytes are available again.
    /// - Returns: Nil if there is no body.
    init?(_ body: TransportBody, wakeUp: @escaping @Sendable () -> Void) throws(NetworkError) {
        self.wakeUp = wakeUp
        switch body {
        case .none:
            return nil
        case .data(let data):
            (count, piece, stream, descriptor) = (Int64(data.count), data, nil, -1)
        case .file(let file):
            (descriptor, count) = try Self.openFile(file)
            stream = nil
        case .stream(let stream):
            (count, self.stream, descriptor) = (stream.length.map { Int64($0) }, stream, -1)
        }
    }

    deinit {
        if descriptor >= 0 { close(descriptor) }
        endReading()
    }

    private static func openFile(_ file: URL) throws(NetworkError) -> (Int32, Int64) {
        do {
            let (descriptor, status) = try RegularFile.open(file.path, O_RDONLY, followsLinks: true)
            return (descriptor, Int64(status.st_size))
        } catch {
            let reason = String(cString: strerror(error.code.rawValue))
            let what = error.code == .EISDIR ? "is not a regular file" : "cannot be read: \(reason)"
            throw .invalidRequest("the body's file \(file.path) \(what)")
        }
    }

    /// Whether all bytes have been read.
    var isAtEnd: Bool { stream == nil ? position == count : isWhole && piece.isEmpty }

    /// Fills the buffer with the next bytes.
    ///
    /// - Returns: The number of bytes; 0 after the last; nil if none are available yet.
    func read(into buffer: UnsafeMutableRawBufferPointer) throws(NetworkError) -> Int? {
        if descriptor >= 0 { return try readFile(into: buffer) }
        guard let stream else {
            let wanted = min(buffer.count, piece.count - Int(position))
            let start = piece.startIndex + Int(position)
            piece.copyBytes(to: buffer, from: start..<(start + wanted))
            position += Int64(wanted)
            return wanted
        }
        if !isWhole && (piece.isEmpty || isHeld) { try takeIn(stream) }
        guard !piece.isEmpty, !isHeld else {
            if isAtEnd { return 0 }
            ask(stream)
            return nil
        }
        let count = min(buffer.count, piece.count)
        piece.copyBytes(to: buffer, count: count)
        piece = piece.dropFirst(count)
        position += Int64(count)
        return count
    }

    /// Starts the body again from its beginning.
    ///
    /// - Returns: False if that is impossible.
    func rewind() -> Bool {
        if let stream {
            guard stream.isReplayable || !hasBegun else { return false }
            endReading()
            inbox = Locked(Inbox())
            (piece, isAsking, isWhole) = (Data(), false, false)
        }
        position = 0
        return true
    }

    private func readFile(into buffer: UnsafeMutableRawBufferPointer) throws(NetworkError) -> Int {
        func failure(_ reason: String) -> NetworkError {
            .invalidRequest("the body's file cannot be read: \(reason)")
        }
        let end = count ?? 0
        let wanted = Int(min(Int64(buffer.count), end - position))
        let got = wanted > 0 ? pread(descriptor, buffer.baseAddress, wanted, off_t(position)) : 0
        guard got >= 0 else { throw failure(String(cString: strerror(errno))) }
        guard got > 0 || wanted == 0 else { throw failure("it became shorter while it was sent") }
        // Check the size before the last bytes are sent. After them, the server would take the beginning for the
        // complete file.
        if position + Int64(got) == end {
            var status = stat()
            guard fstat(descriptor, &status) == 0, Int64(status.st_size) <= end else {
                throw failure("it became longer while it was sent")
            }
        }
        position += Int64(got)
        return got
    }

    // MARK: - Streams

    /// Whether the piece that completes the length is held back until the stream reports its end. libcurl does not
    /// request more bytes after it.
    private var isHeld: Bool { !isWhole && position + Int64(piece.count) == count }

    private func takeIn(_ stream: TransportBodyStream) throws(NetworkError) {
        guard let arrived = inbox.withLock({ $0.arrived.take() }) else { return }
        isAsking = false
        let held = Int(position) + piece.count
        if let next = try arrived.get() {
            // If surplus bytes were sent, they would become the beginning of another message.
            let count = held + next.count
            if count > stream.length ?? .max, let error = stream.lengthError(count) { throw error }
            piece = next
        } else {
            if let error = stream.lengthError(held) { throw error }
            isWhole = true
        }
    }

    private func ask(_ stream: TransportBodyStream) {
        guard !isAsking else { return }
        isAsking = true
        hasBegun = true
        // User code creates the bytes, so it runs on the work queue.
        WorkQueue.shared.add { [inbox, wakeUp] in
            /// - Returns: False if the transmission has ended.
            @Sendable func update(_ change: (inout Inbox) -> Void) -> Bool {
                inbox.withLock { inbox in
                    guard !inbox.isOver else { return false }
                    change(&inbox)
                    return true
                }
            }
            @Sendable func arrived(_ result: Result<Data?, NetworkError>) {
                if update({ $0.arrived = result }) { wakeUp() }
            }
            // Don't start a reading that is no longer wanted: user code would run more often than the body is sent.
            var known: (any BodyReader)?
            guard update({ known = $0.reader }) else { return }
            do throws(NetworkError) {
                let reader = if let known { known } else { try stream.reader() }
                if update({ $0.reader = reader }) { reader.next(arrived) } else { reader.cancel() }
            } catch {
                arrived(.failure(error))
            }
        }
    }

    private func endReading() {
        let reader = inbox.withLock { inbox in
            inbox.isOver = true
            return inbox.reader.take()
        }
        if let reader { WorkQueue.shared.add { reader.cancel() } }
    }
}
#endif
