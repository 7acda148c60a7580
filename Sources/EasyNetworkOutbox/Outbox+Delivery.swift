import EasyNetwork
import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The way from the directory to the server.
extension Outbox {
    /// Jobs in the queue at once, so that their number is bounded.
    static let window = 32
    /// Between two readings of the directory without a sign of a change, in seconds.
    private static let longInterval: TimeInterval = 120
    /// The bounds of the delay after a failure, and of a delay that a server asks for, in seconds.
    private static let delays = RetryPolicy(
        maximumRetryCount: .max,
        baseDelay: 2,
        maximumDelay: 600,
        maximumRetryAfter: 86_400
    )

    /// Looks for what has changed since the last time. Not on a user's thread.
    func look() {
        let isReachable = service.configuration.settings.reachability?.status != .unreachable
        let (changes, now) = (folder.changes, clock.now)
        let look = state.withLock { state -> OutboxState.Event? in
            guard state.logic.isStarted else { return nil }
            let isDue = now >= state.nextLoad
            if isDue { state.nextLoad = now + Self.longInterval }
            // All that waits tries at once when the network is back.
            let isBack = isReachable && !state.wasReachable
            state.wasReachable = isReachable
            return .looked(changes: changes, isDue: isDue, isReachableAgain: isBack)
        }
        if let look { post(look) }
    }

    /// Hears of changes by others and of the network from now on, as long as the outbox is started.
    func listen() {
        let now = clock.now
        state.withLock { $0.nextLoad = now + Self.longInterval }
        #if os(Linux)
        // A program that is about to be suspended must not hear of the end of its own lock.
        if activity == nil, state.withLock({ $0.watch == nil }) {
            let watch = OutboxWatch(folder.root) { [weak self] in self?.look() }
            let old = state.withLock { state in state.watch == nil ? exchange(&state.watch, with: watch) : watch }
            withExtendedLifetime(old) {}
        }
        #endif
        guard let network = service.configuration.settings.reachability else { return }
        state.withLock { state in
            guard state.networkTask == nil else { return }
            state.networkTask = Task { [weak self] in
                for await status in network.statuses {
                    guard let self else { return }
                    // Before it may be back.
                    if status == .unreachable { self.state.withLock { $0.wasReachable = false } }
                    WorkQueue.shared.async { self.look() }
                }
            }
        }
    }

    /// Looks again when it is time.
    private func schedule() {
        let now = clock.now
        let (isWanted, time, old) = state.withLock { state -> (Bool, TimeInterval, (any ClockTimer)?) in
            #if os(Linux)
            let isTold = state.watch != nil
            #else
            let isTold = false
            #endif
            guard let next = state.logic.nextLook(at: now, isTold: isTold) else {
                return (false, 0, state.ticker.take()?.timer)
            }
            let time = min(next, state.nextLoad)
            if let ticker = state.ticker, ticker.time <= time { return (false, 0, nil) }
            return (true, time, state.ticker.take()?.timer)
        }
        old?.cancel()
        guard isWanted else { return }
        let timer = clock.schedule(after: max(0, time - now)) { [weak self] in
            guard let self else { return }
            state.withLock { if let ticker = $0.ticker, ticker.time <= time { $0.ticker = nil } }
            WorkQueue.shared.async { self.look() }
        }
        // Another thread may have been faster.
        let unneeded = state.withLock { state -> (any ClockTimer)? in
            if let ticker = state.ticker, ticker.time <= time { return timer }
            return exchange(&state.ticker, with: (timer, time))?.timer
        }
        unneeded?.cancel()
    }

    /// Takes an event to the ``OutboxState``, and does what that says.
    ///
    /// - Parameter onCallersThread: whether this is a user's thread, on which nothing is done that takes long.
    func post(_ event: OutboxState.Event, onCallersThread: Bool = false) {
        let now = clock.now
        for effect in state.withLock({ $0.logic.handle(event, at: now) }) {
            switch effect {
            case .ring: folder.ring()
            case .cancel(let id): state.withLock { $0.jobs[id] }?.cancel()
            case .unlock: unlock()
            case .tellFailed(let id, let delay): tellFailure(id, delay)
            case .tellLeft(let id, let verdict): tellEnd(id, verdict)
            case .drained(let number, let isRestarted):
                state.withLock { state in
                    if isRestarted, state.waits[number] != nil { state.restarted.insert(number) }
                    return state.waits[number]
                }?.end()
            case .stopped(let number): state.withLock { $0.waits.removeValue(forKey: number) }?.end()
            case .lock where !onCallersThread: lock()
            case .list where !onCallersThread: list()
            case .lock: WorkQueue.shared.async { self.lock() }
            case .list: WorkQueue.shared.async { self.list() }
            case .check(let name): WorkQueue.shared.async { self.check(name) }
            case .send(let name): WorkQueue.shared.async { self.send(name) }
            case .settle(let name, let verdict): WorkQueue.shared.async { self.settle(name, verdict) }
            }
        }
        schedule()
    }

