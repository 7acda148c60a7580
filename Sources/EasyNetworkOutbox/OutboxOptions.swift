import EasyNetwork
import Foundation

/// How an entry of an ``Outbox`` is delivered. A field that is nil is as the entry's type was registered, else as said
/// here.
///
/// ```swift
/// func addSync(_ outbox: Outbox) throws {
///     // Once a day, in its last hours, if the network costs nothing; launches that ask again change nothing.
///     let daily = OutboxOptions(
///         unique: .keep("sync"), period: 86_400, flex: 7_200, conditions: [.unmetered], tags: ["background"]
///     )
///     try outbox.add(SyncAll(), options: daily)
/// }
/// struct SyncAll: APIRequest, Codable {
///     typealias Item = Void
///     var api: String { "sync" }
///     var method: NetworkService.Method { .post }
/// }
/// ```
///
/// They are kept with the entry, so that another process or a later version of the program delivers it in the same way.
public struct OutboxOptions: Hashable, Codable, Sendable {
    /// What becomes of entries of the same name that have not been delivered. Names are any text of up to 80 letters
    /// and digits, `-` and `_`; each other byte counts as three. A dead letter does not count.
    ///
    /// ```swift
    /// let newest = OutboxOptions(unique: .replace("position"))
    /// ```
    public enum Unique: Hashable, Codable, Sendable {
        /// They stay, and the new one is not added.
        case keep(String)
        /// They are removed. An entry that is being sent is cancelled, but may arrive.
        case replace(String)
        /// They stay, and the new one comes after the last of them.
        case append(String)

        var name: String {
            switch self {
            case .keep(let name), .replace(let name), .append(let name): name
            }
        }
    }

    /// The conditions for an entry to be sent. The network is that of the host's
    /// ``/EasyNetwork/HostSettings/reachability``, else ``/EasyNetwork/NetworkReachability/system``.
    ///
    /// ```swift
    /// let large = OutboxOptions(conditions: [.unmetered, .unconstrained])
    /// ```
    public enum Condition: String, Codable, CaseIterable, Sendable {
        /// There is a network, or its status is unknown.
        case reachable
        /// The network is not known to cost by the byte, see ``/EasyNetwork/NetworkReachability/isExpensive``.
        case unmetered
        /// The user has not asked for little traffic, see ``/EasyNetwork/NetworkReachability/isConstrained``.
        case unconstrained
    }

    /// The name that it shares with others of which only one is wanted. Default none.
    public var unique: Unique?
    /// It is not sent earlier. Default at once.
    public var notBefore: Date?
    /// It is sent again and again, once in each period of so many seconds, 60 or more; each time under a new id, which
    /// follows the one before. Needs ``unique``, and has no lane. A period in which it could not be sent is left out.
    /// One that is refused for good becomes a dead letter and ends the row. Default nil: it is sent once.
    public var period: TimeInterval?
    /// The last seconds of each period, in which it is sent. Default the whole period.
    public var flex: TimeInterval?
    /// The conditions for it to be sent. Default none.
    public var conditions: Set<Condition>?
    /// The number of failed tries after which it becomes a dead letter with its last error. Default no limit.
    public var maximumAttemptCount: Int?
    /// The bounds of the delay after a failure, in seconds: that of the first one, which doubles up to the second.
    /// Default 2 to 600. What a server asks for is the minimum.
    public var retryDelays: ClosedRange<TimeInterval>?
    /// The number of failed tries after which those behind it in its lane may go first. Default no limit: they wait.
    public var yieldsAfter: Int?
    /// Words by which it is found again, see ``Outbox/entries(tag:)``. Those of its type are added. Default none.
    public var tags: Set<String>

