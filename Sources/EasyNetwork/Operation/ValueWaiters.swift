/// The tasks that wait for one outcome, as a value: who of them is resumed, and who was the last to give up.
struct ValueWaiters<Continuation> {
    private var lastNumber = 0
    /// Nil for one that has come and does not wait yet.
    private var waiting: [Int: Continuation?] = [:]
    private var isWatched = false
    private var isOver = false

    /// How many have come and neither given up nor been resumed.
    var count: Int { waiting.count }

    /// A task comes.
    ///
    /// - Returns: its number, and whether somebody has to see to it that ``finish()`` is called.
    mutating func enter() -> (number: Int, mustWatch: Bool) {
        lastNumber += 1
        if !isOver { waiting[lastNumber] = .some(nil) }
        defer { isWatched = true }
        return (lastNumber, !isWatched)
    }

    /// The task waits now.
    ///
    /// - Returns: false when it need not, because it has given up or all is over.
    mutating func wait(_ number: Int, _ continuation: Continuation) -> Bool {
        guard waiting[number] != nil else { return false }
        waiting[number] = continuation
        return true
    }

    /// A task gives up.
    ///
    /// - Returns: what to resume, and whether nobody waits any more.
    mutating func leave(_ number: Int) -> (continuation: Continuation?, wasLast: Bool) {
        guard let continuation = waiting.removeValue(forKey: number) else { return (nil, false) }
        return (continuation, waiting.isEmpty)
    }

    /// All is over.
    ///
    /// - Returns: those to resume.
    mutating func finish() -> [Continuation] {
        isOver = true
        defer { waiting = [:] }
        return waiting.values.compactMap { $0 }
    }
}
