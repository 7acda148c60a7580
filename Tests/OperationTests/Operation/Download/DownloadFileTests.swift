import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("DownloadOperation and the file system")
struct DownloadFileTests {
    @Test("TRF-2: a full disk is one clear error; the old file stays, and so does what was written")
    func fullDisk() async throws {
        let fixture = try DownloadFixture()
        fixture.folder.write("old", to: "out")
        let written = Locked(0)
        var calls = FileCalls()
        calls.write = { descriptor, bytes, count, offset in
            let room = written.withLock { written in
                defer { written = min(100_000, written + count) }
                return min(count, 100_000 - written)
            }
            guard room > 0 else {
                errno = ENOSPC
                return -1
            }
            return pwrite(descriptor, bytes, room, off_t(offset))
        }
        let result = await fixture.run(fixture.operation(calls: calls))
        guard case .failure(let error) = result else { return expect(Bool(false)) }
        expect(error.code, equals: .cannotWriteFile)
        expect((error.underlying as? POSIXError)?.code, equals: .ENOSPC)
        expect(error.message?.contains(fixture.folder.url.path), equals: true, "\(error.message ?? "")")
        expect(fixture.folder.data("out"), equals: Data("old".utf8))
        await expect(fixture.run(fixture.operation()).code == nil)
        expect(fixture.folder.data("out"), equals: fixture.file.data)
        expect(fixture.file.requests.last?.headers["Range"] != nil)
    }

    @Test("TRF-2: a file that has no room is not begun")
    func noRoom() async throws {
        let fixture = try DownloadFixture()
        var calls = FileCalls()
        calls.freeBytes = { _ in 299_999 }
        let result = await fixture.run(fixture.operation(calls: calls))
        expect(result.code, equals: .cannotWriteFile)
        expect(fixture.folder.data("out") == nil)
        calls.freeBytes = { _ in 300_000 }
        await expect(fixture.run(fixture.operation(calls: calls)).code == nil)
    }

    @Test("TRF-2: a missing folder is an error that names it")
    func missingFolder() async throws {
        let fixture = try DownloadFixture(10)
        let destination = fixture.folder.url.appendingPathComponent("a/b/out")
        let result = await fixture.run(fixture.operation(to: destination))
        guard case .failure(let error) = result else { return expect(Bool(false)) }
        expect(error.code, equals: .cannotWriteFile)
        expect(error.message?.contains("a/b"), equals: true)
        expect(fixture.file.requests.isEmpty)
    }

    @Test("TRF-2: a folder that cannot be written to is an error, and nothing is sent")
    func readOnly() async throws {
        let fixture = try DownloadFixture(10)
        // Root can write everywhere except where the kernel refuses.
        #if os(Linux)
        let folder = URL(fileURLWithPath: "/sys")
        #else
        let folder = URL(fileURLWithPath: "/System")
        #endif
        let result = await fixture.run(fixture.operation(to: folder.appendingPathComponent("out")))
        expect(result.code, equals: .cannotWriteFile)
        expect(fixture.file.requests.isEmpty)
    }

    @Test("TRF-2: a part that vanishes is an error; the file at the destination stays")
    func vanished() async throws {
        let fixture = try DownloadFixture()
        fixture.folder.write("old", to: "out")
        let place = try DownloadLocation(fixture.destination, resource: "")
        fixture.file.change { _, _, _ in unlink(place.part) }
        let result = await fixture.run(fixture.operation())
        guard case .failure(let error) = result else { return expect(Bool(false)) }
        expect(error.code, equals: .cannotWriteFile)
        expect(error.message?.contains("disappeared"), equals: true)
        expect(fixture.folder.data("out"), equals: Data("old".utf8))
    }

    @Test("TRF-2: a part that is longer than the file is cut")
    func longPart() async throws {
        let fixture = try DownloadFixture()
        await fixture.breakOff(after: 100_000)
        let place = try DownloadLocation(fixture.destination, resource: "")
        let part = try FileHandle(forWritingTo: URL(fileURLWithPath: place.part))
        try part.truncate(atOffset: 400_000)
        try part.close()
        await expect(fixture.run(fixture.operation()).code == nil)
        expect(fixture.folder.data("out"), equals: fixture.file.data)
        expect(fixture.file.ranges, equals: [nil, "bytes=100000-"])
    }

    @Test(
        "TRF-2: a destination that cannot hold a file is an error of the request",
        arguments: [
            "https://example.com/out", "file:///tmp/a%00b", "file:///dev/null",
            "file:///tmp/\(String(repeating: "x", count: 256))",
        ]
    )
    func noPlace(text: String) async throws {
        let fixture = try DownloadFixture(10)
        let url = try #require(URL(string: text))
        let result = await fixture.run(fixture.operation(to: url))
        expect(result.code, equals: .invalidRequest)
        expect(fixture.file.requests.isEmpty)
    }

    @Test(
        "TRF-2: a directory takes the server's name for the file, never a path, or the URL's",
        arguments: [
            ("attachment; filename=\"report.pdf\"", "report.pdf"),
            ("attachment; filename=\"../../etc/passwd\"", "passwd"),
            ("attachment; filename*=UTF-8''%e2%82%ac%20rates.txt; filename=\"x\"", "€ rates.txt"),
            ("attachment; filename=\"..\"", "file"),
            ("inline", "file"),
            (nil, "file"),
        ]
    )
    func named(field: String?, name: String) async throws {
        let fixture = try DownloadFixture(10)
        fixture.file.change { _, _, response in response.headers["Content-Disposition"] = field }
        let result = await fixture.run(fixture.operation(to: fixture.folder.url))
        try expect(result.get().lastPathComponent, equals: name)
        expect(fixture.folder.names, equals: [name])
    }

