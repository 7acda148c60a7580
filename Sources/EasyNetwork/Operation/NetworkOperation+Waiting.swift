import Foundation

/// Waiting for the end in a task.
extension NetworkOperation {
    /// Waits until the operation has finished and its callbacks have run. Several tasks may wait for it.
    ///
    /// ```swift
    /// let batch = BatchOperation(operations, policy: .collectAll)
    /// NetworkQueue.shared.addOperation(batch)
    /// try await batch.finished()
    /// print(batch.failures.count, "have failed")
    /// ```
    ///
    /// Add the operation, or the group that it is in, to a queue first, or later: nothing here starts it. If it is on no
    /// queue after a second, a line on standard error says so, once for each operation.
    ///
    /// A task that is cancelled while it waits continues at once: with the outcome if that is known, otherwise with
    /// ``NetworkError/Code/cancelled``. The operation is cancelled with it only if no other task waits. An
    /// ``ItemOperation`` also has ``ItemOperation/value``.
    ///
    /// - Throws: the ``error`` of the operation, also that of a cancellation.
    public final func finished() async throws(NetworkError) {
        countWaitingTask()
        await waitAsCounted()
        switch core.withLock({ $0.lifecycle.outcome }) {
        case .success: return
        case .failure(let error): throw error
        case nil: throw NetworkError(code: .cancelled)
        }
    }

    /// Counts one more task that waits.
    final func countWaitingTask() {
        core.withLock { $0.waitingTaskCount += 1 }
    }

    /// Waits until the operation has finished, or the task, which is counted among those that wait, is cancelled. The
    /// last one takes the operation with it.
    ///
    /// - Parameter begin: called when the handler of a cancellation is in place.
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
            // Not only when it has finished: one that is on no queue never does.
            over.set()
        }
    }

    /// Whether it is on a queue, or a child of a group that is on one and adds it there.
    private var willStart: Bool { isTaken || groups.contains(where: \.willStart) }

    /// Logs it, once, if the operation is on no queue after a second: a task that waits for it would wait forever.
    private func reportIfForgotten() -> any ClockTimer {
        let clock = (self as? any CallOwner)?.callGroup.host.settings.clock ?? SystemClock()
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
