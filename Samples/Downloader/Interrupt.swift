import Dispatch
import Foundation

/// Ctrl-C. The second one ends the program at once.
final class Interrupt {
    private let source: any DispatchSourceSignal
    private let flag: Flag

    /// - Parameter action: called with the first one, on a background queue: a handler of the signal itself could do
    ///   next to nothing.
    init(_ action: @escaping @Sendable () -> Void) {
        // Without this the signal would end the process before the source hears of it.
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

    /// - Returns: whether it was raised before.
    func raise() -> Bool {
        lock.withLock {
            defer { value = true }
            return value
        }
    }
}
