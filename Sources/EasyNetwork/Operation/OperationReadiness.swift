/// Whether an operation on a plain `OperationQueue` may start, as a value.
///
/// On a ``NetworkQueue`` none of this is used: there an operation reaches its `OperationQueue` only when it may run.
/// Elsewhere the queue asks `isReady`; the first time it does, the dependencies begin to be watched.
struct OperationReadiness {
    /// Dependencies that have not finished, and one more while they are being looked at.
    private var pending = 0
    private(set) var isWatching = false
    private var saidNotReady = false
    private var correctedQueue = false

    /// The queue asks for the first time: watch the dependencies, then call ``watchingBegan()``.
    mutating func beginWatching(dependencyCount: Int) {
        isWatching = true
        pending = dependencyCount + 1
    }

    mutating func watchingBegan() {
        pending -= 1
    }

    mutating func dependencyAdded() {
        pending += 1
    }

    /// - Returns: whether `isReady` has become true and is to be announced.
    mutating func dependencyFinished() -> Bool {
        pending -= 1
        return pending == 0
    }

    /// Answers the queue.
    ///
    /// - Parameter isFree: whether dependencies do not matter any more.
    /// - Returns: the answer, and whether the queue must be told again. On Linux the queue may read false, miss the
    ///   announcement because it has not yet taken the operation in, and never ask again; it does look once more
    ///   after that, without acting on what it sees.
    mutating func answer(isFree: Bool) -> (isReady: Bool, announceAgain: Bool) {
        guard isFree || pending == 0 else {
            saidNotReady = true
            return (false, false)
        }
        let announceAgain = saidNotReady && !correctedQueue
        if announceAgain { correctedQueue = true }
        return (true, announceAgain)
    }
}
