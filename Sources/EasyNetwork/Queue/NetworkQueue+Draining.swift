import Foundation

extension NetworkQueue {
    /// Brings the queue to its end: takes no more jobs, lets those that are here finish until the deadline, and cancels
    /// the rest.
    ///
    /// ```swift
    /// let undone = await queue.drain(deadline: 5)
    /// ```
    ///
    /// From now on, and for ever, a job that is added ends with ``NetworkError/Code/refused``; jobs that are here may
    /// still bring in the jobs they are made of. A queue that is suspended is resumed. Cancelling the task brings the
    /// deadline forward to this moment.
    ///
    /// - Parameter deadline: seconds from now; zero or less cancels at once.
    /// - Returns: the jobs that were cancelled because they had not finished, in the order in which they were added.
    @discardableResult
    public func drain(deadline: TimeInterval) async -> [Operation] {
        state.withLock { $0.isClosed = true }
        isSuspended = false
        let over = OneShot()
        let timer = clock.schedule(after: deadline) { over.end() }
        whenEmpty { over.end() }
        await over.wait()
        timer.cancel()
        let undone = operations
        if !undone.isEmpty { cancelAllOperations() }
        return undone
    }

    /// Whether ``drain(deadline:)`` has been called, so that the queue takes no more jobs.
    public var isDrained: Bool {
        state.withLock { $0.isClosed }
    }

    func refuse(_ operation: Operation) {
        if let operation = operation as? NetworkOperation {
            // It is taken in all the same, so that it ends and its dependents go on.
            operation.finish(NetworkError(code: .refused, message: "the queue has been drained"))
        } else {
            operation.cancel()
        }
    }
}
