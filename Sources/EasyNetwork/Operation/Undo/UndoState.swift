/// Which step of a group is undone next, and when the group may end: a value.
///
/// ```
/// open ── completed ──▶ committing ── committed ──▶ whole
///   │                       │ failed                  │ asked, failed
///   └─────── failed ────────┴──────▶ undoing ◀────────┘
///                                    undoing ── undone ──▶ over
/// ```
///
/// Steps are identified by their index. They are undone one at a time, the one that ended last first. A step whose undo
/// fails does not hold up the others. It is undone again if the user asks for it.
///
/// With a journal, a chain counts as whole only when that is on disk. Steps of a whole group are undone only after the
/// journal has been opened again.
struct UndoState: Hashable, Sendable {
    enum Phase: Hashable {
        case open
        /// All steps have succeeded, and the journal records this. If the group fails meanwhile, its steps are undone
        /// when the journal is done.
        case committing(hasFailed: Bool)
        case whole
        case undoing(Int)
        case over
    }

    enum Input: Hashable {
        /// A step has ended that can be undone: it has succeeded, or it may have reached the server.
        case ended(Int)
        /// All steps have succeeded, and the group has no outcome yet.
        case completed
        case committed(Bool)
        /// The group has failed or was cancelled, and all its steps have ended.
        case failed
        /// The group has finished, and the user wants it undone.
        case asked
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
    /// The steps to undo, in the order in which they ended.
    private var steps: [Int] = []
    /// The steps whose undo has failed, in the order of their undos.
    private var failed: [Int] = []

    /// Whether there is a step to undo.
    var hasSteps: Bool { !steps.isEmpty }

    /// Whether the journal must still be told that the group is whole, if it is.
    var isUncommitted: Bool {
        switch phase {
        case .open, .committing: isJournaled
        case .whole, .undoing, .over: false
        }
    }

    mutating func handle(_ input: Input) -> [Effect] {
        switch (input, phase) {
        case (.ended(let step), _): steps.append(step)
        case (.completed, .open):
            phase = isJournaled ? .committing(hasFailed: false) : .whole
            return [isJournaled ? .commit : .succeed]
        case (.committed(let isWhole), .committing(let hasFailed)):
            if hasFailed { return begin(reopens: isWhole) }
            phase = isWhole ? .whole : .open
            return [isWhole ? .succeed : .fail]
        case (.failed, .committing), (.asked, .committing): phase = .committing(hasFailed: true)
        case (.failed, .open), (.asked, .open), (.asked, .over): return begin(reopens: false)
        case (.failed, .whole), (.asked, .whole): return begin(reopens: isJournaled)
        case (.undone(let step, let isDone), .undoing(let current)) where step == current:
            if !isDone { failed.append(step) }
            return next()
        default: break
        }
        return []
    }

    private mutating func begin(reopens: Bool) -> [Effect] {
        let effects = next()
        return reopens ? [.reopen] + effects : effects
    }

    private mutating func next() -> [Effect] {
        if let step = steps.popLast() {
            phase = .undoing(step)
            return [.undo(step)]
        }
        phase = .over
        // Should the user ask again, the same order applies.
        (steps, failed) = (failed.reversed(), [])
        return [.end]
    }
}
