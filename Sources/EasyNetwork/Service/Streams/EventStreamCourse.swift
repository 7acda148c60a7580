import Foundation

/// When a stream of events is begun again, as a value.
struct EventStreamCourse {
    /// The shortest time that a server may ask for, in seconds: it could have itself asked without a pause.
    static let shortestRetry: TimeInterval = 0.1

    /// The longest, in seconds: it could have itself never asked again, by a slip of its hand.
    static let longestRetry: TimeInterval = 3_600

    /// How many connections in a row may bring bytes and no event before they count as bringing nothing.
    static let eventlessLimit = 20

    /// In seconds, as long as the server does not say.
    private let reconnectionTime: TimeInterval
    private let maximumReconnectionTime: TimeInterval
    /// How many connections in a row have brought nothing.
    private var failureCount = 0
    /// How many in a row have brought no event.
    private var eventlessCount = 0

    /// What the next connection asks for.
    private(set) var lastEventID: String
    private var retry: TimeInterval?

    init(lastEventID: String, reconnectionTime: TimeInterval, maximumReconnectionTime: TimeInterval) {
        self.lastEventID = lastEventID
        self.reconnectionTime = reconnectionTime >= 0 ? reconnectionTime : 0
        self.maximumReconnectionTime = maximumReconnectionTime
    }

    /// Some bytes have come. A server that sends a byte a connection is not to be asked without a pause for ever.
    mutating func receivedBytes() {
        if eventlessCount < Self.eventlessLimit { failureCount = 0 }
    }

    mutating func receivedEvent() {
        failureCount = 0
        eventlessCount = 0
    }

    /// What the stream has said so far.
    mutating func adopt(lastEventID: String, retry: TimeInterval?) {
        self.lastEventID = lastEventID
        if let retry { self.retry = min(max(retry, Self.shortestRetry), Self.longestRetry) }
    }

    /// The connection is over, or there was none.
    ///
    /// - Returns: how long to wait before the next, in seconds.
    mutating func delay() -> TimeInterval {
        let base = retry ?? reconnectionTime
        defer {
            failureCount += 1
            eventlessCount += 1
        }
        guard failureCount > 0 else { return base }
        let doubled = max(base, Self.shortestRetry) * pow(2, Double(min(failureCount, 64)))
        return max(base, min(doubled, maximumReconnectionTime))
    }
}
