import Foundation

/// Finds operations that wait for each other in a cycle: through dependencies, barriers, groups, the order of a chain
/// and prerequisites of conditions, on one queue or several.
///
/// The search runs on a graph of events:
///
/// ```
/// start(job)    waits for   end(dependency), end(barrier)
/// end(job)      waits for   start(job), end(its prerequisite), and in a group end(each child)
/// start(child)  waits for   start(its group), then in a chain end(the running step), while the child is on no queue
/// ```
///
/// The edges are read from the queues and operations during the search, one lock at a time. If several threads close a
/// cycle together, the last one finds all of it. A cycle through a plain `OperationQueue`, a category or the limit of a
/// batch is not detected.
enum DependencyCycleFinder {
    fileprivate struct Node: Hashable {
        enum Moment { case start, end }

        let operation: NetworkOperation
        let moment: Moment

        static func start(_ operation: NetworkOperation) -> Node { Node(operation: operation, moment: .start) }
        static func end(_ operation: NetworkOperation) -> Node { Node(operation: operation, moment: .end) }

        static func == (one: Self, other: Self) -> Bool {
            one.operation === other.operation && one.moment == other.moment
        }

        func hash(into hasher: inout Hasher) {
            hasher.combine(ObjectIdentifier(operation))
            hasher.combine(moment)
        }
    }

    /// Returns the cycle in which the start of the operation waits, from the operation back to itself; `nil` if there
    /// is none.
    static func cycle(through operation: NetworkOperation) -> [Operation]? {
        // Search twice, because two edges can look like a cycle if one was removed before the other was added.
        guard cycle(through: Node.start(operation)) != nil else { return nil }
        return cycle(through: Node.start(operation))
    }

    /// Returns the cycle that is closed when the end of `waiting` waits for `prerequisite`; `nil` if there is none.
    ///
    /// Operations on no queue count by their dependencies, because the prerequisite is about to be added.
    static func cycle(of waiting: NetworkOperation, for prerequisite: NetworkOperation) -> [Operation]? {
        if waiting === prerequisite { return [waiting, waiting] }
        var search = Search(from: .end(prerequisite)) { waits($0, includesIdle: true) }
        return search.path { $0 == .end(waiting) }.map { [waiting] + $0 }
    }

    /// Returns the groups from `child` down to `group` and back, if `group` is already in `child`; otherwise `nil`.
    static func nesting(of group: GroupOperation, in child: GroupOperation) -> [Operation]? {
        if group === child { return [group, group] }
        var search = Search(from: .end(group)) { event in
            iterator(event.operation.groups.map(Node.end))
        }
        return search.path { $0.operation === child }.map { $0.reversed() + [child] }
    }

    /// Searches in both directions in turn. When either search has no edge left, there is no cycle. A job without
    /// dependents or without dependencies therefore costs a few steps, and joining two long chains costs the length of
    /// the shorter one.
    private static func cycle(through start: Node) -> [Operation]? {
        var forward = Search(from: start) { waits($0, includesIdle: false) }
        var backward = Search(from: start, edges: dependents)
        while let next = forward.step() {
            if next == start { return forward.path(to: start) }
            guard backward.origins[start] != nil || backward.step() != nil else { return nil }
        }
        return nil
    }

    // MARK: - Edges

