import Dispatch

/// Keeps a status and tells observers of its changes, in order and without a lock held.
package final class ReachabilityBroadcast: Sendable {
    private struct State {
        var status: ReachabilityStatus
        var observers: [Int: @Sendable (ReachabilityStatus) -> Void] = [:]
        var observations = 0
    }

    private let state: Locked<State>
    private let queue = DispatchQueue(label: "EasyNetwork.ReachabilityBroadcast")

    package init(_ status: ReachabilityStatus) {
        state = Locked(State(status: status))
    }

    package var status: ReachabilityStatus {
        state.withLock { $0.status }
    }

    package func send(_ status: ReachabilityStatus) {
        state.withLock { state in
            guard state.status != status else { return }
            state.status = status
            // Queued under the lock, so that they are told in the order of the changes.
            for id in state.observers.keys { tell(id, status) }
        }
    }

    package func observe(_ observer: @escaping @Sendable (ReachabilityStatus) -> Void) -> ReachabilityObservation {
        let id = state.withLock { state in
            state.observations += 1
            state.observers[state.observations] = observer
            tell(state.observations, state.status)
            return state.observations
        }
        return ReachabilityObservation { [weak self] in
            let observer = self?.state.withLock { $0.observers.removeValue(forKey: id) }
            // What it holds is let go of outside the lock.
            withExtendedLifetime(observer) {}
        }
    }

    private func tell(_ id: Int, _ status: ReachabilityStatus) {
        queue.async {
            let observer = self.state.withLock { $0.observers[id] }
            observer?(status)
        }
    }
}
