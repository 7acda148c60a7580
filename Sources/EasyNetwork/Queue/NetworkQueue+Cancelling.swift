import Foundation

/// Cancelling several jobs: those that wait end at once, without having run; those that run are told to stop.
///
/// A single one is cancelled by its own `cancel()`, or by its number, ``cancelOperation(id:)``.
extension NetworkQueue {
    /// Cancels every job.
    public func cancelAllOperations() {
        cancel(withKey: nil)
    }

    /// Cancels the jobs that have this tag among their ``NetworkOperation/tags``.
    public func cancelOperations(tag: String) {
        cancel(withKey: .tag(tag))
    }

    /// Cancels the jobs that call this host.
    ///
    /// - Parameter host: as in ``NetworkOperation/host``, in upper or lower case.
    public func cancelOperations(host: String) {
        cancel(withKey: .host(host.lowercased()))
    }

    /// Cancels the job with this number, if it is here. Linear in the number of jobs.
    ///
    /// - Parameter id: see ``NetworkOperation/operationID``.
    public func cancelOperation(id: UInt64) {
        cancelOperations { ($0 as? NetworkOperation)?.option { $0.operationID } == id }
    }

    /// Cancels the jobs that match.
    ///
    /// - Parameter matches: called on this thread, without a lock, once for each job.
    public func cancelOperations(where matches: (Operation) -> Bool) {
        let jobs = state.withLock { state in
            state.graph.jobs.compactMap { job in state.graph.payload(of: job).map { (job, $0) } }
        }
        let matching = jobs.filter { matches($0.1) }
        step { state, actions in
            for (job, _) in matching { state.graph.end(job, &actions) }
        } beforeActing: {
            cancel(matching.map(\.1))
        }
    }

    private func cancel(withKey key: LimitKey?) {
        // In one step, so that no slot that becomes free is given to a job that is about to be cancelled; and cancelled
        // before those that wait are started, only to end.
        step { state, actions in
            state.graph.end(withKey: key, &actions)
        } beforeActing: { operations in
            cancel(operations)
        }
    }

    private func cancel(_ operations: [Operation]) {
        for operation in operations { operation.cancel() }
        let plain = operations.filter { !($0 is NetworkOperation) }
        guard !plain.isEmpty else { return }
        // Those that seemed to run may have been made to wait again since, and tell nobody that they were cancelled.
        step { state, actions in
            for operation in plain {
                if let job = state.plainJobs[ObjectIdentifier(operation)] { state.graph.end(job, &actions) }
            }
        }
    }
}
