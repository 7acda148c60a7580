import Foundation

/// The time that the system grants an app before it suspends it.
///
/// The system kills a suspended app that holds a lock on a file of an app group (`0xdead10cc`). An outbox therefore
/// holds its lock only within such an activity. While it has nothing to deliver, it has no lock and no activity.
struct ExpiringActivity: Sendable {
    /// Calls its closure with false on a background thread. The activity lasts until that call returns. The closure is
    /// called with true when no time is left, possibly without a call with false before.
    let begin: @Sendable (_ activity: @escaping @Sendable (_ isExpired: Bool) -> Void) -> Void

    /// The system's activity; `nil` on systems that don't suspend apps.
    static let system: ExpiringActivity? = {
        #if os(iOS) || os(tvOS) || os(watchOS) || os(visionOS)
        ExpiringActivity { activity in
            ProcessInfo.processInfo.performExpiringActivity(withReason: "EasyNetworkOutbox", using: activity)
        }
        #else
        nil
        #endif
    }()

    /// The state of an outbox's activity.
    enum State {
        case none
        case asked
        /// The activity is granted. The closure returns when the semaphore is signalled.
        case granted(DispatchSemaphore)

        var isGranted: Bool { if case .granted = self { true } else { false } }
    }
}
