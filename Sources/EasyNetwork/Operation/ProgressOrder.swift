import Foundation

/// The order in which the progresses of one tree change, one after the other: on Linux the members of a tree are not safe
/// to change from several threads (counts are lost, and the process stops), and on Apple's platforms observers are called,
/// which must not happen under a lock.
///
/// A tree each, so that an observer that blocks holds up no other tree. Two orders become one when their trees do.
final class ProgressOrder: Sendable {
    private struct State {
        /// The order that this one has become part of.
        var whole: ProgressOrder?
        /// How many orders are parts of this one, remote ones included.
        var partCount = 0
        /// The threads that run changes: several only until those that ran before a union are done.
        var runnerCount = 0
        var waiting: [@Sendable () -> Void] = []
    }

    /// One lock for all orders, as a union changes two of them. It is held for some instructions.
    // Not of `()`: the thread sanitizer takes a change of nothing for one of what lies at its address.
    private static let lock = Locked(0)
    // Changed under `lock` only.
    private nonisolated(unsafe) var state = State()

    /// Adds a change, also under the lock that decides its place in the order. Call ``run()`` when that is open.
    func add(_ change: @escaping @Sendable () -> Void) {
        Self.lock.withLock { _ in whole.state.waiting.append(change) }
    }

    /// Makes the changes that were added, unless another thread is at it.
    func run() {
        let isFirst = Self.lock.withLock { _ in
            let whole = whole
            guard whole.state.runnerCount == 0 else { return false }
            whole.state.runnerCount = 1
            return true
        }
        guard isFirst else { return }
        while let changes = next() {
            for change in changes { change() }
        }
    }

    /// From now on this order and the other are one. What was added to either before runs first, and may run at the same
    /// time.
    func unite(with other: ProgressOrder) {
        Self.lock.withLock { _ in
            var (whole, part) = (whole, other.whole)
            guard whole !== part else { return }
            // The smaller one becomes the part, or a chain of orders would be as long as that of the groups.
            if whole.state.partCount < part.state.partCount { swap(&whole, &part) }
            whole.state.partCount += part.state.partCount + 1
            whole.state.runnerCount += part.state.runnerCount
            whole.state.waiting += part.state.waiting
            part.state = State(whole: whole)
        }
    }

    /// The order that this one is part of, or itself. Under the lock.
    private var whole: ProgressOrder {
        var order = self
        while let next = order.state.whole { order = next }
        return order
    }

    /// - Returns: nil when this thread is done: nothing waits, or another thread goes on.
    private func next() -> [@Sendable () -> Void]? {
        Self.lock.withLock { _ in
            let whole = whole
            if whole.state.runnerCount == 1, !whole.state.waiting.isEmpty { return whole.state.waiting.take() }
            whole.state.runnerCount -= 1
            return nil
        }
    }
}

/// A progress that may be cancelled, paused and resumed while it changes.
final class OrderedProgress: Progress, @unchecked Sendable {
    // Sendable because it is changed by one thread at a time, see `ProgressOrder`, and `userInfo` is behind a lock
    // where Foundation has none.
    let order = ProgressOrder()

    #if !canImport(Darwin)
    /// A program may put progresses of several orders into a tree of its own.
    private static let changeLock = Locked(0)
    private let userInfoLock = Locked(0)

    override var userInfo: [ProgressUserInfoKey: Any] {
        userInfoLock.withLock { _ in super.userInfo }
    }

    override func setUserInfoObject(_ objectOrNil: Any?, forKey key: ProgressUserInfoKey) {
        userInfoLock.withLock { _ in super.setUserInfoObject(objectOrNil, forKey: key) }
    }
    #endif

    /// One that is part of no other.
    static func root() -> OrderedProgress {
        OrderedProgress(parent: nil, userInfo: nil)
    }

    /// Changes counts, in the order of the tree.
    func count(_ change: () -> Void) {
        #if canImport(Darwin)
        change()
        #else
        // Nobody is called by that here: this Foundation has no observers.
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
