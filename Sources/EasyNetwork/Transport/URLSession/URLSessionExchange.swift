import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// One message on its way through a `URLSession`.
///
/// Its events go out on the session's delegate queue, which takes one thing at a time. It ends there once: when the task
/// completes, or as soon as it is cancelled or late, without waiting for the task.
final class URLSessionExchange: TransportExchange {
    /// The session's own time limits are never to be met: on Linux they count whole seconds, and time spent waiting.
    static let noTimeout: TimeInterval = 7 * 24 * 3_600

    /// Scheme, host and port.
    let origin: String

    private struct State {
        var events: (@Sendable (TransportEvent) -> Void)?
        /// Set under the lock before the task is cancelled; afterwards a handler of the task's stops the process on Linux.
        var isStopped = false
        var task: URLSessionTask?
        var watch: DeadlineWatch?
        var timer: (any ClockTimer)?
        var hasHead = false
        /// What was written of a stream, and who reads it.
        var spool: BodySpool?
        var spoolFile: URL?
        var begun: TimeInterval?
        var firstByte: TimeInterval?
        var decodedBody = DecodedBodyLimit()
        /// How much of the body has been sent.
        var sentCount: Int64 = 0
        /// What the session measured, on platforms where it does.
        var measured: TransportMetrics?
        #if canImport(Darwin)
        var isServerRefused = false
        #endif
        /// On Linux never.
        var isPaused = false
        /// Released at the end: an exchange keeps its transport, and so the session, alive while it goes on.
        var transport: URLSessionTransport?

        mutating func watch(_ deadlines: TransportDeadlines, now: TimeInterval) {
            var watch = DeadlineWatch(deadlines, now: now)
            if isPaused { watch.setPaused(true, now: now) }
            self.watch = watch
        }

        /// A session tells no more than this; nil when it may be any.
        func phase(of code: NetworkError.Code) -> TransportPhase? {
            if hasHead { return .body }
            switch code {
            case .invalidRequest: return nil
            case .cannotConnect, .notConnected: return .connect
            case .tls: return .tls
            default: return begun == nil ? .waiting : nil
            }
        }
    }

    private let request: TransportRequest
    private let queue: OperationQueue
    /// Never asked under the lock: it may be the user's.
    private let clock: any NetworkClock
    private let state: Locked<State>
    private let maximumDecodedBodyCount: Int?
    private let submitted: TimeInterval

    init(
        _ request: TransportRequest,
        maximumDecodedBodyCount: Int?,
        transport: URLSessionTransport,
        queue: OperationQueue,
        clock: any NetworkClock,
        events: @escaping @Sendable (TransportEvent) -> Void
    ) {
        self.request = request
        self.queue = queue
        self.clock = clock
        self.maximumDecodedBodyCount = maximumDecodedBodyCount
        submitted = clock.now
        origin = "\(request.url.scheme ?? "")://\(request.url.host ?? ""):\(request.url.port ?? 0)"
        state = Locked(State(events: events, transport: transport))
    }

    // MARK: - Beginning

    /// Writes a body that is made while it is sent to a file. The deadlines for silence and for the whole hold for
    /// that too, and begin anew with the sending.
    ///
    /// - Parameter isReady: called once, on any thread, unless the exchange ends before.
    func prepareBody(_ isReady: @escaping @Sendable () -> Void) {
        guard case .stream(let stream) = request.body else { return isReady() }
        let spool = BodySpool(stream)
        let deadlines = TransportDeadlines(idle: request.deadlines.idle, total: request.deadlines.total)
        let now = clock.now
        let isWanted = state.withLock { state in
            if !state.isStopped {
                state.spool = spool
                state.watch(deadlines, now: now)
            }
            return !state.isStopped
        }
        guard isWanted else { return }
        checkDeadlines()
        spool.write(moved: noteActivity) { result in
            switch result {
            case .failure(let error):
                self.stop(error)
            case .success(let file):
                let isWanted = self.state.withLock { state in
                    state.spool = nil
                    // Waiting for a place is nobody's silence.
                    state.watch = nil
                    if !state.isStopped { state.spoolFile = file }
                    return !state.isStopped
                }
                if isWanted { isReady() } else { BodySpool.remove(file) }
            }
        }
    }

