#if os(Linux) || os(macOS)
import Dispatch
import Foundation

@testable import EasyNetwork

/// A program that runs beside the tests.
///
/// Not `Process`: on Linux that looks for open descriptors in `/proc/self/fd` by copying the longest name there could be
/// from entries that are shorter. With more than some thousand open, as in these tests, the last entry stands at the end
/// of the buffer, and now and then nothing is behind it that may be read.
final class ChildProcess: Sendable {
    private let identifier: pid_t
    private let ending: Ending

    /// The end of a program, which is waited for on a thread of its own: the exit tests of Swift Testing look for any
    /// that has ended, and would see one again and again whose status nobody takes.
    private final class Ending: Sendable {
        /// What `waitpid` said, once it has ended.
        let status = Locked<Int32?>(nil)
        let group = DispatchGroup()

        func wait(for identifier: pid_t) {
            group.enter()
            Thread {
                var information = siginfo_t()
                while waitid(P_PID, id_t(identifier), &information, WEXITED | WNOWAIT) < 0, errno == EINTR {}
                // Under the lock, so that no signal is sent to another one that has its number.
                self.status.withLock { status in
                    var now: Int32 = 0
                    while waitpid(identifier, &now, 0) < 0, errno == EINTR {}
                    status = now
                }
                self.group.leave()
            }.start()
        }
    }

    /// Starts it, in a process group of its own and without any other descriptor of this process.
    ///
    /// - Parameters:
    ///   - folder: where it runs; nil means where this process does.
    ///   - input: read by it; nil means nothing.
    ///   - output: where it writes, errors too; nil means nowhere. To be closed here afterwards.
    init(
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
            throw Command.Failure(description: "the C library is too old")
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
            throw Command.Failure(description: "\(program.path) does not start: \(String(cString: strerror(result)))")
        }
        identifier = child
        ending = Ending()
        ending.wait(for: child)
    }

    #if !canImport(Darwin)
    private typealias Actions = UnsafeMutablePointer<posix_spawn_file_actions_t>

    // In the library since glibc 2.29 and 2.34; what Swift imports of its headers leaves them out.
    private static let addFolder = dlsym(nil, "posix_spawn_file_actions_addchdir_np").map {
        unsafeBitCast($0, to: (@convention(c) (Actions, UnsafePointer<CChar>) -> Int32).self)
    }
    private static let addCloseFrom = dlsym(nil, "posix_spawn_file_actions_addclosefrom_np").map {
        unsafeBitCast($0, to: (@convention(c) (Actions, Int32) -> Int32).self)
    }
    #endif

    var isRunning: Bool { ending.status.withLock { $0 == nil } }

    /// Ends it, in whatever state it is.
    func kill() {
        ending.status.withLock { status in
            if status == nil { _ = Foundation.kill(identifier, SIGKILL) }
        }
    }

    /// Blocks the calling thread until it has ended.
    ///
    /// - Returns: its exit status; nil when a signal has ended it.
    func wait() -> Int32? {
        ending.group.wait()
        let status = ending.status.withLock { $0 } ?? 0
        return status & 0x7F == 0 ? status >> 8 & 0xFF : nil
    }
}
#endif
