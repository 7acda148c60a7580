import Dispatch
import Foundation

/// What few operations are given. It lives in a box of its own, so that the others pay for one pointer.
struct OperationOptions {
    var tags: Set<String> = []
    var mutualExclusionCategories: Set<String> = []
    /// The categories that the group holds of which the operation is a part.
    var heldCategories: Set<String> = []
    /// Nil: the request's, where that is known.
    var repeatPolicy: RepeatPolicy?
    var repeatKey: String?
    var ignoresCache = false
    /// Whether the operation waits for an answer that it shares.
    var isSharing = false
    var ownerTie: OwnerTie?
    var conditions: [any OperationCondition] = []
    /// The sessions for whose refresh the operation was made.
    var refreshedSessions: [ObjectIdentifier] = []
    /// The name of the condition that is being waited for.
    var pendingCondition: String?
    /// The prerequisite that is being waited for.
    var pendingPrerequisite: Operation?
    var accessories: [any OperationAccessory] = []
    /// Calls that were made at the start, while accessories or conditions hold the work back; nil when nothing does.
    var heldCalls: [@Sendable () -> Void]?
    /// Nil: the queue's, or else the host's.
    var callbackQueue: DispatchQueue?
    /// Nil: as the host says.
    var silencesCancellation: Bool?
    var progressWeight: Int64 = 1
    /// Given when it is asked for.
    var operationID: UInt64?
}

/// The box of an operation's options; only the operation that owns it touches it, under its lock.
final class OperationOptionsBox {
    var options = OperationOptions()
}
