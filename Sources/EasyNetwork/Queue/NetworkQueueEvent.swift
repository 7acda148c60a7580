import Foundation

/// What happens to a job of a ``NetworkQueue``, in this order; see ``NetworkQueue/events``.
public enum NetworkQueueEvent: Sendable {
    /// The queue has taken it in.
    case added(Operation)
    /// It has been given its slot. One that ends without having run was never started.
    case started(Operation)
    /// The cache was asked and did not answer; this is why. Not for one that joins another's message.
    case missedCache(Operation, CacheMiss)
    /// It has ended, its callbacks have run: with an error, or nil for success. A plain `Operation` has an error only
    /// when it was cancelled.
    case finished(Operation, NetworkError?)

    /// The job that it happened to.
    public var operation: Operation {
        switch self {
        case .added(let operation), .started(let operation), .missedCache(let operation, _),
            .finished(let operation, _):
            operation
        }
    }
}
