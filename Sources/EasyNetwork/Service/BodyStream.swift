import Foundation

/// The answer to one message as it comes: the head, the body in chunks, the end.
///
/// ```swift
/// let body = BodyStream()
/// body.start(message, over: transport)
/// let head = try await body.head()
/// while let chunk = try await body.next() { try handle.write(contentsOf: chunk) }
/// ```
///
/// The exchange is paused while more than ``unreadLimit`` bytes are unread, and resumed below half of that. A small
/// answer is read with ``collect(upTo:)`` instead, which never pauses and wakes its task once.
final class BodyStream: Sendable {
    /// The result of ``collect(upTo:)``.
    struct Collected: Sendable {
        var head: TransportHead?
        var body = Data()
        /// Nil when the body has more bytes than the limit.
        var end: TransportEnd?
    }

    /// The bytes that a message and its answer have moved.
    struct Counts: Equatable, Sendable {
        /// The bytes of the message's body.
        var sent = 0
        /// The bytes of the answer's body.
        var received = 0
        /// The head of the answer; nil before it has come.
        var head: TransportHead?
    }

    /// The effects of an early end, which are run outside the lock.
    private typealias Stopped = (exchange: (any TransportExchange)?, waiters: [Waiter])
    // Not checked, as that costs each request: a waiter is resumed where it leaves the state, and nowhere else.
    private typealias Waiter = (event: BodyEvent, continuation: UnsafeContinuation<Void, Never>)

    /// Which responses are decided by their heads, so that at most ``decidedLimit`` bytes of the body are read.
    ///
    /// - Returns: for how many seconds the rest of the body is awaited, infinity for as long as that of any other
    ///   response; nil when the body is wanted. Called on the transport's thread.
    typealias Decision = @Sendable (TransportHead) -> TimeInterval?

    /// An event that a task waits for. The end of the stream ends every wait.
    private enum BodyEvent {
        case head
        case chunk
        /// More unread bytes than this, or a body that is awaited for some seconds only, or the end.
        case all(limit: Int)
        case end
    }

    private struct State {
        /// Nil before the start and after the end.
        var exchange: (any TransportExchange)?
        var counts = Counts()
        var watcher: (@Sendable (Counts) -> Void)?
        /// The bytes that are not read yet.
        var chunks: [Data] = []
        var unreadCount = 0
        var end: TransportEnd?
        /// Whether the exchange did not end by itself.
        var isCancelled = false
        var waiters: [Waiter] = []
        var isCollecting = false
        var unreadLimit = BodyStream.unreadLimit
        /// See ``Decision``; nil before the head as well.
        var patience: TimeInterval?
        /// How many bytes the body may have, and the error if it has more.
        var maximum: (count: Int, error: NetworkError)?
        /// The first bytes of the body and their highest number; nil when no listener wants them.
        var beginning: (bytes: Data, limit: Int)?
        /// Whether the exchange is to be paused, and how often that has changed.
        var isPaused = false
        var pauseChangeCount = 0

        // Borrowing and inlined, since a call would be given a copy of the state.
        @inline(__always)
        borrowing func hasHappened(_ event: BodyEvent) -> Bool {
            if end != nil { return true }
            switch event {
            case .head: return counts.head != nil
            case .chunk: return !chunks.isEmpty
            case .all(let limit): return if let patience { patience.isFinite } else { unreadCount > limit }
            case .end: return false
            }
        }

        mutating func takeWaiters() -> [Waiter] {
            if end != nil || waiters.isEmpty { return waiters.take() }
            var taken: [Waiter] = []
            for index in waiters.indices.reversed() {
                let event = waiters[index].event
                if hasHappened(event) { taken.append(waiters.remove(at: index)) }
            }
            return taken
        }

        mutating func append(_ data: Data) {
            guard !data.isEmpty else { return }
            if let limit = beginning?.limit, let kept = beginning?.bytes.count, kept < limit {
                beginning?.bytes.append(data.prefix(limit - kept))
            }
            unreadCount += data.count
            let joins = isCollecting || (chunks.last.map { $0.count + data.count <= chunkSize } ?? false)
            if joins, !chunks.isEmpty { chunks[chunks.count - 1].append(data) } else { chunks.append(data) }
        }

        func collected(_ body: Data = Data()) -> Collected {
            Collected(head: counts.head, body: body, end: end)
        }

        /// Usually one chunk; several if some came before ``BodyStream/collect(upTo:)`` was called.
        var unread: Collected {
            collected(chunks.count == 1 ? chunks[0] : chunks.reduce(into: Data()) { $0 += $1 })
        }