    /// Creates options. The defaults are those of the properties.
    public init(
        unique: Unique? = nil,
        notBefore: Date? = nil,
        period: TimeInterval? = nil,
        flex: TimeInterval? = nil,
        conditions: Set<Condition>? = nil,
        maximumAttemptCount: Int? = nil,
        retryDelays: ClosedRange<TimeInterval>? = nil,
        yieldsAfter: Int? = nil,
        tags: Set<String> = []
    ) {
        (self.unique, self.notBefore, self.period, self.flex) = (unique, notBefore, period, flex)
        (self.conditions, self.maximumAttemptCount) = (conditions, maximumAttemptCount)
        (self.retryDelays, self.yieldsAfter, self.tags) = (retryDelays, yieldsAfter, tags)
    }

    /// These, with those of the type where nothing is said.
    func over(_ type: OutboxOptions) -> OutboxOptions {
        OutboxOptions(
            unique: unique ?? type.unique,
            notBefore: notBefore ?? type.notBefore,
            period: period ?? type.period,
            flex: flex ?? type.flex,
            conditions: conditions ?? type.conditions,
            maximumAttemptCount: maximumAttemptCount ?? type.maximumAttemptCount,
            retryDelays: retryDelays ?? type.retryDelays,
            yieldsAfter: yieldsAfter ?? type.yieldsAfter,
            tags: tags.union(type.tags)
        )
    }

    /// - Throws: ``/EasyNetwork/NetworkError/Code/invalidRequest`` for what cannot be meant.
    func check(lane: String?) throws(NetworkError) {
        func refuse(_ message: String) -> NetworkError { NetworkError(code: .invalidRequest, message: message) }
        // Also refuses what is no number.
        if let notBefore, !(abs(notBefore.timeIntervalSince1970) < Self.longestTime) {
            throw refuse("notBefore is \(notBefore.timeIntervalSince1970) seconds after 1970, which is no date")
        }
        if let unique { try OutboxName.check(unique.name, "name of unique entries") }
        if let period {
            guard period >= 60, period < Self.longestTime else {
                throw refuse("period is \(period); it is 60 seconds or more, and less than 8,000 years")
            }
            guard lane == nil else { throw refuse("what has a period has no lane, which it would hold up") }
            switch unique {
            case .keep, .replace: break
            case .append, nil:
                throw refuse("what has a period needs unique, .keep or .replace, so that there is one of it")
            }
        }
        if let flex {
            guard let period, flex > 0, flex <= period else {
                throw refuse("flex is \(flex); it is more than 0 and at most period")
            }
        }
        if let retryDelays, !(retryDelays.lowerBound > 0 && retryDelays.upperBound < Self.longestTime) {
            throw refuse("retryDelays are \(retryDelays); they are more than 0 and less than 8,000 years")
        }
        if let count = maximumAttemptCount, count < 1 {
            throw refuse("maximumAttemptCount is \(count); it is 1 or more")
        }
        if let count = yieldsAfter, count < 1 { throw refuse("yieldsAfter is \(count); it is 1 or more") }
    }

    /// Until the year 10,000, in seconds.
    private static let longestTime: TimeInterval = 253_402_300_800

    /// When an entry may be sent, of which the period begins then.
    ///
    /// The clock may have been ahead when the period was chosen. So one that begins later than one period from now is
    /// the current one instead, unless ``notBefore`` says otherwise. A tenth more is allowed: a clock that is set back by
    /// a little must not have the work sent twice.
    func due(_ begin: Date, at now: Date) -> Date {
        guard let period else { return begin }
        let offset = period - (flex ?? period)
        guard begin.timeIntervalSince(now) > period * 1.1 else { return begin + offset }
        let current = Self.nextPeriod(after: begin, period, sentAt: now) - period
        return max(current, notBefore ?? current) + offset
    }

    /// The begin of the next period of an entry that was sent then, for periods of which one began at `begin`.
    static func nextPeriod(after begin: Date, _ period: TimeInterval, sentAt date: Date) -> Date {
        begin + ((date.timeIntervalSince(begin) / period).rounded(.down) + 1) * period
    }
}
