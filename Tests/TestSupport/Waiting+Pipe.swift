import Foundation

@testable import EasyNetwork

/// Runs work that must not wait for anything, on a thread of its own, so that a test that fails does not hang.
///
/// - Parameter pipe: opened at both ends when the work hangs, so that it goes on.
/// - Returns: nil when the work hangs.
func unlessItWaits<Result: Sendable>(for pipe: String, _ work: @escaping @Sendable () -> Result) -> Result? {
    let result = Locked<Result?>(nil)
    let hasEnded = DispatchSemaphore(value: 0)
    Thread {
        let value = work()
        result.withLock { $0 = value }
        hasEnded.signal()
    }.start()
    guard hasEnded.wait(timeout: .now() + 60) == .timedOut else { return result.withLock { $0 } }
    close(open(pipe, O_RDWR | O_NONBLOCK))
    return nil
}
