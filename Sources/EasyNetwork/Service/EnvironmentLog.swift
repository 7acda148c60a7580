import Dispatch
import Foundation

/// Writes all events to standard error when the environment asks for it: `EASYNETWORK_LOG=bodies`, `heads`, `debug`,
/// `info` or `error`. `bodies:1000` shows so many bytes of each body.
struct EnvironmentLog {
    /// Nil when the environment does not ask for it.
    static let shared = ProcessInfo.processInfo.environment["EASYNETWORK_LOG"].flatMap(EnvironmentLog.init)

    private let writer: LogWriter
    /// Hears every queue and host; nil when the level is not known.
    let listener: EventBroadcast.Listener?

    private init?(_ order: String) {
        guard !order.isEmpty else { return nil }
        _ = atexit {
            // The last lines, unless the target is blocked.
            let isSettled = DispatchSemaphore(value: 0)
            EnvironmentLog.shared?.writer.settle { isSettled.signal() }
            _ = isSettled.wait(timeout: .now() + 1)
        }
        let setting = LogSetting(order)
        let writer = LogWriter(setting ?? LogSetting(level: .error)) { LogWriter.write($0.text, to: STDERR_FILENO) }
        self.writer = writer
        listener = setting.map { setting in
            EventBroadcast.Listener(
                receive: { event in
                    // The start and the end of a call are those of its job.
                    if event.queueOfCall == nil { writer.add(event) { event.logLine } }
                },
                bodyCount: setting.wantedBodyCount,
                owner: ObjectIdentifier(writer)
            )
        }
        guard setting == nil else { return }
        let names = "bodies, bodies:1000, heads, debug, info or error"
        writer.add(.error) { "EASYNETWORK_LOG: unknown value \(order.cleaned()); use \(names)" }
    }
}
