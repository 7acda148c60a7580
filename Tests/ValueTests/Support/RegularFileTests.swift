import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("RegularFile")
struct RegularFileTests {
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
            unlessItWaits(for: pipe) {
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
