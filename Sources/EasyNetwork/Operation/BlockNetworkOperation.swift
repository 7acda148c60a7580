/// A job that is over when its block returns.
final class BlockNetworkOperation: NetworkOperation, @unchecked Sendable {
    // Sendable because `block` never changes.
    private let block: @Sendable () -> Void

    init(_ block: @escaping @Sendable () -> Void) {
        self.block = block
    }

    override func execute() {
        block()
        finish()
    }
}
