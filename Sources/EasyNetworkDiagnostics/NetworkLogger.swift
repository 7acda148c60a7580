import Dispatch
import EasyNetwork
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
/// A full, slow or blocked target stops and delays nothing. One mebibyte of lines waits for it at most, and a line has
/// 16 KiB at most. A line that finds no room, or that standard error refuses, is dropped, and the number of those is a
/// line of level ``/EasyNetwork/NetworkEvent/Level/error`` as soon as one can be written.
///
/// Without a change of the program, the environment variable `EASYNETWORK_LOG`, set to `debug`, `info` or `error`,
/// writes all queues and hosts of a process to standard error in the same way. At its exit, the process waits for lines
/// that have not been written, one second at most.
public final class NetworkLogger: Sendable {
    private let level: NetworkEvent.Level
    private let subscriptions = EventSubscriptions()
    /// Writes the lines, so that a slow log holds up no job.
    private let writer: LogWriter

    /// Creates a log, which is told what to log with ``log(_:)-(NetworkQueue)`` or ``log(_:)-(HostConfiguration)``.
    ///
    /// - Parameters:
    ///   - level: the least important events that are logged. Default ``/EasyNetwork/NetworkEvent/Level/info``.
    ///   - write: gets the level and the text of each line, one after the other on a background queue. Default nil:
    ///     lines go to `os.Logger` on Apple's platforms, with the subsystem `EasyNetwork` and as private data, which
    ///     only a debugger or a profile of the device shows, and to standard error elsewhere.
    public init(
        level: NetworkEvent.Level = .info,
        write: (@Sendable (NetworkEvent.Level, String) -> Void)? = nil
    ) {
        self.level = level
        writer = LogWriter { line in
            guard let write else { return Self.writeToSystem(line) }
            write(line.level, line.text)
            return true
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
                guard let self, event.level >= level, !(event.reportedBy.map(subscriptions.contains) ?? false) else {
                    return
                }
                receive(event)
            }
        }
    }

    /// Returns when the lines of all events up to now have been written.
    func settled() async {
        await subscriptions.settled()
        await withCheckedContinuation { continuation in writer.settle { continuation.resume() } }
    }

    private func receive(_ event: NetworkEvent) {
        if event.level >= level { writer.add(event.level) { event.description } }
    }

    #if canImport(os)
    private static let log = os.Logger(subsystem: "EasyNetwork", category: "network")

    private static func writeToSystem(_ line: LogWriter.Line) -> Bool {
        switch line.level {
        case .debug: log.debug("\(line.text, privacy: .private)")
        case .info: log.info("\(line.text, privacy: .private)")
        case .error: log.error("\(line.text, privacy: .private)")
        }
        return true
    }
    #else
    private static func writeToSystem(_ line: LogWriter.Line) -> Bool {
        LogWriter.write("\(line.level) \(line.text)", to: STDERR_FILENO)
    }
    #endif
}
