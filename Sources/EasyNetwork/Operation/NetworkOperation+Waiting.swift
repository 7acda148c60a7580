import Foundation

/// Waiting for the end in a task.
extension NetworkOperation {
    /// Waits until the operation has finished and its callbacks have run. Several tasks can wait for it.
    ///
    /// ```swift
    /// let batch = BatchOperation(operations, policy: .collectAll)
    /// NetworkQueue.shared.addOperation(batch)
    /// try await batch.finished()
    /// print(batch.failures.count, "have failed")
    /// ```
    ///
    /// This method does not start the operation: add the operation, or the group that contains it, to a queue before or
    /// after. If it is on no queue after a second, a warning is written to standard error, once for each operation.
    ///
    /// A task that is cancelled while it waits continues at once, with the outcome if it is known, otherwise with
    /// ``NetworkError/Code/cancelled``. This cancels the operation only if no other task waits. An ``ItemOperation``
    /// also has ``ItemOperation/value``.
    ///
    /// - Throws: the ``error`` of the operation, even if it was cancelled.
    public final func finished() async throws(NetworkError) {
        countWaitingTask()
        await waitAsCounted()
        guard let outcome = core.withLock({ $0.lifecycle.outcome }) else { throw NetworkError(code: .cancelled) }
        try outcome.get()
    }

    /// Counts one more waiting task.
    final func countWaitingTask() {
        core.withLock { $0.waitingTaskCount += 1 }
    }

    /// Waits until the operation has finished, or the waiting task, which was counted, is cancelled. The cancellation
    /// of the last waiting task cancels the operation.
    ///
    /// - Parameter begin: called when the cancellation handler is in place.
    final func waitAsCounted(_ begin: () -> Void = {}) async {
        let over = Promise<Void>()
        await withTaskCancellationHandler {
            begin()
            let (isConcluded, isTaken) = core.withLock { state in
                if !state.isConcluded { state.finishActions.append { over.set() } }
                return (state.isConcluded, state.isTaken)
            }
            if isConcluded { over.set() }
            let report = isTaken ? nil : reportIfForgotten()
            await withCheckedContinuation { continuation in over.whenSet { continuation.resume() } }
            report?.cancel()
        } onCancel: {
            let isLast = core.withLock { state in
                state.waitingTaskCount -= 1
                return state.waitingTaskCount == 0
            }
            if isLast { WorkQueue.userCode { cancel() } }
            // Complete the promise here too, because an operation on no queue never finishes.
            over.set()
        }
    }

    /// Whether the operation is on a queue, or a child of a group that is on one and will add it there.
    private var willStart: Bool { isTaken || groups.contains(where: \.willStart) }

    /// Writes a warning, once, if the operation is on no queue after a second, because a task that waits for it would
    /// wait forever.
    private func reportIfForgotten() -> any ClockTimer {
        let clock = client?.settings.clock ?? SystemClock()
        return clock.schedule(after: 1) { [weak self] in
            guard let self, !willStart else { return }
            let isReported = changeOptions { options, _ in exchange(&options.isReportedForgotten, with: true) }
            guard !isReported else { return }
            LogWriter.mistakes.add(.error) {
                let name = self.nameForMessages.cleaned()
                return "\(clock.date.timestamp) \(NetworkEvent.Level.error) \(name) is awaited, but is on no queue: "
                    + "add it to a NetworkQueue, or the task waits forever"
            }
        }
    }
}
