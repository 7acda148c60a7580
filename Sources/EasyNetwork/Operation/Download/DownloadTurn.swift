/// When a download can fetch, and whether it keeps its connection while it cannot, because of a pause or an urgent job.
/// A value without I/O: it takes events and returns effects.
///
/// A transfer that can be resumed closes its connection: at once for a pause, after a while for an urgent job. Any
/// other transfer keeps its connection and stops reading. Closing it would send an unsafe request twice, or fetch the
/// file from its beginning.
struct DownloadTurn: Sendable {
    enum Effect: Equatable, Sendable {
        /// End the fetch. Another fetch continues the download later.
        case stop
        /// Stop reading, and keep the connection.
        case hold
        /// Read again.
        case read
        case startTimer
        case cancelTimer
        case releaseSlot
        /// Request a slot, and call ``DownloadTurn/hasSlotAgain()`` with it.
        case reclaimSlot
    }

    private enum Fetch {
        case none
        case underWay(Transfer, Hold)
        /// The fetch ends, and another one resumes the download later.
        case stopped
    }

    /// What a fetch would lose if its connection were closed.
    private enum Transfer {
        /// Nothing: no response has arrived, and the request can be sent again.
        case asked
        /// Nothing: another request can fetch the rest.
        case resumable
        /// The bytes that have arrived. The request can be sent again.
        case repeatable
        /// The request, which must not be sent again.
        case single
    }

    /// Whether the connection of a fetch was held, so that the server may have closed it as idle.
    private enum Hold { case never, earlier, byPause }

    private var fetch = Fetch.none
    /// Completes when the pause ends; `nil` while the download is not paused.
    private(set) var resumed: Promise<Void>?
    /// The number of times the download has yielded, minus the number of times it has resumed. Two threads can report
    /// these in either order.
    private var yieldCount = 0

    var isPaused: Bool { resumed != nil }

    /// Whether the download must not read.
    var isHeld: Bool { yieldCount > 0 || isKeptByPause }

    /// Whether the download must have no slot and keeps its connection.
    var isResting: Bool { isPaused && isKeptByPause }

    /// Whether a pause keeps the connection. It does until the download has a slot again.
    private var isKeptByPause: Bool { if case .underWay(_, .byPause) = fetch { true } else { false } }

    var isStopped: Bool { if case .stopped = fetch { true } else { false } }

    /// Whether another fetch follows if the connection is lost, without counting as a retry.
    var outlivesConnection: Bool {
        switch fetch {
        case .none, .underWay(.single, _), .underWay(_, .never): false
        case .underWay, .stopped: true
        }
    }

    // MARK: - The fetch

    /// Begins a fetch, with a slot that it does not yield.
    ///
    /// - Parameter mayRepeat: whether the request can be sent again.
    /// - Returns: `false` if the fetch cannot begin because of a pause.
    mutating func begin(mayRepeat: Bool) -> Bool {
        guard !isPaused else { return false }
        fetch = .underWay(mayRepeat ? .asked : .single, .never)
        return true
    }

    /// Notes that a message is about to be sent, which an interceptor may have changed.
    mutating func asks(_ mayRepeat: Bool) {
        if !mayRepeat, case .underWay(_, let hold) = fetch { fetch = .underWay(.single, hold) }
    }

    /// Notes the head of a response whose body is the file or a range of it.
    ///
    /// - Returns: whether the download can yield its slot from now on; `nil` if that no longer matters.
    mutating func answered(canResume: Bool) -> Bool? {
        guard case .underWay(let transfer, let hold) = fetch else { return nil }
        guard transfer != .single else { return false }
        fetch = .underWay(canResume ? .resumable : .repeatable, hold)
        return canResume
    }

    /// Ends the fetch.
    ///
    /// - Parameter hasLostConnection: whether the fetch failed because its connection was lost.
    /// - Returns: whether another fetch follows.
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

    /// Notes that the slot requested by ``Effect/reclaimSlot`` is available.
    mutating func hasSlotAgain() -> [Effect] {
        // The download was paused again while it waited for the slot.
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

    mutating func resumedAfterYield() -> [Effect] {
        yieldCount -= 1
        // The download may have yielded again before this event was reported.
        guard yieldCount <= 0 else { return [] }
        return isHeld ? [.cancelTimer] : [.cancelTimer, .read]
    }

    /// Stops the fetch, whose connection has been kept long enough, if closing the connection loses nothing.
    mutating func keptLongEnough() -> [Effect] {
        guard yieldCount > 0, case .underWay(let transfer, _) = fetch, transfer == .asked || transfer == .resumable
        else { return [] }
        fetch = .stopped
        return [.stop]
    }
}