    // MARK: - The lock

    private func lock() {
        guard hasActivity() else { return post(.locked(false)) }
        var lock = state.withLock { $0.missedLock.take() }
        let isTaken = folder.take(&lock)
        if isTaken { folder.sweep() }
        let isNew = state.withLock { state in
            guard isTaken, state.lock == nil else {
                if !isTaken { state.missedLock = lock }
                return false
            }
            state.lock = lock
            return true
        }
        if !isNew { endActivity() }
        post(.locked(isNew))
    }

    private func unlock() {
        // Before the activity ends.
        withExtendedLifetime(state.withLock { ($0.lock.take(), $0.missedLock.take()) }) {}
        endActivity()
    }

    /// Asks for an activity.
    ///
    /// - Returns: whether there is one, or none is needed.
    private func hasActivity() -> Bool {
        guard let activity else { return true }
        let (isGranted, asks) = state.withLock { state in
            switch state.activity {
            case .granted: return (true, false)
            case .asked: return (false, false)
            case .none:
                state.activity = .asked
                return (false, true)
            }
        }
        if asks { activity.begin { [weak self] isExpired in self?.activityChanged(isExpired: isExpired) } }
        return isGranted
    }

    private func activityChanged(isExpired: Bool) {
        guard isExpired else {
            let semaphore = DispatchSemaphore(value: 0)
            state.withLock { $0.activity = .granted(semaphore) }
            WorkQueue.shared.async {
                self.look()
                // Stopped meanwhile, or there is nothing to do any more.
                if self.state.withLock({ $0.lock == nil }) { self.endActivity() }
            }
            // The system's thread: the activity lasts as long as this closure.
            return semaphore.wait()
        }
        state.withLock { state in
            if case .asked = state.activity { state.activity = .none }
        }
        post(.suspend)
    }

    private func endActivity() {
        let activity = state.withLock { state -> ExpiringActivity.State in
            guard case .granted = state.activity else { return .none }
            return exchange(&state.activity, with: .none)
        }
        if case .granted(let semaphore) = activity { semaphore.signal() }
    }

    // MARK: - The directory

    private func list() {
        // Before the list: what changes meanwhile is a change afterwards.
        let changes = folder.changes
        let found = (try? folder.wholeList()).map { names in
            let unknown = state.withLock { state in names.filter { $0.hasDependencies && !state.logic.knows($0.id) } }
            var found = Dictionary(names.map { ($0, [UUID]()) }) { first, _ in first }
            // A damaged one is found when its turn comes.
            for name in unknown { found[name] = (try? folder.read(name))?.after ?? [] }
            return found
        }
        post(.listed(found, changes: changes))
    }

    /// Looks whether an entry that this one depends on is a dead letter.
    private func check(_ name: OutboxName) {
        let after: [UUID]?
        do throws(NetworkError) {
            after = try folder.read(name).after
        } catch {
            // What cannot be read is told when it is sent.
            after = error.code == .cancelled ? nil : []
        }
        let dead = after?.first(where: folder.hasReason)
        if let dead {
            let reason = Self.dependencyFailed(dead, folder.failure(of: dead))
            state.withLock { $0.reasons[name.id] = reason }
        }
        post(.checked(name.id, after: after, hasDeadLetter: dead != nil, changes: folder.changes))
    }

    /// Removes an entry, or makes it a dead letter.
    private func settle(_ name: OutboxName, _ verdict: OutboxState.Verdict) {
        do throws(NetworkError) {
            switch verdict {
            case .delivered: try folder.remove(name, from: .entries)
            case .dead:
                let reason = state.withLock { $0.reasons[name.id] }
                try folder.bury(name, reason ?? NetworkError(code: .refused))
            }
            post(.settled(name.id, retryDelay: nil))
        } catch {
            post(.settled(name.id, retryDelay: delay(of: name.id, after: error)))
        }
    }

    // MARK: - Sending

    private func send(_ name: OutboxName) {
        let operation: ServiceOperation
        do throws(NetworkError) {
            operation = try self.operation(for: name)
        } catch {
            // Its age, which is not the deadline of a request.
            return ended(name, error, isFinal: error.code == .timedOut || Self.isFinal(error))
        }
        operation.queuePriority = name.priority.operationPriority
        let isWanted = state.withLock { state in
            guard state.logic.wants(name.id) else { return false }
            state.jobs[name.id] = operation
            return true
        }
        guard isWanted else { return ended(name, NetworkError(code: .cancelled), isFinal: false) }
        tell(.sending(name.id))
        operation.whenFinished { [weak operation] in
            // The operation is kept while it runs.
            let error = operation.map { $0.error } ?? NetworkError(code: .cancelled)
            WorkQueue.shared.async { self.ended(name, error, isFinal: error.map(Self.isFinal) ?? false) }
        }
        queue.addOperation(operation)
    }

