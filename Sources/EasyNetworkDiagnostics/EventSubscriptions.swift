import EasyNetwork

/// Subscriptions of a log or recording to queues and hosts, one for each, until this object is released or ended. An
/// event that both a queue and a host post is received once.
final class EventSubscriptions: Sendable {
    /// The subscriptions, by the identifiers of their broadcasts, which they keep alive. A value is `nil` while its
    /// subscription is being made; the dictionary is `nil` after the end.
    private let subscriptions = Locked<[ObjectIdentifier: EventSubscription?]?>([:])

    /// - Parameter bodyCount: the number of bytes to excerpt from bodies that are consumed as they arrive. Defaults to
    ///   0.
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