    /// Makes the task and starts it.
    ///
    /// - Returns: false when there is none: it cannot be made, or is not wanted any more. The place of the exchange is
    ///   free then; else the exchange gives it back at its end.
    func begin(in session: URLSession, register: (URLSessionTask) -> Void) -> Bool {
        guard !state.withLock({ $0.isStopped }) else { return false }
        let task: URLSessionTask
        do throws(NetworkError) {
            task = try makeTask(in: session)
        } catch {
            stop(error)
            return false
        }
        // Before anybody can cancel the task: its end takes the entry out again.
        register(task)
        var deadlines = request.deadlines
        // A session does not tell when there is a connection: any other moment would end answers that are only slow.
        deadlines.connect = nil
        let now = clock.now
        let isWanted = state.withLock { state in
            if !state.isStopped {
                state.task = task
                state.watch(deadlines, now: now)
                state.begun = now
            }
            return !state.isStopped
        }
        guard isWanted else {
            // A task that is neither started nor cancelled keeps its session from ever closing its connections.
            task.cancel()
            return false
        }
        task.resume()
        checkDeadlines()
        return true
    }

    private func makeTask(in session: URLSession) throws(NetworkError) -> URLSessionTask {
        try request.check()
        // Foundation would make credentials of a user and a password in it.
        var message = URLRequest(url: request.url.withoutUser, timeoutInterval: Self.noTimeout)
        message.httpMethod = request.method.rawValue
        message.httpShouldHandleCookies = false
        message.allowsCellularAccess = request.allowsCellularAccess
        #if canImport(Darwin)
        message.networkServiceType = request.networkServiceType.ofURLRequest
        #endif
        for field in request.headers where !field.isFraming {
            message.addValue(field.value, forHTTPHeaderField: field.name)
        }
        switch request.body {
        case .none:
            break
        case .data(let data):
            message.httpBody = data
        case .file(let url):
            // A directory would hang until the timeout.
            guard (try? url.resourceValues(forKeys: [.isRegularFileKey]))?.isRegularFile == true else {
                throw NetworkError(code: .invalidRequest, message: "the body's file \(url.path) is not a regular file")
            }
            return session.uploadTask(with: message, fromFile: url)
        case .stream:
            guard let file = state.withLock({ $0.spoolFile }) else { throw NetworkError(code: .cancelled) }
            return session.uploadTask(with: message, fromFile: file)
        }
        return session.dataTask(with: message)
    }

    // MARK: - What the session tells, on its delegate queue

    func received(_ response: URLResponse, proceed: (URLSession.ResponseDisposition) -> Void) {
        answer { isStopped in proceed(isStopped ? .cancel : .allow) }
        // On Linux interim answers are told of like final ones. 101 is the final one to whoever asked for nothing else.
        guard let response = response as? HTTPURLResponse,
            !(100..<200).contains(response.statusCode) || response.statusCode == 101
        else { return }
        let head = TransportHead(
            statusCode: response.statusCode,
            headers: HTTPHeaders(joined: response.allHeaderFields)
        )
        do throws(NetworkError) { try head.checkLength() } catch { return stop(error) }
        let now = clock.now
        let events = state.withLock { state -> (@Sendable (TransportEvent) -> Void)? in
            state.watch?.activity(now: now)
            // Apple's sessions tell of each part of multipart/x-mixed-replace as of an answer; its bytes are body here.
            guard !state.hasHead else { return nil }
            state.watch?.answered()
            state.hasHead = true
            state.firstByte = now
            state.decodedBody = DecodedBodyLimit(maximumDecodedBodyCount, headers: head.headers)
            #if canImport(Darwin)
            if state.isPaused { state.task?.suspend() }
            #endif
            return state.isStopped ? nil : state.events
        }
        events?(.head(head))
    }

    func received(_ data: Data) {
        let now = clock.now
        let (events, error) = state.withLock { state in
            state.watch?.activity(now: now)
            return (state.isStopped ? nil : state.events, state.decodedBody.take(data.count))
        }
        if let error { return stop(error) }
        if !data.isEmpty { events?(.body(data)) }
    }

    /// - Parameter count: of the body, in all.
    func sentBytes(_ count: Int64) {
        noteActivity()
        let events = state.withLock { state -> (@Sendable (TransportEvent) -> Void)? in
            // On Linux the same number comes several times.
            guard !state.isStopped, state.sentCount != count else { return nil }
            state.sentCount = count
            return state.events
        }
        if count > 0 { events?(.sent(Int(clamping: count))) }
    }

    private func noteActivity() {
        let now = clock.now
        state.withLock { $0.watch?.activity(now: now) }
    }

