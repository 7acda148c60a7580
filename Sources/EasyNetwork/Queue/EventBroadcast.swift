/// The listeners of a queue, and the events that they have not received yet. A value, kept under the queue's lock; what is told is
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
