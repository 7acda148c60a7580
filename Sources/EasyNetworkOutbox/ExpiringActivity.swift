import Foundation

/// The time that the system grants a program before it suspends it.
///
/// A suspended app that has a file of an app group locked is killed (`0xdead10cc`). So an outbox holds its lock within
/// such an activity alone, and has neither while it has nothing to deliver.
struct ExpiringActivity: Sendable {
    /// Calls its closure on a background thread with false, and the activity lasts until that returns; then, or at
    /// first, with true when there is no more time.
    let begin: @Sendable (_ activity: @escaping @Sendable (_ isExpired: Bool) -> Void) -> Void

    /// That of the system; nil where programs are not suspended.
    static let system: ExpiringActivity? = {
        #if os(iOS) || os(tvOS) || os(watchOS) || os(visionOS)
        ExpiringActivity { activity in
            ProcessInfo.processInfo.performExpiringActivity(withReason: "EasyNetworkOutbox", using: activity)
        }
        #else
        nil
        #endif
    }()

    /// How far an outbox is with its activity.
    enum State {
        case none
        case asked
        /// Granted; the closure returns when the semaphore is signalled.
        case granted(DispatchSemaphore)

        var isGranted: Bool { if case .granted = self { true } else { false } }
    }
}
