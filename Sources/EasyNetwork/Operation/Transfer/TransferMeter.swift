import Dispatch
import Foundation

/// Publishes the progress of a transfer in a `Progress`, in asynchronous sequences, and as a share in a group's
/// progress.
///
/// Counts can arrive thousands of times a second, on a thread that must not be blocked. They are published at most ten
/// times a second, on other threads. All members can be used from any thread.
package final class TransferMeter: Sendable {
    /// The number of transferred bytes, and the length of the body, `nil` while it is unknown.
    package typealias Count = (completedBytes: Int64, totalBytes: Int64?)

    private struct State {
        var completed: Int64 = 0
        var total: Int64?
        var rate: TransferRate?
        /// Whether the transfer succeeded; `nil` while it is running.
        var outcome: Bool?
        var lastPublication = -TimeInterval.infinity
        /// Whether a publication is planned that will have the latest change.
        var isPlanned = false
        /// The last publication.
        var latest: Count?
        /// Whether the end has been published.
        var isOver = false
        /// Whether a group has the share of the progress.
        var isShareClaimed = false
        var published: [@Sendable (Count) -> Void] = []

        /// - Returns: whether the number changed.
        mutating func move(to completed: Int64, at now: TimeInterval) -> Bool {
            guard completed != self.completed else { return false }
            if rate == nil { rate = TransferRate(completed: self.completed, at: now) }
            // Note the step back, because the rate must include it whatever follows.
            if completed < self.completed { rate?.note(completed: max(0, completed), at: now) }
            self.completed = max(0, completed)
            return true
        }
    }

    /// The minimum time between two publications, in seconds.
    private static let interval: TimeInterval = 0.1
    /// The time in seconds after which a rate is published again although no bytes were transferred, because it has
    /// fallen.
    private static let silence: TimeInterval = 1

    /// The progress in bytes, indeterminate until the total is known. It is finished only when the transfer has
    /// succeeded, because a finished progress must not go back when the transfer starts again. After a failure, it
    /// keeps its last value.
    let progress = OrderedProgress.root()
    private let clock: any NetworkClock
    private let state = Locked(State())
    /// Completes when the end has been published.
    private let isPublished = Promise<Void>()
    /// The alarm for the next publication.
    private let alarm = Alarm()
    let counts = Multicast<Count>()

    init(kind: Progress.FileOperationKind, clock: any NetworkClock) {
        self.clock = clock
        progress.kind = .file
        progress.totalUnitCount = -1
        // Set both, because the defaults on Linux are neither.
        progress.isCancellable = true
        progress.isPausable = false
        progress.setUserInfoObject(kind, forKey: .fileOperationKindKey)
    }

    // MARK: - Counting

    /// Notes that the transfer starts, or starts again.
    ///
    /// - Parameters:
    ///   - completed: the number of bytes fetched before.
    ///   - total: the length including those; `nil` if it is unknown.
    func begin(completed: Int64, total: Int64?) {
        change { state, now in
            state.completed = max(0, completed)
            state.total = total.flatMap { $0 < 0 ? nil : $0 }
            state.rate = TransferRate(completed: state.completed, at: now)
            return true
        }
    }

    func add(_ count: Int) {
        change { $0.move(to: $0.completed + Int64(count), at: $1) }
    }

    /// - Parameter completed: the number of transferred bytes. It is smaller than before if bytes are transferred
    ///   again.
    func set(completed: Int64) {
        change { $0.move(to: completed, at: $1) }
    }

    /// - Parameter completed: the number of transferred bytes. It has no effect if more bytes were counted before.
    func raise(to completed: Int64) {
        change { $0.move(to: max($0.completed, completed), at: $1) }
    }

    /// - Parameters:
    ///   - completed: the number of transferred bytes. It is smaller than before if bytes are transferred again.
    ///   - total: the length; `nil` if it is unknown.
    func set(completed: Int64, total: Int64?) {
        change { state, now in
            let isOther = exchange(&state.total, with: total) != total
            return state.move(to: completed, at: now) || isOther
        }
    }

    /// Sets the rate to 0, because no bytes are expected until the transfer starts again.
    func rest() {
        change { state, now in
            guard state.rate != nil else { return false }
            state.rate = TransferRate(completed: state.completed, at: now)
            return true
        }
    }

    /// Ends the transfer. Later counts and ends are ignored.
    ///
    /// - Returns: a promise that completes when the end has been published.
    @discardableResult
    func finish(success: Bool) -> Promise<Void> {
        change { state, _ in
            state.outcome = success
            // Publish the end at once.
            state.isPlanned = false
            state.lastPublication = -.infinity
            return true
        }
        return isPublished
    }

    private func change(_ change: (inout State, TimeInterval) -> Bool) {
        let now = clock.now
        let moment = state.withLock { state -> TimeInterval? in
            guard state.outcome == nil, change(&state, now), !state.isPlanned else { return nil }
            state.isPlanned = true
            return state.lastPublication + Self.interval
        }
        if let moment { publish(at: moment, now) }
    }

    // MARK: - Publishing

    /// Publishes at the given time, or now if it has passed. Nothing is published after the end.
    private func publish(at moment: TimeInterval, _ now: TimeInterval) {
        let isDue = moment <= now
        alarm.set(isDue || state.withLock { $0.outcome != nil } ? nil : moment, clock) { [weak self] in
            self?.publish()
        }
        if isDue { publish() }
    }

    /// Publishes one value at a time on another thread than the caller's, because observers of the progress can take
    /// long.
    private func publish() {
        WorkQueue.shared.add {
            self.progress.order.add { self.publishLatest() }
            self.progress.order.run()
        }
    }

    private func publishLatest() {
        let now = clock.now
        let found = state.withLock { state -> (count: Count, bytesPerSecond: Double, outcome: Bool?)? in
            guard !state.isOver else { return nil }
            state.isPlanned = false
            state.lastPublication = now
            state.rate?.note(completed: state.completed, at: now)
            return ((state.completed, state.total), state.rate?.bytesPerSecond(at: now) ?? 0, state.outcome)
        }
        guard let (count, bytesPerSecond, outcome) = found else { return }
        update(count, bytesPerSecond, outcome)
        let published = state.withLock { state in
            state.latest = count
            // Send under the lock, so that a new listener gets no older value after this one.
            counts.send(count)
            state.isOver = outcome != nil
            return state.published
        }
        if bytesPerSecond >= 1 { publish(at: now + Self.silence, now) }
        for action in published { action(count) }
        guard outcome != nil else { return }
        counts.finish()
        isPublished.set()
    }

    private func update(_ count: Count, _ bytesPerSecond: Double, _ outcome: Bool?) {
        var (completed, total) = count
        let rest = total.map { Double(max(0, $0 - completed)) }
        let secondsLeft = outcome == true || rest == 0 ? 0 : (rest ?? .infinity) / bytesPerSecond
        if outcome == true {
            total = max(1, completed, total ?? 0)
            completed = total ?? completed
        } else if let known = total {
            completed = min(completed, max(0, known - 1))
        }
        let totalUnitCount = total.map { $0 > 0 ? $0 : -1 } ?? -1
        progress.count {
            if progress.totalUnitCount != totalUnitCount {
                // On Linux, a change from one total to another leaves fractions of the wrong sign in the parent.
                if progress.totalUnitCount > 0 { progress.totalUnitCount = -1 }
                progress.totalUnitCount = totalUnitCount
            }
            progress.completedUnitCount = completed
        }
        let rate = NSNumber(value: Int(exactly: bytesPerSecond.rounded()) ?? .max)
        progress.setUserInfoObject(rate, forKey: .throughputKey)
        let isTimeKnown = outcome != false && secondsLeft.isFinite
        let time = isTimeKnown ? NSNumber(value: secondsLeft) : nil
        progress.setUserInfoObject(time, forKey: .estimatedTimeRemainingKey)
    }

    // MARK: - Listening

    /// Returns the latest value, followed by the next ones at most ten times a second, and a last one at the end. A
    /// slow reader misses intermediate values. The progress is changed before each value.
    func updates() -> AsyncStream<Count> {
        state.withLock { counts.stream(first: $0.latest) }
    }

    // MARK: - In a group

    private static let shareTotal: Int64 = 1_000

    /// Returns the share that a group adds to its own progress, once, because a progress can have only one parent.
    ///
    /// The group completes the share when the operation has finished in any way. The share counts in thousandths,
    /// because fractions of byte counts have no common denominator that Foundation on Linux could keep exact.
    func claimShare() -> OrderedProgress? {
        guard state.withLock({ !exchange(&$0.isShareClaimed, with: true) }) else { return nil }
        let share = OrderedProgress.root()
        share.totalUnitCount = Self.shareTotal
        share.cancellationHandler = { [weak progress] in progress?.cancel() }
        Self.observePauses(share) { [weak progress] isPaused in
            guard let progress, progress.isPausable else { return }
            if isPaused { progress.pause() } else { progress.resume() }
        }
        whenPublished { [weak self] _ in self?.update(share) }
        update(share)
        return share
    }

    /// Updates the share in the order of the group's changes, which another part of the group can delay.
    private func update(_ share: OrderedProgress) {
        share.order.add {
            guard let (completed, total) = self.state.withLock({ $0.latest }), !share.isFinished else { return }
            // Stop before the end of the share, because a transfer that starts again could not go back from there.
            let fraction = total.map { min(1, Double(completed) / Double(max(1, $0))) } ?? 0
            let thousandths = Int64(fraction * Double(Self.shareTotal))
            share.count { share.completedUnitCount = min(thousandths, Self.shareTotal - 1) }
        }
        share.order.run()
    }

    // MARK: - For the owner

    /// Adds an action for each publication.
    ///
    /// - Parameter action: called on background threads, one call at a time, with each publication.
    package func whenPublished(_ action: @escaping @Sendable (Count) -> Void) {
        state.withLock { $0.published.append(action) }
    }

    /// Makes the progress pausable.
    ///
    /// - Parameter action: called on background threads, one call at a time, with the state of the progress.
    func whenPauseChanges(_ action: @escaping @Sendable (_ isPaused: Bool) -> Void) {
        Self.observePauses(progress, action)
        progress.isPausable = true
    }

    /// On Linux, Foundation calls handlers concurrently, and the last call doesn't always have the last state.
    private static func observePauses(
        _ progress: OrderedProgress,
        _ action: @escaping @Sendable (_ isPaused: Bool) -> Void
    ) {
        let queue = DispatchQueue(label: "EasyNetwork.pauses", target: WorkQueue.shared)
        let tell: @Sendable () -> Void = { [weak progress, order = progress.order] in
            order.add { [weak progress] in
                guard let isPaused = progress?.isPaused else { return }
                queue.add { action(isPaused) }
            }
            order.run()
        }
        progress.pausingHandler = tell
        progress.resumingHandler = tell
    }
}
