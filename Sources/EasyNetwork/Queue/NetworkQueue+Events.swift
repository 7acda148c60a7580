import Foundation

extension NetworkQueue {
    /// The events of the queue and its jobs: first those that tell what is there now, then what happens, for as long as
    /// the sequence is iterated. Any number of tasks may listen.
    ///
    /// ```swift
    /// for await event in queue.events {
    ///     if case .finished(let error?) = event.kind { print(event.operation?.name ?? "", error) }
    /// }
    /// ```
    ///
    /// For each job that is there: ``NetworkEvent/Kind/added(waitingFor:)`` and, if it runs,
    /// ``NetworkEvent/Kind/started``. A slow listener loses the oldest events: the last 4,096 are kept, and two more
    /// for each job that was there. The sequence ends when the queue is deallocated. Nothing is spent on events while
    /// nothing listens.
    public var events: AsyncStream<NetworkEvent> {
        broadcast.stream(keeping: 4_096 + 2 * operationCount, add: listen)
    }

    /// - Parameters:
    ///   - bodyCount: the first bytes that are wanted of bodies that are used while they come. Default 0.
    ///   - owner: who listens: what it hears from here, a host does not tell it again. Default nil.
    ///   - receive: called on any thread, possibly the transport's: it must not block.
    package func subscribe(
        bodyCount: Int = 0,
        owner: AnyObject? = nil,
        _ receive: @escaping @Sendable (NetworkEvent) -> Void
    ) -> EventSubscription {
        let owner = owner.map(ObjectIdentifier.init)
        let listener = EventBroadcast.Listener(receive: receive, bodyCount: bodyCount, owner: owner)
        return EventSubscription(broadcast, listen(listener))
    }

    /// Adds a listener, which first receives what is there.
    func listen(_ listener: EventBroadcast.Listener) -> Int {
        let number = state.withLock { state in
            let number = broadcast.add(listener)
            for job in state.graph.jobs {
                note(.added(waitingFor: job.dependencies.compactMap(\.job.payload?.original)), job, for: number)
                // The start of a preparing job is that of its work.
                guard !job.isWaiting, job.phase != .ending, !job.traits.needsPreparing, !job.isStartUntold else {
                    continue
                }
                note(.started, job, for: number)
                if job.phase != .running { note(job.hasYielded ? .slotYielded : .slotReleased, job, for: number) }
            }
            if state.graph.isSuspended { broadcast.note(event(.suspended), for: number) }
            return number
        }
        broadcast.deliver()
        return number
    }

    /// Notes an event of a job, unless the job is hidden. Called under the lock.
    ///
    /// - Parameter number: of the only listener that receives it; nil, the default, for all.
    func note(_ kind: NetworkEvent.Kind, _ job: Job, for number: Int? = nil) {
        if !job.traits.isHidden { broadcast.note(event(kind, job), for: number) }
    }

    /// Notes that a job was started. Called under the lock.
    func noteStart(of job: Job) {
        job.isStartUntold = false
        if broadcast.isHeard { note(.started, job) }
        job.wait = nil
    }

    /// Called under the lock, which guards the job.
    func event(_ kind: NetworkEvent.Kind, _ job: Job? = nil, callNumber: UInt64? = nil) -> NetworkEvent {
        var host: String?
        var tags: Set<String> = []
        var group: ObjectIdentifier?
        for lane in job?.lanes ?? [] {
            switch lane.key {
            case .host(let name): host = name
            case .tag(let tag): tags.insert(tag)
            case .group(let id): group = id
            default: break
            }
        }
        let hasWait =
            switch kind {
            case .started, .slotRegained, .finished: true
            default: false
            }
        // No event names a hidden job, whose message several jobs share.
        let operation = job?.traits.isHidden == true ? nil : job?.payload
        return NetworkEvent(
            kind,
            operation: operation?.original,
            operationID: operation is ForeignJob ? nil : operation?.operationID,
            callNumber: callNumber,
            host: host,
            tags: tags,
            priority: job?.ownPriority.operationPriority ?? .normal,
            group: group,
            wait: hasWait ? job?.wait : nil,
            trace: TraceContext.isUsed.isSet ? job?.payload?.trace : nil
        )
    }

    /// Tells an event of a job's call or body.
    ///
    /// - Returns: the owners of the listeners.
    func tell(_ kind: NetworkEvent.Kind, of job: Job, callNumber: UInt64?) -> [ObjectIdentifier] {
        defer { broadcast.deliver() }
        return state.withLock { _ in broadcast.note(event(kind, job, callNumber: callNumber)) }
    }
}
