import EasyNetwork
import Foundation

/// An entry of an ``Outbox``, as it was when it was asked for.
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
    /// The id that ``Outbox/add(_:lane:priority:after:options:)`` returned; also the value of `Idempotency-Key`.
    public var id: UUID { name.id }
    /// The name of the request's type, see
    /// ``Outbox/register(_:name:version:options:migrate:prepare:delivered:)``.
    public var type: String { name.type }
    /// The lane, in which entries are delivered in their order; nil without an order.
    public var lane: String? { name.lane }
    /// The priority of the entry's job.
    public var priority: Operation.QueuePriority { name.priority.operationPriority }
    /// When it was added; nil when it has just left. Of an entry with a period, when the last one was over.
    public internal(set) var addedAt: Date?
    /// Its options, with those of its type.
    public var options = OutboxOptions()
    /// Whether it is being sent by this outbox, and its job does not wait for the network or a slot any more.
    public var isSending = false
    /// The number of failed tries, in all processes.
    public var attemptCount = 0
    /// When it is tried again after a failure, or when its time or its period comes; nil when it waits for neither. The
    /// network may bring it earlier.
    public var nextTry: Date?
    /// The last failure: of a dead letter the reason, of another entry that of the last try; else nil. What was on disk
    /// has the code, the message, the status and the beginning of the response body alone, and that only if a log would
    /// show it.
    public var error: NetworkError?

    let name: OutboxName

    init(_ name: OutboxName, addedAt: Date?) {
        (self.name, self.addedAt) = (name, addedAt)
    }
}

/// An event of an entry of an ``Outbox``, with the id of the entry.
///
/// ```swift
/// func watch(_ outbox: Outbox) async {
///     for await case .failed(let id, let error, let retryDelay) in outbox.events { print(id, error, retryDelay) }
/// }
/// ```
public enum OutboxEvent: Sendable {
    /// It is safe on disk.
    case added(UUID)
    /// Its job began: it has waited for the network and a slot.
    case sending(UUID)
    /// The server has accepted it; it has left the outbox.
    case delivered(UUID)
    /// It was not delivered, and is tried again after so many seconds, or earlier when the network is back.
    case failed(UUID, NetworkError, retryDelay: TimeInterval)
    /// It has become a dead letter.
    case died(UUID, NetworkError)
    /// ``Outbox/remove(_:)-(UUID)``
    case removed(UUID)
    /// ``Outbox/retry(_:)-(UUID)``
    case retried(UUID)

    /// The id of the entry.
    public var id: UUID {
        switch self {
        case .added(let id), .sending(let id), .delivered(let id), .removed(let id), .retried(let id): id
        case .failed(let id, _, _), .died(let id, _): id
        }
    }
}
