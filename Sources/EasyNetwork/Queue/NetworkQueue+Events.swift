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

    /// Tells of what happened to a job, unless it is a hidden one.
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
