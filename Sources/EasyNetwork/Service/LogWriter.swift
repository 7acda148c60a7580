import Dispatch
import Foundation

/// Writes the lines of a log on its own queue, so that a full, slow or blocked target delays nothing.
///
/// A line that finds no room, or cannot be written, is dropped. The number of dropped lines is written with the next
/// line that can be written.
package final class LogWriter: Sendable {
    package typealias Line = (level: NetworkEvent.Level, text: String)
    /// Writes a line. The closure can block.
    ///
    /// - Returns: Whether the line was written.
    package typealias Write = @Sendable (Line) -> Bool
    /// A line, and the message whose text is made when the line is written.
    private typealias Entry = (line: Line, message: LogMessage?)

    /// The maximum size of the lines that wait or are being written, in bytes.
    static let maximumLoad = 1_048_576
    /// The maximum size with the messages of ``NetworkEvent/Level/heads`` and ``NetworkEvent/Level/bodies``, in bytes.
    static let maximumMessageLoad = 8_388_608
    /// The maximum size of a line without the body of its message, in bytes. An ellipsis replaces the rest.
    static let maximumLine = 16_384

    /// Writes mistakes that would otherwise be silent to standard error, whatever the program logs.
    static let mistakes = LogWriter { write($0.text, to: STDERR_FILENO) }

    // A blocked dispatch queue takes no thread from the Swift concurrency executor.
    private let queue = BatchQueue<Entry>(label: "EasyNetwork.log")
    private let setting: LogSetting
    private let state: Locked<(load: Int, droppedCount: Int)>
    private let work: BatchQueue<Entry>.Work

    package init(_ setting: LogSetting = LogSetting(level: .debug), _ write: @escaping Write) {
        let state = Locked((load: 0, droppedCount: 0))
        self.setting = setting
        self.state = state
        work = { entries in
            func report() {
                let count = state.withLock { exchange(&$0.droppedCount, with: 0) }
                guard count > 0, !write((.error, "\(count) lines of the log were dropped")) else { return }
                state.withLock { $0.droppedCount += count }
            }
            report()
            for (line, message) in entries {
                var shown = line
                if let message {
                    shown.text = Self.bounded(shown.text + message.text, Self.maximumLine + setting.wantedBodyCount)
                }
                let isWritten = write(shown)
                state.withLock { state in
                    state.load -= Self.cost(line.text, message)
                    if !isWritten { state.droppedCount += 1 }
                }
            }
            // Lines that found no room while these were written are reported after them.
            report()
        }
    }

    /// Writes an event, with its message, if its level is logged.
    ///
    /// - Parameter text: See ``add(_:message:_:)``.
    package func add(_ event: NetworkEvent, _ text: () -> String) {
        guard event.level >= setting.level else { return }
        add(event.level, message: LogMessage(event, setting.level, bodyCount: setting.bodyCount), text)
    }

    /// Adds a line.
    ///
    /// - Parameters:
    ///   - message: The message that follows the text. Defaults to `nil`.
    ///   - text: Called at once, unless there is no room, because the values that the text is made from can be large,
    ///     or can change.
    func add(_ level: NetworkEvent.Level, message: LogMessage? = nil, _ text: () -> String) {
        let limit = setting.level <= .heads ? Self.maximumMessageLoad : Self.maximumLoad
        func takeRoom(_ cost: Int) -> Bool {
            state.withLock { state in
                let hasRoom = state.load + cost <= limit
                if hasRoom { state.load += cost } else { state.droppedCount += 1 }
                return hasRoom
            }
        }
        guard takeRoom(0) else { return }
        let text = Self.bounded(text(), Self.maximumLine)
        if takeRoom(Self.cost(text, message)) { queue.add(((level, text), message), work) }
    }

    /// Calls `action` on the queue when all lines so far have been written or dropped.
    package func settle(_ action: @escaping @Sendable () -> Void) {
        queue.settle(work, action)
    }

    /// Returns the approximate size of a line in memory, in bytes.
    private static func cost(_ text: String, _ message: LogMessage?) -> Int {
        text.utf8.count + 64 + (message?.size ?? 0)
    }

    private static func bounded(_ text: String, _ limit: Int) -> String {
        guard text.utf8.count > limit else { return text }
        // A copy is needed, because a substring would keep the complete string alive.
        return String(decoding: Array(text.utf8.prefix(limit - 3)), as: UTF8.self) + "…"
    }

    /// Writes a line and its line feed to a descriptor, and blocks until they are written.
    ///
    /// - Returns: False if the target accepts no more, for example because the disk is full or no process reads the
    ///   pipe.
    package static func write(_ text: String, to descriptor: Int32) -> Bool {
        withoutBrokenPipeSignal(descriptor) {
            Array((text + "\n").utf8).withUnsafeBytes { bytes in
                var done = 0
                while done < bytes.count {
                    let count = Foundation.write(descriptor, bytes.baseAddress.map { $0 + done }, bytes.count - done)
                    if count > 0 {
                        done += count
                    } else if count < 0, errno == EAGAIN {
                        // Another program that shares the descriptor may have made it non-blocking.
                        var entry = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
                        _ = poll(&entry, 1, -1)
                    } else if count == 0 || errno != EINTR {
                        return false
                    }
                }
                return true
            }
        }
    }

    /// Runs `write` without `SIGPIPE`. Writing to a pipe that no process reads raises this signal, which terminates the
    /// process by default.
    private static func withoutBrokenPipeSignal(_ descriptor: Int32, _ write: () -> Bool) -> Bool {
        #if canImport(Darwin)
        // On Darwin, the signal is raised for the process, and reaches any thread that does not block it. The option is
        // never reset, because another writer that sets it can be in the middle of its write.
        _ = fcntl(descriptor, F_SETNOSIGPIPE, 1)
        return write()
        #else
        var signals = sigset_t()
        var before = sigset_t()
        var pending = sigset_t()
        sigemptyset(&signals)
        sigaddset(&signals, SIGPIPE)
        pthread_sigmask(SIG_BLOCK, &signals, &before)
        defer { pthread_sigmask(SIG_SETMASK, &before, nil) }
        sigpending(&pending)
        let isWritten = write()
        if !isWritten, sigismember(&pending, SIGPIPE) == 0 {
            // Take the signal that this write may have raised, without waiting for one.
            var noTime = timespec()
            _ = sigtimedwait(&signals, nil, &noTime)
        }
        return isWritten
        #endif
    }
}

/// The level of detail of a log.
package struct LogSetting: Sendable {
    package let level: NetworkEvent.Level
    /// The number of bytes that are shown of the beginning of a body.
    package let bodyCount: Int

    package init(level: NetworkEvent.Level, bodyCount: Int = LogMessage.standardBodyCount) {
        self.level = level
        // A line must fit within the maximum load.
        self.bodyCount = min(max(0, bodyCount), LogMessage.maximumBody)
    }

    /// Creates a setting from a string such as `debug` or `bodies:1000`; nil if the string is invalid.
    init?(_ text: String) {
        let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        guard let level = parts.first.flatMap({ NetworkEvent.Level(name: String($0)) }) else { return nil }
        guard parts.count > 1 else {
            self.init(level: level)
            return
        }
        guard level == .bodies, let count = Int(parts[1]), count >= 0 else { return nil }
        self.init(level: level, bodyCount: count)
    }

    /// The number of first bytes that the log wants of bodies that are consumed as they arrive.
    package var wantedBodyCount: Int { level == .bodies ? bodyCount : 0 }
}
