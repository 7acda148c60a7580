import Foundation

/// Who waits for the refresh of a credential, and what becomes of them: at most one refresh runs for all.
///
/// Each credential has a version. A request remembers with which one it was sent, so that the refusal of an old one,
/// which comes when the new one is there already, does not refresh again.
struct RefreshFlight<Waiter: Hashable> {
    /// What a request is to do.
    enum Decision: Equatable {
        /// Go out with the credential of that version.
        case send(version: Int)
        /// Wait: somebody has asked for a refresh already.
        case hold
        /// Wait, and let a refresh begin, which ends with ``finish(_:isRefreshed:)``.
        case refresh(Int)
        /// Give up.
        case fail(Failure)
    }

    enum Failure: Hashable {
        /// It was refused with a fresh credential.
        case refusedAgain
        /// So many refreshes have been begun lately that another one is not likely to help.
        case tooManyRefreshes
    }

    /// Of the credential that requests go out with now; grows with each one, also with one that is taken away.
    private(set) var version = 0
    /// The number of the refresh that runs; nil when none does.
    private(set) var running: Int?

    private let limit: Int
    private let window: TimeInterval
    /// When the last ones began, no more than ``limit``.
    private var beginnings: [TimeInterval] = []
    private var lastFlight = 0
    /// With the order in which they came.
    private var waiters: [Waiter: Int] = [:]
    private var lastOrder = 0

    /// - Parameters:
    ///   - limit: how many refreshes may begin within the window.
    ///   - window: seconds.
    init(limit: Int, window: TimeInterval) {
        self.limit = limit
        self.window = window
    }

    /// A request is about to go out.
    ///
    /// - Parameter isExpired: whether the credential of ``version`` is not worth sending.
    mutating func prepare(_ waiter: Waiter, isExpired: Bool, now: TimeInterval) -> Decision {
        if running != nil { return hold(waiter) }
        return isExpired ? refresh(waiter, now) : .send(version: version)
    }

    /// A request has been refused.
    ///
    /// - Parameters:
    ///   - sent: the version it went out with.
    ///   - isReplay: whether it went out for the second time for this reason.
    mutating func refuse(_ waiter: Waiter, sent: Int, isReplay: Bool, now: TimeInterval) -> Decision {
        if isReplay { return .fail(.refusedAgain) }
        if running != nil { return hold(waiter) }
        return sent == version ? refresh(waiter, now) : .send(version: version)
    }

    /// A refresh has ended. One that does not count any more changes nothing.
    ///
    /// - Returns: those that waited, in the order in which they came; nil when it does not count.
    mutating func finish(_ flight: Int, isRefreshed: Bool) -> [Waiter]? {
        guard running == flight else { return nil }
        running = nil
        if isRefreshed { version += 1 }
        return takeWaiters()
    }

    /// Another credential is there from elsewhere, or none any more: the refresh that runs does not count.
    ///
    /// - Returns: those that waited, in the order in which they came.
    mutating func replace() -> [Waiter] {
        running = nil
        version += 1
        beginnings = []
        return takeWaiters()
    }

    /// - Returns: false when it did not wait.
    @discardableResult
    mutating func leave(_ waiter: Waiter) -> Bool {
        waiters.removeValue(forKey: waiter) != nil
    }

    private mutating func refresh(_ waiter: Waiter, _ now: TimeInterval) -> Decision {
        beginnings.removeAll { $0 <= now - window }
        guard beginnings.count < limit else { return .fail(.tooManyRefreshes) }
        beginnings.append(now)
        lastFlight += 1
        running = lastFlight
        _ = hold(waiter)
        return .refresh(lastFlight)
    }

    private mutating func hold(_ waiter: Waiter) -> Decision {
        lastOrder += 1
        waiters[waiter] = lastOrder
        return .hold
    }

    private mutating func takeWaiters() -> [Waiter] {
        let ordered = waiters.sorted { $0.value < $1.value }.map(\.key)
        waiters = [:]
        return ordered
    }
}
