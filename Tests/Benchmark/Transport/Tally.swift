import Foundation

/// Counts the requests of a round; may be used on any thread.
final class Tally: @unchecked Sendable {
    // Sendable because the lock guards the numbers.
    private let lock = NSLock()
    private let count: Int
    private var begun = 0
    private var endedCount = 0
    private var rightCount = 0
    private let allEnded = DispatchSemaphore(value: 0)

    init(_ count: Int) {
        self.count = count
    }

    /// The number of correct answers.
    var right: Int { lock.withLock { rightCount } }

    /// - Returns: whether to begin another request.
    func begin() -> Bool {
        lock.withLock {
            begun += 1
            return begun <= count
        }
    }

    /// - Parameter bytes: the length of the answer's body; nil without an answer.
    func ended(_ bytes: Int?) {
        let isLast = lock.withLock {
            endedCount += 1
            if bytes == SmallRequests.byteCount { rightCount += 1 }
            return endedCount == count
        }
        if isLast { allEnded.signal() }
    }

    /// Waits for the last answer, with a limit because `URLSession` may lose one.
    func wait() {
        _ = allEnded.wait(timeout: .now() + 60)
    }
}
