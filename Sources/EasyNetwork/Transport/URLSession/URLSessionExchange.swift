import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// An exchange over a `URLSession`.
///
/// Events are delivered on the session's serial delegate queue. The exchange ends once: when the task completes, or as
/// soon as the exchange is cancelled or late, without waiting for the task.
final class URLSessionExchange: TransportExchange {
    /// A timeout that never passes. On Linux a session counts whole seconds, and includes the wait for a connection.
    static let noTimeout: TimeInterval = 7 * 24 * 3_600

    /// Scheme, host and port.
    let origin: String

    private struct State {
        var events: (@Sendable (TransportEvent) -> Void)?
        /// Whether the exchange has stopped. It is set under the lock before the task is cancelled. On Linux, calling a
        /// handler of the task afterwards crashes the process.
        var isStopped = false
        var task: URLSessionTask?
        var watch: DeadlineWatch?
        var hasHead = false
        /// Whether the response has several parts, each of which the session reports with a head.
        var isInParts = false
        /// The task that writes the body's stream to a file.
        var spool: Task<Void, Never>?
        var spoolFile: URL?
        var begun: TimeInterval?
        var firstByte: TimeInterval?
        var decodedBodyLimit: DecodedBodyLimit?
        /// The length of the body's file when the task was created.
        var fileCount: Int?
        /// The number of bytes of the body that were sent.
        var sentCount: Int64 = 0
        /// The session's metrics, on platforms that have them.
        var measured: TransportMetrics?
        /// Whether the exchange is paused. Always false on Linux.
        var isPaused = false
        /// The transport, which keeps the session alive until the end.
        var transport: URLSessionTransport?

        mutating func watch(_ deadlines: TransportDeadlines, now: TimeInterval) {
            var watch = DeadlineWatch(deadlines, now: now)
            if isPaused { watch.setPaused(true, now: now) }
            self.watch = watch
        }

        /// Returns the phase, as far as a session reports it; nil if it is unknown.
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
    /// The clock. It must not be called under the lock, because it can be user code.
    let clock: any NetworkClock
    private let state: Locked<State>
    /// The time of the next check of the deadlines.
    private let alarm = Alarm()
    private let maximumDecodedBodyCount: Int?
    private let submitted: TimeInterval

    init(
        _ request: TransportRequest,
        _ transport: URLSessionTransport,
        events: @escaping @Sendable (TransportEvent) -> Void
    ) {
        self.request = request
        queue = transport.delegate.queue
        clock = transport.clock
        maximumDecodedBodyCount = transport.configuration.maximumDecodedBodyCount
        submitted = clock.now
        origin = "\(request.url.scheme ?? "")://\(request.url.host ?? ""):\(request.url.port ?? 0)"
        state = Locked(State(events: events, transport: transport))
    }

    // MARK: - Beginning

    /// Writes a stream to a file. The idle and the total deadline also apply to this, and begin again when the file is
    /// sent.
    ///
    /// - Parameter isReady: A closure to call once, on any thread, unless the exchange ends first.
    func prepareBody(_ isReady: @escaping @Sendable () -> Void) {
        guard case .stream(let stream) = request.body else { return isReady() }
        let deadlines = TransportDeadlines(idle: request.deadlines.idle, total: request.deadlines.total)
        let now = clock.now
        let isWanted = state.withLock { state in
            if !state.isStopped {
                state.watch(deadlines, now: now)
                // Starting the task under the lock is safe, because it only enqueues work.
                state.spool = stream.spool(moved: noteActivity) { self.spooled($0, isReady) }
            }
            return !state.isStopped
        }
        if isWanted { checkDeadlines() }
    }

    private func spooled(_ result: Result<URL, NetworkError>, _ isReady: () -> Void) {
        switch result {
        case .failure(let error):
            stop(error)
        case .success(let file):
            let isWanted = state.withLock { state in
                state.spool = nil
                // No deadline applies while the exchange waits for a place.
                state.watch = nil
                if !state.isStopped { state.spoolFile = file }
                return !state.isStopped
            }
            if isWanted { isReady() } else { try? FileManager.default.removeItem(at: file) }
        }
    }

