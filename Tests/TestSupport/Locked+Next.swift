@testable import EasyNetwork

extension Locked<Int> {
    /// Counts one more.
    ///
    /// - Returns: The new count.
    func next() -> Int {
        withLock { count in
            count += 1
            return count
        }
    }
}
