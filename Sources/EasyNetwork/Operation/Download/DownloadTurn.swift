/// When a download may fetch, and what becomes of its connection while it may not: the rule of pauses and of urgent
/// jobs. A value without I/O: it takes events and returns effects.
///
/// A transfer that can go on where it stopped lets its connection go, at once for a pause and after a while for an
/// urgent job. Any other transfer keeps its connection and stops reading: letting it go would send an unsafe request
/// twice, or fetch the file from its beginning.
struct DownloadTurn: Sendable {
    enum Effect: Equatable, Sendable {
        /// End the fetch; another one goes on with it later.
        case stop
        /// Stop reading, and keep the connection.
        case hold
        /// Read again.
        case read
        case startTimer
        case cancelTimer
        case releaseSlot
        /// Ask for a slot, and tell ``DownloadTurn/hasSlotAgain()``.
        case reclaimSlot
    }

    /// What a fetch would lose with its connection.
    private enum Transfer {
        /// No fetch is under way, or the last one has been stopped.
        case none, stopped
        /// No answer has come. The request may be sent again.
        case asked
        /// The rest can be asked for.
        case resumable
        /// The request, which may not be sent again, or the bytes that have come.
        case single
    }

    private var transfer = Transfer.none
    /// Whether the request may be sent again.
    private var mayRepeat = false
    /// Whether ``pause()`` was called last, and not ``resume()``.
    private(set) var isPaused = false
    /// Whether a pause keeps the connection; it does so until there is a slot again.
    private var isKeptByPause = false
    /// How often the slot was given to an urgent job, less how often the download has gone on: two threads may tell of
    /// that in any order.
    private var yieldCount = 0
    /// Whether the connection of this fetch was held, so that the server may have closed it for that.
    private var wasHeld = false

    /// Whether nothing is to be read.
    var isHeld: Bool { yieldCount > 0 || isKeptByPause }

    /// Whether it is to have no slot and keeps its connection.
    var isResting: Bool { isPaused && isKeptByPause }

    /// Whether the fetch has been stopped.
    var isStopped: Bool { transfer == .stopped }

    /// Whether another fetch follows when the connection is lost, at no retry's cost.
    var outlivesConnection: Bool { isStopped || wasHeld && mayRepeat }

    private var isFetching: Bool { transfer != .none && transfer != .stopped }

    // MARK: - The fetch

    /// A fetch is about to begin, with a slot that it does not yield.
    ///
    /// - Parameter mayRepeat: whether the request may be sent again.
    /// - Returns: false when it may not begin, because of a pause.
    mutating func begin(mayRepeat: Bool) -> Bool {
        guard !isPaused else { return false }
        (self.mayRepeat, wasHeld) = (mayRepeat, false)
        transfer = mayRepeat ? .asked : .single
        return true
    }

    /// A message is about to be sent, which an interceptor may have changed.
    mutating func asks(_ mayRepeat: Bool) {
        guard !mayRepeat, isFetching else { return }
        (transfer, self.mayRepeat) = (.single, false)
    }

    /// The head of an answer has come, whose body is the file or a range of it.
    ///
    /// - Returns: whether the download may yield its slot from now on; nil when that does not matter any more.
    mutating func answered(canResume: Bool) -> Bool? {
        guard isFetching else { return nil }
        let canResume = canResume && mayRepeat
        transfer = canResume ? .resumable : .single
        return canResume
    }

    /// - Parameter hasLostConnection: whether it failed because its connection was lost.
    /// - Returns: whether another fetch is to follow.
    mutating func ended(hasLostConnection: Bool) -> Bool {
        defer { (transfer, isKeptByPause) = (.none, false) }
        return isStopped || hasLostConnection && outlivesConnection
    }

    // MARK: - Pauses

    mutating func pause() -> [Effect] {
        guard !isPaused else { return [] }
        isPaused = true
        switch transfer {
        case .none, .stopped: return []
        case .asked, .resumable:
            transfer = .stopped
            return [.stop]
        case .single:
            (isKeptByPause, wasHeld) = (true, true)
            return [.hold, .releaseSlot]
        }
    }

    mutating func resume() -> [Effect] {
        guard isPaused else { return [] }
        isPaused = false
        return isKeptByPause ? [.reclaimSlot] : []
    }

    /// The slot is there that ``Effect/reclaimSlot`` has asked for.
    mutating func hasSlotAgain() -> [Effect] {
        // Paused again in between.
        if isPaused { return [.releaseSlot] }
        isKeptByPause = false
        return isHeld ? [] : [.read]
    }

    // MARK: - Urgent jobs

    mutating func yielded() -> [Effect] {
        yieldCount += 1
        guard yieldCount == 1, isFetching else { return [] }
        wasHeld = true
        return [.hold, .startTimer]
    }

    mutating func wentOn() -> [Effect] {
        yieldCount -= 1
        // It may have yielded again before this was told.
        guard yieldCount <= 0 else { return [] }
        return isHeld ? [.cancelTimer] : [.cancelTimer, .read]
    }

    /// The connection has been kept for long enough.
    mutating func keptLongEnough() -> [Effect] {
        guard yieldCount > 0, transfer == .asked || transfer == .resumable else { return [] }
        transfer = .stopped
        return [.stop]
    }
}
