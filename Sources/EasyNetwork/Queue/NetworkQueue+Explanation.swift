import Foundation

extension NetworkQueue {
    /// Explains why a job has not run: a dependency, a limit, a rate, a condition, suspension, or nothing.
    ///
    /// - Returns: the current reasons, which may have ended when they are read; never empty. Linear in the job's
    ///   dependencies.
    public func explain(_ operation: Operation) -> [WaitReason] {
        if operation.isFinished { return [.finished] }
        let operation = operation.asNetworkOperation
        let now = clock.now
        var (phase, reason, others) = (Graph.Phase.gone, WaitReason.turn, [NetworkOperation]())
        state.withLock { state in
            guard let job = operation.job(in: self) else { return }
            phase = job.phase
            others = job.dependencies.flatMap { state.graph.payloads(at: $0.job, .dependencies) }
            if phase == .returning, job.hasYielded, !state.graph.isSuspended {
                reason = .slotYielded
            } else if phase == .ready || phase == .returning {
                reason = state.graph.obstacle(of: job, at: now)
            }
            if state.foreignWatch.unready[ObjectIdentifier(job)] != nil { reason = .notReady }
            if state.offline.values.contains(where: { $0.jobs.contains { $0 === job } }) {
                reason = .network
            }
        }
        switch phase {
        case .expected, .passed, .gone: return [.notHere]
        case .blocked where !others.isEmpty: return others.map(self.reason(waitingFor:))
        case .blocked, .ready, .returning: return [reason]
        case .parked:
            let calls = (operation as? ServiceOperation)?.callGroup
            return [condition(of: operation) ?? calls?.waitReason ?? .slotReleased]
        case .running: return [condition(of: operation) ?? .running]
        case .ending: return [.ending]
        }
    }

    /// Returns what a job waits for, or does, as the end of a sentence. For a batch or a chain, it names the first
    /// unfinished job.
    func explanation(of operation: NetworkOperation, depth: Int = 3) -> String {
        let reasons = explain(operation.original)
        guard reasons == [.running] else { return WaitReason.summary(of: reasons) }
        let children = (operation as? GroupOperation)?.childrenUnderWay ?? []
        guard let child = children.first, depth > 0 else {
            return "runs" + (operation.requestText.map { ": \($0)" } ?? "")
        }
        let inner = (child.scheduling?.queue ?? self).explanation(of: child, depth: depth - 1)
        let rest = children.count - 1
        let others = rest > 0 ? ", and for \(rest) more \(rest == 1 ? "job" : "jobs")" : ""
        return "waits for \(child.nameForMessages), which \(inner)\(others)"
    }

    private func condition(of operation: NetworkOperation) -> WaitReason? {
        operation.pendingCondition.map { .condition($0) }
    }

    private func reason(waitingFor operation: NetworkOperation) -> WaitReason {
        // The package cannot read where a foreign operation is.
        let isQueued = operation is ForeignJob || operation.scheduling != nil || operation.isExecuting
        return .dependency(name: operation.original.nameForMessages, isQueued: isQueued)
    }
}
