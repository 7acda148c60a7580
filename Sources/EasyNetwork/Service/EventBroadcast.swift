/// The listeners of a queue or of a host.
///
/// Events are recorded in order, if necessary under the lock of a queue. They are delivered outside of all locks, by
/// one thread at a time.
package final class EventBroadcast: Sendable {
    struct Listener: Sendable {
        /// Called on any thread, possibly the transport's, so it must not block.
        let receive: @Sendable (NetworkEvent) -> Void
        /// Called when there will be no more events.
        var finish: @Sendable () -> Void = {}
        /// The number of first bytes that the listener wants of bodies that are consumed as they arrive.
        var bodyCount = 0
        /// The owner of the listener. If an owner receives an event from a queue, the host does not post it to that
        /// owner again.
        var owner: ObjectIdentifier?
    }

    private enum Delivery {
        /// An event for the listeners with these numbers, except those of some owners.
        case event(NetworkEvent, ClosedRange<Int>, except: [ObjectIdentifier])
        /// An action between two events.
        case action(@Sendable () -> Void)
    }

    private struct State {
        var listeners: [(number: Int, listener: Listener)] = []
        var lastNumber = 0
        var pending: [Delivery] = []
        var isDelivering = false
    }

    private let state = Locked(State())
    /// Whether there are listeners. Every step of every job reads this flag. It is set under the lock.
    let hasListeners = Flag()

    init() {
        if let listener = EnvironmentLog.shared?.listener { _ = add(listener) }
    }

    /// The number of first bytes that listeners want of bodies that are consumed as they arrive; 0 if no listener wants
    /// any.
    var wantedBodyCount: Int {
        state.withLock { $0.listeners.reduce(0) { max($0, $1.listener.bodyCount) } }
    }

    /// Adds a listener.
    ///
    /// - Returns: The number for ``remove(_:)``.
    func add(_ listener: Listener) -> Int {
        state.withLock { state in
            state.lastNumber += 1
            state.listeners.append((state.lastNumber, listener))
            hasListeners.isSet = true
            return state.lastNumber
        }
    }

    func remove(_ number: Int) {
        state.discard { state in
            let removed = state.listeners.firstIndex { $0.number == number }.map { state.listeners.remove(at: $0) }
            hasListeners.isSet = !state.listeners.isEmpty
            return removed
        }
    }

    /// Records an event for ``deliver()``.
    ///
    /// - Parameters:
    ///   - number: The number of the only listener that receives the event. Defaults to `nil`: all current listeners
    ///     receive it.
    ///   - told: The owners whose listeners do not receive the event. Empty by default.
    /// - Returns: The owners of the listeners.
    @discardableResult
    func note(_ event: NetworkEvent, for number: Int? = nil, except told: [ObjectIdentifier] = []) -> [ObjectIdentifier]
    {
        state.withLock { state in
            guard !state.listeners.isEmpty else { return [] }
            state.pending.append(.event(event, number.map { $0...$0 } ?? 0...state.lastNumber, except: told))
            return state.listeners.compactMap(\.listener.owner)
        }
    }

    @discardableResult
    func post(_ event: NetworkEvent, except told: [ObjectIdentifier] = []) -> [ObjectIdentifier] {
        defer { deliver() }
        return note(event, except: told)
    }

    /// Delivers the recorded events. If another thread is delivering, that thread delivers these, too.
    func deliver() {
        state.drain(\.isDelivering) { state in
            state.pending.isEmpty ? nil : (pending: state.pending.take(), listeners: state.listeners)
        } do: { pending, listeners in
            for delivery in pending {
                switch delivery {
                case .event(let event, let numbers, let told):
                    for (number, listener) in listeners where numbers.contains(number) {
                        if listener.owner.map(told.contains) != true { listener.receive(event) }
                    }
                case .action(let action): action()
                }
            }
        }
    }

    /// Returns when all events so far have been delivered.
    func settled() async {
        await withCheckedContinuation { continuation in
            state.withLock { $0.pending.append(.action { continuation.resume() }) }
            deliver()
        }
    }

    /// Notifies the listeners that there will be no more events, and removes them.
    func finish() {
        let listeners = state.withLock { state in
            hasListeners.isSet = false
            return state.listeners.take()
        }
        for (_, listener) in listeners { listener.finish() }
    }

    /// Returns a sequence of the events from now on, which keeps the newest `count` events for a slow reader.
    ///
    /// - Parameter add: Adds the listener and returns its number.
    func stream(keeping count: Int, add: (Listener) -> Int) -> AsyncStream<NetworkEvent> {
        AsyncStream(bufferingPolicy: .bufferingNewest(count)) { continuation in
            let number = add(Listener(receive: { continuation.yield($0) }, finish: { continuation.finish() }))
            continuation.whenTerminated { [weak self] in self?.remove(number) }
        }
    }
}

/// A listener that receives events until this object is released.
package final class EventSubscription: Sendable {
    private let broadcast: EventBroadcast
    private let number: Int

    init(_ broadcast: EventBroadcast, _ number: Int) {
        self.broadcast = broadcast
        self.number = number
    }

    deinit {
        broadcast.remove(number)
    }

    /// Returns when all events so far have been received.
    package func settled() async {
        await broadcast.settled()
    }
}
