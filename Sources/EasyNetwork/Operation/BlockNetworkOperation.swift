/// A job that runs a block and finishes when the block returns. A running block cannot be stopped, so this includes a
/// job that is cancelled meanwhile.
final class BlockNetworkOperation: NetworkOperation, @unchecked Sendable {
    // Sendable because `block` never changes, and the other state is under a lock.
    private let block: @Sendable () -> Void
    /// Completes when the block has returned; `nil` before the block runs.
    private let returned = Locked<Promise<Void>?>(nil)

    init(_ block: @escaping @Sendable () -> Void) {
        self.block = block
    }

    override func execute() {
        let returned = Promise<Void>()
        self.returned.exchange(returned)
        // If the operation was cancelled just before, its end has already been delivered.
        if !hasOutcome { block() }
        returned.set()
        finish()
    }

    override func endWork(after error: NetworkError?) -> [Promise<Void>] {
        returned.withLock { $0 }.map { [$0] } ?? []
    }
}
