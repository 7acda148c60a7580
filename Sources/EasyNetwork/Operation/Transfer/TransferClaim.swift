import Foundation

/// The operations that use a file of a transfer.
extension NetworkOperation {
    /// The operations that hold a file, by its path, each with a promise of its release. A claim excludes other
    /// operations of this process. The lock of the file excludes other processes, but doesn't show that an operation is
    /// about to release it.
    static let claims = Locked<[String: (owner: NetworkOperation, released: Promise<Void>)]>([:])

    /// Takes the file. If an operation that has ended still holds it, waits until it is released.
    ///
    /// - Parameter afterEnd: whether the operation can take the file although it has ended. Defaults to `false`.
    /// - Returns: `false` if another operation holds the file, or this one has ended.
    final func claimTransfer(_ file: String, afterEnd: Bool = false) async -> Bool {
        while afterEnd || !hasOutcome {
            let other = Self.claims.withLock { claims in
                let other = claims[file]
                if other == nil { claims[file] = (self, Promise()) }
                return other
            }
            guard let other else { return true }
            guard other.owner.hasOutcome, !Task.isCancelled else { return false }
            await other.released.wait()
        }
        return false
    }

    final func releaseTransfer(_ file: String) {
        Self.claims.withLock { $0.removeValue(forKey: file) }?.released.set(())
    }
}
