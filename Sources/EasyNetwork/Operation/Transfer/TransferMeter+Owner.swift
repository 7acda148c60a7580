import Dispatch
import Foundation

/// What the operation that owns the meter, and the group that the operation is in, make of its progress.
extension TransferMeter {
    // MARK: - In a group

    /// What a group may make a child of its own progress: once, for it can have one parent.
    ///
    /// The group finishes it when the operation has finished, in whatever way. It counts in thousandths: fractions of
    /// byte counts have no common denominator that Foundation on Linux could keep exact.
    func claimShare() -> OrderedProgress? {
        let share = OrderedProgress.root()
        share.totalUnitCount = Self.shareTotal
        share.cancellationHandler = { [weak progress] in progress?.cancel() }
        Self.tellOfPauses(share) { [weak progress] isPaused in
            guard let progress, progress.isPausable else { return }
            if isPaused { progress.pause() } else { progress.resume() }
        }
        let isMine = state.withLock { state in
            defer { state.share = state.share ?? share }
            return state.share == nil
        }
        guard isMine else { return nil }
        update(share)
        return share
    }

    private static let shareTotal: Int64 = 1000

    /// In the order of the group, which another part of it may hold up.
    func update(_ share: OrderedProgress) {
        share.order.add {
            guard let latest = self.state.withLock({ $0.latest }), !share.isFinished else { return }
            // Not to its end, after which there is no way back for a transfer that begins anew.
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

    /// Lets the progress be paused.
    ///
    /// - Parameter action: called on background threads, one call at a time, with what the progress is then: paused or
    ///   not.
    func whenPauseChanges(_ action: @escaping @Sendable (_ isPaused: Bool) -> Void) {
        Self.tellOfPauses(progress, action)
        progress.isPausable = true
    }

    /// The handlers of Foundation run at the same time on Linux, and the last of them need not have the last word.
    private static func tellOfPauses(
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