        /// Ends the stream before its exchange.
        mutating func finish(_ end: TransportEnd) -> Stopped {
            self.end = end
            isCancelled = true
            return (exchange.take(), takeWaiters())
        }

        /// - Returns: whether the caller is to call `applyPause()` outside the lock.
        mutating func mustApply() -> Bool {
            let wasPaused = isPaused
            if isCollecting || unreadCount < unreadLimit / 2 {
                isPaused = false
            } else if unreadCount > unreadLimit {
                isPaused = true
            }
            if isPaused != wasPaused { pauseChangeCount += 1 }
            return isPaused != wasPaused
        }
    }

    /// The number of unread bytes above which the exchange is paused: 256 KiB.
    static let unreadLimit = 262_144
    /// The number of bytes that are read of a body that decides nothing: 64 KiB.
    static let decidedLimit = 65_536
    /// Smaller chunks are joined, so that their number is bounded as well.
    private static let chunkSize = 4_096

    private let state = Locked(State())
    private let decision: Decision?

    /// - Parameter decision: see ``Decision``. Default nil: every body is wanted.
    init(_ decision: Decision? = nil) {
        self.decision = decision
    }

    /// Sends the message, unless this stream or the task is cancelled. Call it once, before anything but
    /// ``cancel(keepingUnread:)`` and ``watch(_:)``.
    func start(_ message: TransportRequest, over transport: any NetworkTransport) {
        if Task.isCancelled { cancel() }
        guard !state.withLock({ $0.isCancelled }) else { return }
        var message = message
        // A cancel between this look and the return of the transport finds no exchange.
        message.isWanted = { [weak self] in self?.state.withLock { !$0.isCancelled } ?? false }
        let exchange = transport.start(message) { event in self.receive(event) }
        let (isCancelled, mustApply) = state.withLock { state in
            // It may have ended by now.
            if state.end == nil { state.exchange = exchange }
            return (state.isCancelled, state.isPaused)
        }
        if isCancelled { exchange.cancel() }
        if mustApply { applyPause() }
    }

    /// Tells how many bytes have been moved: at once, and on the transport's thread with each event. A second watcher
    /// replaces the first.
    func watch(_ watcher: @escaping @Sendable (Counts) -> Void) {
        let old = state.withLock { exchange(&$0.watcher, with: watcher) }
        withExtendedLifetime(old) {}
        var told: Counts?
        // Again if an event has come since: otherwise the slower of two threads would decide.
        while let counts = state.withLock({ $0.counts == told ? nil : $0.counts }) {
            watcher(counts)
            told = counts
        }
    }

    // MARK: - Reading

    /// The head, when it has come.
    ///
    /// - Throws: why there is none: the error of the exchange, or ``NetworkError/Code/cancelled`` as soon as the task
    ///   or this stream is cancelled.
    func head() async throws(NetworkError) -> TransportHead {
        await wait(for: .head)
        if let head = state.withLock({ $0.counts.head }) { return head }
        throw failure ?? NetworkError(code: .cancelled)
    }

    /// The next bytes, at least one.
    ///
    /// Cancelling the task cancels the exchange and drops all unread bytes.
    ///
    /// - Returns: nil at the end.
    /// - Throws: the error of the exchange, after all bytes that came before it.
    func next() async throws(NetworkError) -> Data? {
        while true {
            if Task.isCancelled { cancel(keepingUnread: false) }
            let (chunk, mustApply, failure, isOver) = state.withLock { state in
                guard !state.chunks.isEmpty else {
                    return (Data?.none, false, state.collected().failure, state.end != nil)
                }
                let chunk = state.chunks.removeFirst()
                state.unreadCount -= chunk.count
                return (chunk, state.mustApply(), nil, false)
            }
            if mustApply { applyPause() }
            if let chunk { return chunk }
            if let failure { throw failure }
            if isOver { return nil }
            await wait(for: .chunk)
        }
    }

    /// The whole answer, or its beginning when the body has more than `limit` bytes; the exchange is cancelled then.
    ///
    /// The limit does not count for a body that decides nothing: see ``Decision``.
    ///
    /// It throws nothing, so that the head and the beginning of the body stay known beside the error. It does not end
    /// with its task: the ``Call`` cancels this stream.
    ///
    /// - Parameter clock: for a body that is awaited for some seconds only.
    func collect(upTo limit: Int? = nil, _ clock: any NetworkClock = SystemClock()) async -> Collected {
        await occurrence(of: .all(limit: max(0, limit ?? .max)))
        if let collected = takeCollected() { return collected }
        let patience = state.withLock { $0.patience } ?? 0
        let timer = clock.schedule(after: patience) { [weak self] in
            guard let self else { return }
            let end = Self.cut(.timedOut, "the body was not complete \(patience) seconds after its head")
            conclude(state.withLock { $0.end == nil ? $0.finish(end) : nil })
        }
        await occurrence(of: .end)
        timer.cancel()
        return takeCollected() ?? Collected()
    }

