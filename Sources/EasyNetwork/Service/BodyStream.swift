import Foundation

/// The response to one message as it arrives: the head, the body in chunks, the end.
///
/// ```swift
/// let body = BodyStream()
/// body.start(message, over: transport)
/// let head = try await body.head()
/// while let chunk = try await body.next() { try handle.write(contentsOf: chunk) }
/// ```
///
/// The exchange is paused while more than ``unreadLimit`` bytes are unread, and resumed below half of that. For a small
/// response, use ``collect(upTo:)``, which never pauses and wakes its task once.
final class BodyStream: Sendable {
    /// The result of ``collect(upTo:)``.
    struct Collected: Sendable {
        var head: TransportHead?
        var body = Data()
        /// Nil if the body has more bytes than the limit.
        var end: TransportEnd?
    }

    /// The numbers of bytes that a message and its response have transferred.
    struct Counts: Equatable, Sendable {
        /// The number of bytes of the message's body.
        var sent = 0
        /// The number of bytes of the response's body.
        var received = 0
        /// The head of the response; nil until it arrives.
        var head: TransportHead?
    }

    // An unsafe continuation avoids the cost of checks in each request. A waiter is resumed only where it is removed
    // from the state.
    private typealias Waiter = (event: BodyEvent, continuation: UnsafeContinuation<Void, Never>)
    /// The task in ``collect(upTo:_:)``. It receives the response, or the time for which it waits for the rest of an
    /// unwanted body.
    private typealias Collector = UnsafeContinuation<(response: Collected, patience: TimeInterval?), Never>

    /// What follows from a change of the state, to be done outside the lock.
    private struct Effects {
        var waiters: [Waiter] = []
        var collector: (task: Collector, result: (response: Collected, patience: TimeInterval?))?
        /// The exchange, which the stream no longer needs. It is also released outside the lock.
        var exchange: (any TransportExchange)?
        var isCut = false

        mutating func run() {
            if isCut { exchange?.cancel() }
            for waiter in waiters { waiter.continuation.resume() }
            if let (task, result) = collector.take() { task.resume(returning: result) }
        }
    }

    /// An event that a task waits for. The end of the stream ends every wait.
    private enum BodyEvent {
        case head
        case chunk
        case end
    }

    private struct State {
        /// Nil before the start and after the end.
        var exchange: (any TransportExchange)?
        var counts = Counts()
        var watcher: (@Sendable (Counts) -> Void)?
        var chunks: [Data] = []
        /// The unread bytes, instead of chunks, while the body is collected.
        var collected = Data()
        var unreadCount = 0
        var end: TransportEnd?
        var waiters: [Waiter] = []
        var collector: Collector?
        var isCollecting = false
        /// The number of bytes above which a body is not collected further.
        var collectLimit = Int.max
        var unreadLimit = BodyStream.unreadLimit
        /// The number of seconds to wait for the rest of an unwanted body, or infinity to wait as long as for a wanted
        /// one; nil if the body is wanted, and before the head.
        var patience: TimeInterval?
        /// The maximum number of bytes of the body, and the error if it has more.
        var maximum: (count: Int, error: NetworkError)?
        /// The first bytes of the body and their maximum number; nil if no listener wants them.
        var beginning: (bytes: Data, limit: Int)?
        /// Whether the exchange should be paused, and how often that has changed.
        var isPaused = false
        var pauseChangeCount = 0

        // Borrowing and inlining avoid a copy of the state.
        @inline(__always)
        borrowing func hasHappened(_ event: BodyEvent) -> Bool {
            if end != nil { return true }
            switch event {
            case .head: return counts.head != nil
            case .chunk: return !chunks.isEmpty
            case .end: return false
            }
        }

        /// Takes the collected response, unless the rest of its body is awaited for a limited time.
        mutating func takeCollected() -> (response: Collected, patience: TimeInterval?) {
            if end == nil, let patience { return (Collected(head: counts.head), patience) }
            unreadCount = 0
            return (Collected(head: counts.head, body: Swift.exchange(&collected, with: Data()), end: end), nil)
        }

        /// Takes the tasks whose event has happened.
        mutating func takeReady(_ effects: inout Effects) {
            let isEnough = if let patience { patience.isFinite } else { unreadCount > collectLimit }
            if let collector, isEnough || end != nil {
                effects.collector = (collector, takeCollected())
                self.collector = nil
            }
            guard !waiters.isEmpty else { return }
            for index in waiters.indices.reversed() where hasHappened(waiters[index].event) {
                effects.waiters.append(waiters.remove(at: index))
            }
        }

