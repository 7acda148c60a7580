import EasyNetwork
import Foundation

/// Options for how an entry of an ``Outbox`` is delivered. For a field that is `nil`, the options of the entry's type
/// apply, and then the default described here.
///
/// ```swift
/// func addSync(_ outbox: Outbox) throws {
///     // Once a day, in the last two hours of each period, on an unmetered network. Adding it again has no effect.
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
/// The options are stored with the entry, so another process or a later version of the app delivers it in the same way.
public struct OutboxOptions: Hashable, Codable, Sendable {
    /// What happens to undelivered entries of the same name. A name has up to 80 letters, digits, `-` and `_`; each
    /// byte of other characters counts as three. Dead letters don't count.
    ///
    /// ```swift
    /// let newest = OutboxOptions(unique: .replace("position"))
    /// ```
    public enum Unique: Hashable, Codable, Sendable {
        /// The existing entries stay, and the new one is not added.
        case keep(String)
        /// The existing entries are removed. An entry that is being sent is cancelled, but its request may still
        /// arrive.
        case replace(String)
        /// The existing entries stay, and the new one is delivered after the last of them.
        case append(String)

        var name: String {
            switch self {
            case .keep(let name), .replace(let name), .append(let name): name
            }
        }
    }

    /// A condition for an entry to be sent. The network is the host's ``/EasyNetwork/HostSettings/reachability``, or
    /// ``/EasyNetwork/NetworkReachability/system`` if that is `nil`.
    ///
    /// ```swift
    /// let large = OutboxOptions(conditions: [.unmetered, .unconstrained])
    /// ```
    public enum Condition: String, Codable, CaseIterable, Sendable {
        /// A network is available, or its status is unknown.
        case reachable
        /// A network is available and not known to be metered. See ``/EasyNetwork/NetworkReachability/isExpensive``.
        case unmetered
        /// A network is available, and the user has not requested reduced traffic. See
        /// ``/EasyNetwork/NetworkReachability/isConstrained``.
        case unconstrained
    }

    /// The name that the entry shares with others, and what happens to these. Defaults to `nil`: the entry shares no
    /// name.
    public var unique: Unique?
    /// The earliest date at which the entry is sent. Defaults to `nil`: at once.
    public var notBefore: Date?
    /// The period in seconds, at least 60, if the entry is repeated. The entry is sent once in each period. Each
    /// repetition is a new entry whose id is derived from the id before it.
    ///
    /// A period needs ``unique`` with `.keep` or `.replace`, and the entry must not have a lane. A period in which the
    /// entry could not be sent is skipped. If the server rejects the entry for good, it becomes a dead letter and is no
    /// longer repeated. Defaults to `nil`: the entry is sent once.
    public var period: TimeInterval?
    /// The seconds at the end of each period in which the entry is sent. Defaults to `nil`: the whole period.
    public var flex: TimeInterval?
    /// The conditions for the entry to be sent. Defaults to `nil`: no conditions.
    public var conditions: Set<Condition>?
    /// The number of failures after which the entry becomes a dead letter with its last error. An entry fails when its
    /// job has failed after all its retries, so several failed messages are one failure. A failure without a network
    /// counts, too, unless the host has a ``/EasyNetwork/HostSettings/reachability`` or the entry has the condition
    /// ``OutboxOptions/Condition/reachable``, which make it wait. Defaults to `nil`: no limit.
    public var maximumAttemptCount: Int?
    /// The bounds of the delay after a failure, in seconds. The delay is random, from zero to a maximum, which is the
    /// range's lower bound after the first failure and doubles up to its upper bound. The delay is at least as long as
    /// the server asks for, up to a day. Defaults to `nil`: 2 to 600.
    public var retryDelays: ClosedRange<TimeInterval>?
    /// The number of failures, as in ``maximumAttemptCount``, after which later entries of its lane can overtake the
    /// entry. Defaults to `nil`: no limit, so they wait.
    public var yieldsAfter: Int?
    /// Tags by which entries can be found. See ``Outbox/entries(tag:)``. The tags of the entry's type are added.
    /// Defaults to no tags.
    public var tags: Set<String>

    /// Creates options. Each parameter defaults to the property's default.
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

    /// Returns these options, with the type's options for the fields that are `nil`.
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

    /// - Throws: ``/EasyNetwork/NetworkError/Code/invalidRequest`` for options that are invalid.
    func check(lane: String?) throws(NetworkError) {
        func refuse(_ message: String) -> NetworkError { NetworkError(code: .invalidRequest, message: message) }
        // The negated comparison also rejects NaN.
        if let notBefore, !(abs(notBefore.timeIntervalSince1970) < Self.longestTime) {
            let seconds = notBefore.timeIntervalSince1970
            throw refuse("notBefore must be a date before the year 10,000, but is \(seconds) seconds after 1970")
        }
        if let unique { try OutboxName.check(unique.name, "name of unique entries") }
        if let period {
            guard period >= 60, period < Self.longestTime else {
                throw refuse("period must be at least 60 seconds and less than 8,000 years, but is \(period)")
            }
            guard lane == nil else {
                throw refuse("an entry with a period cannot have a lane, because it would block that lane")
            }
            switch unique {
            case .keep, .replace: break
            case .append, nil:
                throw refuse("an entry with a period needs unique (.keep or .replace), so that it exists only once")
            }
        }
        if let flex {
            guard let period, flex > 0, flex <= period else {
                throw refuse("flex must be more than 0 and at most period, which must be set, but is \(flex)")
            }
        }
        if let retryDelays, !(retryDelays.lowerBound > 0 && retryDelays.upperBound < Self.longestTime) {
            throw refuse("retryDelays must be more than 0 and less than 8,000 years, but are \(retryDelays)")
        }
        if let count = maximumAttemptCount, count < 1 {
            throw refuse("maximumAttemptCount must be at least 1, but is \(count)")
        }
        if let count = yieldsAfter, count < 1 { throw refuse("yieldsAfter must be at least 1, but is \(count)") }
    }

    /// The seconds from 1970 to the year 10,000.
    private static let longestTime: TimeInterval = 253_402_300_800

    /// Returns when an entry may be sent whose time or period begins at `begin`.
    ///
    /// The clock may have been ahead when the period was chosen. A period that begins later than one period from now is
    /// therefore replaced by the current one, unless ``notBefore`` is later. The check allows a tenth of a period more,
    /// so that a clock that is set back a little doesn't cause the entry to be sent twice.
    func due(_ begin: Date, at now: Date) -> Date {
        guard let period else { return begin }
        let offset = period - (flex ?? period)
        guard begin.timeIntervalSince(now) > period * 1.1 else { return begin + offset }
        let current = Self.nextPeriod(after: begin, period, sentAt: now) - period
        return max(current, notBefore ?? current) + offset
    }

    /// Returns the start of the period after `date`, where one of the periods starts at `begin`.
    static func nextPeriod(after begin: Date, _ period: TimeInterval, sentAt date: Date) -> Date {
        begin + ((date.timeIntervalSince(begin) / period).rounded(.down) + 1) * period
    }
}

extension OutboxOptions: CustomStringConvertible {
    /// The options that are set.
    public var description: String {
        String(
            listing: "OutboxOptions",
            [
                ("unique", unique), ("notBefore", notBefore), ("period", period), ("flex", flex),
                ("conditions", conditions?.map(\.rawValue).sorted()), ("maximumAttemptCount", maximumAttemptCount),
                ("retryDelays", retryDelays), ("yieldsAfter", yieldsAfter), ("tags", tags.isEmpty ? nil : tags),
            ]
        )
    }
}
