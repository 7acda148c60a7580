import Foundation

/// What an ``Outbox`` knows, and its next steps: events in, effects out. The state reads no clock and no file.
///
/// One outbox of a directory holds the lock and delivers. It knows the directory from a list of the entries, and from
/// the entries that it has added since. A counter on disk, `changes`, signals changes by other outboxes. If the counter
/// has grown since before the last list was read, the directory is read again. Events can arrive in any order,
/// including events that are no longer expected.
struct OutboxState: Hashable, Sendable {
    /// Whether the outbox delivers.
    enum Phase: Hashable, Sendable {
        case stopped
        /// Another outbox delivers, or none does.
        case waiting(Question)
        case delivering
        /// The lock is released when no entry is under way.
        case stopping(then: Sequel)
    }

    /// Whether the lock has been requested. If another request arrives before the result, the lock is requested again
    /// after a refusal, because it may have been released meanwhile.
    enum Question: Hashable, Sendable { case none, asked, askedAgain }

    /// The step that follows a stop.
    enum Sequel: Hashable, Sendable { case stopped, started, suspended }

    /// The final result of an entry that need not be sent again.
    enum Verdict: Hashable, Sendable { case delivered, dead }

    /// How an attempt to send an entry has ended.
    enum End: Hashable, Sendable {
        case verdict(Verdict)
        /// The entry has failed, or its time has not come.
        case postponed(OutboxIndex.Wait)
        /// The entry was not sent, because an older entry of its lane has been revived and comes first.
        case overtaken
        /// The entry no longer exists.
        case gone
    }

    enum Input: Hashable, Sendable {
        case start
        /// Delivers until the outbox is empty; `number` identifies the effect ``Effect/drained(_:)``.
        case drain(_ number: Int)
        /// Stops; `number` identifies the effect ``Effect/stopped(_:)``. The end of a drain doesn't stop an outbox that
        /// was started after that drain began.
        case stop(_ number: Int, after: Int? = nil)
        /// The app is about to be suspended.
        case suspend
        case locked(Bool)
        /// Time has passed, or something may have changed.
        case looked(changes: Int, isDue: Bool, isReachableAgain: Bool)
        /// The contents of the directory, `nil` if it could not be read; `changes` was read before.
        case listed([OutboxName: [UUID]]?, changes: Int)
        /// This process has put an entry into the directory, by adding or reviving it.
        case added(OutboxName, after: [UUID], changes: Int)
        /// This process has removed an entry from the directory.
        case removed(UUID)
        /// An entry that waits after a failure must be tried now.
        case retryRequested(UUID)
        /// The dependencies of an entry, `nil` if it has left the directory; `changes` was read after the dead letters.
        case checked(UUID, after: [UUID]?, hasDeadLetter: Bool, changes: Int)
        case ended(UUID, End)
        /// An entry has left the directory, or could not leave it and is settled again after a delay.
        case settled(UUID, retryDelay: TimeInterval?)
    }

    enum Effect: Hashable, Sendable {
        case lock
        case unlock
        /// Increases the counter, so that the outbox that delivers reads the directory.
        case signalChange
        case list
        case check(OutboxName)
        case send(OutboxName)
        case cancel(UUID)
        /// Removes an entry from the directory, or makes it a dead letter.
        case settle(OutboxName, Verdict)
        case tellFailed(UUID, delay: TimeInterval)
        case tellLeft(UUID, Verdict)
        /// A drain has ended. ``Input/stop(_:after:)`` follows.
        case drained(_ number: Int)
        case stopped(_ number: Int)
    }

    private enum Step: Hashable {
        case checking
        /// The entry is checked again when the directory has been read.
        case toBeChecked
        case sending
        case settling(Verdict)
    }

    /// An entry under way, which waits for the end of a step.
    private struct Work: Hashable {
        let name: OutboxName
        var step: Step
        /// Whether this process has removed the entry.
        var isGone = false
        /// Whether the entry has been added again since. If so, the directory is read when this work has ended.
        var isRevived = false
    }

    private struct Reading: Hashable {
        /// The drains that end if nothing is left to deliver.
        let drains: Set<Int>
        /// The entries that this process has added during the reading, which the list can miss.
        var late: [OutboxName: [UUID]] = [:]
    }

    /// The maximum number of entries under way, which limits the number of jobs.
    let window: Int
    /// Whether the lock is held only while there are entries to deliver.
    let releasesLock: Bool

