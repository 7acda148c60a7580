import Foundation

/// A reason why a job has not run, or its state if nothing holds it: see ``NetworkQueue/explain(_:)``.
///
/// ```swift
/// print(queue.explain(profile))   // [waits for 'sign-in', which is on no queue]
/// ```
public enum WaitReason: Hashable, Sendable, CustomStringConvertible {
    /// The job is on no queue, or on another one.
    case notHere
    /// The job waits for an operation that has not finished.
    ///
    /// - Parameter isQueued: False if that operation is on no queue, so that nothing will start it. A plain `Operation`
    ///   that is not on this queue counts as queued, because its state is unknown.
    case dependency(name: String, isQueued: Bool)
    /// The job is a plain `Operation` whose `isReady` is false.
    case notReady
    /// The queue is suspended.
    case suspended
    /// The maximum number of jobs of the queue are running.
    case limit(Int)
    /// The maximum number of jobs of the host are running.
    case hostLimit(host: String, Int)
    /// The maximum number of jobs with one of the job's tags are running.
    case tagLimit(tag: String, Int)
    /// Another job of the category is running.
    case mutualExclusion(category: String)
    /// The maximum number of jobs of the batch are running.
    case batchLimit(Int)
    /// A rate limit delays the job for this number of seconds.
    case rate(seconds: TimeInterval)
    /// Other jobs precede the job.
    case turn
    /// The condition with this name holds the job.
    case condition(String)
    /// The job has given up its slot while the circuit to its server is open: see ``CircuitBreaker``. The seconds are
    /// the time until a trial can be sent; nil while a trial is running.
    case circuit(host: String, seconds: TimeInterval?)
    /// The job has given up its slot while a sign-in or a refresh of its credential is in progress.
    case credential
    /// The job has given up its slot until it sends its request again, in this number of seconds.
    case retry(seconds: TimeInterval)
    /// The job has given up its slot while it waits for something else, such as the end of a pause.
    case slotReleased
    /// The job has given its slot to a job of higher priority, and resumes when it gets a slot again: see
    /// ``NetworkQueue/yieldingPriority``.
    case slotYielded
    /// The outcome of the job is known, and the job is about to finish.
    case ending
    /// The job is running.
    case running
    /// The job has finished.
    case finished

    /// The network is unreachable.
    static let network = WaitReason.condition(networkCondition)
    static let networkCondition = "network reachable"

    /// Returns the first reasons, and the number of the others.
    static func summary(of reasons: [WaitReason]) -> String {
        let others = reasons.count > 3 ? ["and \(reasons.count - 3) more"] : []
        return (reasons.prefix(3).map(\.description) + others).joined(separator: "; ")
    }

    /// The rest of a sentence that begins with the name of the job, without the secrets that ``Redaction`` recognizes.
    public var description: String { Redaction.standard.redacted(text) }

    private var text: String {
        switch self {
        case .notHere: "is not on this queue"
        case .dependency(let name, true): "waits for \(name)"
        case .dependency(let name, false): "waits for \(name), which is on no queue"
        case .notReady: "waits until its isReady is true"
        case .suspended: "waits because the queue is suspended"
        case .limit(let count): "waits for one of \(count) slots"
        case .hostLimit(let host, let count): "waits for one of \(count) slots of the host \(host)"
        case .tagLimit(let tag, let count): "waits for one of \(count) slots of the tag '\(tag)'"
        case .mutualExclusion(let category): "waits because another job of '\(category)' runs"
        case .batchLimit(let count): "waits for one of \(count) slots of its batch"
        case .rate(let seconds): "waits for its rate limit, \(String(format: "%.3g", seconds)) s"
        case .turn: "waits for its turn"
        case .condition(let name): "waits for the condition \(name)"
        case .circuit(let host, let seconds?):
            "waits for the open circuit to \(host), \(String(format: "%.3g", seconds)) s"
        case .circuit(let host, nil): "waits for the trial of the open circuit to \(host)"
        case .credential: "waits for a credential"
        case .retry(let seconds): "waits \(String(format: "%.3g", seconds)) s before its request is sent again"
        case .slotReleased: "has given its slot back while it waits"
        case .slotYielded: "has given its slot to a job of higher priority"
        case .ending: "is about to finish"
        case .running: "runs"
        case .finished: "has finished"
        }
    }
}

/// The reason why a job waited for its slot, and how long. Made for a timeline, while the queue has listeners.
package struct WaitNote: Sendable {
    /// The time when the job requested its slot, by the queue's clock.
    let since: TimeInterval
    /// The number of seconds for which the job waited for the slot.
    package var seconds: TimeInterval = 0
    /// The last reason that kept the job from its slot; nil if there was none.
    package var reason: WaitReason?
    /// The reason why the job waited before it requested the slot, unless that was a dependency: a network, a
    /// condition, its `isReady`.
    package let before: WaitReason?
    /// Whether the job waited for other jobs before it requested the slot.
    package var isAfterJobs = false

    /// Returns the note at the end of the wait.
    ///
    /// - Parameter last: The last reason; nil if other jobs merely preceded this one.
    func ended(at now: TimeInterval, _ last: WaitReason?) -> WaitNote {
        var note = self
        (note.seconds, note.reason) = (max(0, now - since), last ?? .turn)
        return note
    }
}

/// How a queue admits a job, in addition to its host, tags and priority. Made for a timeline, while the queue has
/// listeners.
package struct AdmissionNote: Sendable {
    /// The categories that the job itself holds.
    package var categories: [String] = []
    package var occupiesSlot = true
    package var isBarrier = false
    /// Whether the job's request is made from the items of its dependencies, and has not been made yet.
    package var isMadeFromItems = false

    package init() {}
}
