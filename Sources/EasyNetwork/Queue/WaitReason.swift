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
    /// It has given its slot back while it waits, for instance for a retry.
    case slotReleased
    /// Its outcome is known, and it is about to finish.
    case ending
    /// It runs.
    case running
    /// It has finished.
    case finished

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
        case .slotReleased: "has given its slot back while it waits"
        case .ending: "is about to finish"
        case .running: "runs"
        case .finished: "has finished"
        }
    }
}

extension NetworkQueue {
    /// Explains why a job has not run: a dependency, a limit, a rate, a condition, suspension, or nothing.
    ///
    /// - Returns: the reasons at this moment, which may be over when they are read; never empty. Linear in the job's
    ///   dependencies.
    public func explain(_ operation: Operation) -> [WaitReason] {
        if operation.isFinished { return [.finished] }
        let operation = operation.asNetworkOperation
        let now = clock.now
        var (phase, reason, others) = (Graph.Phase.gone, WaitReason.turn, [NetworkOperation]())
        state.withLock { state in
            guard let job = operation.job(in: self) else { return }
            phase = job.phase
            others = job.dependencies.compactMap(\.job.payload)
            if phase == .ready || phase == .returning { reason = state.graph.obstacle(of: job, at: now) }
            if state.foreignWatch.unready[ObjectIdentifier(job)] != nil { reason = .notReady }
            if state.offline.values.contains(where: { $0.jobs.contains { $0 === job } }) {
                reason = .condition(OperationCondition.reachable().name)
            }
        }
        switch phase {
        case .expected, .passed, .gone: return [.notHere]
        case .blocked where !others.isEmpty: return others.map(self.reason(waitingFor:))
        case .blocked, .ready, .returning: return [reason]
        case .parked: return [condition(of: operation) ?? .slotReleased]
        case .running: return [condition(of: operation) ?? .running]
        case .ending: return [.ending]
        }
    }

    private func condition(of operation: NetworkOperation) -> WaitReason? {
        operation.pendingCondition.map { .condition($0) }
    }

    private func reason(waitingFor operation: NetworkOperation) -> WaitReason {
        // A foreign operation cannot be asked.
        let isQueued = operation is ForeignJob || operation.scheduling != nil || operation.isExecuting
        return .dependency(name: operation.original.nameForMessages, isQueued: isQueued)
    }
}
