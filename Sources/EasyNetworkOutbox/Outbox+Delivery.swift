import EasyNetwork
import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The way from the directory to the server.
extension Outbox {
    /// Jobs in the queue at once, so that their number is bounded.
    static let window = 32
    /// Between two readings of the directory without a sign of a change, and two looks at a condition, in seconds.
    private static let longInterval: TimeInterval = 120
    /// Between two looks at a date, in seconds, since the system's clock may be changed, or sleep; and two sweeps.
    private static let longWait: TimeInterval = 3_600
    /// The bounds of the delay after a failure, and of a delay that a server asks for, in seconds.
    private static let delays = RetryPolicy(
        maximumRetryCount: .max,
        baseDelay: 2,
        maximumDelay: 600,
        maximumRetryAfter: 86_400
    )

    /// Looks for what has changed since the last time. Not on a user's thread.
    func look() {
        // The system is not asked unless it is heard.
        let isReachable = !state.withLock { $0.networkHasChanged } || network.status != .unreachable
        let (changes, now) = (folder.changes, clock.now)
        let look = state.withLock { state -> OutboxState.Event? in
            guard state.logic.isStarted else { return nil }
            let isDue = now >= state.nextLoad
            if isDue { state.nextLoad = now + Self.longInterval }
            // All that waits tries at once when the network is back, or costs less.
            let isBack = isReachable && state.networkHasChanged
            if isBack { state.networkHasChanged = false }
            return .looked(changes: changes, isDue: isDue, isReachableAgain: isBack)
        }
        if let look { post(look) }
    }

    /// Hears of changes by others and of the network from now on, as long as the outbox is started.
    func listen() {
        let now = clock.now
        state.withLock { $0.nextLoad = now + Self.longInterval }
        #if os(Linux) || canImport(Darwin)
        // A program that is about to be suspended must not hear of the end of its own lock.
        if activity == nil, state.withLock({ $0.watch == nil }) {
            let watch = OutboxWatch(folder.root) { [weak self] in self?.look() }
            let old = state.withLock { state in state.watch == nil ? exchange(&state.watch, with: watch) : watch }
            withExtendedLifetime(old) {}
        }
        #endif
        if let network = service.configuration.settings.reachability { hear(network) }
    }

    /// Hears of changes of the network from now on.
    private func hear(_ network: NetworkReachability) {
        state.withLock { state in
            guard state.networkTask == nil else { return }
            state.networkTask = Task { [weak self] in
                var isFirst = true
                for await _ in network.statuses {
                    guard let self else { return }
                    if !isFirst {
                        self.state.withLock { $0.networkHasChanged = true }
                        WorkQueue.shared.async { self.look() }
                    }
                    isFirst = false
                }
            }
        }
    }

    /// Looks again when it is time.
    private func schedule() {
        let now = clock.now
        alarm.set(nextLook(at: now), clock) { [weak self] in
            guard let self else { return }
            WorkQueue.shared.async { self.look() }
        }
    }

    private func nextLook(at now: TimeInterval) -> TimeInterval? {
        state.withLock { state in
            #if os(Linux) || canImport(Darwin)
            let isTold = state.watch != nil && (OutboxWatch.tellsOfLocks || state.logic.phase == .delivering)
            #else
            let isTold = false
            #endif
            return state.logic.nextLook(at: now, isTold: isTold).map { min($0, state.nextLoad) }
        }
    }

