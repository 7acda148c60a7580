import EasyNetwork
import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The way from the directory to the server.
extension Outbox {
    /// Jobs in the queue at once, so that their number is bounded.
    private static let window = 32
    /// Between two looks for changes by other processes and for lanes that may go on, in seconds.
    private static let interval: TimeInterval = 1
    /// Between two readings of the directory without a sign of a change, in seconds.
    private static let longInterval: TimeInterval = 120
    /// The bounds of the delay after a failure, and of a delay that a server asks for, in seconds.
    private static let delays = RetryPolicy(
        maximumRetryCount: .max,
        baseDelay: 2,
        maximumDelay: 600,
        maximumRetryAfter: 86_400
    )

    /// Looks for what has changed since the last time, and again after ``interval``.
    func tick() {
        // A drain that waits for its jobs has the directory still.
        guard state.withLock({ $0.isStarted && $0.idles.isEmpty }) else { return }
        let isReachable = service.configuration.settings.reachability?.status != .unreachable
        let now = clock.now
        state.withLock { state in
            // All that waits tries at once when the network is back.
            state.index.wake(at: now, isReachableAgain: isReachable && !state.wasReachable)
            state.wasReachable = isReachable
        }
        if activity == nil || hasWorkForLock { try? takeLock(starts: false) }
        load()
        deliverNext()
        checkDrains()
        let timer = clock.schedule(after: Self.interval) { [weak self] in
            guard let self else { return }
            WorkQueue.shared.async { self.tick() }
        }
        // The one of an earlier start, or this one when a drain has begun.
        let unneeded = state.withLock { state in
            state.isStarted && state.idles.isEmpty ? exchange(&state.ticker, with: timer) : timer
        }
        unneeded?.cancel()
    }

