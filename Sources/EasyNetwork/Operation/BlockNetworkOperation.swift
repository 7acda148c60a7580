/// A job that runs a block and finishes when it returns, also when it is cancelled before: a running block cannot be
/// stopped.
final class BlockNetworkOperation: NetworkOperation, @unchecked Sendable {
    // Sendable because `block` never changes, and the rest is behind the lock.
    private let block: @Sendable () -> Void
    /// Over when the block has returned; nil before it runs.
    private let returned = Locked<Promise<Void>?>(nil)

    init(_ block: @escaping @Sendable () -> Void) {
        self.block = block
    }

    override func execute() {
        let returned = Promise<Void>()
        self.returned.exchange(returned)
        // If it was cancelled just before, it has been delivered already.
        if !hasOutcome { block() }
        returned.set()
        finish()
    }

    override func endWork(after error: NetworkError?) -> [Promise<Void>] {
        returned.withLock { $0 }.map { [$0] } ?? []
    }
}
