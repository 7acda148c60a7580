import Dispatch
import Foundation

/// Writes all events to standard error if the environment variable `EASYNETWORK_LOG` is set to `bodies`, `heads`,
/// `debug`, `info` or `error`. With `bodies:1000`, the log shows that many bytes of each body.
struct EnvironmentLog {
    /// Nil if the variable is not set.
    static let shared = ProcessInfo.processInfo.environment["EASYNETWORK_LOG"].flatMap(EnvironmentLog.init)

    private let writer: LogWriter
    /// Listens to every queue and host; nil if the value of the variable is unknown.
    let listener: EventBroadcast.Listener?

    private init?(_ order: String) {
        guard !order.isEmpty else { return nil }
        _ = atexit {
            // Write the last lines before the process exits, unless the target is blocked.
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
                    // The start and the end of a job's call are not logged, because the job's start and end are.
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
