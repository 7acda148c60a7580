import Foundation

/// Looks along what operations wait for, further than the graph of one queue sees: through other queues, into groups,
/// and to prerequisites of conditions.
///
/// Operations that are on no queue are not looked through: whoever adds them looks then. No lock is held in between, so
/// of several that close a circle at the same time the last one sees all of it.
struct WaitWalk {
    /// What somebody waits for: that an operation starts, or that it ends.
    private struct Event: Hashable {
        let operation: Operation
        let isEnd: Bool

        static func == (one: Self, other: Self) -> Bool {
            one.operation === other.operation && one.isEnd == other.isEnd
        }

        func hash(into hasher: inout Hasher) {
            hasher.combine(ObjectIdentifier(operation))
            hasher.combine(isEnd)
        }
    }

    /// Where plain operations are looked for, which do not know their scheduler themselves.
    let scheduler: NetworkQueue?
    /// Whether operations on no queue are looked through all the same.
    var seesIdle = false

    /// The circle that the start of the operation waits in; nil when there is none.
    func circle(of operation: Operation) -> [Operation]? {
        // The start of a plain one is not told from its end.
        let start = Event(operation: operation, isEnd: !(operation is NetworkOperation))
        return path(from: start, to: start)
    }

    /// The way from the end of one operation to that of another, which waits for it: a circle that begins and ends
    /// with the other one. Nil when there is none.
    func circle(from operation: Operation, backTo waiting: Operation) -> [Operation]? {
        let end = Event(operation: waiting, isEnd: true)
        if operation === waiting { return [waiting, waiting] }
        return path(from: Event(operation: operation, isEnd: true), to: end).map { [waiting] + $0 }
    }

    private func path(from start: Event, to target: Event) -> [Operation]? {
        var origins: [Event: Event] = [:]
        var pending = [start]
        while let event = pending.popLast() {
            for next in waits(event) where origins[next] == nil {
                origins[next] = event
                if next == target { return path(from: start, to: target, origins) }
                pending.append(next)
            }
        }
        return nil
    }

    private func path(from start: Event, to target: Event, _ origins: [Event: Event]) -> [Operation] {
        var path = [target.operation]
        var event = target
        while let origin = origins[event] {
            event = origin
            // Its end waits for its start; that is one place on the way.
            if path.last !== event.operation { path.append(event.operation) }
            if event == start { break }
        }
        // One that waits for nobody but itself.
        return path.count == 1 ? path + path : path.reversed()
    }

    private func waits(_ event: Event) -> [Event] {
        guard let operation = event.operation as? NetworkOperation else {
            let plain = event.operation
            guard !plain.isFinished else { return [] }
            return (plain.dependencies + (scheduler?.obstacles(ofPlain: plain) ?? [])).map(Self.end)
        }
        guard !operation.hasOutcome else { return [] }
        if event.isEnd {
            return [Event(operation: operation, isEnd: false)] + partsAwaited(by: operation).map(Self.end)
        }
        let (scheduling, isTaken, isWaiting, dependencies) = operation.stance
        if let scheduling { return scheduling.queue.obstacles(of: scheduling.job).map(Self.end) }
        guard isWaiting else { return [] }
        return (isTaken || seesIdle ? dependencies.map(Self.end) : []) + (isTaken ? [] : turn(of: operation))
    }

    private static func end(of operation: Operation) -> Event {
        Event(operation: operation, isEnd: true)
    }

    private func partsAwaited(by operation: NetworkOperation) -> [Operation] {
        var parts: [Operation] = []
        if let prerequisite = operation.option(\.pendingPrerequisite) { parts.append(prerequisite) }
        if let group = operation as? GroupOperation, group.isTaken { parts += group.unfinishedChildren }
        return parts
    }

    /// What a child on no queue waits for before its group hands it on.
    private func turn(of child: NetworkOperation) -> [Event] {
        switch child.onlyGroup?.turn(of: child) {
        case .start(let group): [Event(operation: group, isEnd: false)]
        case .step(let step): [Event(operation: step, isEnd: true)]
        case nil: []
        }
    }
}

extension NetworkOperation {
    /// How it is waiting, if it is.
    fileprivate var stance: (scheduling: Scheduling?, isTaken: Bool, isWaiting: Bool, dependencies: [Operation]) {
        core.withLock { state in
            let isWaiting = state.lifecycle.phase == .waiting
            let isTaken = state.scheduling != nil || state.readiness.isWatching || !isWaiting
            return (state.scheduling, isTaken, isWaiting, state.dependencies.map(\.operation))
        }
    }

    /// The group that it is a child of; nil when there is none, and when there are several: it waits for none of them
    /// in particular.
    final var onlyGroup: GroupOperation? {
        core.withLock { $0.isInSeveralGroups ? nil : $0.group }
    }

    /// Notes that it is a child of the group.
    final func join(_ group: GroupOperation) {
        core.withLock { state in
            if let other = state.group, other !== group { state.isInSeveralGroups = true }
            state.group = group
        }
    }

    /// Whether it may be in a circle at all, because others than its group, or others than itself for that group, are
    /// known to wait for it.
    final var mayBeInCircle: Bool {
        let (actions, group, isInSeveral) = core.withLock { state in
            (state.finishActions.count, state.group, state.isInSeveralGroups)
        }
        guard actions == 0, !isInSeveral else { return true }
        return group?.letsChildrenBeInCircles ?? false
    }
}

extension GroupOperation {
    /// What a child waits for that is on no queue.
    enum Turn {
        /// That the group starts.
        case start(GroupOperation)
        /// That the step before it ends.
        case step(NetworkOperation)
    }

    /// - Returns: nil when the child waits for nothing before it is handed on.
    final func turn(of child: NetworkOperation) -> Turn? {
        state.withLock { state in
            guard state.ledger.isOpen else { return nil }
            guard state.ledger.hasStarted else { return .start(self) }
            guard let step = state.ledger.runningStep, state.children[step].operation !== child else { return nil }
            return .step(state.children[step].operation)
        }
    }

    final var unfinishedChildren: [Operation] {
        operations.filter { !$0.isFinished }
    }

    /// Whether anybody but its parent waits for this group or one around it.
    fileprivate final var letsChildrenBeInCircles: Bool {
        var next: GroupOperation? = self
        while let group = next {
            // A later step waits for the one before.
            if group.state.withLock({ $0.ledger.order == .inTurn }) { return true }
            let (scheduling, parent, isAwaited) = group.core.withLock { state in
                (state.scheduling, state.group, state.awaitedBy != nil)
            }
            guard let scheduling, !isAwaited else { return true }
            if scheduling.queue.hasDependents(scheduling.job) { return true }
            next = parent
        }
        return false
    }
}
