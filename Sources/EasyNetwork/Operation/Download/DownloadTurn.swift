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

    private enum Fetch {
        case none
        case underWay(Transfer, Hold)
        /// The fetch ends, and another one resumes the download later.
        case stopped
    }

    /// What a fetch would lose with its connection.
    private enum Transfer {
        /// Nothing: no response has arrived, and the request may be sent again.
        case asked
        /// Nothing: another request can fetch the rest.
        case resumable
        /// The bytes that have arrived. The request may be sent again.
        case repeatable
        /// The request, which may not be sent again.
        case single
    }

    /// Whether the connection of a fetch was held, so that the server may have closed it for that.
    private enum Hold { case never, earlier, byPause }

    private var fetch = Fetch.none
    /// Over when the pause ends; nil without one, which is when ``resume()`` was called last, and not ``pause()``.
    private(set) var resumed: Promise<Void>?
    /// How often the slot was given to an urgent job, less how often the download has gone on: two threads may tell of
    /// that in any order.
    private var yieldCount = 0

    var isPaused: Bool { resumed != nil }

    /// Whether nothing is to be read.
    var isHeld: Bool { yieldCount > 0 || isKeptByPause }

    /// Whether it is to have no slot and keeps its connection.
    var isResting: Bool { isPaused && isKeptByPause }

    /// Whether a pause keeps the connection; it does so until there is a slot again.
    private var isKeptByPause: Bool { if case .underWay(_, .byPause) = fetch { true } else { false } }

    /// Whether the fetch has been stopped.
    var isStopped: Bool { if case .stopped = fetch { true } else { false } }

    /// Whether another fetch follows when the connection is lost, at no retry's cost.
    var outlivesConnection: Bool {
        switch fetch {
        case .none, .underWay(.single, _), .underWay(_, .never): false
        case .underWay, .stopped: true
        }
    }

    // MARK: - The fetch

    /// A fetch is about to begin, with a slot that it does not yield.
    ///
    /// - Parameter mayRepeat: whether the request may be sent again.
    /// - Returns: false when it may not begin, because of a pause.
    mutating func begin(mayRepeat: Bool) -> Bool {
        guard !isPaused else { return false }
        fetch = .underWay(mayRepeat ? .asked : .single, .never)
        return true
    }

    /// A message is about to be sent, which an interceptor may have changed.
    mutating func asks(_ mayRepeat: Bool) {
        if !mayRepeat, case .underWay(_, let hold) = fetch { fetch = .underWay(.single, hold) }
    }

    /// The head of an answer has come, whose body is the file or a range of it.
    ///
    /// - Returns: whether the download may yield its slot from now on; nil when that does not matter any more.
    mutating func answered(canResume: Bool) -> Bool? {
        guard case .underWay(let transfer, let hold) = fetch else { return nil }
        guard transfer != .single else { return false }
        fetch = .underWay(canResume ? .resumable : .repeatable, hold)
        return canResume
    }

    /// - Parameter hasLostConnection: whether it failed because its connection was lost.
    /// - Returns: whether another fetch is to follow.
    mutating func ended(hasLostConnection: Bool) -> Bool {
        defer { fetch = .none }
        return isStopped || hasLostConnection && outlivesConnection
    }

    // MARK: - Pauses

    mutating func pause() -> [Effect] {
        guard !isPaused else { return [] }
        resumed = Promise<Void>()
        switch fetch {
        case .none, .stopped: return []
        case .underWay(.asked, _), .underWay(.resumable, _):
            fetch = .stopped
            return [.stop]
        case .underWay(let transfer, _):
            fetch = .underWay(transfer, .byPause)
            return [.hold, .releaseSlot]
        }
    }

    mutating func resume() -> [Effect] {
        resumed.take() != nil && isKeptByPause ? [.reclaimSlot] : []
    }

    /// The slot is there that ``Effect/reclaimSlot`` has asked for.
    mutating func hasSlotAgain() -> [Effect] {
        // Paused again in between.
        if isPaused { return [.releaseSlot] }
        if case .underWay(let transfer, .byPause) = fetch { fetch = .underWay(transfer, .earlier) }
        return isHeld ? [] : [.read]
    }

    // MARK: - Urgent jobs

    mutating func yielded() -> [Effect] {
        yieldCount += 1
        guard yieldCount == 1, case .underWay(let transfer, let hold) = fetch else { return [] }
        if hold == .never { fetch = .underWay(transfer, .earlier) }
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
        guard yieldCount > 0, case .underWay(let transfer, _) = fetch, transfer == .asked || transfer == .resumable
        else { return [] }
        fetch = .stopped
        return [.stop]
    }
}
