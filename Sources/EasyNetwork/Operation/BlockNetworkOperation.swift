/// A job that runs a block and finishes when it returns, also when it is cancelled before: a running block cannot be
/// stopped.
final class BlockNetworkOperation: NetworkOperation, @unchecked Sendable {
    // Sendable because `block` never changes, and the rest is behind the lock.
    private let block: @Sendable () -> Void
    /// Over when the block has returned; nil before it runs.
    private let returned = Locked<OneShot?>(nil)

    init(_ block: @escaping @Sendable () -> Void) {
        self.block = block
    }

    override func execute() {
        let returned = OneShot()
        self.returned.exchange(returned)
        // If it was cancelled just before, it has been delivered already.
        if !hasOutcome { block() }
        returned.end()
        finish()
    }

    override func deliver(_ error: NetworkError?, _ done: @escaping @Sendable () -> Void) {
        if let returned = returned.withLock({ $0 }) { returned.whenOver(done) } else { done() }
    }
}
