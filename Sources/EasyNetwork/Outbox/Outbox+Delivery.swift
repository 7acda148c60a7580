import Foundation

/// The way from the directory to the server.
extension Outbox {
    /// Jobs in the queue at once, so that their number is bounded.
    private static let window = 32
    /// Between two looks for changes by other processes and for lanes that may go on, in seconds.
    private static let interval: TimeInterval = 1
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
        try? takeLock()
        load()
        let isReachable = service.configuration.settings.reachability?.status != .unreachable
        let now = clock.now
        state.withLock { state in
            // All that waits tries at once when the network is back.
            state.index.wake(at: now, isReachableAgain: isReachable && !state.wasReachable)
            state.wasReachable = isReachable
        }
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

    /// Takes the lock if no one has it.
    func takeLock() throws(NetworkError) {
        guard state.withLock({ $0.lock == nil }), let lock = try folder.lock() else { return }
        folder.sweep()
        state.withLock { state in
            state.lock = lock
            state.changeCount += 1
        }
    }

    /// Starts what may start, after a change by this process. What others have changed before that comes first.
    func look() {
        let bell = folder.bell
        let (isLoaded, isLoading) = state.withLock { ($0.isLoaded && $0.bell == bell, $0.isLoading) }
        if isLoaded { deliverNext() } else if !isLoading { WorkQueue.shared.async { self.tick() } }
    }

    /// Takes over what other processes have changed.
    private func load() {
        while true {
            let bell = folder.bell
            let change = state.withLock { state -> (count: Int, known: Set<UUID>)? in
                if exchange(&state.bell, with: bell) != bell { state.changeCount += 1 }
                guard state.lock != nil, !state.isLoaded, !state.isLoading else { return nil }
                state.isLoading = true
                // Before the list is read: what is added after that is in neither.
                return (state.changeCount, Set(state.index.ids))
            }
            guard let change else { return }
            let names = try? folder.wholeList()
            if let names { update(names, known: change.known) }
            state.withLock { state in
                state.isLoading = false
                if names != nil { state.loadedCount = change.count }
            }
            if names == nil { return }
        }
    }

    private func update(_ names: [OutboxName], known: Set<UUID>) {
        let found = Set(names.map(\.id))
        state.withLock { state in
            state.lastSequence = max(state.lastSequence, names.last?.sequence ?? 0)
            // Another process has removed them.
            for id in known where !found.contains(id) && state.running[id] == nil {
                state.index.remove(id)
                state.failures[id] = nil
            }
        }
        for name in names where !known.contains(name.id) {
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
            guard state.isStarted, state.lock != nil, state.isLoaded, state.running.count < Self.window else {
                return nil
            }
            guard let name = state.index.next() else { return nil }
            state.running[name.id] = .some(nil)
            return name
        }
    }

    private func deliver(_ name: OutboxName) {
        let delivery: OutboxDelivery
        do throws(NetworkError) {
            delivery = try self.delivery(of: name)
        } catch {
            return finish(name, error, isFinal: error.code == .timedOut || Self.isFinal(error))
        }
        let operation = RequestOperation(delivery, service: service)
        operation.queuePriority = name.priority.operationPriority
        let isWanted = state.withLock { state in
            guard state.isStarted, state.index.contains(name.id) else { return false }
            state.running[name.id] = operation
            return true
        }
        guard isWanted else { return finish(name, NetworkError(code: .cancelled), isFinal: false) }
        tell(name.id, .sending)
        operation.whenFinished { [weak operation] in
            let error = operation?.error
            WorkQueue.shared.async { self.finish(name, error, isFinal: error.map(Self.isFinal) ?? false) }
        }
        queue.addOperation(operation)
    }

    private func delivery(of name: OutboxName) throws(NetworkError) -> OutboxDelivery {
        let record = try folder.read(name)
        if let dead = record.after.first(where: folder.isDead) {
            throw Self.dependencyFailed(dead, folder.failure(of: dead))
        }
        guard clock.date.timeIntervalSince(record.addedAt) <= maximumAge else {
            throw NetworkError(code: .timedOut, message: "not delivered within \(maximumAge) seconds, the maximum age")
        }
        let request = try request(in: record, of: name.type)
        let files = record.files.mapValues { folder.attachment($0, of: name) }
        return OutboxDelivery(wrapped: request, id: name.id, files: files)
    }

    func request(in record: OutboxRecord, of type: String) throws(NetworkError) -> any APIRequest {
        guard let registered = state.withLock({ $0.types[type] }) else {
            throw NetworkError(code: .invalidRequest, message: "no type is registered as \"\(type)\"")
        }
        do {
            return try WorkQueue.userCode { try registered.decode(record.request, record.version) }
        } catch {
            throw .thrown(error, otherwise: .invalidRequest)
        }
    }

    private func finish(_ name: OutboxName, _ error: NetworkError?, isFinal: Bool) {
        do throws(NetworkError) {
            if let error, !isFinal { throw error }
            if let error {
                try folder.bury(name, error)
            } else {
                try folder.remove(name, from: .entries)
            }
            // Before the next one of the lane is sent.
            tell(name.id, error.map { .died($0) } ?? .delivered)
            leave(name.id)
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
        let random = min(max(service.configuration.settings.random(), 0), 1)
        let asked = min(RetryPolicy.retryAfter(error.headers, now: clock.date) ?? 0, Self.delays.maximumRetryAfter)
        let now = clock.now
        let isGone = error.code == .cancelled && !folder.has(name)
        let delay = state.withLock { state -> TimeInterval? in
            state.running.removeValue(forKey: name.id)
            if isGone { state.index.remove(name.id) }
            guard state.index.contains(name.id) else {
                // It was removed meanwhile, or the outbox has been drained.
                state.failures[name.id] = nil
                return nil
            }
            let count = (state.failures[name.id]?.count ?? 0) + 1
            state.failures[name.id] = (count, error)
            let bound = min(Self.delays.baseDelay * pow(2, Double(min(count - 1, 16))), Self.delays.maximumDelay)
            let delay = max(bound * random, asked)
            state.index.postpone(name.id, until: now + delay, isFirm: asked > 0)
            return delay
        }
        if let delay { tell(name.id, .failed(error, retryDelay: delay)) }
    }

    static func dependencyFailed(_ id: UUID, _ error: NetworkError?) -> NetworkError {
        let reason = error.map { ": \($0.message ?? $0.code.summary)" } ?? ""
        return NetworkError(code: .dependencyFailed, message: "the entry \(id), which comes first, has failed\(reason)")
    }
}

/// The request of an entry, under the one key that it has for ever and with the files of the outbox.
private struct OutboxDelivery: RequestWrapper, APIRequest {
    typealias Item = Void

    let wrapped: any BaseAPIRequest
    let id: UUID
    /// By their paths when the request was added.
    let files: [String: URL]

    var idempotencyKey: String? { id.uuidString }
    /// Each entry is delivered.
    var repeatPolicy: RepeatPolicy { .allow }

    var body: RequestBody? {
        files.isEmpty ? wrapped.body : wrapped.body?.placed { [files] url in files[url.path] ?? url }
    }

    /// An answer that the request cannot map is a failure.
    func item(from response: NetworkResponse) throws {
        func map(_ request: some APIRequest) throws { _ = try request.item(from: response) }
        if let request = wrapped as? any APIRequest { try map(request) }
    }
}
