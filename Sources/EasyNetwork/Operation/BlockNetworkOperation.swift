/// A job that runs a block and finishes when it returns, also when it is cancelled before: a running block cannot be
/// stopped.
final class BlockNetworkOperation: NetworkOperation, @unchecked Sendable {
    // Sendable because `block` never changes, and the rest is behind the lock.
    private let block: @Sendable () -> Void
    private let running = Locked<(isRunning: Bool, done: (@Sendable () -> Void)?)>((false, nil))

    init(_ block: @escaping @Sendable () -> Void) {
        self.block = block
    }

    override func execute() {
        running.withLock { $0.isRunning = true }
        // If it was cancelled just before, it has been delivered already.
        if !hasOutcome { block() }
        let done = running.withLock { running in
            running.isRunning = false
            return running.done.take()
        }
        finish()
        done?()
    }

    override func deliver(_ error: NetworkError?, _ done: @escaping @Sendable () -> Void) {
        let isRunning = running.withLock { running in
            if running.isRunning { running.done = done }
            return running.isRunning
        }
        if !isRunning { done() }
    }
}
