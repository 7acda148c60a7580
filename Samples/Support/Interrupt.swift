import Dispatch
import Foundation

/// A handler for Ctrl-C. The second Ctrl-C ends the program at once.
package final class Interrupt: @unchecked Sendable {
    // Sendable because the lock guards `hasOccurred`, and Dispatch guards the source.
    private let source: any DispatchSourceSignal
    private let lock = NSLock()
    private var hasOccurred = false

    /// Returns once the handler is installed. Until then, the process ignores Ctrl-C, so start the work afterwards.
    ///
    /// - Parameter action: Called on a background queue for the first Ctrl-C.
    package init(_ action: @escaping @Sendable () -> Void) async {
        // By default, the signal would end the process before the source handles it.
        signal(SIGINT, SIG_IGN)
        source = DispatchSource.makeSignalSource(signal: SIGINT, queue: DispatchQueue(label: "Interrupt"))
        source.setEventHandler { [weak self] in
            guard let self else { return }
            if noteSignal() { exit(130) }
            action()
        }
        await withCheckedContinuation { continuation in
            source.setRegistrationHandler { continuation.resume() }
            source.activate()
        }
    }

    deinit { source.cancel() }

    /// Whether Ctrl-C was pressed.
    package var hasHappened: Bool { lock.withLock { hasOccurred } }

    /// Ends the handling. The process continues to ignore Ctrl-C.
    package func cancel() { source.cancel() }

    /// - Returns: Whether there was a signal before.
    private func noteSignal() -> Bool {
        lock.withLock {
            defer { hasOccurred = true }
            return hasOccurred
        }
    }
}
