import EasyNetwork

/// The queues and hosts that a log or a recording listens to, each once, until this is released.
final class EventSubscriptions: Sendable {
    /// By the identifiers of the broadcasts, which the subscriptions keep; nil while one is made.
    private let subscriptions = Locked<[ObjectIdentifier: EventSubscription?]>([:])

    /// - Parameter subscribe: not called when there is a subscription to the broadcast.
    func add(_ broadcast: EventBroadcast, _ subscribe: () -> EventSubscription) {
        let id = ObjectIdentifier(broadcast)
        let isNew = subscriptions.withLock { subscriptions in
            guard !subscriptions.keys.contains(id) else { return false }
            subscriptions[id] = .some(nil)
            return true
        }
        guard isNew else { return }
        let subscription = subscribe()
        subscriptions.withLock { $0[id] = .some(subscription) }
    }

    func contains(_ broadcast: ObjectIdentifier) -> Bool {
        subscriptions.withLock { $0.keys.contains(broadcast) }
    }

    /// Returns when all events up to now have been received.
    func settled() async {
        for subscription in subscriptions.withLock({ $0.values.compactMap { $0 } }) { await subscription.settled() }
    }
}
