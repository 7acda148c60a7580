import Dispatch
import Foundation
#if canImport(os)
import os
#endif

/// A log of jobs and calls: a line for each attempt and each end, without secrets.
///
/// ```swift
/// let logger = NetworkLogger(level: .info)
/// logger.log(NetworkQueue.shared)
/// // info 'profile' #3: first: GET https://api.example.com/me?token=REDACTED → 200, 0.041 s
/// // info 'profile' #3: succeeded
/// ```
///
/// Nothing is logged without one. It logs until it is released. The first line is written at once; those of events that
/// follow within two milliseconds are written together after that time. A kill, a crash or an exit of the process loses
/// the lines of about the last two milliseconds, and those that wait for a slow `write`.
///
/// Without a change of the program, the environment variable `EASYNETWORK_LOG`, set to `debug`, `info` or `error`,
/// writes all queues and hosts of a process to standard error, each line when its event is told.
public final class NetworkLogger: Sendable {
    private let level: NetworkEvent.Level
    private let subscriptions = EventSubscriptions()
    /// Writes the lines, so that a slow log holds up no job.
    private let writer = BatchQueue<NetworkEvent>(label: "EasyNetwork.log")
    private let write: BatchQueue<NetworkEvent>.Work

    /// Creates a log, which is told what to log with ``log(_:)-(NetworkQueue)`` or ``log(_:)-(HostConfiguration)``.
    ///
    /// - Parameters:
    ///   - level: the least important events that are logged. Default ``NetworkEvent/Level/info``.
    ///   - write: gets the level and the text of each line, one after the other on a background queue. Default nil:
    ///     lines go to `os.Logger` on Apple's platforms, with the subsystem `EasyNetwork`, and to standard error
    ///     elsewhere.
    public init(
        level: NetworkEvent.Level = .info,
        write: (@Sendable (NetworkEvent.Level, String) -> Void)? = nil
    ) {
        self.level = level
        let write = write ?? Self.standardOutput
        self.write = { events in
            for event in events { write(event.level, event.description) }
        }
    }

    /// Logs the jobs of a queue from now on, and those that are there. The queue is not kept alive.
    public func log(_ queue: NetworkQueue) {
        subscriptions.add(queue.broadcast) {
            queue.subscribe { [weak self] event in self?.receive(event) }
        }
    }

    /// Logs the calls to a host from now on. An event that the log has from a queue is not logged twice. The host is
    /// not kept alive.
    public func log(_ host: HostConfiguration) {
        subscriptions.add(host.broadcast) {
            host.subscribe { [weak self] event in
                guard let self, event.level >= level, !(event.toldBy.map(subscriptions.contains) ?? false) else {
                    return
                }
                receive(event)
            }
        }
    }

    /// Returns when the lines of all events up to now have been written.
    func settled() async {
        await subscriptions.settled()
        await withCheckedContinuation { continuation in writer.settle(write) { continuation.resume() } }
    }

    private func receive(_ event: NetworkEvent) {
        if event.level >= level { writer.add(event, write) }
    }

    #if canImport(os)
    private static let standardOutput: @Sendable (NetworkEvent.Level, String) -> Void = {
        let logger = os.Logger(subsystem: "EasyNetwork", category: "network")
        return { level, text in
            switch level {
            case .debug: logger.debug("\(text, privacy: .public)")
            case .info: logger.info("\(text, privacy: .public)")
            case .error: logger.error("\(text, privacy: .public)")
            }
        }
    }()
    #else
    private static let standardOutput: @Sendable (NetworkEvent.Level, String) -> Void = { level, text in
        FileHandle.standardError.write(Data("\(level) \(text)\n".utf8))
    }
    #endif
}
