import Foundation

/// The reasons why a job has not run yet, as values and as a sentence; see ``NetworkQueue/explain(_:)``.
///
/// ```swift
/// print(queue.explain(profile))   // 'profile' waits for 'sign-in', which is on no queue.
/// ```
public struct WaitExplanation: Hashable, Sendable, CustomStringConvertible {
    /// A reason why a job has not run, or its state when nothing holds it.
    public enum Reason: Hashable, Sendable {
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
        /// It has given its slot back while it waits, for instance for a retry.
        case slotReleased
        /// Its outcome is known, and it is about to finish.
        case ending
        /// It runs.
        case running
        /// It has finished.
        case finished
    }

    /// The operation's name, or its type when it has none.
    public let name: String

    /// All reasons at this moment; never empty.
    public let reasons: [Reason]

    public var description: String {
        // A hundred dependencies do not fit into a sentence.
        let named = reasons.prefix(5).map(\.wording)
        let rest = reasons.count - named.count
        return "\(name) \(named.joined(separator: ", and "))\(rest > 0 ? ", and \(rest) more" : "")."
    }
}

extension WaitExplanation.Reason {
    fileprivate var wording: String {
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
        case .rate(let seconds): "waits for its rate limit, \(Self.short(seconds)) s"
        case .turn: "waits for its turn"
        case .condition(let name): "waits for the condition \(name)"
        case .slotReleased: "has given its slot back while it waits"
        case .ending: "is about to finish"
        case .running: "runs"
        case .finished: "has finished"
        }
    }

    private static func short(_ seconds: TimeInterval) -> String {
        String(format: "%.3g", seconds)
    }
}

extension NetworkQueue {
    /// Explains why a job has not run: a dependency, a limit, a rate, a condition, suspension, or nothing.
    ///
    /// A snapshot, which may be out of date when it is read. Linear in the job's dependencies.
    public func explain(_ operation: Operation) -> WaitExplanation {
        WaitExplanation(name: operation.nameForMessages, reasons: reasons(for: operation))
    }

    private func reasons(for operation: Operation) -> [WaitExplanation.Reason] {
        if operation.isFinished { return [.finished] }
        let now = clock.now
        // The reason of a job that waits for no other.
        var hold = WaitExplanation.Reason.turn
        let status = state.withLock { state -> JobGraph<Operation>.Status? in
            let job =
                (operation as? NetworkOperation)?.job(in: self) ?? state.plainJobs[ObjectIdentifier(operation)]
            if let job, state.watch.unready.contains(job) { hold = .notReady }
            if let job, state.offline.contains(job) { hold = .condition(ReachabilityCondition().name) }
            return job.flatMap { state.graph.status(of: $0, at: now) }
        }
        switch status {
        case nil: return [.notHere]
        case .waiting(let others) where others.isEmpty: return [hold]
        case .waiting(let others): return others.map(reason(waitingFor:))
        case .ready(let obstacle): return [reason(obstacle, now)]
        case .parked: return [condition(of: operation) ?? .slotReleased]
        case .running: return [condition(of: operation) ?? .running]
        case .ending: return [.ending]
        }
    }

    private func condition(of operation: Operation) -> WaitExplanation.Reason? {
        (operation as? NetworkOperation)?.pendingCondition.map { .condition($0) }
    }

    private func reason(waitingFor operation: Operation) -> WaitExplanation.Reason {
        // A plain operation cannot be asked.
        let isQueued = (operation as? NetworkOperation).map { $0.scheduling != nil || $0.isExecuting } ?? true
        return .dependency(name: operation.nameForMessages, isQueued: isQueued)
    }

    private func reason(_ obstacle: JobAdmission.Obstacle, _ now: TimeInterval) -> WaitExplanation.Reason {
        switch obstacle {
        case .suspended: .suspended
        case .limit(let count): .limit(count)
        case .key(.host(let host), let count): .hostLimit(host: host, count)
        case .key(.tag(let tag), let count): .tagLimit(tag: tag, count)
        case .key(.exclusion(let category), _): .mutualExclusion(category: category)
        case .key(.group, let count): .batchLimit(count)
        case .key(.everything, let count): .limit(count)
        case .rate(let time): .rate(seconds: time - now)
        case .turn: .turn
        }
    }
}
