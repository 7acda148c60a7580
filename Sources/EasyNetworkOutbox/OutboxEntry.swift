import EasyNetwork
import Foundation

/// A snapshot of an entry of an ``Outbox``.
///
/// ```swift
/// func show(_ outbox: Outbox) throws {
///     for entry in try outbox.deadLetters {
///         print(entry.type, entry.error?.localizedDescription ?? "")
///         try outbox.retry(entry.id)
///     }
/// }
/// ```
public struct OutboxEntry: Identifiable, Sendable {
    /// The id that ``Outbox/add(_:lane:priority:after:options:)`` returned. It is also the value of `Idempotency-Key`.
    public var id: UUID { name.id }
    /// The name of the request's type. See ``Outbox/register(_:name:version:options:migrate:prepare:delivered:)``.
    public var type: String { name.type }
    /// The lane, in which entries are delivered in their order; `nil` if the entry has no order.
    public var lane: String? { name.lane }
    /// The priority of the entry's job.
    public var priority: Operation.QueuePriority { name.priority.operationPriority }
    /// The date on which the entry was added; `nil` if it has just left the outbox. For an entry that repeats another
    /// after a period, the date on which the other was delivered.
    public internal(set) var addedAt: Date?
    /// The options of the entry, combined with the options of its type.
    public var options = OutboxOptions()
    /// Whether this outbox is sending the entry. False while the entry's job waits for the network or a slot.
    public var isSending = false
    /// The number of failures, in all processes: of jobs that failed after all their retries. See
    /// ``OutboxOptions/maximumAttemptCount``.
    public var attemptCount = 0
    /// The date of the next try after a failure, or of the entry's time or period; `nil` if the entry waits for
    /// neither. If the host's ``/EasyNetwork/HostSettings/reachability`` reports a network again, the next try can be
    /// earlier.
    public var nextTry: Date?
    /// The last failure: why the entry became a dead letter, or why it failed last. `nil` if there is none.
    ///
    /// An error that was read from disk has only the code, the message, the status, the number of attempts, the
    /// server's message, and up to 1,024 bytes of the response body. The body is included only if a log would show it,
    /// without secrets.
    public var error: NetworkError?

    let name: OutboxName

    init(_ name: OutboxName, addedAt: Date?) {
        (self.name, self.addedAt) = (name, addedAt)
    }
}

/// An event of an entry of an ``Outbox``, with the entry's id.
///
/// ```swift
/// func watch(_ outbox: Outbox) async {
///     for await case .failed(let id, let error, let retryDelay) in outbox.events { print(id, error, retryDelay) }
/// }
/// ```
public enum OutboxEvent: Sendable {
    /// The entry is safe on disk.
    case added(UUID)
    /// The entry's job has begun, after waiting for the network and a slot.
    case sending(UUID)
    /// The server has accepted the request, and the entry has left the outbox.
    case delivered(UUID)
    /// The entry failed: its job has failed after all its retries. The entry is tried again after `retryDelay` seconds,
    /// or earlier if the host's ``/EasyNetwork/HostSettings/reachability`` reports a network again.
    case failed(UUID, NetworkError, retryDelay: TimeInterval)
    /// The entry has become a dead letter.
    case died(UUID, NetworkError)
    /// The entry was removed with ``Outbox/remove(_:)-(UUID)``.
    case removed(UUID)
    /// The dead letter is an entry again, after ``Outbox/retry(_:)-(UUID)``.
    case retried(UUID)

    /// The id of the entry.
    public var id: UUID {
        switch self {
        case .added(let id), .sending(let id), .delivered(let id), .removed(let id), .retried(let id): id
        case .failed(let id, _, _), .died(let id, _): id
        }
    }
}

extension OutboxEntry: CustomStringConvertible {
    /// The type, the id, the date, and the properties that differ from a new entry's.
    public var description: String {
        String(
            listing: "OutboxEntry",
            [
                ("type", type), ("id", id), ("lane", lane), ("addedAt", addedAt),
                ("options", options == OutboxOptions() ? nil : options), ("isSending", isSending ? true : nil),
                ("attemptCount", attemptCount == 0 ? nil : attemptCount), ("nextTry", nextTry), ("error", error),
            ]
        )
    }
}