    private(set) var phase = Phase.stopped
    /// The entries to be delivered.
    private(set) var index = OutboxIndex()
    private var work: [UUID: Work] = [:]
    /// The entries under way in their order, so that the effects have the same order each time.
    private var workInOrder: [Work] { work.values.sorted { $0.name.sequence < $1.name.sequence } }
    private var reading: Reading?
    /// Whether the list could not be read. The next check reads it again.
    private var hasFailed = false
    /// The counter's value before the last list was read. `changes` is its last known value.
    private var listedChanges = 0
    private var changes = 0
    /// Whether the directory has been read since the lock was taken.
    private var hasRead = false
    /// Whether the directory must be read even without a sign of a change.
    private var isDue = true
    private var drains: Set<Int> = []
    /// The drains that have ended, and whose stop has not come: whether the outbox was started since they began.
    private var endedDrains: [Int: Bool] = [:]
    private var stops: Set<Int> = []

    init(window: Int, releasesLock: Bool = false) {
        (self.window, self.releasesLock) = (window, releasesLock)
    }

    private var isStale: Bool { !hasRead || isDue || changes > listedChanges }

    /// Returns whether an entry that was chosen to be sent should still be sent.
    func wants(_ id: UUID) -> Bool {
        phase == .delivering && work[id].map { $0.step == .sending && !$0.isGone } ?? false
    }

    func isUnderWay(_ id: UUID) -> Bool { work[id] != nil }

    /// Whether the outbox delivers, or will as soon as it can.
    var isStarted: Bool {
        switch phase {
        case .stopped, .stopping(then: .stopped): false
        case .waiting, .delivering, .stopping: true
        }
    }

    /// Returns the time of the next check, without a sign of a change by other processes; `nil` if the outbox is
    /// stopped.
    ///
    /// - Parameter isTold: whether the system notifies this process of changes by other processes.
    func nextLook(at now: TimeInterval, isTold: Bool) -> TimeInterval? {
        guard isStarted else { return nil }
        // A drain without the lock reads the directory at each check.
        let isSoon = !isTold || hasFailed || !drains.isEmpty && phase != .delivering
        return min(isSoon ? now + Self.interval : .infinity, index.nextWake ?? .infinity)
    }

    /// The seconds between two checks where the system reports no changes.
    private static let interval: TimeInterval = 1

    /// Returns whether an entry is in the index. If so, its record need not be read again.
    func knows(_ id: UUID) -> Bool { index.contains(id) }

    /// The number of entries; `nil` if it isn't known.
    var count: Int? { phase == .delivering && !isStale ? index.count : nil }

    mutating func handle(_ event: Input, at now: TimeInterval) -> [Effect] {
        var effects: [Effect] = []
        switch event {
        case .start:
            endDrains(drains, &effects)
            for drain in endedDrains.keys { endedDrains[drain] = true }
            begin(&effects)
        case .drain(let number):
            drains.insert(number)
            begin(&effects)
            if case .waiting = phase { ask(&effects) }
        case .stop(let number, let drain):
            if let drain {
                drains.remove(drain)
                if endedDrains.removeValue(forKey: drain) == true { return [.stopped(number)] }
            }
            stops.insert(number)
            endDrains(drains, &effects)
            stop(then: .stopped, &effects)
        case .suspend: if phase == .delivering { stop(then: .suspended, &effects) }
        case .locked(let isLocked): locked(isLocked, &effects)
        case .looked(let changes, let isDue, let isReachableAgain):
            self.changes = max(self.changes, changes)
            if isDue { self.isDue = true }
            hasFailed = false
            index.wake(at: now, isReachableAgain: isReachableAgain)
            if case .waiting = phase {
                if !releasesLock || hasWork { ask(&effects) }
                read(&effects)
            }
        case .listed(let found, let changes): listed(found, changes, &effects)
        case .added(let name, let after, let changes): added(name, after, changes, &effects)
        case .removed(let id):
            if work[id] == nil { leave(id) }
            work[id]?.isGone = true
            if work[id]?.step == .sending { effects.append(.cancel(id)) }
            if phase != .delivering { effects.append(.signalChange) }
        case .retryRequested(let id): index.wake(id)
        case .checked(let id, let after, let hasDeadLetter, let changes):
            checked(id, after, hasDeadLetter, changes, &effects)
        case .ended(let id, let end): ended(id, end, now, &effects)
        case .settled(let id, let delay): settled(id, delay, now, &effects)
        }
        proceed(&effects)
        return effects
    }

    // MARK: - Phases