    /// Creates the task and starts it.
    ///
    /// - Returns: False if there is no task. The caller must then free the exchange's place; otherwise the end of the
    ///   exchange frees it.
    func begin(in session: URLSession, register: (URLSessionTask) -> Void) -> Bool {
        guard !state.withLock({ $0.isStopped }) else { return false }
        let task: URLSessionTask
        do throws(NetworkError) {
            if request.isWanted?() == false { throw NetworkError(code: .cancelled) }
            task = try makeTask(in: session)
        } catch {
            stop(error)
            return false
        }
        // Register the task before it can be cancelled, because its end removes the entry.
        register(task)
        var deadlines = request.deadlines
        // A session does not report when the connection is established. Using any other moment would end slow
        // responses.
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
            // A task that is neither started nor cancelled keeps the session's connections open forever.
            task.cancel()
            return false
        }
        task.resume()
        checkDeadlines()
        return true
    }

    private func makeTask(in session: URLSession) throws(NetworkError) -> URLSessionTask {
        try request.check()
        // Foundation would derive credentials from a user and password in the URL.
        var message = URLRequest(url: request.url.withoutUser, timeoutInterval: Self.noTimeout)
        message.httpMethod = request.method.rawValue
        message.httpShouldHandleCookies = false
        message.allowsCellularAccess = request.allowsCellularAccess
        #if canImport(Darwin)
        message.networkServiceType = request.networkServiceType
        #endif
        for field in request.headers where !field.isFraming {
            message.addValue(field.value, forHTTPHeaderField: field.name)
        }
        // A file and a stream count as a body even if they are empty.
        let hasBody = request.body != .none && request.body != .data(Data())
        #if canImport(Darwin)
        // A session would end the request with −1103, "resource exceeds maximum size".
        guard request.method != .get || !hasBody else {
            let fix = "use another method, or send the values in the query"
            throw .invalidRequest("URLSession cannot send a body with GET; \(fix)")
        }
        #endif
        // A session would set the type of a form. This type has the same meaning as none (RFC 9110, section 8.3).
        if request.method == .post, hasBody, request.headers["Content-Type"] == nil {
            message.setValue("application/octet-stream", forHTTPHeaderField: "Content-Type")
        }
        switch request.body {
        case .none:
            break
        case .data(let data):
            message.httpBody = data
        case .file(let url):
            // With a directory, the task would hang until the timeout.
            guard (try? url.resourceValues(forKeys: [.isRegularFileKey]))?.isRegularFile == true else {
                throw .invalidRequest("the body's file \(url.path) is not a regular file")
            }
            let count = try request.body.length()
            state.withLock { $0.fileCount = count }
            return session.uploadTask(with: message, fromFile: url)
        case .stream:
            guard let file = state.withLock({ $0.spoolFile }) else { throw NetworkError(code: .cancelled) }
            return session.uploadTask(with: message, fromFile: file)
        }
        return session.dataTask(with: message)
    }

    // MARK: - Reports of the session, on its delegate queue

    func received(_ response: URLResponse, proceed: (URLSession.ResponseDisposition) -> Void) {
        answer { isStopped in proceed(isStopped ? .cancel : .allow) }
        // On Linux interim responses are reported like final ones. The client did not request 101, so it is final.
        guard let response = response as? HTTPURLResponse,
            !(100..<200).contains(response.statusCode) || response.statusCode == 101
        else { return }
        let fields = HTTPHeaders(joined: response.allHeaderFields)
        let head = TransportHead(statusCode: response.statusCode, headers: fields)
        do throws(NetworkError) { try head.checkLength() } catch { return stop(error) }
        let now = clock.now
        var isAnew = false
        let events = state.withLock { state -> (@Sendable (TransportEvent) -> Void)? in
            state.watch?.activity(now: now)
            // Apple's sessions report each part of multipart/x-mixed-replace as a response. Here its bytes are part of
            // the body.
            guard !state.hasHead else {
                isAnew = !state.isInParts
                return nil
            }
            state.watch?.answered()
            state.hasHead = true
            let type = head.headers["Content-Type"]?.lowercased() ?? ""
            state.isInParts = type.hasPrefix("multipart/x-mixed-replace")
            state.firstByte = now
            if head.hasContentCoding || head.hasTransferCoding {
                state.decodedBodyLimit = maximumDecodedBodyCount.map(DecodedBodyLimit.init)
            }
            #if canImport(Darwin)
            if state.isPaused { state.task?.suspend() }
            #endif
            return state.isStopped ? nil : state.events
        }
        // The session has restarted a suspended task. Its bytes would follow those that have already arrived.
        if isAnew {
            return stop(NetworkError(code: .connectionLost, message: "the session has restarted the request"))
        }
        events?(.head(head))
    }