    /// Takes an event to the ``OutboxState``, and does what that says.
    ///
    /// - Parameters:
    ///   - time: of the event, on the clock; nil for now.
    ///   - onCallersThread: whether this is a user's thread, on which nothing is done that takes long.
    func post(_ event: OutboxState.Event, at time: TimeInterval? = nil, onCallersThread: Bool = false) {
        let time = time ?? clock.now
        for effect in state.withLock({ $0.logic.handle(event, at: time) }) {
            switch effect {
            case .ring: folder.ring()
            case .cancel(let id): state.withLock { $0.jobs[id]?.operation }?.cancel()
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
        let isNew = state.withLock { state in
            guard isTaken, state.lock == nil else {
                if !isTaken { state.missedLock = lock }
                return false
            }
            state.lock = lock
            // Another process may have tried meanwhile.
            for id in state.details.keys { state.details[id]?.triedAt = nil }
            return true
        }
        // Two questions may have been under way.
        if state.withLock({ $0.lock == nil }) { endActivity() }
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
        let now = clock.now
        let (isDelivering, sweeps) = state.withLock { state in
            let (isDelivering, sweeps) = (state.logic.phase == .delivering, now >= state.nextSweep)
            if isDelivering, sweeps { state.nextSweep = now + Self.longWait }
            return (isDelivering, isDelivering && sweeps)
        }
        if sweeps { folder.sweep() }
        let found = (try? folder.wholeList()).map { all in
            // A drain beside another process does not wait for what has its time.
            let names = isDelivering ? all : all.filter { !isEarly($0) }
            let unknown = state.withLock { state in names.filter { $0.hasDependencies && !state.logic.knows($0.id) } }
            var found = Dictionary(names.map { ($0, [UUID]()) }) { first, _ in first }
            // A damaged one is found when its turn comes.
            for name in unknown { found[name] = (try? folder.read(name))?.after ?? [] }
            return found
        }
        if let found, isDelivering { forget(allBut: Set(found.keys.map(\.id))) }
        post(.listed(found, changes: changes))
    }

    private func isEarly(_ name: OutboxName) -> Bool {
        guard name.hasOptions, let record = try? folder.read(name), let options = record.options else { return false }
        return record.begin.map(options.due) ?? .distantPast > clock.date
    }

    /// Forgets what is known of entries that other processes have removed.
    private func forget(allBut ids: Set<UUID>) {
        let old = state.withLock { state in
            let gone = state.details.filter { id, _ in
                !ids.contains(id) && !state.logic.knows(id) && state.jobs[id] == nil
            }
            for id in gone.keys { state.details[id] = nil }
            return gone
        }
        withExtendedLifetime(old) {}
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
            case .delivered:
                if let output = state.withLock({ $0.outputs[name.id] }) {
                    try folder.leave(output, of: name.id)
                }
                if name.hasOptions { try addNextPeriod(of: name) }
                try folder.remove(name, from: .entries)
            case .dead:
                let reason = state.withLock { $0.reasons[name.id] }
                try folder.bury(name, reason ?? NetworkError(code: .refused))
            }
            post(.settled(name.id, retryDelay: nil))
        } catch {
            post(.settled(name.id, retryDelay: delay(of: name.id, after: error)))
        }
    }

    /// Adds the entry of the next period of one that was delivered, unless another one has taken its place.
    private func addNextPeriod(of name: OutboxName) throws(NetworkError) {
        let record: OutboxRecord
        do throws(NetworkError) {
            record = try folder.read(name)
        } catch {
            // It was removed. Anything else is tried again.
            guard [.cancelled, .cannotParseResponse].contains(error.code) else { throw error }
            return
        }
        guard let options = record.options, let period = options.period, let unique = options.unique else { return }
        // The same name each time, since a kill may have this done again.
        let next = OutboxName(
            sequence: name.sequence,
            id: Self.id(after: name.id),
            priority: name.priority,
            hasDependencies: true,
            hasOptions: true,
            type: name.type,
            lane: nil
        )
        let triedAt = state.withLock { $0.details[name.id]?.triedAt } ?? clock.date
        var nextRecord = record
        nextRecord.addedAt = clock.date
        // So that it does not begin while this one may be sent again.
        nextRecord.after = [name.id]
        nextRecord.begin = OutboxOptions.nextPeriod(after: record.begin ?? record.addedAt, period, sentAt: triedAt)
        var isAdded = false
        try folder.changeUnique(unique.name) { names throws(NetworkError) in
            guard names.contains(name) else { return names }
            isAdded = true
            if !folder.has(next) { try folder.add(next, nextRecord, folder.attachments(of: name, record.fileCount)) }
            return names.filter { $0 != next }.map { $0 == name ? next : $0 }
        }
        if isAdded { announce(next, after: [name.id], options) }
    }

    /// The id of the entry that follows another one.
    private static func id(after id: UUID) -> UUID {
        var bytes = withUnsafeBytes(of: id.uuid) { Array(SHA256.digest(of: Data($0))) }
        // Version 8 and the variant of RFC 9562, section 5.8.
        bytes[6] = bytes[6] & 0x0F | 0x80
        bytes[8] = bytes[8] & 0x3F | 0x80
        return bytes.withUnsafeBytes { UUID(bytes: $0) }
    }

    // MARK: - Sending

