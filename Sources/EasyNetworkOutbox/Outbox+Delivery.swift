import EasyNetwork
import Foundation

/// The steps of a delivery: the lock, the directory, and the entries that are due.
extension Outbox {
    /// The maximum number of jobs in the queue at once.
    static let window = 32
    /// The seconds between two readings of the directory without a sign of a change, and between two checks of a
    /// condition.
    static let longInterval: TimeInterval = 120
    /// The longest wait for a date, in seconds, because the system's clock can be changed or pause in sleep. Also the
    /// seconds between two sweeps.
    static let longWait: TimeInterval = 3_600

    /// Checks for changes since the last check. Called on a background thread, because it reads the directory.
    func checkForChanges() {
        // Query the network's status only if it has reported a change.
        let isReachable = !state.withLock { $0.networkHasChanged } || network.status != .unreachable
        let (changes, now) = (folder.changes, clock.now)
        let look = state.withLock { state -> OutboxState.Input? in
            guard state.logic.isStarted else { return nil }
            let isDue = now >= state.nextLoad
            if isDue { state.nextLoad = now + Self.longInterval }
            // Every waiting entry is tried at once when the network returns or becomes cheaper.
            let isBack = isReachable && state.networkHasChanged
            if isBack { state.networkHasChanged = false }
            return .looked(changes: changes, isDue: isDue, isReachableAgain: isBack)
        }
        if let look { post(look) }
    }

    /// Observes changes by other processes and of the network from now on.
    func listen() {
        let now = clock.now
        state.withLock { $0.nextLoad = now + Self.longInterval }
        #if os(Linux) || canImport(Darwin)
        // An app that is about to be suspended must not be notified that its own lock was released.
        if activity == nil, state.withLock({ $0.watch == nil }) {
            let watch = OutboxWatch(folder.root) { [weak self] in self?.checkForChanges() }
            let old = state.withLock { state in state.watch == nil ? exchange(&state.watch, with: watch) : watch }
            withExtendedLifetime(old) {}
        }
        #endif
        if let network = service.configuration.settings.reachability { observe(network) }
    }

    /// Observes changes of the network from now on.
    func observe(_ network: NetworkReachability) {
        guard state.withLock({ $0.networkTask == nil }) else { return }
        // The stream is created before the task starts, which can be late, so that no change in between is missed.
        let changes = network.changes
        let task = WorkQueue.task { [weak self] in
            for await _ in changes {
                guard let self else { return }
                self.state.withLock { $0.networkHasChanged = true }
                WorkQueue.shared.add { self.checkForChanges() }
            }
        }
        let isNew = state.withLock { state in
            if state.networkTask == nil { state.networkTask = task }
            return state.networkTask == task
        }
        if !isNew { task.cancel() }
    }

