import Dispatch
import Foundation

/// What holds an operation while it waits, and is told of what changes meanwhile: a ``NetworkQueue``.
///
/// Every call comes without a lock held.
protocol OperationScheduler: AnyObject, Sendable {
    /// Where callbacks go when the operation does not say.
    var callbackQueue: DispatchQueue? { get }

    /// Its outcome was decided before it was started.
    func operationDidEndEarly(_ operation: NetworkOperation, job: JobID)
    func operationDidChangePriority(_ operation: NetworkOperation, job: JobID)
    /// - Returns: false when it is too late for that: the operation is being started.
    func operation(_ operation: NetworkOperation, job: JobID, didAdd dependency: OperationDependency) -> Bool
    func operation(_ operation: NetworkOperation, job: JobID, didRemove dependency: Operation)
    /// What the job waits for before it starts, whoever made it wait for that.
    func obstacles(of job: JobID) -> [Operation]
    /// Whether other jobs of this scheduler wait for the job.
    func hasDependents(_ job: JobID) -> Bool
    func operationDidReleaseSlot(_ job: JobID)
    /// - Returns: false when the job has its slot: nothing will be granted.
    func operationDidReclaimSlot(_ job: JobID) -> Bool
    func operationDidFinish(_ operation: NetworkOperation, job: JobID)

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
        receive: @escaping SharedAnswer.Receiver
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
