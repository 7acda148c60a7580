import Foundation

/// A value behind a lock.
///
/// Nothing that belongs to somebody else — a callback, a delegate, a transport — may be called inside ``withLock(_:)``;
/// take what is needed out of the state, leave, then call.
package final class Locked<State>: @unchecked Sendable {
    // Sendable because `state` is touched only between lock and unlock. `Mutex` of the Synchronization module would
    // say so without a promise, but needs macOS 15 and iOS 18.
    private let lock = Lock()
    // The lock gives exclusive access; a check at run time would cost each use.
    @exclusivity(unchecked) private var state: State

    package init(_ state: State) {
        self.state = state
    }

    deinit {
        lock.dispose()
    }

    @inline(__always)
    package func withLock<Result>(_ body: (inout State) throws -> Result) rethrows -> Result {
        lock.lock()
        defer { lock.unlock() }
        return try body(&state)
    }

    /// Replaces the state and returns the old one, so that it is released outside the lock.
    @discardableResult
    package func exchange(_ new: State) -> State {
        withLock { Swift.exchange(&$0, with: new) }
    }
}

#if canImport(Darwin)
/// A lock of the system's.
private struct Lock {
    private let base = NSLock()

    func lock() { base.lock() }
    func unlock() { base.unlock() }
    func dispose() {}
}
#else
/// A POSIX mutex. Foundation's `NSLock` has three objects and a condition to each: an operation has several locks, and
/// a hundred thousand of them wait at once.
private struct Lock {
    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)

    init() {
        mutex.initialize(to: pthread_mutex_t())
        // Without attributes it cannot fail.
        pthread_mutex_init(mutex, nil)
    }

    func lock() { pthread_mutex_lock(mutex) }
    func unlock() { pthread_mutex_unlock(mutex) }

    func dispose() {
        pthread_mutex_destroy(mutex)
        mutex.deallocate()
    }
}
#endif