    private func send(_ name: OutboxName) {
        let (request, operation): (any APIRequest, ServiceOperation)
        // A wait begins before the date is asked for that it depends on, so that it does not end late.
        let begin = clock.now
        do throws(NetworkError) {
            let record = try folder.read(name)
            if let wait = wait(of: name, record) { return postpone(name, wait, at: begin, record.options?.conditions) }
            (request, operation) = try job(for: name, record)
        } catch {
            // Its age, which is not the deadline of a request.
            return ended(name, error, isFinal: error.code == .timedOut || Self.isFinal(error))
        }
        operation.queuePriority = name.priority.operationPriority
        let isWanted = state.withLock { state in
            guard state.logic.wants(name.id) else { return false }
            state.jobs[name.id] = (operation, request)
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

    /// Why an entry is not sent now; nil when it is. Begins a try.
    private func wait(of name: OutboxName, _ record: OutboxRecord) -> OutboxIndex.Wait? {
        let (options, now) = (record.options ?? OutboxOptions(), clock.date)
        if let due = record.begin.map(options.due), due > now {
            state.withLock { $0.details[name.id, default: Detail()].options = options }
            return OutboxIndex.Wait(delay: min(due.timeIntervalSince(now), Self.longWait), reason: .early, isFirm: true)
        }
        let isNew = state.withLock { $0.details[name.id]?.triedAt == nil }
        let tries = isNew ? folder.tries(of: name.id) : nil
        let count = state.withLock { state in
            var detail = state.details[name.id] ?? Detail()
            if let tries { (detail.attemptCount, detail.error) = (tries.count, tries.failure.error) }
            (detail.options, detail.triedAt) = (options, now)
            state.details[name.id] = detail
            return detail.attemptCount
        }
        // Of a process before.
        if let tries, tries.next > now {
            let delay = min(tries.next.timeIntervalSince(now), tries.delay)
            return OutboxIndex.Wait(delay: delay, reason: .oldFailure, leavesLane: count >= options.yieldsAfter ?? .max)
        }
        guard let conditions = options.conditions, !areMet(conditions) else { return nil }
        return OutboxIndex.Wait(delay: Self.longInterval, reason: .early)
    }

    private func postpone(
        _ name: OutboxName,
        _ wait: OutboxIndex.Wait,
        at begin: TimeInterval,
        _ conditions: Set<OutboxOptions.Condition>?
    ) {
        if conditions != nil { hear(network) }
        post(.ended(name.id, .postponed(wait)), at: begin)
        // The network may have changed before this.
        if let conditions, wait.reason == .early, !wait.isFirm, areMet(conditions) {
            post(.hastened(name.id))
        }
    }

    /// Asked of the system only once an entry has conditions.
    private var network: NetworkReachability { service.configuration.settings.reachability ?? .system }

    private func areMet(_ conditions: Set<OutboxOptions.Condition>) -> Bool {
        let network = network
        return conditions.allSatisfy { condition in
            switch condition {
            case .reachable: network.status != .unreachable
            case .unmetered: network.status != .unreachable && !network.isExpensive
            case .unconstrained: network.status != .unreachable && !network.isConstrained
            }
        }
    }

    private func job(
        for name: OutboxName,
        _ record: OutboxRecord
    ) throws(NetworkError) -> (any APIRequest, ServiceOperation) {
        // Of one with a time or a period, since then.
        let start = max(
            record.addedAt,
            record.begin.map { (record.options ?? OutboxOptions()).due($0) } ?? record.addedAt
        )
        if clock.date.timeIntervalSince(start) > maximumAge {
            throw NetworkError(code: .timedOut, message: "not delivered within \(maximumAge) seconds, the maximum age")
        }
        // A later period comes after the one before it, which leaves nothing.
        let after = record.after.filter { Self.id(after: $0) != name.id }
        let inputs = after.isEmpty ? [] : try folder.outputs(of: after)
        let request = try request(in: record, of: name.type, inputs: inputs)
        let files = record.fileCount > 0 ? try folder.attachments(of: request.body, name) : [:]
        var options = request.options
        options.idempotencyKey = name.id.uuidString
        options.customURLRequest?.setValue(name.id.uuidString, forHTTPHeaderField: "Idempotency-Key")
        // Each entry is delivered.
        options.repeatPolicy = .allow
        if !files.isEmpty { options.body = request.body?.placed { [files] url in files[url.path] ?? url } }
        return (request, operation(request, options))
    }

    private func operation<Request: APIRequest>(_ request: Request, _ options: RequestOptions) -> ServiceOperation {
        let operation = RequestOperation(request, options, of: service)
        // What a cache answers has not reached the server.
        operation.ignoresCache = true
        return operation
    }

    /// - Parameter inputs: what those before it left; nil for the request as it was added.
    func request(
        in record: OutboxRecord,
        of type: String,
        inputs: [Data?]? = nil
    ) throws(NetworkError) -> any APIRequest {
        guard let registered = state.withLock({ $0.types[type] }) else {
            throw NetworkError(code: .invalidRequest, message: "no type is registered as \"\(type)\"")
        }
        do {
            return try WorkQueue.userCode { try registered.decode(record.request, record.version, inputs) }
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
        guard let error else {
            guard let job, let deliver = state.withLock({ $0.types[name.type]?.deliver }) else {
                return post(.ended(name.id, .verdict(.delivered)))
            }
            Task {
                let output = await deliver(job.request, job.operation)
                WorkQueue.shared.async {
                    if let output { self.state.withLock { $0.outputs[name.id] = output } }
                    self.post(.ended(name.id, .verdict(.delivered)))
                }
            }
            return
        }
        withExtendedLifetime(job) {}
        // An answer of which no item can be made was one: the server has accepted the request.
        if error.code == .cannotParseResponse, 200..<300 ~= error.statusCode ?? 0 {
            return post(.ended(name.id, .verdict(.delivered)))
        }
        if error.code == .cancelled, !folder.has(name) {
            let detail = state.withLock { $0.details.removeValue(forKey: name.id) }
            withExtendedLifetime(detail) {}
            return post(.ended(name.id, .gone))
        }
        let detail = state.withLock { $0.details[name.id] } ?? Detail()
        // A cancel by the queue, or its end, is no failure.
        let isLast =
            ![.cancelled, .refused, .circuitOpen].contains(error.code)
            && detail.attemptCount + 1 >= detail.options.maximumAttemptCount ?? .max
        guard !isFinal, !isLast else {
            state.withLock { $0.reasons[name.id] = error }
            return post(.ended(name.id, .verdict(.dead)))
        }
        let wait = OutboxIndex.Wait(
            delay: delay(of: name.id, after: error),
            isFirm: asked(error) > 0,
            leavesLane: detail.attemptCount + 1 >= detail.options.yieldsAfter ?? .max
        )
        post(.ended(name.id, .postponed(wait)))
    }

    /// What the server has asked to wait, in seconds.
    private func asked(_ error: NetworkError) -> TimeInterval {
        min(RetryPolicy.retryAfter(error.headers, now: clock.date) ?? 0, Self.delays.maximumRetryAfter)
    }

    private func delay(of id: UUID, after error: NetworkError) -> TimeInterval {
        let random = service.configuration.settings.random()
        let detail = state.withLock { state in
            state.problems[id] = error
            return state.details[id] ?? Detail()
        }
        var delays = Self.delays
        if let bounds = detail.options.retryDelays {
            (delays.baseDelay, delays.maximumDelay) = (bounds.lowerBound, bounds.upperBound)
        }
        return max(delays.backoff.delay(after: detail.attemptCount, random: random), asked(error))
    }

    private func tellFailure(_ id: UUID, _ delay: TimeInterval) {
        let (tries, error, old) = state.withLock { state in
            let error = state.problems.removeValue(forKey: id) ?? NetworkError(code: .cancelled)
            let old = state.details[id]
            var detail = old ?? Detail()
            // A cancel by the queue, or its end, is no failure.
            if ![.cancelled, .refused, .circuitOpen].contains(error.code) { detail.attemptCount += 1 }
            detail.error = error
            state.details[id] = detail
            return (detail.attemptCount, error, old)
        }
        // Objects of the user are released outside the lock.
        withExtendedLifetime(old) {}
        folder.note(
            OutboxTries(count: tries, next: clock.date + delay, delay: delay, failure: OutboxFailure(error)),
            of: id
        )
        // Another process may have removed it before this was written.
        if let name = state.withLock({ $0.logic.index.name(of: id) }), !folder.has(name) { folder.forgetTries(of: id) }
        tell(.failed(id, error, retryDelay: delay))
    }

    /// Before the next one of the lane is sent.
    private func tellEnd(_ id: UUID, _ verdict: OutboxState.Verdict) {
        let (reason, detail, _, _) = state.withLock { state in
            (
                state.reasons.removeValue(forKey: id), state.details.removeValue(forKey: id),
                state.problems.removeValue(forKey: id), state.outputs.removeValue(forKey: id)
            )
        }
        switch verdict {
        case .delivered: tell(.delivered(id), detail?.options)
        case .dead: tell(.died(id, reason ?? NetworkError(code: .refused)), detail?.options)
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
