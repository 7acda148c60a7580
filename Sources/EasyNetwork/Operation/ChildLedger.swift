/// Which children of a group are to be handed on, and whether all is over, as a value.
///
/// ```
/// waiting ─ begin ─▶ running ─ fail, succeed, takeRest ─▶ ending ─ restEnded ─▶ closed
/// ```
///
/// Children are known by their index. Those that have not been handed on when the group ends are ended first, and
/// handed on then, only to finish.
struct ChildLedger {
    enum Order: Sendable {
        /// All at once.
        case together
        /// Each when the one before is settled.
        case inTurn
    }

    private enum Phase {
        case waiting
        case running
        /// The outcome is known, the children are being ended.
        case ending
        /// They have been ended; the last ones finish.
        case closed
    }

    let order: Order
    let endsAtFirstFailure: Bool
    private(set) var count = 0
    private(set) var handedOnCount = 0
    /// How many have finished and been told of.
    private(set) var settledCount = 0
    /// The child whose failure ended the group.
    private(set) var failedIndex: Int?
    private var phase = Phase.waiting
    private(set) var hasStarted = false
    private var isRestTaken = false

    init(order: Order, endsAtFirstFailure: Bool) {
        self.order = order
        self.endsAtFirstFailure = endsAtFirstFailure
    }

    /// Whether the group has not ended.
    var isOpen: Bool { phase == .waiting || phase == .running }

    /// Whether the group has ended and every child too.
    var isDrained: Bool { phase == .closed && settledCount == count }

    /// The child that the next one waits for; nil when none does.
    var runningStep: Int? {
        order == .inTurn && settledCount < handedOnCount ? handedOnCount - 1 : nil
    }

    /// Takes one more child in, at the end.
    ///
    /// - Returns: false when the group has ended.
    mutating func add() -> Bool {
        guard isOpen else { return false }
        count += 1
        return true
    }

    /// The group has been started: to run its children, or, if it has ended before, to let them finish.
    mutating func begin() {
        hasStarted = true
        if phase == .waiting { phase = .running }
    }

    /// - Returns: the child that is to be handed on now; nil when none is.
    mutating func takeNext() -> Int? {
        guard hasStarted, handedOnCount < count else { return nil }
        switch phase {
        case .waiting, .ending: return nil
        case .running: if order == .inTurn, settledCount < handedOnCount { return nil }
        case .closed: break
        }
        defer { handedOnCount += 1 }
        return handedOnCount
    }

    /// A child has failed.
    ///
    /// - Returns: whether this ends the group.
    mutating func fail(_ index: Int) -> Bool {
        guard endsAtFirstFailure, phase == .running else { return false }
        phase = .ending
        failedIndex = index
        return true
    }

    /// A child has finished, and everybody has been told of it.
    mutating func settle() {
        settledCount += 1
    }

    /// - Returns: whether the last child has been settled, which ends the group well.
    mutating func succeed() -> Bool {
        guard phase == .running, settledCount == count else { return false }
        phase = .ending
        return true
    }

    /// The group has ended: no more children are taken in or handed on until ``restEnded()``.
    ///
    /// - Returns: how many have been handed on, for the one who is to end the children; nil for those who come later.
    mutating func takeRest() -> Int? {
        guard !isRestTaken else { return nil }
        isRestTaken = true
        phase = .ending
        return handedOnCount
    }

    /// All children have been ended.
    mutating func restEnded() {
        phase = .closed
    }
}
