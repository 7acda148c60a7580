import Foundation

extension NetworkQueue {
    /// The events of the queue and its jobs: first those that tell what is there now, then what happens, for as long as the
    /// sequence is iterated. Any number of tasks may listen.
    ///
    /// ```swift
    /// for await event in queue.events {
    ///     if case .finished(let error?) = event.kind { report(event.operation, error) }
    /// }
    /// ```
    ///
    /// For each job that is there: ``NetworkEvent/Kind/added(waitingFor:)`` and, if it runs,
    /// ``NetworkEvent/Kind/started``. A slow listener loses the oldest events: the last 4,096 are kept, and those of the
    /// beginning. The sequence ends when the queue is deallocated. Nothing is spent on events while nothing listens.
    public var events: AsyncStream<NetworkEvent> {
        broadcast.stream(keeping: 4_096 + 2 * operationCount, add: listen)
    }

    /// - Parameter receive: called on any thread, possibly the transport's: it must not block.
    func subscribe(_ receive: @escaping @Sendable (NetworkEvent) -> Void) -> EventSubscription {
        EventSubscription(broadcast, listen(EventBroadcast.Listener(receive: receive)))
    }

    /// Adds a listener, which first receives what is there.
    func listen(_ listener: EventBroadcast.Listener) -> Int {
        let number = state.withLock { state in
            let number = broadcast.add(listener)
            for job in state.graph.jobs {
                guard let operation = job.payload else { continue }
                let others = job.dependencies.compactMap(\.job.payload)
                broadcast.note(event(.added(waitingFor: others), operation, job), for: number)
                switch job.phase {
                case .running where job.traits.isPreparing: break
                case .running, .parked, .returning:
                    broadcast.note(event(.started, operation, job), for: number)
                    if job.phase != .running { broadcast.note(event(.slotReleased, operation, job), for: number) }
                default: break
                }
            }
            if state.graph.isSuspended { broadcast.note(event(.suspended, nil, nil), for: number) }
            return number
        }
        broadcast.deliver()
        return number
    }

    /// An event. Called under the lock, which guards the job.
    func event(
        _ kind: NetworkEvent.Kind,
        _ operation: Operation?,
        _ job: Job?,
        callNumber: UInt64? = nil
    ) -> NetworkEvent {
        var host: String?
        var tags: Set<String> = []
        for lane in job?.lanes ?? [] {
            switch lane.key {
            case .host(let name): host = name
            case .tag(let tag): tags.insert(tag)
            default: break
            }
        }
        let isHidden = operation?.isHiddenJob == true
        return NetworkEvent(
            kind,
            operation: isHidden ? nil : operation,
            operationID: isHidden ? nil : (operation as? NetworkOperation)?.operationID,
            callNumber: callNumber,
            host: host,
            tags: tags
        )
    }

    /// Tells an event of a job, if there is a listener.
    func tell(_ kind: NetworkEvent.Kind, of operation: Operation, _ job: Job?, callNumber: UInt64? = nil) {
        guard broadcast.isHeard else { return }
        state.withLock { _ in broadcast.note(event(kind, operation, job, callNumber: callNumber)) }
        broadcast.deliver()
    }
}
