import EasyNetwork
import Foundation

/// The steps of a delivery: the lock, the directory, the entries that are due.
extension Outbox {
    /// Jobs in the queue at once, so that their number is bounded.
    static let window = 32
    /// Between two readings of the directory without a sign of a change, and two looks at a condition, in seconds.
    static let longInterval: TimeInterval = 120
    /// Between two looks at a date, in seconds, since the system's clock may be changed, or sleep; and two sweeps.
    static let longWait: TimeInterval = 3_600

    /// Looks for what has changed since the last time. Not on a user's thread.
    func look() {
        // The system is not asked unless it is heard.
        let isReachable = !state.withLock { $0.networkHasChanged } || network.status != .unreachable
        let (changes, now) = (folder.changes, clock.now)
        let look = state.withLock { state -> OutboxState.Input? in
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
    func hear(_ network: NetworkReachability) {
        guard state.withLock({ $0.networkTask == nil }) else { return }
        // Asked for before the task begins, which may be late: a change in between counts.
        let changes = network.changes
        let task = WorkQueue.task { [weak self] in
            for await _ in changes {
                guard let self else { return }
                self.state.withLock { $0.networkHasChanged = true }
                WorkQueue.shared.add { self.look() }
            }
        }
        let isHeard = state.withLock { state in
            if state.networkTask == nil { state.networkTask = task }
            return state.networkTask == task
        }
        if !isHeard { task.cancel() }
    }

    /// Looks again when it is time.
    private func schedule() {
        let now = clock.now
        alarm.set(nextLook(at: now), clock) { [weak self] in
            guard let self else { return }
            WorkQueue.shared.add { self.look() }
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
    ///   - error: why the entry of the event is not delivered yet.
    ///   - time: of the event, on the clock; nil for now.
    ///   - onCallersThread: whether this is a user's thread, on which nothing is done that takes long.
    func post(
        _ event: OutboxState.Input,
        after error: NetworkError? = nil,
        at time: TimeInterval? = nil,
        onCallersThread: Bool = false
    ) {
        let time = time ?? clock.now
        for effect in state.withLock({ $0.logic.handle(event, at: time) }) {
            switch effect {
            case .ring: folder.ring()
            case .cancel(let id): state.withLock { $0.entries[id]?.job }?.cancel()
            case .unlock: unlock()
            case .tellFailed(let id, let delay): tellFailure(id, error ?? NetworkError(code: .cancelled), delay)
            case .tellLeft(let id, let verdict): tellEnd(id, verdict)
            case .drained(let number, let isRestarted):
                state.withLock { state in
                    state.waits[number]?.isRestarted = isRestarted
                    return state.waits[number]?.over
                }?.set()
            case .stopped(let number): state.withLock { $0.waits.removeValue(forKey: number) }?.over.set()
            case .lock where !onCallersThread: lock()
            case .list where !onCallersThread: list()
            case .lock: WorkQueue.shared.add { self.lock() }
            case .list: WorkQueue.shared.add { self.list() }
            case .check(let name): WorkQueue.shared.add { self.check(name) }
            case .send(let name): WorkQueue.shared.add { self.send(name) }
            case .settle(let name, let verdict): WorkQueue.shared.add { self.settle(name, verdict) }
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
            // The activity may have ended while the lock was taken.
            guard isTaken, state.lock == nil, activity == nil || state.activity.isGranted else {
                if !isTaken { state.missedLock = lock }
                return false
            }
            state.lock = lock
            // Another process may have tried by now.
            for id in state.entries.keys { state.entries[id]?.triedAt = nil }
            return true
        }
        // Before it is asked for again, which the answer may do.
        if !isNew { lock = nil }
        // Two questions may have been under way.
        endIdleActivity()
        post(.locked(isNew))
    }

    private func unlock() {
        // Before the activity ends.
        withExtendedLifetime(state.withLock { ($0.lock.take(), $0.missedLock.take()) }) {}
        endIdleActivity()
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
            WorkQueue.shared.add {
                self.look()
                // Stopped by now, or there is nothing to do any more.
                self.endIdleActivity()
            }
            // The system's thread: the activity lasts as long as this closure.
            return semaphore.wait()
        }
        state.withLock { state in
            if case .asked = state.activity { state.activity = .none }
        }
        post(.suspend)
    }

    /// Ends the activity, unless the lock is held.
    private func endIdleActivity() {
        let activity = state.withLock { state -> ExpiringActivity.State in
            guard state.lock == nil, state.activity.isGranted else { return .none }
            return exchange(&state.activity, with: .none)
        }
        if case .granted(let semaphore) = activity { semaphore.signal() }
    }

    // MARK: - The directory

    private func list() {
        // Before the list: a change during the look counts as a later one.
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
        guard name.hasOptions, let record = try? folder.read(name) else { return false }
        let now = clock.date
        return record.due(at: now) ?? .distantPast > now
    }

    /// Forgets what is known of entries that other processes have removed.
    private func forget(allBut ids: Set<UUID>) {
        let old = state.withLock { state in
            let gone = state.entries.filter { id, entry in
                !ids.contains(id) && !state.logic.knows(id) && entry.job == nil
            }
            for id in gone.keys { state.entries[id] = nil }
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
            // An entry that cannot be read is told when it is sent.
            after = error.code == .cancelled ? nil : []
        }
        let dead = after?.first(where: folder.hasReason)
        if let dead {
            let reason = Self.dependencyFailed(dead, folder.failure(of: dead))
            state.withLock { $0.entries[name.id, default: Entry()].phase = .dead(reason) }
        }
        post(.checked(name.id, after: after, hasDeadLetter: dead != nil, changes: folder.changes))
    }

    /// Removes an entry, or makes it a dead letter.
    private func settle(_ name: OutboxName, _ verdict: OutboxState.Verdict) {
        let phase = state.withLock { $0.entries[name.id]?.phase }
        do throws(NetworkError) {
            switch verdict {
            case .delivered:
                if case .delivered(let output) = phase { try folder.leave(output, of: name.id) }
                if name.hasOptions { try addNextPeriod(of: name) }
                try folder.remove(name, from: .entries)
            case .dead:
                try folder.alone { () throws(NetworkError) in try folder.bury(name, Self.reason(phase)) }
            }
            post(.settled(name.id, retryDelay: nil))
        } catch {
            post(.settled(name.id, retryDelay: delay(of: name.id, after: error)), after: error)
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
        let triedAt = state.withLock { $0.entries[name.id]?.triedAt } ?? clock.date
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
    static func id(after id: UUID) -> UUID {
        var bytes = withUnsafeBytes(of: id.uuid) { Array(SHA256.digest(of: Data($0))) }
        // Version 8 and the variant of RFC 9562, section 5.8.
        bytes[6] = bytes[6] & 0x0F | 0x80
        bytes[8] = bytes[8] & 0x3F | 0x80
        return bytes.withUnsafeBytes { UUID(bytes: $0) }
    }
}
