import Dispatch
import Foundation

/// The settings that few operations have. They are stored in a separate object, so that other operations need only one
/// pointer.
final class OperationOptions: @unchecked Sendable {
    // Sendable because it is used under the lock of the operation that owns it. `defaults` never changes.
    var tags: Set<String> = []
    var mutualExclusionCategories: Set<String> = []
    /// The categories that are held by the group of which the operation is a part.
    var heldCategories: Set<String> = []
    /// `nil` for the request's policy, as soon as it is known.
    var repeatPolicy: RepeatPolicy?
    var repeatKey: String?
    /// Whether the request has a ``RequestOptions/repeatKey``. A request that is made late is not known yet.
    var requestHasKey = false
    var ignoresCache = false
    var keepsResponseBody = false
    var ownerRegistration: OwnerRegistration?
    var conditions: [OperationCondition] = []
    /// The sessions for whose refresh the operation was created.
    var refreshedSessions: [ObjectIdentifier] = []
    /// The name of the condition that is being evaluated.
    var pendingCondition: String?
    /// The prerequisite that the operation waits for.
    var pendingPrerequisite: NetworkOperation?
    var accessories: [OperationAccessory] = []
    /// How the operation is undone.
    var undo: UndoStep?
    /// The calls that were made at the start, while accessories or conditions delay the work; `nil` if there are none
    /// of those.
    var heldCalls: [Promise<Void>]?
    /// `nil` for the queue's callback queue, otherwise the host's.
    var callbackQueue: DispatchQueue?
    /// `nil` for the host's setting.
    var silencesCancellation: Bool?
    var progressWeight: Int64 = 1
    /// The deadline in seconds; `nil` for no deadline.
    var deadline: TimeInterval?
    /// The bandwidth limit of this transfer alone.
    var bandwidth: BandwidthLimit?
    /// Whether a warning was written about a task that waits for the operation while it is on no queue.
    var isReportedForgotten = false
    /// The identifier, assigned when it is first read.
    var operationID: UInt64?

    /// The span of the operation in its trace; `nil` until it is added to a queue or makes a call, and without traces.
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

    /// Reads options; `nil` if none was set, as for most operations.
    final func optionsIfSet<Value>(_ read: (OperationOptions) -> Value) -> Value? {
        #if !canImport(Darwin)
        guard hasOptions.isSet else { return nil }
        #endif
        return core.withLock { $0.options.map(read) }
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
            #if !canImport(Darwin)
            hasOptions.isSet = true
            #endif
            return change(options, state.lifecycle.phase)
        }
    }

    /// The tags of the operation, for limits and for cancelling several operations with `cancelOperations(tag:)`. Read
    /// when the operation is added to a queue. Defaults to an empty set.
    public final var tags: Set<String> {
        get { option { $0.tags } }
        set { setOption(\.tags, newValue) }
    }

    /// The categories of which a queue runs one operation at a time. Read when the operation is added to a queue.
    /// Defaults to an empty set.
    ///
    /// The operation takes all its categories together when it starts, so no two operations deadlock. It releases them
    /// with its slot, even in ``releaseSlot()``. A batch or chain holds its categories until it ends, and its
    /// children do not wait for them. A child must not wait for another operation of the category, because that
    /// operation waits for the batch. Such a cycle is not detected.
    public final var mutualExclusionCategories: Set<String> {
        get { option { $0.mutualExclusionCategories } }
        set { setOption(\.mutualExclusionCategories, newValue) }
    }

    /// The time in seconds, from when the operation is added to a ``NetworkQueue``, until it must have ended. It
    /// includes waits for dependencies, slots, conditions and the network, retries, and all children of a batch or
    /// chain. When it has passed, the operation ends with ``NetworkError/Code/timedOut``, whose message names what the
    /// operation was waiting for, and its work is cancelled. Zero or less ends the operation when it is added, before
    /// anything is sent. NaN does so with ``NetworkError/Code/invalidRequest``. Read when the operation is added; a
    /// later change has no effect. Defaults to `nil`: no deadline. A plain `OperationQueue` ignores it.
    ///
    /// ```swift
    /// report.deadline = 10
    /// queue.addOperation(report)
    /// ```
    ///
    /// ``RequestOptions/overallTimeout`` is different: it begins when the request is sent.
    public final var deadline: TimeInterval? {
        get { option { $0.deadline } }
        set { setOption(\.deadline, newValue) }
    }

    private static let lastID = Locked<UInt64>(0)

    /// A number that is unique in the process. ``NetworkQueue/cancelOperation(id:)`` uses it where the operation itself
    /// is not available.
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

    /// The weight of the operation in the ``GroupOperation/progress`` of its batch or chain, for example the expected
    /// size of a download in kilobytes. Read when the operation is added to the group. Defaults to `1`. Values are
    /// clamped to 1...2^40.
    public final var progressWeight: Int64 {
        get { option { $0.progressWeight } }
        set { setOption(\.progressWeight, min(max(1, newValue), 1 << 40)) }
    }
}