    func schedule() {
        let now = clock.now
        alarm.set(nextLook(at: now), clock) { [weak self] in
            guard let self else { return }
            WorkQueue.shared.add { self.checkForChanges() }
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

    /// Passes an event to the ``OutboxState``, and performs the effects that it returns.
    ///
    /// - Parameters:
    ///   - error: why the entry of the event is not delivered yet.
    ///   - time: the time of the event on the clock. Defaults to `nil`, which is now.
    ///   - onCallersThread: whether this is a user's thread. If so, slow effects run on a background thread.
    func post(
        _ event: OutboxState.Input,
        after error: NetworkError? = nil,
        at time: TimeInterval? = nil,
        onCallersThread: Bool = false
    ) {
        let time = time ?? clock.now
        for effect in state.withLock({ $0.logic.handle(event, at: time) }) {
            switch effect {
            case .signalChange: folder.signalChange()
            case .cancel(let id): state.withLock { $0.entries[id]?.job }?.cancel()
            case .unlock: unlock()
            case .tellFailed(let id, let delay): tellFailure(id, error ?? NetworkError(code: .cancelled), delay)
            case .tellLeft(let id, let verdict): tellEnd(id, verdict)
            case .drained(let number), .stopped(let number):
                state.withLock { $0.waits.removeValue(forKey: number) }?.set()
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
            // The activity may have ended while the lock was being taken.
            guard isTaken, state.lock == nil, activity == nil || state.activity.isGranted else {
                if !isTaken { state.missedLock = lock }
                return false
            }
            state.lock = lock
            // Another process may have tried the entries in the meantime, so their tries are read again.
            for id in state.entries.keys { state.entries[id]?.triedAt = nil }
            return true
        }
        // Release the unused lock before posting `.locked`, which can request the lock again.
        if !isNew { lock = nil }
        // Two requests for the lock may have been in progress.
        endIdleActivity()
        post(.locked(isNew))
    }

    private func unlock() {
        // The lock must be released before the activity ends.
        withExtendedLifetime(state.withLock { ($0.lock.take(), $0.missedLock.take()) }) {}
        endIdleActivity()
    }

    /// Requests the activity that this outbox needs, unless it was requested before.
    ///
    /// - Returns: whether the activity is granted or not needed.
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
                self.checkForChanges()
                // The outbox may have been stopped, or may have nothing to do.
                self.endIdleActivity()
            }
            // Block the system's thread, because the activity lasts until this closure returns.
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
        // The counter is read before the list, so that a change during the listing counts as a later one.
        let changes = folder.changes
        let now = clock.now
        let (isDelivering, sweeps) = state.withLock { state in
            let (isDelivering, sweeps) = (state.logic.phase == .delivering, now >= state.nextSweep)
            if isDelivering, sweeps { state.nextSweep = now + Self.longWait }
            return (isDelivering, isDelivering && sweeps)
        }
        if sweeps { folder.sweep() }
        if isDelivering { adoptJournals() }
        let found = (try? folder.wholeList()).map { all in
            // A drain while another process delivers does not wait for an entry whose time has not come.
            let names = isDelivering ? all : all.filter { !isEarly($0) }
            let unknown = state.withLock { state in names.filter { $0.hasDependencies && !state.logic.knows($0.id) } }
            var found = Dictionary(names.map { ($0, [UUID]()) }) { first, _ in first }
            // A damaged record is reported when its entry's turn comes.
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

    /// Forgets what is known about entries that other processes have removed.
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

    /// Checks whether an entry that this one depends on is a dead letter.
    private func check(_ name: OutboxName) {
        let after: [UUID]?
        do throws(NetworkError) {
            after = try folder.read(name).after
        } catch {
            // An entry that cannot be read is reported when it is sent.
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
                try folder.alone { () throws(NetworkError) in try folder.makeDeadLetter(name, Self.reason(phase)) }
            }
            post(.settled(name.id, retryDelay: nil))
        } catch {
            post(.settled(name.id, retryDelay: delay(of: name.id, after: error)), after: error)
        }
    }

    /// Adds the entry of the next period after one was delivered, unless another entry has replaced the delivered one.
    private func addNextPeriod(of name: OutboxName) throws(NetworkError) {
        let record: OutboxRecord
        do throws(NetworkError) {
            record = try folder.read(name)
        } catch {
            // The entry was removed or is damaged. Other errors are thrown, so that this step is tried again.
            guard [.cancelled, .cannotParseResponse].contains(error.code) else { throw error }
            return
        }
        guard let options = record.options, let period = options.period, let unique = options.unique else { return }
        // The name is the same each time, because this step is repeated after a kill.
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
        // The dependency keeps the next entry from being sent while this one can still be sent again.
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

    /// Returns the id of the entry of the next period.
    static func id(after id: UUID) -> UUID {
        var bytes = withUnsafeBytes(of: id.uuid) { Array(SHA256.digest(of: Data($0))) }
        // Version 8 and the variant of RFC 9562, section 5.8.
        bytes[6] = bytes[6] & 0x0F | 0x80
        bytes[8] = bytes[8] & 0x3F | 0x80
        return bytes.withUnsafeBytes { UUID(bytes: $0) }
    }
}
