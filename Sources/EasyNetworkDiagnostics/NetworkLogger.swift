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
/// With ``/EasyNetwork/NetworkEvent/Level/heads`` the heads of messages and answers follow their lines, and with
/// ``/EasyNetwork/NetworkEvent/Level/bodies`` the beginnings of bodies as text, too:
///
///     info 'profile' #3: first: POST https://api.example.com/login → 200, 0.041 s
///       < Content-Type: application/json
///       <
///       < {"name":"Ada","token":"REDACTED"}
///
/// A text in which secrets cannot be told from the rest is left out: one that is longer than one mebibyte, one that has
/// the name of a secret and is neither JSON nor a form, such as a multipart form, and the body of a stream or a
/// download that is longer than `maximumBodyCount`, of which no more is kept. A file or a stream that is sent is left
/// out as well.
///
/// A full, slow or blocked target stops and delays nothing. One mebibyte of lines waits for it at most, or eight with
/// heads or bodies, and a line has 16 KiB at most, and `maximumBodyCount` more with a body. A line that finds no room,
/// or that standard error refuses, is dropped, and the number of those is a line of level
/// ``/EasyNetwork/NetworkEvent/Level/error`` as soon as one can be written.
///
/// Without a change of the program, the environment variable `EASYNETWORK_LOG`, set to `bodies`, `heads`, `debug`,
/// `info` or `error`, or to `bodies:1000` for so many bytes of each, writes all queues and hosts of a process to
/// standard error in the same way. At its exit, the process waits for lines that have not been written, one second at
/// most.
public final class NetworkLogger: Sendable {
    private let setting: LogSetting
    private let subscriptions = EventSubscriptions()
    /// Writes the lines, so that a slow log holds up no job.
    private let writer: LogWriter
    /// Whether a line begins with its time and level.
    private let isDated: Bool

    /// Creates a log, which is told what to log with ``log(_:)-(NetworkQueue)`` or ``log(_:)-(HostConfiguration)``.
    ///
    /// - Parameters:
    ///   - level: the least important events that are logged. Default ``/EasyNetwork/NetworkEvent/Level/info``.
    ///   - maximumBodyCount: the bytes of the beginning of a body that are shown with
    ///     ``/EasyNetwork/NetworkEvent/Level/bodies``, at most 1,048,576. Default 4,096.
    ///   - write: gets the level of each event and the text of its line, with the lines of heads and bodies, one after
    ///     the other on a background queue. Default nil: lines go to `os.Logger` on Apple's platforms, with the
    ///     subsystem `EasyNetwork` and as private data, which only a debugger or a profile of the device shows, and to
    ///     standard error elsewhere. More than a kilobyte becomes several entries of `os.Logger`, which would cut a
    ///     longer one.
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

    /// Creates a log in a file. Each line begins with its time and its level.
    ///
    /// ```swift
    /// let logger = try NetworkLogger(level: .heads, file: URL(fileURLWithPath: "network.log"))
    /// logger.log(NetworkQueue.shared)
    /// ```
    ///
    /// The file may be read and written by its owner only; a symbolic link in its place is not followed, but an error.
    /// A line for which the disk has no room is dropped and counted, as above, and nothing of it is left.
    ///
    /// - Parameters:
    ///   - level: as above.
    ///   - file: in a directory that exists. A file that is there is kept beside it.
    ///   - rotation: when the log goes on in a new file, and how many files there are. Default: after 10,000,000 bytes,
    ///     five files.
    ///   - maximumBodyCount: as above.
    ///   - clock: for the age of a file. Default ``/EasyNetwork/SystemClock``.
    /// - Throws: ``/EasyNetwork/NetworkError/Code/cannotWriteFile``.
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

    /// Logs the jobs of a queue from now on, and those that are there. The queue is not kept alive.
    public func log(_ queue: NetworkQueue) {
        subscriptions.add(queue, bodyCount: setting.wantedBodyCount) { [weak self] event in self?.receive(event) }
    }

    /// Logs the calls to a host from now on. An event that the log has from a queue is not logged twice. The host is
    /// not kept alive.
    public func log(_ host: HostConfiguration) {
        subscriptions.add(host, bodyCount: setting.wantedBodyCount) { [weak self] event in
            // The start and the end of a call are those of its job.
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

    /// The unified log of Apple's platforms cuts an entry off near one kilobyte.
    static func entries(of text: String) -> [String] {
        var entries: [String] = []
        var rest = text[...]
        while rest.utf8.count > 1_000 {
            let limit = rest.utf8.index(rest.startIndex, offsetBy: 1_000)
            // After a whole line, or else after a whole character.
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
