import Dispatch
import Foundation

/// The settings that few operations have. They live in an object of their own, so the other operations pay for one
/// pointer.
final class OperationOptions: @unchecked Sendable {
    // Sendable because it is used under the lock of the operation that owns it; `defaults` never changes.
    var tags: Set<String> = []
    var mutualExclusionCategories: Set<String> = []
    /// The categories that are held by the group of which the operation is a part.
    var heldCategories: Set<String> = []
    /// Nil: the request's, where that is known.
    var repeatPolicy: RepeatPolicy?
    var repeatKey: String?
    var ignoresCache = false
    var keepsResponseBody = false
    var ownerRegistration: OwnerRegistration?
    var conditions: [OperationCondition] = []
    /// The sessions for whose refresh the operation was made.
    var refreshedSessions: [ObjectIdentifier] = []
    /// The name of the condition that is being evaluated.
    var pendingCondition: String?
    /// The prerequisite that the operation waits for.
    var pendingPrerequisite: NetworkOperation?
    var accessories: [OperationAccessory] = []
    /// Calls made at the start, while accessories or conditions hold the work back; nil when nothing does.
    var heldCalls: [Promise<Void>]?
    /// Nil: the queue's, or else the host's.
    var callbackQueue: DispatchQueue?
    /// Nil: as the host says.
    var silencesCancellation: Bool?
    var progressWeight: Int64 = 1
    /// Nil without a deadline.
    var deadline: TimeInterval?
    /// The limit of a transfer alone.
    var bandwidth: BandwidthLimit?
    /// Whether the log has a line about a task that waits for the operation while it is on no queue.
    var isReportedForgotten = false
    /// Given when it is first read.
    var operationID: UInt64?

    /// The span of the operation in its trace. Nil until it is added to a queue or makes a call, and without traces.
    var trace: TraceSpan?
    /// The trace that the operation will be a part of.
    var traceOrigin: TraceContext?

    fileprivate static let defaults = OperationOptions()
}

extension NetworkOperation {
    /// Reads an option, or its default.
    final func option<Value>(_ read: (OperationOptions) -> Value) -> Value {
        core.withLock { read($0.options ?? .defaults) }
    }

    /// Sets an option. The old value is released outside the lock.
    final func setOption<Value>(_ option: ReferenceWritableKeyPath<OperationOptions, Value>, _ newValue: Value) {
        let old = changeOptions { options, _ in exchange(&options[keyPath: option], with: newValue) }
        withExtendedLifetime(old) {}
    }

    /// Changes options under the lock, depending on the phase of the operation.
    final func changeOptions<Value>(_ change: (OperationOptions, OperationLifecycle.Phase) -> Value) -> Value {
        core.withLock { state in
            let options = state.options ?? OperationOptions()
            state.options = options
            return change(options, state.lifecycle.phase)
        }
    }

    /// The tags of the operation, for limits and for cancelling several operations: `cancelOperations(tag:)`. Read when
    /// it is added to a queue. Default none.
    public final var tags: Set<String> {
        get { option { $0.tags } }
        set { setOption(\.tags, newValue) }
    }

    /// The categories of which a queue runs one operation at a time. Read when the operation is added to a queue.
    /// Default none.
    ///
    /// All categories are taken together when the operation starts, so no two operations wait for each other. They are
    /// released with its slot, also by ``releaseSlot()``. A batch or chain keeps them until it ends, and its children
    /// need not wait for them. A child must not wait for another operation of the category, which waits for the batch:
    /// that cycle is not seen.
    public final var mutualExclusionCategories: Set<String> {
        get { option { $0.mutualExclusionCategories } }
        set { setOption(\.mutualExclusionCategories, newValue) }
    }

    /// The seconds from when the operation is added to a ``NetworkQueue`` until it must have ended: waits for
    /// dependencies, slots, conditions and the network included, and retries; of a batch or chain with all its
    /// children. Then it ends with ``NetworkError/Code/timedOut``, whose message says what it was waiting for, and its
    /// work is cancelled. Zero or less ends it when it is added, before anything is sent, and NaN does so with
    /// ``NetworkError/Code/invalidRequest``. Read when the operation is added: a later change has no effect. Defaults to
    /// `nil`: no deadline. Not kept in a plain `OperationQueue`.
    ///
    /// ```swift
    /// report.deadline = 10
    /// queue.addOperation(report)
    /// ```
    ///
    /// It differs from ``RequestOptions/overallTimeout``, which begins when the request is sent.
    public final var deadline: TimeInterval? {
        get { option { $0.deadline } }
        set { setOption(\.deadline, newValue) }
    }

    private static let lastID = Locked<UInt64>(0)

    /// A number that no other operation of the process has: for ``NetworkQueue/cancelOperation(id:)``, where the
    /// operation itself is not at hand.
    public final var operationID: UInt64 {
        changeOptions { options, _ in
            if let id = options.operationID { return id }
            let id = Self.lastID.withLock { last in
                last += 1
                return last
            }
            options.operationID = id
            return id
        }
    }

    /// The weight of the operation in the ``GroupOperation/progress`` of its batch or chain, for instance the expected
    /// size of a download in kilobytes. Read when it is added to the group. Default 1. Values are clamped to 1...2^40.
    public final var progressWeight: Int64 {
        get { option { $0.progressWeight } }
        set { setOption(\.progressWeight, min(max(1, newValue), 1 << 40)) }
    }
}
