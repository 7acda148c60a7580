import Foundation
#if !canImport(Darwin)
import Synchronization
#endif

/// A value protected by a lock. Copies share both.
///
/// Do not call a callback, a delegate or a transport inside ``withLock(_:)``. Copy what the call needs, leave the lock,
/// then call.
///
/// Only these locks are acquired while another one is held:
///
/// | held | acquired inside |
/// |-|-|
/// | an ``Alarm`` | the queue, the circuit, the outbox or the transfer whose next time the alarm reads |
/// | the jobs of a queue | an operation, its download, its calls and their group, the listeners of the queue |
/// | the repeats of a queue | an operation |
/// | a download, an upload, an outbox | an operation |
/// | the circuits of a host | a circuit |
/// | an operation, a call | the counter that numbers them |
/// | a group, a transfer, a reachability, a receipt | the readers of its values |
///
/// The value and its POSIX mutex share one allocation, because there can be a hundred thousand operations with several
/// locks each. `Mutex` of the Synchronization module needs macOS 15 and iOS 18.
package struct Locked<State>: @unchecked Sendable {
    // The struct is Sendable because the state is used only between lock and unlock.
    private let storage: ManagedBuffer<State, pthread_mutex_t>

    @inline(__always)
    package init(_ state: consuming State) {
        // A closure cannot move a parameter, and would copy it.
        var state = Optional(consume state)
        storage = LockStorage<State>.create(minimumCapacity: 1) { storage in
            storage.withUnsafeMutablePointerToElements { mutex in
                mutex.initialize(to: pthread_mutex_t())
                // This call cannot fail without attributes.
                pthread_mutex_init(mutex, nil)
            }
            // The buffer calls this closure once, so the state is still there.
            // swift-format-ignore: NeverForceUnwrap
            return state.take()!
        }
    }

    @inline(__always)
    package func withLock<Result>(_ body: (inout State) throws -> Result) rethrows -> Result {
        try storage.withUnsafeMutablePointers { state, mutex in
            pthread_mutex_lock(mutex)
            defer { pthread_mutex_unlock(mutex) }
            return try body(&state.pointee)
        }
    }

    /// Takes work under the lock and does it outside, until no work is left. One thread at a time does this: another
    /// thread, or the work itself, leaves the work that it adds to that thread. Only this method changes `isBusy`.
    @inline(__always)
    func drain<Work>(_ isBusy: WritableKeyPath<State, Bool>, _ take: (inout State) -> Work?, do work: (Work) -> Void) {
        var isMine = false
        while let next = withLock({ state -> Work? in
            guard isMine || !state[keyPath: isBusy] else { return nil }
            let next = take(&state)
            isMine = next != nil
            state[keyPath: isBusy] = isMine
            return next
        }) { work(next) }
    }

    /// Changes the state, and releases what `take` returns outside the lock, because a deinitializer can be the user's
    /// code or take the lock again.
    @inline(__always)
    package func discard<Value>(_ take: (inout State) -> Value) {
        let taken = withLock(take)
        withExtendedLifetime(taken) {}
    }

    /// Returns whether both are the same lock.
    static func === (one: Self?, other: Self) -> Bool { one?.storage === other.storage }

    /// Replaces the state and returns the old one, so that the caller releases it outside the lock.
    @discardableResult
    package func exchange(_ new: State) -> State {
        withLock { Swift.exchange(&$0, with: new) }
    }
}

private final class LockStorage<State>: ManagedBuffer<State, pthread_mutex_t> {
    deinit {
        _ = withUnsafeMutablePointerToElements { pthread_mutex_destroy($0) }
    }
}

/// A flag that is read often and set rarely. It uses an atomic value where every supported system version has one, and
/// a lock elsewhere.
package struct Flag: ~Copyable, Sendable {
    #if canImport(Darwin)
    private let value = Locked(false)

    package var isSet: Bool {
        get { value.withLock { $0 } }
        nonmutating set { value.exchange(newValue) }
    }
    #else
    private let value = Atomic(false)

    package var isSet: Bool {
        get { value.load(ordering: .acquiring) }
        nonmutating set { value.store(newValue, ordering: .releasing) }
    }
    #endif

    package init() {}
}

/// A large value that is copied on write.
struct Shared<Value: Sendable>: Sendable {
    private final class Box: @unchecked Sendable {
        // The class is Sendable because it is changed only while uniquely referenced. For the same reason two accesses
        // overlap only if two accesses to the same `Shared` overlap, where exclusivity is still checked.
        @exclusivity(unchecked) var value: Value

        init(_ value: Value) {
            self.value = value
        }
    }

    private var box: Box

    init(_ value: Value) {
        box = Box(value)
    }

    var value: Value {
        _read { yield box.value }
        _modify {
            if !isKnownUniquelyReferenced(&box) { box = Box(box.value) }
            yield &box.value
        }
    }
}

extension Shared: Equatable, Hashable where Value: Hashable {
    static func == (one: Self, other: Self) -> Bool { one.value == other.value }

    func hash(into hasher: inout Hasher) { hasher.combine(value) }
}

extension Array {
    /// Removes and returns all elements.
    package mutating func take() -> [Element] {
        exchange(&self, with: [])
    }
}
