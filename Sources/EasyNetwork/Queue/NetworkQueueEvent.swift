import Foundation

/// What happens to a job of a ``NetworkQueue``, in this order; see ``NetworkQueue/events``.
public enum NetworkQueueEvent: Sendable {
    case added(Operation)
    /// It has been given its slot. One that ends without having run was never started.
    case started(Operation)
    /// It has ended, its callbacks have run: with an error, or nil for success. A plain `Operation` has an error only
    /// when it was cancelled.
    case finished(Operation, NetworkError?)

    /// The job that it happened to.
    public var operation: Operation {
        switch self {
        case .added(let operation), .started(let operation), .finished(let operation, _): operation
        }
    }
}

/// Who listens to a queue, and what they have not been told yet. A value, kept under the queue's lock; what is told is
/// told outside of it, by one thread at a time, so that the order stays.
struct EventBroadcast {
    typealias Listener = AsyncStream<NetworkQueueEvent>.Continuation

    private var listeners: [Int: Listener] = [:]
    private var lastNumber = 0
    private var pending: [NetworkQueueEvent] = []
    private var isPublishing = false

    var isHeard: Bool { !listeners.isEmpty }

    mutating func add(_ listener: Listener) -> Int {
        lastNumber += 1
        listeners[lastNumber] = listener
        return lastNumber
    }

    mutating func remove(_ number: Int) -> Listener? {
        listeners.removeValue(forKey: number)
    }

    /// Tells everybody that nothing more will come.
    func finish() {
        for listener in listeners.values { listener.finish() }
    }

    mutating func note(_ event: NetworkQueueEvent) {
        if isHeard { pending.append(event) }
    }

    /// - Returns: what to tell to whom, after which this is to be called again; nil when there is nothing to tell, or
    ///   another thread is at it.
    mutating func take(isFirst: Bool) -> (events: [NetworkQueueEvent], listeners: [Listener])? {
        if isFirst, isPublishing { return nil }
        isPublishing = !pending.isEmpty
        return isPublishing ? (pending.take(), Array(listeners.values)) : nil
    }
}

extension NetworkQueue {
    /// What happens to the jobs from now on, for as long as it is iterated; any number may listen.
    ///
    /// ```swift
    /// for await event in queue.events {
    ///     if case .finished(let operation, let error) = event { log(operation, error) }
    /// }
    /// ```
    ///
    /// A listener that is too slow loses the oldest: the last 4,096 are kept for it. It ends when the queue is gone.
    public var events: AsyncStream<NetworkQueueEvent> {
        AsyncStream(bufferingPolicy: .bufferingNewest(4_096)) { listener in
            let number = state.withLock { $0.events.add(listener) }
            listener.onTermination = { [weak self] _ in
                // Let go of outside the lock.
                _ = self?.state.withLock { $0.events.remove(number) }
            }
        }
    }

    func publishEvents() {
        var isFirst = true
        while let (events, listeners) = state.withLock({ $0.events.take(isFirst: isFirst) }) {
            isFirst = false
            for event in events { for listener in listeners { listener.yield(event) } }
        }
    }
}
