import Foundation

/// Tells of a transfer: a `Progress`, any number of asynchronous sequences, and a share in the progress of a group.
///
/// The counts may come thousands of times a second, on a thread that must not be held up; what they are is published
/// ten times a second at most, on other threads. Everything may be called from any thread.
final class TransferMeter: Sendable {
    enum Kind: String {
        case downloading = "NSProgressFileOperationKindDownloading"
        case uploading = "NSProgressFileOperationKindUploading"
    }

    typealias Listener = AsyncStream<TransferProgress>.Continuation

    struct State {
        var tally = TransferTally()
        var timer: (any ClockTimer)?
        /// Whether there will be another look at the rate.
        var isLooking = false
        var lookTimer: (any ClockTimer)?
        /// What has been published last.
        var latest: TransferProgress?
        var isOver = false
        var listeners: [Int: Listener] = [:]
        /// Those that have heard nothing yet.
        var newcomers: [Int: Listener] = [:]
        var lastListener = 0
        var share: OrderedProgress?
        /// What waits for the last publication.
        var endActions: [@Sendable () -> Void] = []
    }

    /// In bytes; indeterminate until the total is known. It is finished when the transfer has succeeded and not before,
    /// for what is finished must not go back when the transfer begins anew; of one that failed it stays where it was.
    let progress: OrderedProgress
    private let clock: any NetworkClock
    let state = Locked(State())

    init(kind: Kind, clock: any NetworkClock) {
        self.clock = clock
        progress = OrderedProgress.root()
        progress.kind = .file
        progress.totalUnitCount = -1
        // On Linux it is neither by default.
        progress.isCancellable = true
        progress.isPausable = false
        let operationKind = Progress.FileOperationKind(rawValue: kind.rawValue)
        progress.setUserInfoObject(operationKind, forKey: .fileOperationKindKey)
    }

    /// Its owner never ended.
    deinit {
        let (listeners, newcomers) = state.withLock { ($0.listeners, $0.newcomers) }
        for listener in listeners.values { listener.finish() }
        for listener in newcomers.values { listener.finish() }
    }

    // MARK: - Counting

    /// The transfer begins, or begins anew.
    ///
    /// - Parameters:
    ///   - completed: the bytes that are there already.
    ///   - total: with those; nil when it is not known.
    func begin(completed: Int64, total: Int64?) {
        let now = clock.now
        perform(state.withLock { $0.tally.begin(completed: completed, total: total, at: now) })
    }

    func add(_ count: Int) {
        let now = clock.now
        perform(state.withLock { $0.tally.add(count, at: now) })
    }

    /// - Parameter completed: fewer than before when what was moved is moved again.
    func set(completed: Int64) {
        let now = clock.now
        perform(state.withLock { $0.tally.set(completed: completed, at: now) })
    }

    /// Nothing is to come until the next beginning.
    func rest() {
        let now = clock.now
        perform(state.withLock { $0.tally.rest(at: now) })
    }

    /// The transfer is over; what is counted afterwards is ignored, and so is another end.
    ///
    /// - Parameter then: called on a background thread when that has been published.
    func finish(success: Bool, then: (@Sendable () -> Void)? = nil) {
        let (step, timers, isOver) = state.withLock { state in
            if !state.isOver, let then { state.endActions.append(then) }
            let timers = [state.timer.take(), state.lookTimer.take()]
            return (state.tally.finish(success: success), timers, state.isOver)
        }
        for timer in timers { timer?.cancel() }
        perform(step)
        if isOver { then?() }
    }

    // MARK: - Publishing

    private func perform(_ step: TransferTally.Step) {
        switch step {
        case .nothing: break
        case .publish: publish()
        case .publishLater(let delay):
            let timer = clock.schedule(after: delay) { self.publish() }
            let isOver = state.withLock { state in
                let isOver = state.tally.outcome != nil
                if !isOver { state.timer = timer }
                return isOver
            }
            if isOver { timer.cancel() }
        }
    }

    private func publish() {
        inTurn { self.publishNewest() }
    }

    /// One thread at a time, and not the caller's: observers of the progress may take their time.
    private func inTurn(_ work: @escaping @Sendable () -> Void) {
        WorkQueue.shared.async { [order = progress.order] in
            order.add(work)
            order.run()
        }
    }

    private func publishNewest() {
        let now = clock.now
        let (latest, outcome, share, listeners, actions) = state.withLock { state in
            let latest = state.tally.take(at: now)
            if let latest { state.latest = latest }
            let outcome = state.tally.outcome
            state.isOver = outcome != nil
            let listeners = Array(state.listeners.values)
            if state.isOver { state.listeners = [:] }
            return (latest, outcome, state.share, listeners, state.endActions.take())
        }
        if outcome == nil { lookAgain() }
        if let latest {
            update(latest, outcome: outcome)
            if let share { update(share) }
            for listener in listeners { listener.yield(latest) }
        }
        guard outcome != nil else { return }
        for listener in listeners { listener.finish() }
        for action in actions { WorkQueue.shared.async(execute: action) }
    }

    /// Where nothing comes any more, nothing else would tell that the rate falls. Only called by one thread at a time.
    private func lookAgain() {
        let isNew = state.withLock { state in
            guard !state.isLooking, state.tally.mayFall else { return false }
            state.isLooking = true
            return true
        }
        guard isNew else { return }
        let timer = clock.schedule(after: TransferTally.lookInterval) { [weak self] in self?.look() }
        let isWanted = state.withLock { state in
            guard state.isLooking, state.tally.outcome == nil else { return false }
            state.lookTimer = timer
            return true
        }
        if !isWanted { timer.cancel() }
    }

    private func look() {
        let now = clock.now
        let (step, timer) = state.withLock { state in
            state.isLooking = false
            return (state.tally.look(at: now), state.lookTimer.take())
        }
        withExtendedLifetime(timer) {}
        perform(step)
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
                // On Linux a change from one total to another leaves fractions behind whose sign goes wrong in the end.
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

    /// The newest value now, and whenever there is another, ten times a second at most; a last one at the end, after
    /// which the sequence ends. Who is slow misses what is not the newest.
    func updates() -> AsyncStream<TransferProgress> {
        let (stream, listener) = AsyncStream.makeStream(of: TransferProgress.self, bufferingPolicy: .bufferingNewest(1))
        let number = state.withLock { state in
            state.lastListener += 1
            state.newcomers[state.lastListener] = listener
            return state.lastListener
        }
        listener.onTermination = { [weak self] _ in self?.remove(number) }
        // In turn, as what is newest now is not to come behind what is newer.
        inTurn { self.greetNewcomers() }
        return stream
    }

    private func greetNewcomers() {
        let (latest, isOver, newcomers) = state.withLock { state in
            let newcomers = state.newcomers
            state.newcomers = [:]
            if !state.isOver { state.listeners.merge(newcomers) { $1 } }
            return (state.latest, state.isOver, newcomers.values)
        }
        for listener in newcomers {
            if let latest { listener.yield(latest) }
            if isOver { listener.finish() }
        }
    }

    private func remove(_ number: Int) {
        // Let go of outside the lock.
        let listeners = state.withLock { state in
            (state.listeners.removeValue(forKey: number), state.newcomers.removeValue(forKey: number))
        }
        withExtendedLifetime(listeners) {}
    }
}

extension Int {
    fileprivate init(clamped value: Double) {
        self = Int(exactly: value.rounded()) ?? (value > 0 ? .max : 0)
    }
}