    /// Whether the directory may have changed since it was read, or an entry may be sent.
    private var hasWorkForLock: Bool {
        let (changeMarker, change, now) = (folder.changeMarker, folder.entriesChange, clock.now)
        return state.withLock { state in
            state.lock != nil || !state.isLoaded || state.changeMarker != changeMarker || state.entriesChange != change
                || now >= state.nextLoad || state.index.hasReady
        }
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
                guard state.isStarted else { return (false, false) }
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
            state.withLock { state in
                state.activity = .granted(semaphore)
                state.isExpired = false
            }
            WorkQueue.shared.async { self.tick() }
            // The system's thread: the activity lasts as long as this closure.
            return semaphore.wait()
        }
        let operations = state.withLock { state in
            if case .asked = state.activity { state.activity = .none }
            state.isExpired = true
            return state.running.values.compactMap { $0 }
        }
        for operation in operations { operation.cancel() }
        checkDrains()
    }

    /// Takes the lock if no one has it, unless the outbox was stopped meanwhile.
    func takeLock(starts: Bool) throws(NetworkError) {
        if starts { state.withLock { $0.isStarted = true } }
        guard hasActivity() else { return }
        let lock = try state.withLock({ $0.lock == nil }) ? folder.lock() : nil
        if lock != nil { folder.sweep() }
        state.withLock { state in
            guard let lock, state.lock == nil, state.isStarted, state.idles.isEmpty else { return }
            state.lock = lock
            state.changeCount += 1
        }
    }

    /// Takes over an entry that this process has put into the directory. What others have put there before comes first.
    func admit(_ name: OutboxName, after: [UUID]) {
        let changeMarker = folder.changeMarker
        let (delivers, isLoaded) = state.withLock { state in
            guard state.lock != nil else { return (false, true) }
            if exchange(&state.changeMarker, with: changeMarker) != changeMarker { state.changeCount += 1 }
            if state.isLoaded {
                state.index.insert(name, after: after)
            } else if state.loadingCount == state.changeCount {
                state.late.append((name, after))
            }
            // Otherwise it is found when the directory is read the next time.
            return (true, state.isLoaded || state.loadingCount != nil)
        }
        if !delivers {
            folder.ring()
            // Nobody may deliver now.
            if activity != nil { WorkQueue.shared.async { self.tick() } }
            return
        }
        if isLoaded { deliverNext() } else { WorkQueue.shared.async { self.tick() } }
    }

    /// Takes over what other processes have changed.
    private func load() {
        let (changeMarker, entriesChange, now) = (folder.changeMarker, folder.entriesChange, clock.now)
        let change = state.withLock { state -> (count: Int, known: [OutboxName])? in
            let isDue = now >= state.nextLoad
            if exchange(&state.changeMarker, with: changeMarker) != changeMarker || isDue { state.changeCount += 1 }
            guard state.lock != nil, !state.isLoaded, state.loadingCount == nil else { return nil }
            state.entriesChange = entriesChange
            state.loadingCount = state.changeCount
            state.nextLoad = now + Self.longInterval
            // Before the list is read: what is added after that is in neither.
            return (state.changeCount, Array(state.index.all))
        }
        guard let change else { return }
        let names = try? folder.wholeList()
        if let names { update(names, known: change.known) }
        state.withLock { state in
            state.loadingCount = nil
            if names != nil { state.loadedCount = change.count }
            for (name, after) in state.late.take() where state.lock != nil && state.idles.isEmpty {
                state.index.insert(name, after: after)
            }
        }
    }

    private func update(_ names: [OutboxName], known: [OutboxName]) {
        let found = Set(names.map(\.id))
        // Another process has removed them.
        for name in known where !found.contains(name.id) && !folder.has(name) {
            if state.withLock({ $0.running[name.id] == nil }) { leave(name.id) }
        }
        let old = Set(known.map(\.id))
        state.withLock { $0.lastSequence = max($0.lastSequence, names.last?.sequence ?? 0) }
        for name in names where !old.contains(name.id) {
            // A damaged one is found when its turn comes.
            let after = name.hasDependencies ? (try? folder.read(name))?.after ?? [] : []
            state.withLock { state in
                if state.lock != nil, state.idles.isEmpty { state.index.insert(name, after: after) }
            }
        }
    }

    /// Starts what may start.
    func deliverNext() {
        while let name = takeNext() {
            // Not on the thread that adds, which may be the main one.
            WorkQueue.shared.async { self.deliver(name) }
        }
    }

    private func takeNext() -> OutboxName? {
        state.withLock { state in
            guard state.isStarted, state.lock != nil, !state.isExpired, state.idles.isEmpty,
                state.running.count < Self.window
            else {
                return nil
            }
            guard let name = state.index.next() else { return nil }
            state.running[name.id] = .some(nil)
            return name
        }
    }

    private func deliver(_ name: OutboxName) {
        // Its removal is repeated, and not the request.
        if state.withLock({ $0.accepted.contains(name.id) }) { return finish(name, nil, isFinal: false) }
        if name.hasDependencies, waitsAgain(name) { return deliverNext() }
        let operation: ServiceOperation
        do throws(NetworkError) {
            operation = try self.operation(for: name)
        } catch {
            return finish(name, error, isFinal: error.code == .timedOut || Self.isFinal(error))
        }
        operation.queuePriority = name.priority.operationPriority
        let isWanted = state.withLock { state in
            guard state.isStarted, !state.isExpired, state.index.contains(name.id) else { return false }
            state.running[name.id] = operation
            return true
        }
        guard isWanted else { return finish(name, NetworkError(code: .cancelled), isFinal: false) }
        tell(.sending(name.id))
        operation.whenFinished { [weak operation] in
            // The operation is kept while it runs.
            let error = operation.map { $0.error } ?? NetworkError(code: .cancelled)
            WorkQueue.shared.async { self.finish(name, error, isFinal: error.map(Self.isFinal) ?? false) }
        }
        queue.addOperation(operation)
    }

    /// Whether an entry that it depends on, and that had left, was made an entry again, perhaps by another process. Then
    /// it waits for that one.
    private func waitsAgain(_ name: OutboxName) -> Bool {
        guard let after = (try? folder.read(name))?.after, let entries = try? folder.list(.entries) else {
            return false
        }
        let revived = entries.filter { after.contains($0.id) }
        guard !revived.isEmpty else { return false }
        let found = revived.map { ($0, $0.hasDependencies ? (try? folder.read($0))?.after ?? [] : []) }
        let operation = state.withLock { state in
            for (other, after) in found where state.lock != nil && state.idles.isEmpty {
                state.index.insert(other, after: after)
            }
            state.index.putBack(name.id, after: after)
            return state.running.removeValue(forKey: name.id)
        }
        withExtendedLifetime(operation) {}
        checkDrains()
        return true
    }

    private func operation(for name: OutboxName) throws(NetworkError) -> ServiceOperation {
        let record = try folder.read(name)
        if let dead = record.after.first(where: folder.isDead) {
            throw Self.dependencyFailed(dead, folder.failure(of: dead))
        }
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

    private func finish(_ name: OutboxName, _ error: NetworkError?, isFinal: Bool) {
        do throws(NetworkError) {
            if let error, !isFinal { throw error }
            if let error {
                try folder.bury(name, error)
            } else {
                state.withLock { _ = $0.accepted.insert(name.id) }
                try folder.remove(name, from: .entries)
            }
            // Before the next one of the lane is sent.
            tell(error.map { .died(name.id, $0) } ?? .delivered(name.id))
            leave(name.id)
            // It was made an entry again before it had left.
            if error != nil, folder.has(name) { state.withLock { $0.changeCount += 1 } }
        } catch {
            postpone(name, error)
        }
        deliverNext()
        checkDrains()
    }

    /// Forgets an entry that is not to be delivered any more.
    func leave(_ id: UUID) {
        let (operation, _) = state.withLock { state in
            state.index.remove(id)
            state.accepted.remove(id)
            return (state.running.removeValue(forKey: id), state.failures.removeValue(forKey: id))
        }
        withExtendedLifetime(operation) {}
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

    /// Has an entry wait that could not be delivered.
    private func postpone(_ name: OutboxName, _ error: NetworkError) {
        let random = service.configuration.settings.random()
        let asked = min(RetryPolicy.retryAfter(error.headers, now: clock.date) ?? 0, Self.delays.maximumRetryAfter)
        let now = clock.now
        let isGone = error.code == .cancelled && !folder.has(name)
        let (delay, old) = state.withLock { state in
            let old = (state.running.removeValue(forKey: name.id), state.failures.removeValue(forKey: name.id))
            if isGone { state.index.remove(name.id) }
            // Otherwise it was removed meanwhile, or the outbox has been drained.
            guard state.index.contains(name.id) else { return (TimeInterval?.none, old) }
            if state.isExpired, error.code == .cancelled {
                // Not a failure: it goes on when the program does.
                state.failures[name.id] = old.1
                state.index.postpone(name.id, until: now)
                return (nil, old)
            }
            let count = (old.1?.count ?? 0) + 1
            state.failures[name.id] = (count, error)
            let delay = max(Self.delays.backoff.delay(after: count - 1, random: random), asked)
            state.index.postpone(name.id, until: now + delay, isFirm: asked > 0)
            return (delay, old)
        }
        // Objects of the user are released outside the lock.
        withExtendedLifetime(old) {}
        if let delay { tell(.failed(name.id, error, retryDelay: delay)) }
    }

    static func dependencyFailed(_ id: UUID, _ error: NetworkError?) -> NetworkError {
        let reason = error.map { ": \($0.message ?? $0.code.summary)" } ?? ""
        return NetworkError(code: .dependencyFailed, message: "the entry \(id), which comes first, has failed\(reason)")
    }
}