    private func operation(for name: OutboxName) throws(NetworkError) -> ServiceOperation {
        let record = try folder.read(name)
        if clock.date.timeIntervalSince(record.addedAt) > maximumAge {
            throw NetworkError(code: .timedOut, message: "not delivered within \(maximumAge) seconds, the maximum age")
        }
        let request = try request(in: record, of: name.type)
        let files = record.fileCount > 0 ? try folder.attachments(of: request.body, name) : [:]
        var options = request.options
        options.idempotencyKey = name.id.uuidString
        options.customURLRequest?.setValue(name.id.uuidString, forHTTPHeaderField: "Idempotency-Key")
        // Each entry is delivered.
        options.repeatPolicy = .allow
        if !files.isEmpty { options.body = request.body?.placed { [files] url in files[url.path] ?? url } }
        return operation(request, options)
    }

    private func operation<Request: APIRequest>(_ request: Request, _ options: RequestOptions) -> ServiceOperation {
        let operation = RequestOperation(request, options, of: service)
        // What a cache answers has not reached the server.
        operation.ignoresCache = true
        return operation
    }

    func request(in record: OutboxRecord, of type: String) throws(NetworkError) -> any APIRequest {
        guard let registered = state.withLock({ $0.types[type] }) else {
            throw NetworkError(code: .invalidRequest, message: "no type is registered as \"\(type)\"")
        }
        do {
            return try WorkQueue.userCode { try registered.decode(record.request, record.version) }
        } catch {
            throw NetworkError(
                code: .invalidRequest,
                message: "the entry cannot be decoded: \(error)",
                underlying: error
            )
        }
    }

    private func ended(_ name: OutboxName, _ error: NetworkError?, isFinal: Bool) {
        let job = state.withLock { $0.jobs.removeValue(forKey: name.id) }
        withExtendedLifetime(job) {}
        // An answer of which no item can be made was one: the server has accepted the request.
        let isAccepted = error?.code == .cannotParseResponse && 200..<300 ~= error?.statusCode ?? 0
        guard let error, !isAccepted else { return post(.ended(name.id, .verdict(.delivered))) }
        if error.code == .cancelled, !folder.has(name) { return post(.ended(name.id, .gone)) }
        guard !isFinal else {
            state.withLock { $0.reasons[name.id] = error }
            return post(.ended(name.id, .verdict(.dead)))
        }
        let delay = delay(of: name.id, after: error)
        post(.ended(name.id, .failed(delay: delay, isFirm: asked(error) > 0)))
    }

    /// What the server has asked to wait, in seconds.
    private func asked(_ error: NetworkError) -> TimeInterval {
        min(RetryPolicy.retryAfter(error.headers, now: clock.date) ?? 0, Self.delays.maximumRetryAfter)
    }

    private func delay(of id: UUID, after error: NetworkError) -> TimeInterval {
        let random = service.configuration.settings.random()
        let count = state.withLock { state in
            state.problems[id] = error
            return state.failures[id]?.count ?? 0
        }
        return max(Self.delays.backoff.delay(after: count, random: random), asked(error))
    }

    private func tellFailure(_ id: UUID, _ delay: TimeInterval) {
        let (error, old) = state.withLock { state in
            let error = state.problems.removeValue(forKey: id) ?? NetworkError(code: .cancelled)
            let old = state.failures[id]
            state.failures[id] = ((old?.count ?? 0) + 1, error)
            return (error, old)
        }
        // Objects of the user are released outside the lock.
        withExtendedLifetime(old) {}
        tell(.failed(id, error, retryDelay: delay))
    }

    /// Before the next one of the lane is sent.
    private func tellEnd(_ id: UUID, _ verdict: OutboxState.Verdict) {
        let (reason, _, _) = state.withLock { state in
            (
                state.reasons.removeValue(forKey: id), state.problems.removeValue(forKey: id),
                state.failures.removeValue(forKey: id)
            )
        }
        switch verdict {
        case .delivered: tell(.delivered(id))
        case .dead: tell(.died(id, reason ?? NetworkError(code: .refused)))
        }
    }

    /// Whether the same request would fail again.
    static func isFinal(_ error: NetworkError) -> Bool {
        switch error.code {
        case .unacceptableStatus:
            guard let status = error.statusCode else { return true }
            return status < 500 && !delays.statusCodes.contains(status)
        case .invalidRequest, .cannotParseResponse, .redirectFailed, .cannotSendAgain, .bodyTooLong, .dependencyFailed,
            .notCached:
            return true
        default: return error.code.rawValue >= 10_000
        }
    }

    static func dependencyFailed(_ id: UUID, _ error: NetworkError?) -> NetworkError {
        let reason = error.map { ": \($0.message ?? $0.code.summary)" } ?? ""
        return NetworkError(code: .dependencyFailed, message: "the entry \(id), which comes first, has failed\(reason)")
    }
}