    /// Calls a completion handler of the session's. After a cancel it is told to give up on Apple's platforms, where a
    /// session waits for every handler, and is not called on Linux, where that would stop the process.
    ///
    /// The handler is called under the lock, so that a cancel comes either before it or after. It belongs to Foundation
    /// and only puts work on Foundation's queue.
    ///
    /// - Parameter handler: told whether the task has been cancelled.
    func answer(_ handler: (_ isStopped: Bool) -> Void) {
        state.withLock { state in
            #if canImport(Darwin)
            handler(state.isStopped)
            #else
            if !state.isStopped { handler(false) }
            #endif
        }
    }

    #if canImport(Darwin)
    /// The session calls it cancelled when a challenge is.
    func refuseServer(_ handler: () -> Void) {
        state.withLock { state in
            if !state.isStopped { state.isServerRefused = true }
            handler()
        }
    }

    func measured(_ metrics: TransportMetrics) {
        state.withLock { $0.measured = metrics }
    }
    #endif

    func completed(_ error: (any Error)?) {
        guard let stopped = markStopped() else { return }
        #if canImport(Darwin)
        if stopped.isServerRefused {
            let message = "the server's certificate is not among those that are trusted"
            return end(stopped, NetworkError(code: .tls, message: message, underlying: error))
        }
        #endif
        end(stopped, error.map { NetworkError(transport: $0, isSecure: request.url.isHTTPS, hasHead: stopped.hasHead) })
    }

    /// The whole answer is there, but the task would wait for credentials.
    func completedWithChallenge() {
        guard let stopped = markStopped() else { return }
        stopped.task?.cancel()
        end(stopped, nil)
    }

    // MARK: - Ending

    func cancel() {
        stop(NetworkError(code: .cancelled))
    }

    /// On Linux a session cannot hold a sender back, and a task that is suspended and resumed sends its request again.
    func pause() {
        #if canImport(Darwin)
        hold(true) { $0.suspend() }
        #endif
    }

    func resume() {
        #if canImport(Darwin)
        hold(false) { $0.resume() }
        #endif
    }

    #if canImport(Darwin)
    private func hold(_ isPaused: Bool, _ change: (URLSessionTask) -> Void) {
        let now = clock.now
        state.withLock { state in
            guard !state.isStopped, state.isPaused != isPaused else { return }
            state.isPaused = isPaused
            state.watch?.setPaused(isPaused, now: now)
            // Under the lock, so that two changes come in their order; it only tells Foundation's queue. One that has
            // not begun is held when its head comes.
            if let task = state.task, state.hasHead || !isPaused { change(task) }
        }
        if !isPaused { checkDeadlines() }
    }
    #endif

    func stop(_ error: NetworkError) {
        guard let stopped = markStopped() else { return }
        stopped.task?.cancel()
        queue.addOperation { self.end(stopped, error) }
    }

    /// - Returns: the state as it was; nil when somebody else was first.
    private func markStopped() -> State? {
        state.withLock { state in
            guard !state.isStopped else { return nil }
            let before = state
            state = State(isStopped: true)
            return before
        }
    }

    private func end(_ stopped: State, _ error: NetworkError?) {
        stopped.timer?.cancel()
        stopped.spool?.cancel()
        if let file = stopped.spoolFile { BodySpool.remove(file) }
        var error = error
        if let code = error?.code { error?.phase = stopped.phase(of: code) }
        stopped.events?(.end(TransportEnd(error: error, metrics: metrics(of: stopped))))
        if stopped.task != nil { stopped.transport?.leave(origin: origin) }
    }

    private func metrics(of stopped: State) -> TransportMetrics? {
        guard let begun = stopped.begun else { return nil }
        var metrics = stopped.measured ?? TransportMetrics(total: 0)
        metrics.total = clock.now - begun
        metrics.wait = begun - submitted
        if metrics.firstByte == nil { metrics.firstByte = stopped.firstByte.map { $0 - begun } }
        return metrics
    }

    private func checkDeadlines() {
        let now = clock.now
        let verdict = state.withLock { $0.watch?.verdict(now: now) ?? .never }
        switch verdict {
        case .never:
            break
        case .expired(let message):
            stop(NetworkError(code: .timedOut, message: message))
        case .checkAgain(let delay):
            let timer = clock.schedule(after: delay) { self.checkDeadlines() }
            // One timer at a time, whoever asks how many times.
            let unneeded = state.withLock { state in
                if state.isStopped { return timer as (any ClockTimer)? }
                defer { state.timer = timer }
                return state.timer
            }
            unneeded?.cancel()
        }
    }
}
