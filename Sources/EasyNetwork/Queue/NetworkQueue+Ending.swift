import Foundation

/// Cancelling several jobs: waiting jobs end at once, without having run, and running jobs are asked to stop.
///
/// To cancel a single job, call its `cancel()`, or ``cancelOperation(id:)``.
extension NetworkQueue {
    /// Cancels every job.
    public func cancelAllOperations() {
        cancel { $0.allJobs }
    }

    /// Cancels the jobs that have this tag in their ``NetworkOperation/tags``.
    public func cancelOperations(tag: String) {
        cancel { $0.jobs(with: .tag(tag)) }
    }

    /// Cancels the jobs that call this host.
    ///
    /// - Parameter host: the host, as in ``NetworkOperation/host``, in upper or lower case.
    public func cancelOperations(host: String) {
        cancel { $0.jobs(with: .host(host.lowercased())) }
    }

    /// Cancels the job with this number, if it is on this queue. Linear in the number of jobs.
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
        cancel(state.withLock { $0.graph.jobs.compactMap(\.payload) }.filter(matches))
    }

    /// Cancels the given operations as far as they are on this queue.
    func cancel(_ operations: [NetworkOperation]) {
        cancel { _ in operations.compactMap { $0.job(in: self) } }
    }

    private func cancel(_ choose: (Graph) -> [Job]) {
        // Cancel all jobs in one step, so that no slot that becomes free is given to a job that is about to be
        // cancelled. Cancel them before the waiting jobs are started, only to end.
        step { state, actions in
            let jobs = choose(state.graph).filter { !$0.traits.isUndo }
            for job in jobs { state.graph.end(job, &actions) }
            return jobs.compactMap(\.payload)
        } beforeActing: { operations in
            WorkQueue.userCode { for operation in operations { operation.cancel() } }
        }
    }
}

extension NetworkQueue {
    /// Waits until no job is left, including jobs that are added during the wait. The queue remains usable.
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

    /// Waits until no job is left, or the promise is completed otherwise.
    private func untilEmpty(_ over: Promise<Void>) async {
        let number = whenEmpty { over.set() }
        await over.wait()
        // Don't keep the waiter until the queue is empty, if the task was cancelled or the deadline came first.
        state.discard { $0.emptyWaiters.removeValue(forKey: number) }
    }

    /// Shuts the queue down permanently. The queue accepts no more jobs, lets the current ones finish until the
    /// deadline, and cancels the rest.
    ///
    /// ```swift
    /// let undone = await queue.shutDown(deadline: 5)
    /// ```
    ///
    /// From now on, a job that is added ends with ``NetworkError/Code/refused``, whose message names the place of this
    /// call. Current jobs can still add their children and prerequisites. A suspended queue is resumed. Cancelling the
    /// task ends the wait at once. When this method returns, the jobs that were cancelled at the deadline still have
    /// callbacks to run. To wait for them, or to wait without a deadline, use ``waitUntilIdle()``.
    ///
    /// - Parameters:
    ///   - deadline: the time in seconds from now. With zero or less, the jobs are cancelled at once.
    ///   - file: the file of the call, for the message. Use the default.
    ///   - line: the line of the call, for the message. Use the default.
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
        if broadcast.hasListeners.isSet { broadcast.post(state.withLock { _ in event(.shutDown) }) }
        // A job whose result is known, and whose closures are running, could no longer be cancelled.
        return undone.filter(\.isCancelled)
    }

    /// The former name of ``shutDown(deadline:file:line:)``.
    @available(*, deprecated, renamed: "shutDown(deadline:)")
    @discardableResult
    public func drain(deadline: TimeInterval) async -> [Operation] {
        await shutDown(deadline: deadline)
    }
}