    /// The end of a body that decides nothing, and is not read to its end.
    private static func cut(_ code: NetworkError.Code, _ message: String) -> TransportEnd {
        var error = NetworkError(code: code, message: message)
        error.phase = .body
        return TransportEnd(error: error)
    }

    /// - Returns: nil when the body is still awaited.
    private func takeCollected() -> Collected? {
        let collected = state.withLock { state -> Collected? in
            guard state.end != nil || state.patience == nil else { return nil }
            defer {
                state.chunks = []
                state.unreadCount = 0
            }
            return state.unread
        }
        if let collected, collected.end == nil { cancel() }
        return collected
    }

    /// Returns when all bytes have come, whether they were read or not. Cancelling the task cancels the exchange.
    func waitForEnd() async {
        await wait(for: .end)
    }

    /// How the exchange ended, with trailers, metrics and error; nil before its end.
    var end: TransportEnd? { state.withLock { $0.end } }

    /// Why the answer is not whole; nil when it is, and before its end.
    var failure: NetworkError? { state.withLock { $0.collected().failure } }

    /// The bytes that have come and were not read; they stay unread.
    var unread: Collected { state.withLock { $0.unread } }

    /// The number of bytes that have come and were not read.
    var unreadCount: Int { state.withLock { $0.unreadCount } }

    // MARK: - Bounds

    /// Keeps the first bytes of the body also when they have been read. Call it before the start.
    func keepBeginning(_ limit: Int) {
        state.withLock { $0.beginning = (Data(), limit) }
    }

    /// The received part of a body whose beginning is kept; nil when it is not.
    var beginning: BodyExcerpt? {
        state.withLock { state in
            state.beginning.map { BodyExcerpt($0.bytes, count: state.counts.received, limit: $0.limit) }
        }
    }

    /// Ends the stream with `error` when the body has more than `count` bytes. The bytes up to there can be read.
    func limit(to count: Int, otherwise error: NetworkError) {
        let stopped = state.withLock { state in
            state.maximum = (max(0, count), error)
            guard state.counts.received > max(0, count), state.end == nil else { return Stopped?.none }
            return state.finish(TransportEnd(error: error))
        }
        conclude(stopped)
    }

    /// Changes the number of unread bytes above which the exchange is paused, for a reader that would be woken too
    /// often.
    func setUnreadLimit(_ limit: Int) {
        let mustApply = state.withLock { state in
            state.unreadLimit = limit
            return state.mustApply()
        }
        if mustApply { applyPause() }
    }

    /// Cancels the exchange; later bytes are ignored. Does nothing after the end.
    ///
    /// - Parameter keepingUnread: whether bytes that have come can still be read. Default true.
    func cancel(keepingUnread: Bool = true) {
        let (stopped, dropped) = state.withLock { state -> (Stopped?, [Data]) in
            var dropped: [Data] = []
            if !keepingUnread, !state.chunks.isEmpty {
                swap(&dropped, &state.chunks)
                state.unreadCount = 0
                // An end that was not read yet is ignored too.
                if state.end != nil { state.end = TransportEnd(error: NetworkError(code: .cancelled)) }
            }
            guard state.end == nil else { return (nil, dropped) }
            return (state.finish(TransportEnd(error: NetworkError(code: .cancelled))), dropped)
        }
        withExtendedLifetime(dropped) {}
        conclude(stopped)
    }

    // MARK: - Waiting

    /// Cancels this stream with the task.
    private func wait(for event: BodyEvent) async {
        await withTaskCancellationHandler {
            await occurrence(of: event)
        } onCancel: {
            cancel()
        }
    }

    private func occurrence(of event: BodyEvent) async {
        await withUnsafeContinuation { continuation in
            let (isThere, mustApply) = state.withLock { state in
                if case .all = event { state.isCollecting = true }
                let isThere = state.hasHappened(event)
                if !isThere { state.waiters.append((event, continuation)) }
                return (isThere, state.mustApply())
            }
            if mustApply { applyPause() }
            if isThere { continuation.resume() }
        }
    }

    // MARK: - The exchange

    private func conclude(_ stopped: Stopped?) {
        guard let stopped else { return }
        stopped.exchange?.cancel()
        for waiter in stopped.waiters { waiter.continuation.resume() }
    }

