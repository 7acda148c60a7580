import Dispatch
import EasyNetwork
import Foundation
#if canImport(os)
import os
#endif

/// A log of jobs and calls, with a line for each attempt and each end, without secrets.
///
/// ```swift
/// let logger = NetworkLogger(level: .info)
/// logger.log(NetworkQueue.shared)
/// // info 'profile' #3: first: GET https://api.example.com/me?token=REDACTED → 200, 0.041 s
/// // info 'profile' #3: succeeded
/// ```
///
/// Without a logger, nothing is logged. A logger logs until it is released. The first line is written at once. Lines of
/// events that follow within two milliseconds are written together after that time. A kill, a crash or an exit of the
/// process loses the lines of about the last two milliseconds, and lines that wait for a slow `write`.
///
/// With ``/EasyNetwork/NetworkEvent/Level/heads``, the heads of requests and responses follow their lines. With
/// ``/EasyNetwork/NetworkEvent/Level/bodies``, the beginnings of bodies follow as text, too:
///
///     info 'profile' #3: first: POST https://api.example.com/login → 200, 0.041 s
///       < Content-Type: application/json
///       <
///       < {"name":"Ada","token":"REDACTED"}
///
/// A body is left out if its secrets cannot be told from the rest:
///
/// - a body longer than one mebibyte;
/// - a body that contains the name of a secret and is neither JSON nor a form, such as a multipart form;
/// - the body of a stream or a download that is longer than `maximumBodyCount`, because only that much of it is kept.
///
/// A file or a stream that is sent is always left out.
///
/// A full, slow or blocked target stops and delays nothing. At most one mebibyte of lines waits for the target, or
/// eight with heads or bodies. A line has at most 16 KiB, and with a body `maximumBodyCount` more. A line that finds no
/// room, or that standard error refuses, is dropped. As soon as a line can be written again, a line of level
/// ``/EasyNetwork/NetworkEvent/Level/error`` reports the number of dropped lines.
///
/// To log without changing code, set the environment variable `EASYNETWORK_LOG` to `bodies`, `heads`, `debug`, `info`
/// or `error`, or to `bodies:1000` for that many bytes of each body. All queues and hosts of the process are then
/// logged to standard error in the same way. When it exits, the process waits at most one second for lines that have
/// not been written.
public final class NetworkLogger: Sendable {
    private let setting: LogSetting
    private let subscriptions = EventSubscriptions()
    /// Writes the lines in the background, so that a slow log delays no job.
    private let writer: LogWriter
    /// Whether a line begins with its time and level.
    private let isDated: Bool

    /// Creates a log. Call ``log(_:)-(NetworkQueue)`` or ``log(_:)-(HostConfiguration)`` to choose what it logs.
    ///
    /// - Parameters:
    ///   - level: the least important level that is logged. Defaults to ``/EasyNetwork/NetworkEvent/Level/info``.
    ///   - maximumBodyCount: the number of bytes shown of each body with ``/EasyNetwork/NetworkEvent/Level/bodies``, at
    ///     most 1,048,576. Defaults to 4,096.
    ///   - write: receives the level of each event and the text of its line, including the lines of heads and bodies.
    ///     Called on a background queue, one call at a time. Defaults to `nil`: lines go to `os.Logger` on Apple
    ///     platforms, and to standard error elsewhere. The entries of `os.Logger` have the subsystem `EasyNetwork` and
    ///     are private data, which only a debugger or a profile on the device shows. A line of more than a kilobyte
    ///     becomes several entries, because `os.Logger` truncates long ones.
    public init(
        level: NetworkEvent.Level = .info,
        maximumBodyCount: Int = 4_096,
        write: (@Sendable (NetworkEvent.Level, String) -> Void)? = nil
    ) {
        setting = LogSetting(level: level, bodyCount: maximumBodyCount)
        isDated = false
        writer = LogWriter(setting) { line in
            guard let write else { return Self.writeToSystem(line) }
            write(line.level, line.text)
            return true
        }
    }

