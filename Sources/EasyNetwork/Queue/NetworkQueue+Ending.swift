import Foundation

/// Cancelling several jobs: waiting jobs end at once, without having run; running jobs are told to stop.
///
/// To cancel a single job, call its `cancel()`, or ``cancelOperation(id:)``.
extension NetworkQueue {
    /// Cancels every job.
    public func cancelAllOperations() {
        cancel { $0.allJobs }
    }

    /// Cancels the jobs that have this tag among their ``NetworkOperation/tags``.
    public func cancelOperations(tag: String) {
        cancel { $0.jobs(with: .tag(tag)) }
    }

    /// Cancels the jobs that call this host.
    ///
    /// - Parameter host: as in ``NetworkOperation/host``, in upper or lower case.
    public func cancelOperations(host: String) {
        cancel { $0.jobs(with: .host(host.lowercased())) }
    }

    /// Cancels the job with this number, if it is here. Linear in the number of jobs.
    ///
    /// - Parameter id: see ``NetworkOperation/operationID``.
    public func cancelOperation(id: UInt64) {
        cancel(where: { $0.option { $0.operationID } == id })
    }

    /// Cancels the jobs that match.
    ///
    /// - Parameter matches: called on this thread, without a lock, once for each job.
    public func cancelOperations(where matches: (Operation) -> Bool) {
        cancel(where: { matches($0.original) })
    }

    private func cancel(where matches: (NetworkOperation) -> Bool) {
        let jobs = state.withLock { state in state.graph.jobs.compactMap { job in job.payload.map { (job, $0) } } }
        let matching = jobs.filter { matches($0.1) }.map(\.0)
        cancel { _ in matching }
    }

    /// Cancels those of the operations that are here.
    func cancel(_ operations: [NetworkOperation]) {
        cancel { _ in operations.compactMap { $0.job(in: self) } }
    }

    private func cancel(_ choose: (Graph) -> [Job]) {
        // In one step, so that no slot that becomes free is given to a job that is about to be cancelled; and cancelled
        // before the waiting jobs are started, only to end.
        step { state, actions in
            let jobs = choose(state.graph)
            for job in jobs { state.graph.end(job, &actions) }
            return jobs.compactMap(\.payload)
        } beforeActing: { operations in
            WorkQueue.userCode { for operation in operations { operation.cancel() } }
        }
    }
}

extension NetworkQueue {
    /// Waits until no job is left, those included that are added during the wait. The queue goes on.
    ///
    /// ```swift
    /// await queue.waitUntilIdle()
    /// ```
    ///
    /// A suspended queue is not idle while it has jobs, and a job that waits for its own queue never ends. Cancelling
    /// the task ends the wait at once.
    public func waitUntilIdle() async {
        await untilEmpty(Promise<Void>())
    }

    /// Waits until no job is left, or the event happens otherwise.
    private func untilEmpty(_ over: Promise<Void>) async {
        let number = whenEmpty { over.set() }
        await over.wait()
        // A waiter that was cancelled, or whose deadline came first, is not kept until the queue is empty.
        let waiter = state.withLock { $0.emptyWaiters.removeValue(forKey: number) }
        withExtendedLifetime(waiter) {}
    }

    /// Shuts the queue down for good: accepts no more jobs, lets the present ones finish until the deadline, and
    /// cancels the rest.
    ///
    /// ```swift
    /// let undone = await queue.shutDown(deadline: 5)
    /// ```
    ///
    /// From now on a job that is added ends with ``NetworkError/Code/refused``, whose message names the place of this
    /// call; present jobs may still add their children and prerequisites. A suspended queue is resumed. Cancelling the
    /// task ends the wait at once. The jobs that are cancelled at the deadline still have their callbacks to run when
    /// this returns: for them, and to wait without an end, use ``waitUntilIdle()``.
    ///
    /// - Parameters:
    ///   - deadline: seconds from now; zero or less cancels at once.
    ///   - file: of the call, for the message. Leave it out.
    ///   - line: of the call, for the message. Leave it out.
    /// - Returns: the jobs that were cancelled because they had not finished, in the order in which they were added.
    @discardableResult
    public func shutDown(
        deadline: TimeInterval,
        file: StaticString = #fileID,
        line: UInt = #line
    ) async -> [Operation] {
        state.withLock { state in state.shutDownPlace = state.shutDownPlace ?? "\(file):\(line)" }
        isSuspended = false
        let over = Promise<Void>()
        let timer = clock.schedule(after: deadline) { over.set() }
        await untilEmpty(over)
        timer.cancel()
        let undone = operations
        if !undone.isEmpty { cancelAllOperations() }
        if broadcast.isHeard { broadcast.post(state.withLock { _ in event(.shutDown) }) }
        // A job that has its result already, and whose closures run, could not be cancelled any more.
        return undone.filter(\.isCancelled)
    }

    /// The former name of ``shutDown(deadline:file:line:)``.
    @available(*, deprecated, renamed: "shutDown(deadline:)")
    @discardableResult
    public func drain(deadline: TimeInterval) async -> [Operation] {
        await shutDown(deadline: deadline)
    }
}