        mutating func append(_ data: Data) {
            guard !data.isEmpty else { return }
            if let limit = beginning?.limit, let kept = beginning?.bytes.count, kept < limit {
                beginning?.bytes.append(data.prefix(limit - kept))
            }
            unreadCount += data.count
            if isCollecting {
                if collected.isEmpty { collected = data } else { collected.append(data) }
            } else if !chunks.isEmpty, chunks[chunks.count - 1].count + data.count <= chunkSize {
                chunks[chunks.count - 1].append(data)
            } else {
                chunks.append(data)
            }
        }

        /// The reason why the response is incomplete; nil if it is complete, and before its end.
        var failure: NetworkError? { Collected(head: counts.head, end: end).failure }

        /// The bytes of the chunks, in one piece.
        var joinedChunks: Data { chunks.count == 1 ? chunks[0] : chunks.reduce(into: Data()) { $0 += $1 } }

        /// Ends the stream before its exchange.
        mutating func finish(_ end: TransportEnd) -> Effects {
            self.end = end
            var effects = Effects(exchange: exchange.take(), isCut: true)
            takeReady(&effects)
            return effects
        }

        /// Updates ``isPaused``.
        ///
        /// - Returns: Whether the caller must call `applyPause()` outside the lock.
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
    /// The maximum number of bytes that are read of an unwanted body: 64 KiB.
    static let decidedLimit = 65_536
    /// The size up to which chunks are joined, in bytes, so that the number of chunks is bounded as well.
    private static let chunkSize = 4_096

    private let state = Locked(State())
    /// Whether the stream was ended before its exchange. It is set under the lock.
    private let isCancelled = Flag()
    /// The request, which decides from the head of the response whether its body is wanted. If it is not, at most
    /// ``decidedLimit`` bytes of the body are read.
    private let request: RequestSnapshot?
    /// Whether the response is passed to a reader, which checks a part of a body (206) itself.
    private let isRead: Bool

    /// Creates a stream. Without a request, every body is wanted.
    init(_ request: RequestSnapshot? = nil, isRead: Bool = false) {
        (self.request, self.isRead) = (request, isRead)
    }

    /// Sends the message, unless this stream or the task is cancelled. Call it once, before any other method except
    /// ``cancel(keepingUnread:)``, ``watch(_:)`` and ``keepBeginning(_:)``.
    func start(_ message: TransportRequest, over transport: any NetworkTransport) {
        if Task.isCancelled { cancel() }
        guard !isCancelled.isSet else { return }
        var message = message
        // A cancellation after the check above, and before `start` returns, finds no exchange. The transport therefore
        // checks `isWanted`.
        message.isWanted = { [state] in state.withLock { $0.end == nil } }
        let exchange = transport.start(message) { event in self.receive(event) }
        let isPaused = state.withLock { state in
            // The exchange may already have ended.
            if state.end == nil { state.exchange = exchange }
            return state.isPaused
        }
        if isCancelled.isSet { exchange.cancel() }
        if isPaused { applyPause() }
    }

    /// Reports how many bytes have been transferred: at once, and with each event on the transport's thread. A second
    /// watcher replaces the first.
    func watch(_ watcher: @escaping @Sendable (Counts) -> Void) {
        state.discard { exchange(&$0.watcher, with: watcher) }
        var told: Counts?
        // Report again if an event has arrived meanwhile. Otherwise the slower of two threads could report outdated counts.
        while let counts = state.withLock({ $0.counts == told ? nil : $0.counts }) {
            watcher(counts)
            told = counts
        }
    }

    // MARK: - Reading

    /// Waits for the head.
    ///
    /// - Throws: The error of the exchange, or ``NetworkError/Code/cancelled`` as soon as the task or this stream is
    ///   cancelled.
    func head() async throws(NetworkError) -> TransportHead {
        await wait(for: .head)
        if let head = state.withLock({ $0.counts.head }) { return head }
        throw failure ?? NetworkError(code: .cancelled)
    }

