import Foundation

/// An event in the life of a job of a ``NetworkQueue``, in this order; see ``NetworkQueue/events``.
public enum NetworkQueueEvent: Sendable {
    /// The job was added.
    case added(Operation)
    /// The job was given its slot. A job that ends without having run was never started.
    case started(Operation)
    /// The cache had no answer, for this reason. Not for a request that joins another's message.
    case missedCache(Operation, CacheMiss)
    /// The job has ended and its callbacks have run: with an error, or nil for success. A plain `Operation` has an error
    /// only when it was cancelled.
    case finished(Operation, NetworkError?)

    /// The job.
    public var operation: Operation {
        switch self {
        case .added(let operation), .started(let operation), .missedCache(let operation, _),
            .finished(let operation, _):
            operation
        }
    }
}

extension NetworkQueue {
    /// The events of the jobs from now on, for as long as the sequence is iterated. Any number of tasks may listen.
    ///
    /// ```swift
    /// for await event in queue.events {
    ///     if case .finished(let operation, let error) = event { log(operation, error) }
    /// }
    /// ```
    ///
    /// A slow listener loses the oldest events: the last 4,096 are kept. The sequence ends when the queue is deallocated.
    public var events: AsyncStream<NetworkQueueEvent> {
        AsyncStream(bufferingPolicy: .bufferingNewest(4_096)) { listener in
            let number = state.withLock { $0.events.add(listener) }
            listener.onTermination = { [weak self] _ in
                // Released outside the lock.
                _ = self?.state.withLock { $0.events.remove(number) }
            }
        }
    }

    /// Publishes an event, unless the job is hidden.
    func publish(_ event: NetworkQueueEvent) {
        let isHeard = state.withLock { state in
            if !event.operation.isHiddenJob { state.events.note(event) }
            return state.events.isHeard
        }
        if isHeard { publishEvents() }
    }

    func publishEvents() {
        var isFirst = true
        while let (events, listeners) = state.withLock({ $0.events.take(isFirst: isFirst) }) {
            isFirst = false
            for event in events { for listener in listeners { listener.yield(event) } }
        }
    }
}
