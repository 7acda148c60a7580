import Dispatch
import Foundation

/// A handler for Ctrl-C. The second Ctrl-C ends the program at once.
final class Interrupt {
    private let source: any DispatchSourceSignal
    private let flag: Flag

    /// - Parameter action: Called on a background queue for the first signal. A signal handler itself could do almost
    ///   nothing.
    init(_ action: @escaping @Sendable () -> Void) {
        // By default, the signal would end the process before the source handles it.
        signal(SIGINT, SIG_IGN)
        let queue = DispatchQueue(label: "Interrupt")
        let flag = Flag()
        source = DispatchSource.makeSignalSource(signal: SIGINT, queue: queue)
        self.flag = flag
        source.setEventHandler {
            if flag.raise() { exit(130) }
            action()
        }
        source.activate()
    }

    deinit { source.cancel() }

    var hasHappened: Bool { flag.isRaised }
}

private final class Flag: @unchecked Sendable {
    // Sendable because the lock guards `value`.
    private let lock = NSLock()
    private var value = false

    var isRaised: Bool { lock.withLock { value } }

    /// - Returns: Whether the flag was already set.
    func raise() -> Bool {
        lock.withLock {
            defer { value = true }
            return value
        }
    }
}