    /// Returns the next bytes, at least one.
    ///
    /// Cancelling the task cancels the exchange and drops all unread bytes.
    ///
    /// - Returns: Nil at the end.
    /// - Throws: The error of the exchange, after all bytes that arrived before it.
    func next() async throws(NetworkError) -> Data? {
        while true {
            if Task.isCancelled { cancel(keepingUnread: false) }
            let (chunk, mustApply, failure, isOver) = state.withLock { state in
                guard !state.chunks.isEmpty else { return (Data?.none, false, state.failure, state.end != nil) }
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

    /// Returns the complete response, or its beginning if the body has more than `limit` bytes. In that case, the
    /// exchange is cancelled.
    ///
    /// The limit does not apply to an unwanted body, see ``decidedLimit``.
    ///
    /// This method does not throw, so that the head and the beginning of the body are available along with the error.
    /// Cancelling the task does not end it: the ``Call`` cancels this stream.
    ///
    /// - Parameter clock: The clock for a body that is awaited for a limited time.
    func collect(upTo limit: Int? = nil, _ clock: any NetworkClock = SystemClock()) async -> Collected {
        let (response, patience) = await withUnsafeContinuation { (collector: Collector) in
            collect(upTo: limit, for: collector)
        }
        if let patience { return await rest(within: patience, clock) }
        if response.end == nil { cancel() }
        return response
    }

    private func collect(upTo limit: Int?, for collector: Collector) {
        var mustApply = false
        var effects = state.withLock { state in
            if !state.chunks.isEmpty { (state.collected, state.chunks) = (state.joinedChunks, []) }
            (state.isCollecting, state.collectLimit, state.collector) = (true, max(0, limit ?? .max), collector)
            var effects = Effects()
            state.takeReady(&effects)
            mustApply = state.isPaused && state.mustApply()
            return effects
        }
        if mustApply { applyPause() }
        effects.run()
    }

    /// Returns the response when its unwanted body has ended, or after this number of seconds.
    @inline(never)
    private func rest(within patience: TimeInterval, _ clock: any NetworkClock) async -> Collected {
        let timer = clock.schedule(after: patience) { [weak self] in
            let message = "the body was not complete \(patience) seconds after its head"
            self?.finish(Self.cut(.timedOut, message)) { _ in true }
        }
        await occurrence(of: .end)
        timer.cancel()
        return state.withLock { $0.takeCollected().response }
    }

    /// The end of an unwanted body that is not read completely.
    private static func cut(_ code: NetworkError.Code, _ message: String) -> TransportEnd {
        var error = NetworkError(code: code, message: message)
        error.phase = .body
        return TransportEnd(error: error)
    }

    /// Returns when all bytes have arrived, whether they were read or not. Cancelling the task cancels the exchange.
    func waitForEnd() async {
        await wait(for: .end)
    }

    /// How the exchange ended, with trailers, metrics and error; nil before its end.
    var end: TransportEnd? { state.withLock { $0.end } }

    /// The reason why the response is incomplete; nil if it is complete, and before its end.
    var failure: NetworkError? { state.withLock { $0.failure } }

    /// The bytes that have arrived and were not read. They stay unread.
    var unread: Collected {
        state.withLock { state in
            let body = state.isCollecting ? state.collected : state.joinedChunks
            return Collected(head: state.counts.head, body: body, end: state.end)
        }
    }

    /// The number of bytes that have arrived and were not read.
    var unreadCount: Int { state.withLock { $0.unreadCount } }

    // MARK: - Bounds

    /// Keeps the first bytes of the body even after they are read. Call it before the start.
    func keepBeginning(_ limit: Int) {
        state.withLock { $0.beginning = (Data(), limit) }
    }

    /// The received beginning of the body; nil if it is not kept.
    var beginning: BodyExcerpt? {
        state.withLock { state in
            state.beginning.map { BodyExcerpt($0.bytes, count: state.counts.received, limit: $0.limit) }
        }
    }

    /// Ends the stream with `error` if the body has more than `count` bytes. Bytes received before the limit was
    /// exceeded can still be read.
    func limit(to count: Int, otherwise error: NetworkError) {
        finish(TransportEnd(error: error)) { state in
            state.maximum = (max(0, count), error)
            return state.counts.received > max(0, count)
        }
    }

    /// Changes the number of unread bytes above which the exchange is paused, for a reader that would otherwise be
    /// woken too often.
    func setUnreadLimit(_ limit: Int) {
        let mustApply = state.withLock { state in
            state.unreadLimit = limit
            return state.mustApply()
        }
        if mustApply { applyPause() }
    }

    /// Cancels the exchange. Later bytes are ignored. After the end of the exchange, only unread bytes are affected.
    ///
    /// - Parameter keepingUnread: Whether bytes that have arrived can still be read. Defaults to `true`.
    func cancel(keepingUnread: Bool = true) {
        let end = TransportEnd(error: NetworkError(code: .cancelled))
        var dropped: ([Data], Data) = ([], Data())
        finish(end) { state in
            guard !keepingUnread, state.unreadCount > 0 else { return true }
            swap(&dropped.0, &state.chunks)
            swap(&dropped.1, &state.collected)
            state.unreadCount = 0
            // An end that was not read yet is ignored, too.
            if state.end != nil { state.end = end }
            return true
        }
        withExtendedLifetime(dropped) {}
    }

    /// Ends the stream before its exchange, unless it has ended or the closure returns false.
    ///
    /// - Parameter change: A closure that changes the state before.
    private func finish(_ end: TransportEnd, _ change: (inout State) -> Bool) {
        var effects = state.withLock { state -> Effects? in
            guard change(&state), state.end == nil else { return nil }
            isCancelled.isSet = true
            return state.finish(end)
        }
        effects?.run()
    }

    // MARK: - Waiting

    /// Waits for an event. Cancelling the task cancels this stream.
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
                let isThere = state.hasHappened(event)
                if !isThere { state.waiters.append((event, continuation)) }
                return (isThere, state.mustApply())
            }
            if mustApply { applyPause() }
            if isThere { continuation.resume() }
        }
    }

