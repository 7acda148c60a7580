/// Which step of a group is undone next, and when the group may end: a value.
///
/// ```
/// open ── completed ──▶ committing ── committed ──▶ whole
///   │                       │ failed                  │ asked, failed
///   │                       │                         ▼
///   └─────── failed ────────┴──────▶ undoing ◀──── reopening
///                                    undoing ── undone ──▶ over ── asked ──▶ undoing
/// ```
///
/// Steps are identified by their index. They are undone one at a time, the one that ended last first. A step whose undo
/// fails does not hold up the others. It is undone again if the user asks for it.
///
/// With a journal, a chain counts as whole only when that is on disk. Steps of a whole group are undone only after the
/// journal has been opened again. If it cannot be opened, the group stays whole, unless it has failed.
struct UndoState: Hashable, Sendable {
    enum Phase: Hashable {
        case open
        /// All steps have succeeded, and the journal records this. If the group fails meanwhile, its steps are undone
        /// when the journal is done.
        case committing(hasFailed: Bool)
        case whole
        /// The journal is opened again.
        case reopening(isAsked: Bool)
        case undoing(Int)
        case over
    }

    enum Input: Hashable {
        /// A step has ended that can be undone: it has succeeded, or it may have reached the server.
        case ended(Int)
        /// A nested group has failed and undone its steps, and some of these undos have failed.
        case endedHalfUndone(Int)
        /// All steps have succeeded, and the group has no outcome yet.
        case completed
        case committed(Bool)
        /// The group has failed or was cancelled, and all its steps have ended.
        case failed
        /// The group has finished, and the user wants it undone.
        case asked
        /// The journal has been opened again, or could not be.
        case reopened(Bool)
        /// The undo of a step has ended. If it is not done, it can be tried again.
        case undone(Int, isDone: Bool)
    }

    enum Effect: Hashable {
        case commit
        case succeed
        /// The group ends with the error of the journal.
        case fail
        /// The journal must no longer count the group as whole.
        case reopen
        case undo(Int)
        /// No undo is left.
        case end
    }

    /// Whether undo requests are stored on disk.
    var isJournaled = false
    private(set) var phase = Phase.open
    /// The steps that are not undone, in the order in which they ended.
    private var steps: [Int] = []
    /// Those of the steps that are undone only if the user asks, because they have undone themselves before.
    private var halfUndone: Set<Int> = []
    /// The steps that are still to be undone before the group ends.
    private var round: [Int] = []

    /// Whether there is a step to undo.
    var hasSteps: Bool { !steps.isEmpty }

    /// Whether the journal must still be told that the group is whole, if it is.
    var isUncommitted: Bool {
        switch phase {
        case .open, .committing: isJournaled
        case .whole, .reopening, .undoing, .over: false
        }
    }

    mutating func handle(_ input: Input) -> [Effect] {
        switch (input, phase) {
        case (.ended(let step), _): steps.append(step)
        case (.endedHalfUndone(let step), _):
            steps.append(step)
            halfUndone.insert(step)
        case (.completed, .open):
            phase = isJournaled ? .committing(hasFailed: false) : .whole
            return [isJournaled ? .commit : .succeed]
        case (.committed(let isWhole), .committing(let hasFailed)):
            if hasFailed { return isWhole ? reopen(isAsked: false) : begin(isAsked: false) }
            phase = isWhole ? .whole : .open
            return [isWhole ? .succeed : .fail]
        case (.failed, .committing), (.asked, .committing): phase = .committing(hasFailed: true)
        case (.failed, .whole), (.asked, .whole):
            return isJournaled ? reopen(isAsked: input == .asked) : begin(isAsked: input == .asked)
        case (.reopened(let isOpen), .reopening(let isAsked)):
            if isOpen || !isAsked { return begin(isAsked: isAsked) }
            phase = .whole
            return [.end]
        case (.failed, .open), (.asked, .open), (.asked, .over): return begin(isAsked: input == .asked)
        case (.undone(let step, let isDone), .undoing(let current)) where step == current:
            // The step is near the end, because the last one is undone first.
            if isDone, let index = steps.lastIndex(of: step) { steps.remove(at: index) }
            return next()
        default: break
        }
        return []
    }

    private mutating func reopen(isAsked: Bool) -> [Effect] {
        phase = .reopening(isAsked: isAsked)
        return [.reopen]
    }

    private mutating func begin(isAsked: Bool) -> [Effect] {
        round = isAsked ? steps : steps.filter { !halfUndone.contains($0) }
        return next()
    }

    private mutating func next() -> [Effect] {
        guard let step = round.popLast() else {
            phase = .over
            return [.end]
        }
        phase = .undoing(step)
        return [.undo(step)]
    }
}