    /// Returns the events that an event waits for.
    ///
    /// - Parameter includesIdle: whether an operation on no queue waits for its dependencies.
    private static func waits(_ event: Node, includesIdle: Bool) -> AnyIterator<Node> {
        let (operation, foreign) = (event.operation, event.operation as? ForeignJob)
        guard foreign?.foreign.isFinished != true else { return iterator([]) }
        guard !operation.hasOutcome else {
            // An operation with an outcome only has to end. A child on no queue ends when its group starts it.
            return iterator(operation.isTaken ? [] : operation.waitForGroup)
        }
        switch event.moment {
        case .start:
            // Skip these dependencies for an operation on a queue, because the queue's graph has them.
            let (scheduling, isTaken, dependencies) = operation.core.withLock { state in
                let isWaiting = state.lifecycle.phase == .waiting && state.scheduling == nil
                return (
                    state.scheduling, !isWaiting || state.readiness != nil,
                    isWaiting ? state.dependencies?.list.map(\.operation) ?? [] : []
                )
            }
            if let foreign {
                let jobs = jobs(.dependencies, of: operation, in: scheduling?.queue)
                return iterator(foreign.foreign.dependencies.map { .end($0.asNetworkOperation) }, jobs)
            }
            if let scheduling { return jobs(.dependencies, of: operation, in: scheduling.queue) }
            let wait = isTaken ? [] : operation.waitForGroup
            return iterator((isTaken || includesIdle ? dependencies : []).map(Node.end) + wait)
        case .end:
            let prerequisite = operation.option { $0.pendingPrerequisite }
            return iterator(
                [.start(operation)] + (prerequisite.map { [.end($0)] } ?? []),
                (operation as? GroupOperation)?.partsWaitedFor
            )
        }
    }

    /// Returns the events that wait for an event.
    private static func dependents(_ event: Node) -> AnyIterator<Node> {
        let operation = event.operation
        switch event.moment {
        case .start:
            return iterator([.end(operation)], (operation as? GroupOperation)?.childrenThatWait)
        case .end:
            let (waiters, own) = operation.core.withLock { ($0.waiters, $0.scheduling?.queue) }
            let queues = (own.map { [$0] } ?? []) + (waiters?.queues ?? []).compactMap(\.object).filter { $0 !== own }
            var jobs = queues.lazy.flatMap { Self.jobs(.dependents, of: operation, in: $0) }.makeIterator()
            var others = (waiters?.operations ?? []).lazy.compactMap(\.object)
                .flatMap { $0.events(waitingFor: operation) }.makeIterator()
            return AnyIterator { jobs.next() ?? others.next() }
        }
    }

    /// Returns the jobs of a queue that the operation waits for, or that wait for it.
    private static func jobs(
        _ direction: NetworkQueue.Graph.Direction,
        of operation: NetworkOperation,
        in queue: NetworkQueue?
    ) -> AnyIterator<Node> {
        guard let queue else { return iterator([]) }
        let edges = queue.state.withLock { state in
            queue.node(of: operation, state).map { state.graph.edges(of: $0, direction) } ?? []
        }
        let events = edges.lazy.flatMap { edge in
            queue.state.withLock { $0.graph.payloads(at: edge.job, direction) }
                .map(direction == .dependencies ? Node.end : Node.start)
        }
        return AnyIterator(events.makeIterator())
    }

    fileprivate static func iterator(_ events: [Node], _ others: AnyIterator<Node>? = nil) -> AnyIterator<Node> {
        var first = events.makeIterator()
        return AnyIterator { first.next() ?? others?.next() }
    }

    /// A depth-first search that follows one edge at a time.
    private struct Search {
        private let edges: (Node) -> AnyIterator<Node>
        private let start: Node
        private var stack: [(event: Node, edges: AnyIterator<Node>)]
        /// The event from which each event was reached.
        private(set) var origins: [Node: Node] = [:]

        init(from start: Node, edges: @escaping (Node) -> AnyIterator<Node>) {
            self.start = start
            self.edges = edges
            stack = [(start, edges(start))]
        }

        /// Follows the next edge, and returns the event at its end; `nil` if no edge is left.
        mutating func step() -> Node? {
            while let top = stack.last {
                guard let next = top.edges.next() else {
                    stack.removeLast()
                    continue
                }
                if origins[next] == nil {
                    origins[next] = top.event
                    if next != start { stack.append((next, edges(next))) }
                }
                return next
            }
            return nil
        }

        /// Returns the operations on the path to the first event of this kind; `nil` if there is none.
        mutating func path(where isTarget: (Node) -> Bool) -> [Operation]? {
            while let next = step() {
                if isTarget(next) { return path(to: next) }
            }
            return nil
        }

        /// Returns the operations on the path to an event that was reached. Each operation occurs once, even if both
        /// its end and its start are on the path.
        func path(to target: Node) -> [Operation] {
            var path = [target.operation]
            var event = target
            repeat {
                guard let origin = origins[event] else { break }
                event = origin
                if path.last !== event.operation { path.append(event.operation) }
            } while event != start
            // A path of one operation is an operation that waits for itself.
            return (path.count == 1 ? path + path : path.reversed()).map(\.original)
        }
    }
}

