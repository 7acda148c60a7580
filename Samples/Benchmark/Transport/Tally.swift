import Foundation

/// Counts the requests of one round; may be used from any thread.
final class Tally: @unchecked Sendable {
    // Sendable because the numbers are touched only under the lock.
    private let lock = NSLock()
    private let count: Int
    private var begun = 0
    private var endedCount = 0
    private var rightCount = 0
    private let allEnded = DispatchSemaphore(value: 0)

    init(_ count: Int) {
        self.count = count
    }

    /// How many had the answer that they should have.
    var right: Int { lock.withLock { rightCount } }

    /// - Returns: whether there is one more to begin.
    func begin() -> Bool {
        lock.withLock {
            begun += 1
            return begun <= count
        }
    }

    /// - Parameter bytes: how many the body of the answer has; nil without an answer.
    func ended(_ bytes: Int?) {
        let isLast = lock.withLock {
            endedCount += 1
            if bytes == SmallRequests.byteCount { rightCount += 1 }
            return endedCount == count
        }
        if isLast { allEnded.signal() }
    }

    /// Waits for the last one; not for ever, since `URLSession` may lose an answer.
    func wait() {
        _ = allEnded.wait(timeout: .now() + 60)
    }
}