    private mutating func begin(_ effects: inout [Effect]) {
        switch phase {
        case .stopped: ask(&effects)
        case .stopping(then: .stopped), .stopping(then: .suspended): phase = .stopping(then: .started)
        case .stopping(then: .started), .waiting, .delivering: break
        }
    }

    private mutating func ask(_ effects: inout [Effect]) {
        switch phase {
        case .waiting(.asked), .waiting(.askedAgain): phase = .waiting(.askedAgain)
        default:
            phase = .waiting(.asked)
            effects.append(.lock)
        }
    }

    private mutating func locked(_ isLocked: Bool, _ effects: inout [Effect]) {
        guard case .waiting(let question) = phase else {
            // The outbox was stopped since the request. A lock that arrives now is released.
            if isLocked, phase == .stopped { effects.append(.unlock) }
            return
        }
        phase = isLocked ? .delivering : .waiting(.none)
        if !isLocked, question == .askedAgain { ask(&effects) }
        // A list that was read without the lock can be incomplete.
        if isLocked { (hasRead, isDue) = (false, true) }
    }

    private mutating func stop(then sequel: Sequel, _ effects: inout [Effect]) {
        switch phase {
        case .stopped: break
        case .waiting: phase = .stopped
        case .delivering, .stopping:
            phase = .stopping(then: sequel)
            for work in workInOrder {
                if work.step == .sending { effects.append(.cancel(work.name.id)) }
                if work.step == .toBeChecked { putBack(work.name.id) }
            }
        }
    }

    private mutating func endDrains(_ ended: Set<Int>, _ effects: inout [Effect]) {
        let ended = drains.intersection(ended)
        effects += ended.sorted().map { .drained($0) }
        for drain in ended { endedDrains[drain] = false }
        drains.subtract(ended)
    }

    /// Whether the lock is needed now.
    private var hasWork: Bool {
        isDue || changes > listedChanges || index.hasReady || !drains.isEmpty
    }

    /// Takes the steps that are possible now.
    private mutating func proceed(_ effects: inout [Effect]) {
        if case .stopping(let sequel) = phase, work.isEmpty {
            effects.append(.unlock)
            // After a stop, every entry is tried at once.
            if sequel != .suspended { index.wake(at: .infinity) }
            switch sequel {
            case .stopped: phase = .stopped
            case .started: ask(&effects)
            case .suspended: phase = .waiting(.none)
            }
        }
        switch phase {
        case .stopping: return
        case .stopped, .waiting:
            effects += stops.sorted().map { .stopped($0) }
            stops = []
        case .delivering:
            if isStale { read(&effects) }
            if hasRead { deliver(&effects) }
            guard work.isEmpty, reading == nil else { return }
            if !drains.isEmpty, index.isIdle {
                read(&effects)
            } else if releasesLock, !index.hasReady, !index.hasVerdict {
                effects.append(.unlock)
                phase = .waiting(.none)
            }
        }
    }

    // MARK: - The directory

    private mutating func read(_ effects: inout [Effect]) {
        // Without the lock, only a drain needs to know which entries are left.
        guard reading == nil, !hasFailed, phase == .delivering || !drains.isEmpty else { return }
        reading = Reading(drains: drains)
        if phase == .delivering { isDue = false }
        effects.append(.list)
    }

    private mutating func listed(_ found: [OutboxName: [UUID]]?, _ changes: Int, _ effects: inout [Effect]) {
        guard let reading = reading.take() else { return }
        self.changes = max(self.changes, changes)
        guard let found else {
            (isDue, hasFailed) = (true, true)
            return
        }
        if phase == .delivering {
            (hasRead, listedChanges) = (true, changes)
            adopt(found, late: reading.late, &effects)
            for work in workInOrder where work.step == .toBeChecked { enter(.checking, work.name, &effects) }
        }
        // Without the lock, this outbox knows only the list, because another outbox delivers.
        let isOver = phase == .delivering ? !isStale && work.isEmpty && index.isIdle : found.isEmpty
        if isOver { endDrains(reading.drains, &effects) }
    }

    private mutating func adopt(
        _ found: [OutboxName: [UUID]],
        late: [OutboxName: [UUID]],
        _ effects: inout [Effect]
    ) {
        let known = index.all.sorted { $0.sequence < $1.sequence }
        for name in known where found[name] == nil && late[name] == nil {
            // Another process has removed the entry, whose job may be waiting for a slot, the network, or a retry.
            switch work[name.id]?.step {
            case nil: index.remove(name.id)
            case .sending: effects.append(.cancel(name.id))
            case .checking, .toBeChecked, .settling: break
            }
        }
        // Entries without a lane are delivered in this order.
        for (name, after) in found.sorted(by: { $0.key.sequence < $1.key.sequence }) {
            index.insert(name, after: after)
            // An entry that is being made a dead letter here may already have been revived.
            if work[name.id]?.step == .settling(.dead) { work[name.id]?.isRevived = true }
        }
        // If other processes have added entries since, the next listing finds these as well.
        if !isStale { for (name, after) in late { index.insert(name, after: after) } }
    }

