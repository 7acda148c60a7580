import EasyNetwork

/// The queues and hosts that a log or a recording listens to, each once, until this is released or ended. What a queue
/// and a host both tell is received once.
final class EventSubscriptions: Sendable {
    /// By the identifiers of the broadcasts, which the subscriptions keep; nil while one is made. Nil after the end.
    private let subscriptions = Locked<[ObjectIdentifier: EventSubscription?]?>([:])

    /// - Parameter bodyCount: the first bytes that are wanted of bodies that are used while they come. Default 0.
    func add(_ queue: NetworkQueue, bodyCount: Int = 0, _ receive: @escaping @Sendable (NetworkEvent) -> Void) {
        add(queue.broadcast) { queue.subscribe(bodyCount: bodyCount, owner: self, receive) }
    }

    func add(_ host: HostConfiguration, bodyCount: Int = 0, _ receive: @escaping @Sendable (NetworkEvent) -> Void) {
        add(host.broadcast) { host.subscribe(bodyCount: bodyCount, owner: self, receive) }
    }

    private func add(_ broadcast: EventBroadcast, _ subscribe: () -> EventSubscription) {
        let id = ObjectIdentifier(broadcast)
        let isNew = subscriptions.withLock { subscriptions in
            guard subscriptions?.keys.contains(id) == false else { return false }
            subscriptions?[id] = .some(nil)
            return true
        }
        guard isNew else { return }
        let subscription = subscribe()
        subscriptions.withLock { $0?[id] = .some(subscription) }
    }

    func contains(_ broadcast: ObjectIdentifier) -> Bool {
        subscriptions.withLock { $0?.keys.contains(broadcast) ?? false }
    }

    /// Ends all subscriptions. Later ones have no effect.
    func end() {
        let old = subscriptions.exchange(nil)
        withExtendedLifetime(old) {}
    }

    /// Returns when all events up to now have been received.
    func settled() async {
        let subscriptions = subscriptions.withLock { $0?.values.compactMap { $0 } ?? [] }
        for subscription in subscriptions { await subscription.settled() }
    }
}
