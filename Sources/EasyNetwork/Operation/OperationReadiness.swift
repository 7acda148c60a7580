/// Whether an operation on a plain `OperationQueue` can start, as a value.
///
/// A ``NetworkQueue`` does not use it, because it starts an operation only when it can run. A plain queue reads
/// `isReady`. From the first read on, which creates this value, the dependencies are watched.
struct OperationReadiness {
    /// The number of dependencies that have not finished, plus one while the watch is being set up.
    private var pending: Int
    private var saidNotReady = false
    /// The threads on which a change is being announced.
    private var announcers: [ObjectIdentifier] = []

    /// Begins the watch. The caller watches the dependencies and then calls ``watchingBegan()``.
    init(dependencyCount: Int) {
        pending = dependencyCount + 1
    }

    mutating func watchingBegan() {
        pending -= 1
    }

    mutating func dependencyAdded() {
        pending += 1
    }

    /// - Returns: whether `isReady` has become `true` and the change must be announced.
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

    /// Returns the value of `isReady`.
    ///
    /// - Parameters:
    ///   - isFree: whether dependencies no longer matter.
    ///   - thread: the reading thread.
    ///   - repeatsOnce: whether to announce the change again only once, instead of at each read.
    /// - Returns: the value, and whether to announce the change again. On Linux, the queue can read `false`, miss the
    ///   announcement because it has not added the operation yet, and then read `true` without acting on it. An
    ///   announcement itself reads the value on its own thread; that read does not count.
    mutating func answer(
        isFree: Bool,
        to thread: ObjectIdentifier,
        repeatsOnce: Bool = false
    ) -> (isReady: Bool, announceAgain: Bool) {
        guard isFree || pending == 0 else {
            saidNotReady = true
            return (false, false)
        }
        let announceAgain = saidNotReady && !announcers.contains(thread)
        if announceAgain, repeatsOnce { saidNotReady = false }
        return (true, announceAgain)
    }
}
