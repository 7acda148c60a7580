import Foundation

/// A reason why a job has not run, or its state when nothing holds it; see ``NetworkQueue/explain(_:)``.
///
/// ```swift
/// print(queue.explain(profile))   // [waits for 'sign-in', which is on no queue]
/// ```
public enum WaitReason: Hashable, Sendable, CustomStringConvertible {
    /// The job is on no queue, or on another one.
    case notHere
    /// It waits for an operation that has not finished.
    ///
    /// - Parameter isQueued: false when that operation is on no queue, so that nothing will start it. A plain
    ///   `Operation` that is not on this queue counts as queued, because it cannot be asked.
    case dependency(name: String, isQueued: Bool)
    /// It is a plain `Operation` whose `isReady` is false.
    case notReady
    /// The queue is suspended.
    case suspended
    /// As many jobs run as the queue allows in all.
    case limit(Int)
    /// As many jobs of its host run as the queue allows.
    case hostLimit(host: String, Int)
    /// As many jobs with one of its tags run as the queue allows.
    case tagLimit(tag: String, Int)
    /// Another job of the category runs.
    case mutualExclusion(category: String)
    /// As many of its batch run as that allows.
    case batchLimit(Int)
    /// A rate limit, for this number of seconds.
    case rate(seconds: TimeInterval)
    /// Other jobs are before it.
    case turn
    /// It is being held by the condition with this name.
    case condition(String)
    /// It has given its slot back while the circuit to its server is open: ``CircuitBreaker``. The seconds are those
    /// until a trial may go, nil while one is under way.
    case circuit(host: String, seconds: TimeInterval?)
    /// It has given its slot back while a sign-in or a refresh of its credential is under way.
    case credential
    /// It has given its slot back until it sends its request again, for this number of seconds.
    case retry(seconds: TimeInterval)
    /// It has given its slot back while it waits for something else, for instance in a pause.
    case slotReleased
    /// It has given its slot to a job of higher priority, and goes on when there is one again:
    /// ``NetworkQueue/yieldingPriority``.
    case slotYielded
    /// Its outcome is known, and it is about to finish.
    case ending
    /// It runs.
    case running
    /// It has finished.
    case finished

    /// The network is unreachable.
    static let network = WaitReason.condition(networkCondition)
    static let networkCondition = "network reachable"

    /// The first reasons, and the number of the others.
    static func summary(of reasons: [WaitReason]) -> String {
        let others = reasons.count > 3 ? ["and \(reasons.count - 3) more"] : []
        return (reasons.prefix(3).map(\.description) + others).joined(separator: "; ")
    }

    /// The end of a sentence that begins with the name of the job, without the secrets that ``Redaction`` recognizes.
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

/// Why a job waited for its slot, and for how long; made while the queue has listeners, for a timeline.
package final class WaitNote: Sendable {
    /// When the job asked for its slot, by the queue's clock.
    let since: TimeInterval
    /// The seconds for which it waited for the slot.
    package let seconds: TimeInterval
    /// The last reason that kept it from its slot; nil when there was none.
    package let reason: WaitReason?
    /// The reason why it waited before it asked for the slot, where that is no dependency: a network, a condition, its
    /// `isReady`.
    package let before: WaitReason?
    /// Whether it waited for other jobs before it asked for the slot.
    package let isAfterJobs: Bool

    init(
        since: TimeInterval,
        seconds: TimeInterval = 0,
        reason: WaitReason? = nil,
        before: WaitReason?,
        isAfterJobs: Bool = false
    ) {
        self.since = since
        self.isAfterJobs = isAfterJobs
        self.seconds = seconds
        self.reason = reason
        self.before = before
    }

    /// - Parameter last: the last reason; nil if only other jobs were before it.
    func ended(at now: TimeInterval, _ last: WaitReason?) -> WaitNote {
        WaitNote(
            since: since,
            seconds: max(0, now - since),
            reason: last ?? .turn,
            before: before,
            isAfterJobs: isAfterJobs
        )
    }
}
