import Foundation

/// A value behind a lock.
///
/// Do not call a callback, a delegate or a transport inside ``withLock(_:)``: copy what the call needs, leave, then call.
package final class Locked<State>: @unchecked Sendable {
    // Sendable because `state` is used only between lock and unlock. `Mutex` of the Synchronization module needs macOS 15
    // and iOS 18.
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
        #if COUNT_LOCKS
        LockCounter.count()
        #endif
        return try body(&state)
    }

    /// Replaces the state and returns the old one, so that it is released outside the lock.
    @discardableResult
    package func exchange(_ new: State) -> State {
        withLock { Swift.exchange(&$0, with: new) }
    }
}

#if canImport(Darwin)
private struct Lock {
    private let base = NSLock()

    func lock() { base.lock() }
    func unlock() { base.unlock() }
    func dispose() {}
}
#else
/// A POSIX mutex. Foundation's `NSLock` takes three objects and a condition, which is too much for the locks of a hundred
/// thousand waiting operations.
private struct Lock {
    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)

    init() {
        mutex.initialize(to: pthread_mutex_t())
        // Cannot fail without attributes.
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

#if COUNT_LOCKS
/// The number of lock acquisitions of the process, for the Benchmark: `swift run -c release -Xswiftc -DCOUNT_LOCKS …`.
package enum LockCounter {
    // A mutex may be used from any thread; the count is used only between lock and unlock.
    nonisolated(unsafe) private static let lock = Lock()
    nonisolated(unsafe) private static var acquisitions = 0

    package static var value: Int {
        lock.lock()
        defer { lock.unlock() }
        return acquisitions
    }

    fileprivate static func count() {
        lock.lock()
        acquisitions += 1
        lock.unlock()
    }
}
#endif

/// A large value that is copied on write.
struct Shared<Value: Sendable>: Sendable {
    private final class Box: @unchecked Sendable {
        // Sendable because it is changed only while uniquely referenced.
        var value: Value

        init(_ value: Value) {
            self.value = value
        }
    }

    private var box: Box

    init(_ value: Value) {
        box = Box(value)
    }

    var value: Value { box.value }

    mutating func change<Result>(_ body: (inout Value) -> Result) -> Result {
        if !isKnownUniquelyReferenced(&box) { box = Box(box.value) }
        return body(&box.value)
    }
}

extension Array {
    /// Removes and returns all elements.
    mutating func take() -> [Element] {
        exchange(&self, with: [])
    }
}