    func received(_ data: Data) {
        let now = clock.now
        var failure: NetworkError?
        let events = state.withLock { state -> (@Sendable (TransportEvent) -> Void)? in
            state.watch?.activity(now: now)
            do throws(NetworkError) { try state.decodedBodyLimit?.take(data.count) } catch { failure = error }
            return state.isStopped ? nil : state.events
        }
        if let failure { return stop(failure) }
        if !data.isEmpty { events?(.body(data)) }
    }

    /// Notes that bytes of the body were sent.
    ///
    /// - Parameter count: The number of bytes of the body so far.
    func sentBytes(_ count: Int64) {
        noteActivity()
        let events = state.withLock { state -> (@Sendable (TransportEvent) -> Void)? in
            // On Linux the same number is reported several times.
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

    /// Calls a completion handler of the session. After a cancellation, the handler is still called on Apple platforms,
    /// to make the session give up, because a session waits for every handler. On Linux it is not called, because this
    /// would crash the process.
    ///
    /// The handler is called under the lock, so that a cancellation happens either before or after it. The handler
    /// belongs to Foundation and only enqueues work.
    ///
    /// - Parameter handler: A closure that receives whether the task was cancelled.
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
    func measured(_ metrics: TransportMetrics) {
        state.withLock { $0.measured = metrics }
    }
    #endif

    func completed(_ error: (any Error)?) {
        guard let stopped = markStopped() else { return }
        // This exchange did not cancel the task, because it would be stopped. The session cancels a task whose server
        // is refused, and others that wait for the same connection.
        if (error as? URLError)?.code == .cancelled,
            stopped.transport?.delegate.hasRefused(origin, since: submitted) == true
        {
            let message = "the server's certificate is not trusted"
            return end(stopped, NetworkError(code: .tls, message: message, underlying: error))
        }
        let isSecure = request.url.scheme?.lowercased() == "https"
        var failure = error.map { NetworkError(transport: $0, isSecure: isSecure, hasHead: stopped.hasHead) }
        // The file became longer, so the session has sent a part of it as if it was complete.
        if error == nil, let count = stopped.fileCount, (try? request.body.length()) ?? count > count {
            failure = .invalidRequest("the body's file cannot be read: it became longer while it was sent")
        }
        end(stopped, failure)
    }

    // MARK: - Ending

    func cancel() {
        stop(NetworkError(code: .cancelled))
    }

    /// Does nothing on Linux, where a task that is suspended and resumed sends its request again.
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
            // Suspend or resume under the lock, so that changes keep their order; this only enqueues work. Before the
            // head, the task is suspended when the head arrives.
            if let task = state.task, state.hasHead || !isPaused { change(task) }
        }
        if !isPaused { checkDeadlines() }
    }
    #endif

    /// Ends the exchange, and cancels its task.
    ///
    /// - Parameter error: The error; nil if the complete response has arrived.
    func stop(_ error: NetworkError?) {
        guard let stopped = markStopped() else { return }
        stopped.task?.cancel()
        queue.addOperation { self.end(stopped, error) }
    }

    /// Marks the exchange as stopped.
    ///
    /// - Returns: The previous state; nil if the exchange had already stopped.
    private func markStopped() -> State? {
        state.withLock { state in
            guard !state.isStopped else { return nil }
            let before = state
            state = State(isStopped: true)
            return before
        }
    }

    private func end(_ stopped: State, _ error: NetworkError?) {
        alarm.set(nil, clock) {}
        stopped.spool?.cancel()
        if let file = stopped.spoolFile { try? FileManager.default.removeItem(at: file) }
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

    /// Checks the deadlines, and schedules the next check.
    ///
    /// - Parameter due: The time when the timer for this check was due; nil if there was no timer.
    private func checkDeadlines(due: TimeInterval? = nil) {
        let now = clock.now
        if let due { state.withLock { $0.watch?.timerFired(due: due, now: now) } }
        do throws(NetworkError) {
            let delay = try state.withLock { $0.watch }?.timeLeft(now: now) ?? .infinity
            guard delay.isFinite else { return }
            alarm.set(now + delay, clock) { [weak self] in self?.checkDeadlines(due: now + delay) }
            // The exchange might have ended meanwhile.
            if state.withLock({ $0.isStopped }) { alarm.set(nil, clock) {} }
        } catch {
            stop(error)
        }
    }
}
