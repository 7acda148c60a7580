#if os(Linux) || os(macOS)
import Dispatch
import EasyNetwork
import Foundation

/// A program that runs in a child process.
///
/// It replaces `Process`, which on Linux finds open descriptors by copying directory entries of `/proc/self/fd` at
/// their maximum length. With thousands of open descriptors, as in these tests, the last entry is at the end of the
/// buffer, and the copy may read past it and crash.
package final class ChildProcess: Sendable {
    /// Why a program did not start, or the output of one that failed.
    package struct Failure: Error, CustomStringConvertible {
        package let description: String

        package init(description: String) {
            self.description = description
        }
    }

    private let identifier: pid_t
    private let ending: Ending

    /// Waits for the end of a program on a separate thread. The exit tests of Swift Testing look for any ended child,
    /// and would find an unreaped one again and again.
    private final class Ending: Sendable {
        /// The status from `waitpid`; nil while the program runs.
        let status = Locked<Int32?>(nil)
        let group = DispatchGroup()

        func wait(for identifier: pid_t) {
            group.enter()
            Thread {
                var information = siginfo_t()
                while waitid(P_PID, id_t(identifier), &information, WEXITED | WNOWAIT) < 0, errno == EINTR {}
                // Reaps under the lock, so that no signal is sent to a new process with the same identifier.
                self.status.withLock { status in
                    var now: Int32 = 0
                    while waitpid(identifier, &now, 0) < 0, errno == EINTR {}
                    status = now
                }
                self.group.leave()
            }.start()
        }
    }

    /// Starts the program in a new process group, without inherited descriptors.
    ///
    /// - Parameters:
    ///   - folder: The working directory; nil means the current one.
    ///   - input: The standard input; nil means none.
    ///   - output: The standard output and error; nil means none. The caller closes it afterwards.
    package init(
        _ program: URL,
        _ arguments: [String],
        in folder: URL? = nil,
        input: FileHandle? = nil,
        output: FileHandle? = nil
    ) throws {
        #if canImport(Darwin)
        var actions: posix_spawn_file_actions_t?
        var attributes: posix_spawnattr_t?
        #else
        var actions = posix_spawn_file_actions_t()
        var attributes = posix_spawnattr_t()
        #endif
        posix_spawn_file_actions_init(&actions)
        posix_spawnattr_init(&attributes)
        defer {
            posix_spawn_file_actions_destroy(&actions)
            posix_spawnattr_destroy(&attributes)
        }
        if let input {
            posix_spawn_file_actions_adddup2(&actions, input.fileDescriptor, 0)
        } else {
            posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
        }
        for descriptor in 1...2 as ClosedRange<Int32> {
            if let output {
                posix_spawn_file_actions_adddup2(&actions, output.fileDescriptor, descriptor)
            } else {
                posix_spawn_file_actions_addopen(&actions, descriptor, "/dev/null", O_WRONLY, 0)
            }
        }
        #if canImport(Darwin)
        if let folder { posix_spawn_file_actions_addchdir_np(&actions, folder.path) }
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_CLOEXEC_DEFAULT))
        #else
        guard let addFolder = Self.addFolder, let addCloseFrom = Self.addCloseFrom else {
            throw Failure(description: "the C library is too old")
        }
        if let folder { _ = addFolder(&actions, folder.path) }
        _ = addCloseFrom(&actions, 3)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETPGROUP))
        #endif
        posix_spawnattr_setpgroup(&attributes, 0)

        let environment = ProcessInfo.processInfo.environment.map { "\($0)=\($1)" }
        let words = ([program.path] + arguments).map { strdup($0) }
        let variables = environment.map { strdup($0) }
        defer { for text in words + variables { free(text) } }
        var child = pid_t()
        let result = posix_spawn(&child, program.path, &actions, &attributes, words + [nil], variables + [nil])
        guard result == 0 else {
            throw Failure(description: "\(program.path) does not start: \(String(cString: strerror(result)))")
        }
        identifier = child
        ending = Ending()
        ending.wait(for: child)
    }

    #if !canImport(Darwin)
    private typealias Actions = UnsafeMutablePointer<posix_spawn_file_actions_t>

    // Available since glibc 2.29 and 2.34, but missing from the headers that Swift imports.
    private static let addFolder = dlsym(nil, "posix_spawn_file_actions_addchdir_np").map {
        unsafeBitCast($0, to: (@convention(c) (Actions, UnsafePointer<CChar>) -> Int32).self)
    }
    private static let addCloseFrom = dlsym(nil, "posix_spawn_file_actions_addclosefrom_np").map {
        unsafeBitCast($0, to: (@convention(c) (Actions, Int32) -> Int32).self)
    }
    #endif

    package var isRunning: Bool { ending.status.withLock { $0 == nil } }

    /// Kills the program.
    package func kill() {
        ending.status.withLock { status in
            if status == nil { _ = Foundation.kill(identifier, SIGKILL) }
        }
    }

    /// Blocks the calling thread until the program has ended.
    ///
    /// - Returns: The exit status; nil if a signal ended the program.
    package func wait() -> Int32? {
        ending.group.wait()
        let status = ending.status.withLock { $0 } ?? 0
        return status & 0x7F == 0 ? status >> 8 & 0xFF : nil
    }

    /// Finds a program in `PATH` or in folders for servers, which only the `PATH` of administrators has.
    package static func find(_ name: String) -> URL? {
        let path = ProcessInfo.processInfo.environment["PATH"] ?? ""
        let folders = path.split(separator: ":").map(String.init)
        return (folders + ["/usr/sbin", "/usr/local/sbin", "/opt/homebrew/bin"]).lazy
            .map { URL(fileURLWithPath: $0).appendingPathComponent(name) }
            .first { FileManager.default.isExecutableFile(atPath: $0.path) }
    }

    /// Runs a program, and blocks the calling thread until its end.
    ///
    /// - Returns: What it wrote to its standard output and error.
    /// - Throws: ``Failure`` with the output if the exit status is not 0.
    @discardableResult
    package static func run(_ program: URL, _ arguments: [String], in folder: URL? = nil) throws -> String {
        let output = Pipe()
        let process = try ChildProcess(program, arguments, in: folder, output: output.fileHandleForWriting)
        try output.fileHandleForWriting.close()
        let text = String(decoding: try output.fileHandleForReading.readToEnd() ?? Data(), as: UTF8.self)
        let status = process.wait()
        guard status == 0 else {
            let status = status.map(String.init) ?? "of a signal"
            throw Failure(description: "\(program.lastPathComponent): status \(status): \(text)")
        }
        return text
    }
}
#endif