    // MARK: - The exchange

    /// Handles an event of the transport, on its thread.
    private func receive(_ event: TransportEvent) {
        var watched: (watcher: @Sendable (Counts) -> Void, counts: Counts)?
        var mustApply = false
        var patience: TimeInterval?
        // A part of a body can omit its type (RFC 9110, section 15.3.7).
        if let request, case .head(let head) = event, !isRead || head.statusCode != 206 {
            patience = request.patience(for: head)
        }
        var effects = state.withLock { state -> Effects in
            var effects = Effects()
            guard state.end == nil else { return effects }
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
                    isCancelled.isSet = true
                    return state.finish(cut)
                }
                state.append(data)
            case .end(let end):
                state.end = end
                effects.exchange = state.exchange.take()
            }
            if let watcher = state.watcher { watched = (watcher, state.counts) }
            // `applyPause()` also runs for bytes that arrive during a pause, because another thread may just have
            // resumed the exchange. A body that is collected is never paused.
            mustApply = !state.isCollecting && (state.mustApply() || state.isPaused)
            state.takeReady(&effects)
            return effects
        }
        if let watched { watched.watcher(watched.counts) }
        effects.run()
        if mustApply { applyPause() }
    }

    /// Pauses or resumes the exchange, and repeats that if the wanted state has changed meanwhile. Otherwise the slower
    /// of two threads would decide. On the transport's thread, a pause takes effect at once.
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
    /// The reason why the response is incomplete; nil if it is complete, and before its end.
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

    /// Returns the response, even if it has no end because it was longer than the limit.
    func response(from url: URL) throws(NetworkError) -> NetworkResponse {
        if head == nil || end?.error != nil, var failure {
            failure.responseBody = head == nil ? nil : body
            throw failure
        }
        return NetworkResponse(head ?? TransportHead(statusCode: 0), body: body, url: url, end: end)
    }
}

/// Consumes an accepted body instead of collecting it.
///
/// Called before each message that the call sends, including retries and redirects. It can change the message, for
/// example by adding a range, and returns the closure that reads the response to that message.
typealias BodyConsumer = @Sendable (TransportRequest) async -> (message: TransportRequest, read: BodyReading)

/// Reads the response to one message.
///
/// - Parameter isAccepted: Whether status and media type are accepted, and the response is not a redirect that is
///   followed.
typealias BodyReading = @Sendable (_ head: TransportHead, _ isAccepted: Bool, _ body: BodyStream) async -> BodyEnd

/// The result of a ``BodyReading``.
enum BodyEnd: Sendable {
    /// The body is not consumed. The call collects it, for an error, a redirect or a challenge.
    case collect
    /// The body, or enough of it, is stored. The response counts as complete, without its body.
    case used
    /// The body does not fit the bytes stored earlier, which were dropped. The call sends the message again.
    case again
    /// - Parameters:
    ///   - hasProgressed: Whether bytes were received that need not be sent again. If so, the call resets its retry
    ///     count, within bounds.
    ///   - mayBeginAgain: Whether another response can replace this one.
    case failed(NetworkError, hasProgressed: Bool, mayBeginAgain: Bool)
}
