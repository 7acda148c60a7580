import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("RegularFile")
struct RegularFileTests {
    /// Runs work that must not wait for anything, on a thread of its own, so that a test that fails does not hang.
    ///
    /// - Parameter pipe: opened at both ends when the work hangs, so that it goes on.
    /// - Returns: nil when the work hangs.
    static func result<Result: Sendable>(pipe: String, _ work: @escaping @Sendable () -> Result) -> Result? {
        let result = Locked<Result?>(nil)
        let hasEnded = DispatchSemaphore(value: 0)
        Thread {
            let value = work()
            result.withLock { $0 = value }
            hasEnded.signal()
        }.start()
        guard hasEnded.wait(timeout: .now() + 60) == .timedOut else { return result.withLock { $0 } }
        close(open(pipe, O_RDWR | O_NONBLOCK))
        return nil
    }

    @Test("SEC-3: a file is opened only if it is one: a pipe is not waited for, a link is followed only if asked")
    func kinds() throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("files-\(UUID().uuidString)").path
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let (file, link, pipe) = (folder + "/file", folder + "/link", folder + "/pipe")
        try Data("text".utf8).write(to: URL(fileURLWithPath: file))
        try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: file)
        expect(mkfifo(pipe, 0o600), equals: 0)
        /// 0 without an error; nil when it waits.
        func error(_ path: String, _ flags: Int32, followsLinks: Bool = false) -> Int32? {
            Self.result(pipe: pipe) {
                do throws(POSIXError) {
                    close(try RegularFile.open(path, flags, followsLinks: followsLinks).descriptor)
                    return 0
                } catch {
                    return error.code.rawValue
                }
            }
        }
        expect(
            [
                error(file, O_RDONLY), error(link, O_RDONLY, followsLinks: true),
                error(folder + "/new", O_WRONLY | O_CREAT), error(folder + "/none", O_RDONLY), error(link, O_RDONLY),
                error(pipe, O_RDONLY), error(pipe, O_RDWR),
                error(folder, O_RDONLY), error("/dev/null", O_RDONLY),
            ],
            equals: [0, 0, 0, ENOENT, ELOOP, EISDIR, EISDIR, EISDIR, EISDIR]
        )
        // The error of the system depends on whether somebody reads the pipe.
        expect([ENXIO, EISDIR].contains(error(pipe, O_WRONLY | O_APPEND)))
    }
}