struct Weak<Object: AnyObject> {
    weak var object: Object?
}

/// The objects that wait for the end of an operation, in addition to the jobs of its own queue.
struct Waiters {
    /// The other queues whose jobs wait for the operation.
    private(set) var queues: [Weak<NetworkQueue>] = []
    /// The groups that contain the operation, and the operations whose prerequisite it is.
    private(set) var operations: [Weak<NetworkOperation>] = []

    mutating func add(_ queue: NetworkQueue) {
        if !queues.contains(where: { $0.object === queue }) { queues.append(Weak(object: queue)) }
    }

    mutating func add(_ operation: NetworkOperation) {
        // A prerequisite can outlive many operations. Removing those at every doubling costs constant time for each.
        if operations.count == operations.capacity {
            operations.removeAll { $0.object == nil }
            operations.reserveCapacity(2 * operations.count + 1)
        }
        operations.append(Weak(object: operation))
    }
}

extension NetworkOperation {
    /// Notes what waits for the end of the operation.
    final func noteWaiter(_ add: (inout Waiters) -> Void) {
        core.withLock { state in
            var waiters = state.waiters.take() ?? Waiters()
            add(&waiters)
            state.waiters = waiters
        }
    }

    /// The groups that contain the operation.
    final var groups: [GroupOperation] {
        core.withLock { $0.waiters?.operations ?? [] }.compactMap { $0.object as? GroupOperation }
    }

    /// The event of its group that an operation on no queue waits for. Empty without a group, and with several groups,
    /// because the operation waits for none of them in particular.
    fileprivate final var waitForGroup: [DependencyCycleFinder.Node] {
        let groups = groups
        guard let group = groups.first, groups.allSatisfy({ $0 === group }) else { return [] }
        return group.wait(of: self).map { [$0] } ?? []
    }

    /// Returns the events of this operation and of its children that wait for the end of `operation`.
    fileprivate final func events(waitingFor operation: NetworkOperation) -> AnyIterator<DependencyCycleFinder.Node> {
        let group = self as? GroupOperation
        let endWaits = group?.isTaken == true || option({ $0.pendingPrerequisite }) === operation
        let children = group?.runningStep === operation ? group?.childrenThatWait : nil
        return DependencyCycleFinder.iterator(endWaits ? [.end(self)] : [], children)
    }
}

extension GroupOperation {
    fileprivate typealias Node = DependencyCycleFinder.Node

    /// The step whose end the next one waits for; `nil` if there is none.
    fileprivate final var runningStep: NetworkOperation? {
        state.withLock { state in state.group.runningStep.map { state.children[$0].operation } }
    }

    /// Returns the event that a child on no queue waits for; `nil` if the child is about to be added to the queue.
    fileprivate final func wait(of child: NetworkOperation) -> Node? {
        // A group whose outcome is known before its start hands its children on when it is started to end.
        if hasOutcome, !isTaken { return .start(self) }
        let (isOpen, hasStarted) = state.withLock { ($0.group.isOpen, $0.group.hasStarted) }
        guard isOpen, !hasOutcome else { return nil }
        guard hasStarted else { return .start(self) }
        return runningStep.flatMap { $0 === child ? nil : .end($0) }
    }

    /// The starts of the children that are on no queue.
    fileprivate final var childrenThatWait: AnyIterator<Node> {
        let (children, first) = state.withLock { ($0.children, $0.group.handedOnCount) }
        let waiting = children.dropFirst(first).lazy.map(\.operation).filter { !$0.isTaken }
        return AnyIterator(waiting.map(Node.start).makeIterator())
    }

    /// The ends of the children, once the group is on a queue.
    fileprivate final var partsWaitedFor: AnyIterator<Node>? {
        guard isTaken else { return nil }
        let children = state.withLock { $0.children }
        return AnyIterator(children.lazy.map { Node.end($0.operation) }.makeIterator())
    }
}