    /// Called on the transport's thread.
    private func receive(_ event: TransportEvent) {
        // Released outside the lock.
        var exchange: (any TransportExchange)?
        var watched: (watcher: @Sendable (Counts) -> Void, counts: Counts)?
        var isCut = false
        var patience: TimeInterval?
        if let decision, case .head(let head) = event { patience = decision(head) }
        let (waiters, mustApply) = state.withLock { state -> ([Waiter], Bool) in
            guard state.end == nil else { return ([], false) }
            switch event {
            case .sent(let count): state.counts.sent = count
            case .head(let head):
                state.counts.head = head
                state.patience = patience
            case .body(let data):
                let left = Self.decidedLimit - state.counts.received
                state.counts.received += data.count
                var cut: TransportEnd?
                if let maximum = state.maximum, state.counts.received > maximum.count {
                    cut = TransportEnd(error: maximum.error)
                } else if state.patience != nil, data.count > left {
                    state.append(data.prefix(left))
                    cut = Self.cut(.bodyTooLong, "the body has more than \(Self.decidedLimit) bytes")
                }
                if let cut {
                    isCut = true
                    let stopped = state.finish(cut)
                    exchange = stopped.exchange
                    return (stopped.waiters, false)
                }
                state.append(data)
            case .end(let end):
                state.end = end
                exchange = state.exchange.take()
            }
            if let watcher = state.watcher { watched = (watcher, state.counts) }
            // Called again for bytes that come while the exchange is paused: another thread may just have resumed it.
            return (state.takeWaiters(), state.mustApply() || state.isPaused)
        }
        if isCut { exchange?.cancel() }
        withExtendedLifetime(exchange) {}
        if let watched { watched.watcher(watched.counts) }
        for waiter in waiters { waiter.continuation.resume() }
        if mustApply { applyPause() }
    }

    /// Pauses or resumes the exchange, and repeats that if the wanted state has changed in between: otherwise the
    /// slower of two threads would decide. On the transport's thread a pause takes effect at once.
    private func applyPause() {
        var told: Int?
        while let order = state.withLock({ state -> (exchange: any TransportExchange, pauses: Bool, change: Int)? in
            guard state.pauseChangeCount != told, let exchange = state.exchange else { return nil }
            return (exchange, state.isPaused, state.pauseChangeCount)
        }) {
            if order.pauses { order.exchange.pause() } else { order.exchange.resume() }
            told = order.change
        }
    }
}

extension BodyStream.Collected {
    /// Why the answer is not whole; nil when it is, or before the end.
    var failure: NetworkError? {
        guard let end else { return nil }
        guard var error = end.error else {
            guard head == nil else { return nil }
            return NetworkError(code: .badServerResponse, message: "the exchange ended without a response")
        }
        error.metrics = end.metrics
        if let head {
            error.statusCode = head.statusCode
            error.headers = head.headers
        }
        return error
    }

    /// The answer as a response, also when it has no end because it was longer than the limit.
    func response(from url: URL) throws(NetworkError) -> NetworkResponse {
        if var failure {
            failure.responseBody = head == nil ? nil : body
            throw failure
        }
        let head = head ?? TransportHead(statusCode: 0)
        var response = NetworkResponse(statusCode: head.statusCode, headers: head.headers, body: body, url: url)
        response.trailers = end?.trailers ?? HTTPHeaders()
        response.metrics = end?.metrics
        return response
    }
}

/// How a call uses an accepted body instead of collecting it.
///
/// Called before each message that the call sends, retries and redirects included. It may alter the message, by a range
/// for instance, and returns what reads the answer to that message.
typealias BodyConsumer = @Sendable (TransportRequest) async -> (message: TransportRequest, read: BodyReading)

/// Reads the answer to one message.
///
/// - Parameter isAccepted: whether status and media type are accepted, and it is no redirect that is followed.
typealias BodyReading = @Sendable (_ head: TransportHead, _ isAccepted: Bool, _ body: BodyStream) async -> BodyEnd

/// The result of a ``BodyReading``.
enum BodyEnd: Sendable {
    /// The body is not used: the call collects it, as an error, a redirect or a challenge.
    case collect
    /// The body is stored, or enough of it: the answer counts as complete, without its body.
    case used
    /// The body does not fit the bytes stored before, which were dropped: the call sends the message again.
    case again
    /// - Parameters:
    ///   - hasProgressed: whether bytes were gained that need not be sent again. Then the call resets its retry count,
    ///     within bounds.
    ///   - mayBeginAgain: whether another answer may replace this one.
    case failed(NetworkError, hasProgressed: Bool, mayBeginAgain: Bool)
}
