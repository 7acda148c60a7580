import Dispatch
import Foundation

/// Publishes how far a transfer is: in a `Progress`, in asynchronous sequences, and as a share in the progress of a group.
///
/// Counts may come thousands of times a second, on a thread that must not be blocked. They are published at most ten times
/// a second, on other threads. All members may be used from any thread.
final class TransferMeter: Sendable {
    enum Kind: String {
        case downloading = "NSProgressFileOperationKindDownloading"
        case uploading = "NSProgressFileOperationKindUploading"
    }

    struct State {
        var tally = TransferTally()
        var timer: (any ClockTimer)?
        /// Whether the rate will be looked at again, and the timer for that.
        var isLooking = false
        var lookTimer: (any ClockTimer)?
        /// The last publication.
        var latest: TransferProgress?
        var isOver = false
        var listeners: [Int: AsyncStream<TransferProgress>.Continuation] = [:]
        var lastListener = 0
        var share: OrderedProgress?
        /// Called after the last publication.
        var endActions: [@Sendable () -> Void] = []
    }

    /// In bytes; indeterminate until the total is known. It is finished when the transfer has succeeded and not before, for a
    /// finished progress must not go back when the transfer begins again. After a failure it stays where it was.
    let progress = OrderedProgress.root()
    private let clock: any NetworkClock
    let state = Locked(State())

    init(kind: Kind, clock: any NetworkClock) {
        self.clock = clock
        progress.kind = .file
        progress.totalUnitCount = -1
        // On Linux it is neither by default.
        progress.isCancellable = true
        progress.isPausable = false
        let operationKind = Progress.FileOperationKind(rawValue: kind.rawValue)
        progress.setUserInfoObject(operationKind, forKey: .fileOperationKindKey)
    }

    /// The owner may never have ended.
    deinit {
        for listener in state.withLock({ $0.listeners.values }) { listener.finish() }
    }

    // MARK: - Counting

    /// The transfer begins, or begins again.
    ///
    /// - Parameters:
    ///   - completed: the bytes that are there already.
    ///   - total: with those; nil when it is not known.
    func begin(completed: Int64, total: Int64?) {
        change { $0.begin(completed: completed, total: total, at: $1) }
    }

    func add(_ count: Int) {
        change { $0.add(count, at: $1) }
    }

    /// - Parameter completed: fewer than before when bytes are moved again.
    func set(completed: Int64) {
        change { $0.set(completed: completed, at: $1) }
    }

    /// No bytes are expected until the next beginning.
    func rest() {
        change { $0.rest(at: $1) }
    }

    /// Ends the transfer; later counts and ends are ignored.
    ///
    /// - Parameter then: called on a background thread when the end has been published.
    func finish(success: Bool, then: (@Sendable () -> Void)? = nil) {
        let (timers, isOver) = state.withLock { state in
            if !state.isOver, let then { state.endActions.append(then) }
            return ([state.timer.take(), state.lookTimer.take()], state.isOver)
        }
        for timer in timers { timer?.cancel() }
        change { tally, _ in tally.finish(success: success) }
        if isOver { then?() }
    }

    private func change(_ change: (inout TransferTally, TimeInterval) -> TimeInterval?) {
        let now = clock.now
        guard let delay = state.withLock({ change(&$0.tally, now) }) else { return }
        if delay > 0 { setTimer(after: delay, isLook: false) } else { publish() }
    }

    /// - Parameter isLook: whether it is time for a look at the rate then, or for a publication.
    private func setTimer(after delay: TimeInterval, isLook: Bool) {
        let timer = clock.schedule(after: delay) { [weak self] in
            if isLook { self?.look() } else { self?.publish() }
        }
        let isOver = state.withLock { state in
            if state.tally.outcome != nil { return true }
            if isLook { state.lookTimer = timer } else { state.timer = timer }
            return false
        }
        if isOver { timer.cancel() }
    }

    /// Publishes the rate again if it has fallen because nothing has come.
    private func look() {
        state.withLock { $0.isLooking = false }
        change { $0.look(at: $1) }
    }

    // MARK: - Publishing

    /// A single publication at a time, and not on the caller's thread: observers of the progress may take long.
    private func publish() {
        WorkQueue.shared.async {
            self.progress.order.add { self.publishLatest() }
            self.progress.order.run()
        }
    }

    private func publishLatest() {
        let now = clock.now
        let (latest, outcome, mustLook) = state.withLock { state in
            let latest = state.tally.take(at: now)
            if let latest {
                state.latest = latest
                // Under the lock, so that a new listener gets no older value after this one.
                for listener in state.listeners.values { listener.yield(latest) }
            }
            state.isOver = state.tally.outcome != nil
            let mustLook = !state.isOver && !state.isLooking && state.tally.mayFall
            if mustLook { state.isLooking = true }
            return (latest, state.tally.outcome, mustLook)
        }
        if mustLook { setTimer(after: TransferTally.lookInterval, isLook: true) }
        if let latest {
            update(latest, outcome: outcome)
            if let share = state.withLock({ $0.share }) { update(share) }
        }
        guard outcome != nil else { return }
        let (listeners, actions) = state.withLock { (exchange(&$0.listeners, with: [:]), $0.endActions.take()) }
        for listener in listeners.values { listener.finish() }
        for action in actions { WorkQueue.shared.async(execute: action) }
    }

