import Foundation

/// Changes of all progresses, one after the other: on Linux the members of a tree of them are not safe to change from
/// several threads (counts are lost, and the process stops), and on Apple's platforms observers are called, which must
/// not happen under a lock.
///
/// One for all and not for each tree: what is changing its progress may be put into a group meanwhile, and which changes
/// come first must be certain then, too.
enum ProgressUpdates {
    private static let turns = TurnTaking()

    /// Adds a change, also under the lock that decides its place in the order. Call ``run()`` when that is open.
    static func add(_ change: @escaping @Sendable () -> Void) {
        turns.add(change)
    }

    /// Makes the changes that were added, unless another thread is at it.
    static func run() {
        turns.run()
    }
}

/// A progress that may be cancelled, paused and resumed while it changes.
final class OrderedProgress: Progress, @unchecked Sendable {
    // Sendable because it is changed by one thread at a time, see `ProgressUpdates`, and `userInfo` is behind a lock
    // where Foundation has none.
    #if !canImport(Darwin)
    private let userInfoLock = Locked(())

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

    override func cancel() {
        change { super.cancel() }
    }

    override func pause() {
        change { super.pause() }
    }

    override func resume() {
        change { super.resume() }
    }

    private func change(_ change: @escaping @Sendable () -> Void) {
        ProgressUpdates.add(change)
        ProgressUpdates.run()
    }
}
