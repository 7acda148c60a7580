import Foundation

/// Runs the changes of the progresses of one tree one after the other. On Linux, changes from several threads lose
/// counts and crash the process. On Apple's platforms, a change calls observers, which must not happen under a lock.
///
/// Each tree has its own order, so that an observer that blocks delays no other tree. Two orders become one when their
/// trees do (union by size).
final class ProgressOrder: Sendable {
    private struct State {
        /// The order that this one has become a part of.
        var whole: ProgressOrder?
        /// The number of orders that are parts of this one, at any depth.
        var partCount = 0
        /// The number of threads that run changes. It exceeds 1 only after a union, until the changes from before have
        /// run.
        var runnerCount = 0
        var waiting: [@Sendable () -> Void] = []
    }

    /// A lock for all orders, because a union changes two of them. It is held for a few instructions.
    // The value is not `()`, because the thread sanitizer would report a race at its address.
    private static let lock = Locked(0)
    // The state is only used under `lock`, which belongs to no single order.
    private nonisolated(unsafe) var state = State()

    /// Adds a change, possibly under a lock that determines its position. Call ``run()`` outside that lock.
    func add(_ change: @escaping @Sendable () -> Void) {
        Self.lock.withLock { _ in whole.state.waiting.append(change) }
    }

    /// Runs the added changes, unless another thread runs them.
    func run() {
        let isFirst = Self.lock.withLock { _ in
            let whole = whole
            guard whole.state.runnerCount == 0 else { return false }
            whole.state.runnerCount = 1
            return true
        }
        guard isFirst else { return }
        while let changes = next() {
            // Observers can block.
            WorkQueue.userCode { for change in changes { change() } }
        }
    }

    /// Unites this order and another one. Changes that were added to them before can run concurrently.
    func unite(with other: ProgressOrder) {
        Self.lock.withLock { _ in
            var (whole, part) = (whole, other.whole)
            guard whole !== part else { return }
            // The smaller order becomes the part, which keeps the path to the whole short.
            if whole.state.partCount < part.state.partCount { swap(&whole, &part) }
            whole.state.partCount += part.state.partCount + 1
            whole.state.runnerCount += part.state.runnerCount
            whole.state.waiting += part.state.waiting
            part.state = State(whole: whole)
        }
    }

    /// The order that this one is a part of, or itself. Call it under the lock.
    private var whole: ProgressOrder {
        var order = self
        while let next = order.state.whole { order = next }
        return order
    }

    /// - Returns: the next changes; `nil` if none are left for this thread.
    private func next() -> [@Sendable () -> Void]? {
        Self.lock.withLock { _ in
            let whole = whole
            if whole.state.runnerCount == 1, !whole.state.waiting.isEmpty { return whole.state.waiting.take() }
            whole.state.runnerCount -= 1
            return nil
        }
    }
}

/// A `Progress` that can be cancelled, paused and resumed while it changes.
final class OrderedProgress: Progress, @unchecked Sendable {
    // Sendable because one thread at a time changes it, see `ProgressOrder`, and `userInfo` has a lock on Linux, where
    // Foundation's is unprotected.
    let order = ProgressOrder()

    #if !canImport(Darwin)
    /// The lock for changes, because an app can put progresses of several orders into one tree.
    private static let changeLock = Locked(0)
    private let userInfoLock = Locked(0)

    override var userInfo: [ProgressUserInfoKey: Any] {
        userInfoLock.withLock { _ in super.userInfo }
    }

    override func setUserInfoObject(_ objectOrNil: Any?, forKey key: ProgressUserInfoKey) {
        userInfoLock.withLock { _ in super.setUserInfoObject(objectOrNil, forKey: key) }
    }
    #endif

    /// A progress without a parent.
    static func root() -> OrderedProgress {
        OrderedProgress(parent: nil, userInfo: nil)
    }

    /// Changes counts, in the order of the tree.
    func count(_ change: () -> Void) {
        #if canImport(Darwin)
        change()
        #else
        // Foundation on Linux has no observers that the change could call.
        Self.changeLock.withLock { _ in change() }
        #endif
    }

    override func cancel() {
        inOrder { super.cancel() }
    }

    override func pause() {
        inOrder { super.pause() }
    }

    override func resume() {
        inOrder { super.resume() }
    }

    private func inOrder(_ change: @escaping @Sendable () -> Void) {
        order.add(change)
        order.run()
    }
}