    private func update(_ latest: TransferProgress, outcome: Bool?) {
        var total = latest.totalBytes
        var completed = latest.completedBytes
        if outcome == true {
            total = max(1, completed, total ?? 0)
            completed = total ?? completed
        } else if let known = total {
            completed = min(completed, max(0, known - 1))
        }
        let totalUnitCount = total.map { $0 > 0 ? $0 : -1 } ?? -1
        progress.count {
            if progress.totalUnitCount != totalUnitCount {
                // On Linux a change from one total to another leaves fractions of the wrong sign in the parent.
                if progress.totalUnitCount > 0 { progress.totalUnitCount = -1 }
                progress.totalUnitCount = totalUnitCount
            }
            progress.completedUnitCount = completed
        }
        progress.setUserInfoObject(NSNumber(value: Int(clamped: latest.bytesPerSecond)), forKey: .throughputKey)
        let secondsLeft = latest.secondsLeft.map { NSNumber(value: $0) }
        progress.setUserInfoObject(secondsLeft, forKey: .estimatedTimeRemainingKey)
    }

    // MARK: - Listening

    /// The latest value now, the next ones at most ten times a second, and a last one at the end. A slow reader misses the
    /// values between.
    func updates() -> AsyncStream<TransferProgress> {
        let (stream, listener) = AsyncStream.makeStream(of: TransferProgress.self, bufferingPolicy: .bufferingNewest(1))
        let (number, isOver) = state.withLock { state in
            state.lastListener += 1
            if let latest = state.latest { listener.yield(latest) }
            if !state.isOver { state.listeners[state.lastListener] = listener }
            return (state.lastListener, state.isOver)
        }
        if isOver { listener.finish() }
        listener.onTermination = { [weak self] _ in
            // Released outside the lock.
            let listener = self?.state.withLock { $0.listeners.removeValue(forKey: number) }
            withExtendedLifetime(listener) {}
        }
        return stream
    }

    // MARK: - In a group

    private static let shareTotal: Int64 = 1_000

    /// The share that a group makes a part of its own progress, once, for it can have one parent.
    ///
    /// The group finishes it when the operation has finished in any way. It counts in thousandths: fractions of byte counts
    /// have no common denominator that Foundation on Linux could keep exact.
    func claimShare() -> OrderedProgress? {
        let share = OrderedProgress.root()
        share.totalUnitCount = Self.shareTotal
        share.cancellationHandler = { [weak progress] in progress?.cancel() }
        Self.observePauses(share) { [weak progress] isPaused in
            guard let progress, progress.isPausable else { return }
            if isPaused { progress.pause() } else { progress.resume() }
        }
        let isFirst = state.withLock { state in
            defer { state.share = state.share ?? share }
            return state.share == nil
        }
        guard isFirst else { return nil }
        update(share)
        return share
    }

    /// In the order of the group, which another part of it may hold up.
    private func update(_ share: OrderedProgress) {
        share.order.add {
            guard let latest = self.state.withLock({ $0.latest }), !share.isFinished else { return }
            // Not to its end: a transfer that begins again could not go back from there.
            let thousandths = Int64((latest.fractionCompleted ?? 0) * Double(Self.shareTotal))
            share.count { share.completedUnitCount = min(thousandths, Self.shareTotal - 1) }
        }
        share.order.run()
    }

    // MARK: - For the owner

    /// - Parameter action: called on a background thread when the progress is cancelled.
    func whenCancelled(_ action: @escaping @Sendable () -> Void) {
        progress.cancellationHandler = action
    }

    /// Makes the progress pausable.
    ///
    /// - Parameter action: called on background threads, one call at a time, with the state of the progress.
    func whenPauseChanges(_ action: @escaping @Sendable (_ isPaused: Bool) -> Void) {
        Self.observePauses(progress, action)
        progress.isPausable = true
    }

    /// On Linux, Foundation calls handlers at the same time, and the last call need not have the last state.
    private static func observePauses(
        _ progress: OrderedProgress,
        _ action: @escaping @Sendable (_ isPaused: Bool) -> Void
    ) {
        let queue = DispatchQueue(label: "EasyNetwork.pauses", target: WorkQueue.shared)
        let order = progress.order
        let tell: @Sendable () -> Void = { [weak progress] in
            order.add { [weak progress] in
                guard let isPaused = progress?.isPaused else { return }
                queue.async { action(isPaused) }
            }
            order.run()
        }
        progress.pausingHandler = tell
        progress.resumingHandler = tell
    }
}

extension Int {
    fileprivate init(clamped value: Double) {
        self = Int(exactly: value.rounded()) ?? (value > 0 ? .max : 0)
    }
}