    /// Creates a log in a file. Each line starts with its time and its level.
    ///
    /// ```swift
    /// let logger = try NetworkLogger(level: .heads, file: URL(fileURLWithPath: "network.log"))
    /// logger.log(NetworkQueue.shared)
    /// ```
    ///
    /// Only the owner can read and write the file. If a symbolic link is at its path, the initializer throws. A line
    /// for which the disk has no room is dropped and counted as described above, and no part of it remains in the file.
    ///
    /// - Parameters:
    ///   - level: the least important level that is logged. Defaults to ``/EasyNetwork/NetworkEvent/Level/info``.
    ///   - file: the URL of the file, in a directory that exists. An existing file is kept as an older file.
    ///   - rotation: when the log starts a new file, and how many files are kept. Defaults to a new file after
    ///     10,000,000 bytes, and five files.
    ///   - maximumBodyCount: the number of bytes shown of each body with ``/EasyNetwork/NetworkEvent/Level/bodies``, at
    ///     most 1,048,576. Defaults to 4,096.
    ///   - clock: measures the age of a file. Defaults to ``/EasyNetwork/SystemClock``.
    /// - Throws: ``/EasyNetwork/NetworkError/Code/cannotWriteFile`` if the file cannot be created.
    public init(
        level: NetworkEvent.Level = .info,
        file: URL,
        rotation: FileRotation = FileRotation(),
        maximumBodyCount: Int = 4_096,
        clock: any NetworkClock = SystemClock()
    ) throws(NetworkError) {
        setting = LogSetting(level: level, bodyCount: maximumBodyCount)
        isDated = true
        let file = try LogFile(file, rotation, clock)
        writer = LogWriter(setting) { file.write($0.text) }
    }

    /// Logs the existing and future jobs of a queue. The queue is not kept alive.
    public func log(_ queue: NetworkQueue) {
        subscriptions.add(queue, bodyCount: setting.wantedBodyCount) { [weak self] event in self?.receive(event) }
    }

    /// Logs the calls to a host from now on. An event that the log receives from a queue is not logged twice. The host
    /// is not kept alive.
    public func log(_ host: HostConfiguration) {
        subscriptions.add(host, bodyCount: setting.wantedBodyCount) { [weak self] event in
            // If the call's queue is logged, its job's lines already include the start and end of the call.
            guard let self, event.queueOfCall.map(subscriptions.contains) != true else { return }
            receive(event)
        }
    }

    /// Returns when the lines of all events up to now have been written.
    func settled() async {
        await subscriptions.settled()
        await withCheckedContinuation { continuation in writer.settle { continuation.resume() } }
    }

    private func receive(_ event: NetworkEvent) {
        writer.add(event) { isDated ? event.logLine : event.description }
    }

    /// Splits a line into entries, because the unified log of Apple platforms truncates an entry near one kilobyte.
    static func entries(of text: String) -> [String] {
        var entries: [String] = []
        var rest = text[...]
        while rest.utf8.count > 1_000 {
            let limit = rest.utf8.index(rest.startIndex, offsetBy: 1_000)
            // An entry ends after a complete line, or otherwise after a complete character.
            let feed = rest.utf8[..<limit].lastIndex(of: UInt8(ascii: "\n"))
            var end = feed ?? limit
            while end.samePosition(in: text.unicodeScalars) == nil { end = text.utf8.index(before: end) }
            entries.append(String(rest[..<end]))
            rest = rest[(feed.map { rest.utf8.index(after: $0) } ?? end)...]
        }
        return entries + [String(rest)]
    }

    #if canImport(os)
    private static let log = os.Logger(subsystem: "EasyNetwork", category: "network")

    private static func writeToSystem(_ line: LogWriter.Line) -> Bool {
        for text in entries(of: line.text) {
            switch line.level {
            case .bodies, .heads, .debug: log.debug("\(text, privacy: .private)")
            case .info: log.info("\(text, privacy: .private)")
            case .error: log.error("\(text, privacy: .private)")
            }
        }
        return true
    }
    #else
    private static func writeToSystem(_ line: LogWriter.Line) -> Bool {
        LogWriter.write("\(line.level) \(line.text)", to: STDERR_FILENO)
    }
    #endif
}