    @Test("TRF-3: a download to a directory resumes its part")
    func directoryResumed() async throws {
        let fixture = try DownloadFixture()
        fixture.file.change { _, _, response in response.fault = .truncate(after: 100_000) }
        await fixture.run(fixture.operation(to: fixture.folder.url))
        fixture.file.change { _, _, _ in }
        await expect(fixture.run(fixture.operation(to: fixture.folder.url)).code == nil)
        expect(fixture.file.ranges, equals: [nil, "bytes=100000-"])
        expect(fixture.folder.data("file"), equals: fixture.file.data)
    }

    @Test("TRF-2: an existing file is replaced or kept")
    func existing() async throws {
        let fixture = try DownloadFixture(10)
        fixture.folder.write("old", to: "out")
        let kept = await fixture.run(fixture.operation { $0.replacesExistingFile = false })
        try expect(kept.get().path, equals: fixture.destination.path)
        expect(fixture.file.requests.isEmpty)
        expect(fixture.folder.data("out"), equals: Data("old".utf8))
        await expect(fixture.run(fixture.operation()).code == nil)
        expect(fixture.folder.data("out"), equals: fixture.file.data)
        expect(fixture.folder.names, equals: ["out"])
    }

    @Test("TRF-2: an existing file in a directory is kept once its name is known")
    func keptInDirectory() async throws {
        let fixture = try DownloadFixture(10_000_000)
        fixture.folder.write("old", to: "file")
        let result = await fixture.run(fixture.operation(to: fixture.folder.url) { $0.replacesExistingFile = false })
        try expect(result.get().lastPathComponent, equals: "file")
        expect(fixture.folder.data("file"), equals: Data("old".utf8))
        expect(fixture.folder.names, equals: ["file"])
    }

    @Test("TRF-2: a directory in the way stays, and the error names it")
    func directoryInTheWay() async throws {
        let fixture = try DownloadFixture(10)
        fixture.file.change { _, _, response in
            response.headers["Content-Disposition"] = "attachment; filename=\"sub\""
        }
        let inside = fixture.folder.url.appendingPathComponent("sub/x", isDirectory: true)
        try FileManager.default.createDirectory(at: inside, withIntermediateDirectories: true)
        let result = await fixture.run(fixture.operation(to: fixture.folder.url) { $0.replacesExistingFile = true })
        expect(result.code, equals: .cannotWriteFile)
        expect(fixture.folder.names.contains("sub"))
    }

    @Test("TRF-3: a part that others use is left alone, and refused")
    func lockedElsewhere() async throws {
        let fixture = try DownloadFixture(10)
        let place = try DownloadLocation(fixture.destination, resource: "")
        let other = try PartialFile(place)
        defer { other.close() }
        let result = await fixture.run(fixture.operation())
        expect(result.code, equals: .refused)
        expect(fixture.file.requests.isEmpty)
    }

    @Test("TRF-3: old parts of others go, young ones and locked ones stay")
    func swept() async throws {
        let fixture = try DownloadFixture(10)
        let old = Date(timeIntervalSinceNow: -8 * 24 * 3_600)
        let names = [".easynetwork-1.part", ".easynetwork-1.part.journal", ".easynetwork-2.part.journal", "mine.part"]
        for name in names + [".easynetwork-4.part"] {
            fixture.folder.write("x", to: name)
            let path = fixture.folder.file(name).path
            try FileManager.default.setAttributes([.modificationDate: old], ofItemAtPath: path)
        }
        let descriptor = open(fixture.folder.file(".easynetwork-4.part").path, O_RDONLY)
        defer { close(descriptor) }
        expect(flock(descriptor, LOCK_EX), equals: 0)
        fixture.folder.write("x", to: ".easynetwork-3.part")
        await expect(fixture.run(fixture.operation()).code == nil)
        expect(fixture.folder.names, equals: [".easynetwork-3.part", ".easynetwork-4.part", "mine.part", "out"])
    }

    @Test(
        "TRF-3: a journal that is malformed or does not fit its part is ignored",
        arguments: [
            "", "{}", "null", "[1]",
            #"{"version":1,"resource":"RESOURCE","validator":{"entityTag":{"_0":"\"one\""}},"total":300000,"segments":[{"lower":0,"upper":300000,"count":200000,"safeCount":200000}]}"#,
            #"{"version":1,"resource":"RESOURCE","validator":{"entityTag":{"_0":"\"one\""}},"total":300000,"segments":[{"lower":-5,"upper":300000,"count":9223372036854775807,"safeCount":9223372036854775807}]}"#,
            #"{"version":2,"resource":"RESOURCE","validator":{"entityTag":{"_0":"\"one\""}},"total":10,"segments":[]}"#,
        ]
    )
    func hostileJournal(text: String) async throws {
        let fixture = try DownloadFixture()
        let place = try DownloadLocation(fixture.destination, resource: "")
        _ = FileManager.default.createFile(atPath: place.part, contents: Data(repeating: 1, count: 100_000))
        let resource = fixture.server.baseURL.appendingPathComponent("file").downloadDigest
        let journal = text.replacingOccurrences(of: "RESOURCE", with: resource)
        _ = FileManager.default.createFile(atPath: place.journal, contents: Data(journal.utf8))
        await expect(fixture.run(fixture.operation()).code == nil)
        expect(fixture.folder.data("out"), equals: fixture.file.data)
        expect(fixture.folder.names, equals: ["out"])
    }
}
