import Foundation

extension NetworkQueue {
    /// The events of the queue and its jobs. The first events describe the current jobs, the others report what
    /// happens, for as long as the sequence is iterated. Any number of tasks can listen.
    ///
    /// ```swift
    /// for await event in queue.events {
    ///     if case .finished(let error?) = event.kind { print(event.operation?.name ?? "", error) }
    /// }
    /// ```
    ///
    /// The first events are, for each current job, ``NetworkEvent/Kind/added(waitingFor:)`` and, if it runs,
    /// ``NetworkEvent/Kind/started``. A slow listener loses the oldest events: the last 4,096 are kept, plus two for
    /// each job that existed at the start. The sequence ends when the queue is deallocated. Without a listener, events
    /// cost nothing.
    public var events: AsyncStream<NetworkEvent> {
        broadcast.stream(keeping: 4_096 + 2 * operationCount, add: listen)
    }

    /// Adds a listener.
    ///
    /// - Parameters:
    ///   - bodyCount: the number of first bytes to report of bodies that are used as they arrive. Defaults to `0`.
    ///   - owner: the owner of the listener. A host does not report an event again that this listener has received.
    ///     Defaults to `nil`.
    ///   - receive: called on any thread, possibly the transport's. It must not block.
    package func subscribe(
        bodyCount: Int = 0,
        owner: AnyObject? = nil,
        _ receive: @escaping @Sendable (NetworkEvent) -> Void
    ) -> EventSubscription {
        let owner = owner.map(ObjectIdentifier.init)
        let listener = EventBroadcast.Listener(receive: receive, bodyCount: bodyCount, owner: owner)
        return EventSubscription(broadcast, listen(listener))
    }

    /// Adds a listener, which first receives the current state.
    func listen(_ listener: EventBroadcast.Listener) -> Int {
        let number = state.withLock { state in
            let number = broadcast.add(listener)
            let rules = state.graph.rules
            for job in state.graph.jobs {
                let dependencies = job.dependencies.compactMap(\.job.payload?.original)
                note(.added(waitingFor: dependencies), job, rules, for: number)
                // The start of a job that is being prepared is the start of its work, which is yet to come.
                guard !job.isWaiting, job.phase != .ending, !job.traits.needsPreparing, !job.isStartUnreported else {
                    continue
                }
                note(.started, job, rules, for: number)
                if job.phase != .running { note(job.hasYielded ? .slotYielded : .slotReleased, job, for: number) }
            }
            if rules.isSuspended { broadcast.note(event(.suspended, rules: rules), for: number) }
            return number
        }
        broadcast.deliver()
        return number
    }

    /// Notes an event of a job, unless the job is hidden. Called under the lock.
    ///
    /// - Parameters:
    ///   - rules: the rules of the queue, for an event of which listeners need them. Defaults to `nil`.
    ///   - number: the number of the only listener that receives the event. Defaults to `nil`: all listeners.
    func note(_ kind: NetworkEvent.Kind, _ job: Job, _ rules: QueueRules? = nil, for number: Int? = nil) {
        if !job.traits.isHidden { broadcast.note(event(kind, job, rules: rules), for: number) }
    }

    /// Notes that a job was started. Called under the lock.
    func noteStart(of job: Job, in graph: Graph) {
        job.isStartUnreported = false
        if broadcast.hasListeners.isSet { note(.started, job, graph.rules) }
        job.wait = nil
    }

    /// Creates an event. Called under the lock, which protects the job.
    func event(
        _ kind: NetworkEvent.Kind,
        _ job: Job? = nil,
        callNumber: UInt64? = nil,
        rules: QueueRules? = nil
    ) -> NetworkEvent {
        var host: String?
        var tags: Set<String> = []
        var group: ObjectIdentifier?
        var categories: [String] = []
        for lane in job?.lanes ?? [] {
            switch lane.key {
            case .host(let name): host = name
            case .tag(let tag): tags.insert(tag)
            case .group(let id): group = id
            case .exclusion(let category): categories.append(category)
            case .queueLane: break
            }
        }
        // Events don't name a hidden job, whose message several jobs share.
        let operation = job?.traits.isHidden == true ? nil : job?.payload
        var event = NetworkEvent(
            kind,
            operation: operation?.original,
            operationID: operation is ForeignJob ? nil : operation?.operationID,
            callNumber: callNumber,
            host: host,
            tags: tags,
            trace: TraceContext.isUsed.isSet ? job?.payload?.trace : nil
        )
        (event.group, event.rules) = (group, rules)
        guard let job else { return event }
        event.priority = job.ownPriority.operationPriority
        switch kind {
        case .added: event.admission = AdmissionNote(categories, job.traits)
        case .started: (event.admission, event.wait) = (AdmissionNote(categories, job.traits), job.wait)
        case .slotRegained, .finished: event.wait = job.wait
        default: break
        }
        return event
    }
}

extension AdmissionNote {
    fileprivate init(_ categories: [String], _ traits: JobTraits) {
        self.init()
        (self.categories, occupiesSlot) = (categories, traits.occupiesSlot)
        (isBarrier, isMadeFromItems) = (traits.isBarrier, traits.needsPreparing)
    }
}
