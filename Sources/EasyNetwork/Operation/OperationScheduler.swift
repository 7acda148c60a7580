import Dispatch
import Foundation

/// What holds an operation while it waits, and is told of what changes meanwhile: a ``NetworkQueue``.
///
/// Every call comes without a lock held.
protocol OperationScheduler: AnyObject, Sendable {
    /// Where callbacks go when the operation does not say.
    var callbackQueue: DispatchQueue? { get }
    /// What the transfers of all its operations may move a second; nil means as much as they can.
    var bandwidthLimit: BandwidthLimit? { get }

    /// Its outcome was decided before it was started.
    func operationDidEndEarly(_ operation: NetworkOperation, job: JobID)
    func operationDidChangePriority(_ operation: NetworkOperation, job: JobID)
    /// - Returns: false when it is too late for that: the operation is being started.
    func operation(_ operation: NetworkOperation, job: JobID, didAdd dependency: OperationDependency) -> Bool
    func operation(_ operation: NetworkOperation, job: JobID, didRemove dependency: Operation)
    /// What the job waits for before it starts, whoever made it wait for that.
    func obstacles(of job: JobID) -> [Operation]
    /// The same for an operation of Foundation's, if it is a job here.
    func obstacles(ofPlain operation: Operation) -> [Operation]
    /// Whether other jobs of this scheduler wait for the job.
    func hasDependents(_ job: JobID) -> Bool
    /// Lets the operation start, if it is a job here, though a barrier is before it: a job before that one waits for it.
    func passBarriers(_ operation: Operation)
    /// A job waits from now on (1), or no longer (-1), for something that is in no graph: children, a prerequisite.
    func noteComposite(_ change: Int)
    /// - Parameter isWanted: asked under the lock.
    func operationDidReleaseSlot(_ job: JobID, if isWanted: () -> Bool)
    /// Runs the action on ``WorkQueue`` when the operation has a slot: after earlier ones, and at once if it has it
    /// already.
    ///
    /// - Parameter isWanted: asked under the lock; if not, all stays as it is.
    func operation(
        _ operation: NetworkOperation,
        job: JobID,
        reclaimsSlotFor action: @escaping @Sendable () -> Void,
        if isWanted: () -> Bool
    )
    /// The operation was started without a slot, to be prepared, and counts from now on by its host, tags and priority as
    /// they are now. Runs the action when its turn has come.
    func operation(_ operation: NetworkOperation, job: JobID, isPreparedFor action: @escaping @Sendable () -> Void)
    /// Takes also back that it asked for a slot.
    func operation(_ operation: NetworkOperation, didForgoSlot job: JobID)
    func operationDidFinish(_ operation: NetworkOperation, job: JobID)
    func operation(_ operation: NetworkOperation, didMissCache miss: CacheMiss)

    /// - Parameter limit: how many children of the group may run at once; nil means no limit of its own.
    func add(_ children: [NetworkOperation], in group: GroupOperation, limit: Int?)
    /// Adds what a condition of another operation needs, unless it is a job somewhere already.
    func addPrerequisite(_ operation: Operation)

    /// An operation says what others are like it. Asked again, the answer is the same.
    ///
    /// - Returns: whether it may go on; if not, it has been ended.
    func operation(_ operation: NetworkOperation, repeats key: RepeatKey, policy: RepeatPolicy) -> Bool
    /// Sends a message for the operation and all that share it.
    ///
    /// - Parameter receive: called once, on any thread; never when the operation leaves or finishes before.
    func operation(
        _ operation: NetworkOperation,
        shares message: SharedMessage,
        receive: @escaping AnswerReceiver
    )
    func operationDidStopSharing(_ operation: NetworkOperation)
    func operationDidChangePriorityOfShare(_ operation: NetworkOperation)
}

/// The place of a job in its scheduler's graph. A place is used again; the number of the tenant tells them apart.
struct JobID: Hashable, Sendable {
    let index: Int32
    let tenant: UInt64
}

/// An operation's scheduler and its place there.
struct Scheduling {
    let scheduler: any OperationScheduler
    let job: JobID
}