    private mutating func added(
        _ name: OutboxName,
        _ after: [UUID],
        _ changes: Int,
        _ effects: inout [Effect]
    ) {
        self.changes = max(self.changes, changes)
        work[name.id]?.isRevived = true
        // The entry was made a dead letter although that step failed, and has been revived.
        if index[verdict: name.id] == .dead { index[verdict: name.id] = nil }
        guard phase == .delivering else {
            effects.append(.signalChange)
            isDue = true
            // Possibly no process delivers now, so this one requests the lock.
            if releasesLock, case .waiting = phase { ask(&effects) }
            return
        }
        if reading != nil {
            reading?.late[name] = after
        } else if !isStale {
            index.insert(name, after: after)
        }
        // Otherwise, the entry is found when the directory is read.
    }

    /// Forgets an entry that has left the directory.
    private mutating func leave(_ id: UUID) {
        index.remove(id)
        if work.removeValue(forKey: id)?.isRevived == true { isDue = true }
    }

    /// Forgets an entry that was no longer in the directory.
    private mutating func vanish(_ id: UUID) {
        leave(id)
        // The entry may be in the directory again.
        isDue = true
    }

    // MARK: - Entries

    private mutating func deliver(_ effects: inout [Effect]) {
        while work.count < window, let name = index.next() {
            let first = name.hasDependencies ? Step.checking : .sending
            enter(index[verdict: name.id].map(Step.settling) ?? first, name, &effects)
        }
    }

    /// Starts the next step of an entry.
    private mutating func enter(_ step: Step, _ name: OutboxName, _ effects: inout [Effect]) {
        work[name.id, default: Work(name: name, step: step)].step = step
        switch step {
        case .checking: effects.append(.check(name))
        case .toBeChecked: break
        case .sending: effects.append(.send(name))
        case .settling(let verdict): effects.append(.settle(name, verdict))
        }
    }

    /// Puts an entry that was to be delivered back into the index.
    private mutating func putBack(_ id: UUID, after: [UUID]? = nil) {
        if work.removeValue(forKey: id)?.isGone == true { vanish(id) } else { index.putBack(id, after: after) }
    }

    private mutating func checked(
        _ id: UUID,
        _ after: [UUID]?,
        _ hasDeadLetter: Bool,
        _ changes: Int,
        _ effects: inout [Effect]
    ) {
        self.changes = max(self.changes, changes)
        guard let work = work[id], work.step == .checking else { return }
        guard let after else { return vanish(id) }
        guard phase == .delivering, !work.isGone else { return putBack(id, after: after) }
        if isStale || reading != nil {
            // A dead letter that the entry depends on may be an entry again.
            enter(.toBeChecked, work.name, &effects)
        } else if after.contains(where: index.contains) {
            putBack(id, after: after)
        } else {
            enter(hasDeadLetter ? .settling(.dead) : .sending, work.name, &effects)
        }
    }

    private mutating func ended(_ id: UUID, _ end: End, _ now: TimeInterval, _ effects: inout [Effect]) {
        guard let work = work[id], work.step == .sending else { return }
        switch end {
        case .verdict(let verdict): enter(.settling(verdict), work.name, &effects)
        case .overtaken: putBack(id)
        case .gone: vanish(id)
        case .postponed(let wait):
            guard phase == .delivering, !work.isGone else { return putBack(id) }
            self.work[id] = nil
            index.postpone(id, wait, at: now)
            if wait.reason == .failure { effects.append(.tellFailed(id, delay: wait.delay)) }
        }
    }

    private mutating func settled(_ id: UUID, _ delay: TimeInterval?, _ now: TimeInterval, _ effects: inout [Effect]) {
        guard let work = work[id], case .settling(let verdict) = work.step else { return }
        guard let delay else {
            effects.append(.tellLeft(id, verdict))
            return leave(id)
        }
        guard !work.isGone else { return putBack(id) }
        self.work[id] = nil
        index[verdict: id] = verdict
        index.postpone(id, OutboxIndex.Wait(delay: delay), at: now)
        effects.append(.tellFailed(id, delay: delay))
    }
}
