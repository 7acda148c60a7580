/// Which children of a group must be handed to the queue, and whether the group has ended: a value.
///
/// ```
/// waiting ── begin ──▶ running ── fail, succeed, takeRest ──▶ ending ── restEnded ──▶ closed
/// ```
///
/// A batch hands on all children at once. A chain hands on each child when the one before is settled: it has finished
/// and its callbacks have run. Children are identified by their index. When the group ends, the children that have not
/// been handed on are ended first, and then handed on only to finish.
struct GroupState {
    enum Phase {
        case waiting
        case running
        /// The outcome is known, and the children are being ended.
        case ending
        /// The children have been ended, and the last ones finish.
        case closed
    }

    /// Whether each child is handed on only when the one before is settled.
    let inTurn: Bool
    let endsAtFirstFailure: Bool
    private(set) var count = 0
    private(set) var handedOnCount = 0
    private(set) var settledCount = 0
    /// The child whose failure ended the group.
    private(set) var failedIndex: Int?
    private(set) var phase = Phase.waiting
    private(set) var hasStarted = false
    private(set) var isRestTaken = false

    /// Whether the group has not ended.
    var isOpen: Bool { phase == .waiting || phase == .running }

    /// Whether the group and every child has ended.
    var isDrained: Bool { phase == .closed && settledCount == count }

    /// The child that the next one waits for; `nil` if there is none.
    var runningStep: Int? {
        inTurn && settledCount < handedOnCount ? handedOnCount - 1 : nil
    }

    /// Adds a child at the end.
    ///
    /// - Returns: `false` if the group has ended.
    mutating func add() -> Bool {
        guard isOpen else { return false }
        count += 1
        return true
    }

    /// Starts the group, to run its children or, if it has ended before, to let them finish.
    mutating func begin() {
        hasStarted = true
        if phase == .waiting { phase = .running }
    }

    /// - Returns: the child to hand on now; `nil` if there is none.
    mutating func takeNext() -> Int? {
        guard hasStarted, handedOnCount < count else { return nil }
        switch phase {
        case .waiting, .ending: return nil
        case .running: if inTurn, settledCount < handedOnCount { return nil }
        case .closed: break
        }
        defer { handedOnCount += 1 }
        return handedOnCount
    }

    /// Notes the failure of a child.
    ///
    /// - Returns: whether this ends the group.
    mutating func fail(_ index: Int) -> Bool {
        guard endsAtFirstFailure, phase == .running else { return false }
        phase = .ending
        failedIndex = index
        return true
    }

    /// Counts a child that has finished and whose callbacks have run.
    mutating func settle() {
        settledCount += 1
    }

    /// - Returns: whether the last child has been settled, which ends the group with success.
    mutating func succeed() -> Bool {
        guard phase == .running, settledCount == count else { return false }
        phase = .ending
        return true
    }

    /// Ends the group. No children are added or handed on until ``restEnded()``.
    ///
    /// - Returns: the number of children handed on, for the first caller, which must end the children; `nil` for later
    ///   callers.
    mutating func takeRest() -> Int? {
        guard !isRestTaken else { return nil }
        isRestTaken = true
        phase = .ending
        return handedOnCount
    }

    /// Notes that all children have been ended.
    mutating func restEnded() {
        phase = .closed
    }
}
