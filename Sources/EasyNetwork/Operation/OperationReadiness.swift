/// Whether an operation on a plain `OperationQueue` may start, as a value.
///
/// On a ``NetworkQueue`` none of this is used: there an operation reaches its `OperationQueue` only when it may run.
/// Elsewhere the queue asks `isReady`; the first time it does, the dependencies begin to be watched.
struct OperationReadiness {
    /// Dependencies that have not finished, and one more while they are being looked at.
    private var pending = 0
    private(set) var isWatching = false
    private var saidNotReady = false
    /// The threads on which a change is being announced.
    private var announcers: [ObjectIdentifier] = []

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

    mutating func announcementBegins(on thread: ObjectIdentifier) {
        announcers.append(thread)
    }

    mutating func announcementEnds(on thread: ObjectIdentifier) {
        if let index = announcers.lastIndex(of: thread) { announcers.remove(at: index) }
    }

    /// Answers the queue.
    ///
    /// - Parameters:
    ///   - isFree: whether dependencies do not matter any more.
    ///   - thread: the one that asks.
    /// - Returns: the answer, and whether the change is to be announced once more. On Linux the queue may read false,
    ///   miss the announcement because it has not yet taken the operation in, and then, having taken it in, read true
    ///   without acting on it. An announcement reads too, on its own thread; that is not the queue.
    mutating func answer(isFree: Bool, to thread: ObjectIdentifier) -> (isReady: Bool, announceAgain: Bool) {
        guard isFree || pending == 0 else {
            saidNotReady = true
            return (false, false)
        }
        return (true, saidNotReady && !announcers.contains(thread))
    }
}
