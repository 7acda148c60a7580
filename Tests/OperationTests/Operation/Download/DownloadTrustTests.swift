import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("DownloadOperation and untrusted answers")
struct DownloadTrustTests {
    /// Another file on the same server with the same tag and length.
    private func otherFile(of fixture: DownloadFixture, at path: String = "/other") -> RangedFile {
        let other = RangedFile(RangedFile.bytes(fixture.file.data.count, seed: 2), tag: "\"one\"")
        fixture.server.route("GET", path) { other.answer($0) }
        return other
    }

    // MARK: - Addresses

    @Test("TRF-3: an ETag counts for one address: the part of another address is not resumed (RFC 9110, 8.8.3)")
    func sameTag() async throws {
        let fixture = try DownloadFixture()
        let other = otherFile(of: fixture)
        await fixture.breakOff(after: 100_000)
        await expect(fixture.run(fixture.operation(FileRequest(api: "other"))).code == nil)
        expect(fixture.folder.data("out"), equals: other.data)
        expect(other.ranges, equals: [nil])
    }

    @Test("TRF-3: with a digest, the part may be resumed from another address")
    func digestOfBoth() async throws {
        let fixture = try DownloadFixture()
        let mirror = RangedFile(fixture.file.data, tag: "\"one\"")
        fixture.server.route("GET", "/mirror") { mirror.answer($0) }
        await fixture.breakOff(after: 100_000)
        let digest = SHA256.digest(of: fixture.file.data).hexadecimal
        let result = await fixture.run(fixture.operation(FileRequest(api: "mirror")) { $0.sha256 = digest })
        expect(result.code == nil)
        expect(mirror.ranges, equals: ["bytes=100000-"])
        expect(fixture.folder.data("out"), equals: fixture.file.data)
    }

    @Test("TRF-3: a part with bytes of two addresses is resumed only with a digest")
    func mixed() async throws {
        let fixture = try DownloadFixture()
        let other = otherFile(of: fixture)
        await fixture.breakOff(after: 100_000)
        other.change { _, _, response in response.fault = .truncate(after: 50_000) }
        let digest = SHA256.digest(of: other.data).hexadecimal
        await fixture.run(fixture.operation(FileRequest(api: "other")) { $0.sha256 = digest })
        expect(other.ranges, equals: ["bytes=100000-"])
        await expect(fixture.run(fixture.operation()).code == nil)
        expect(fixture.folder.data("out"), equals: fixture.file.data)
        expect(fixture.file.ranges, equals: [nil, nil])
    }

    @Test("TRF-3: addresses that lead to the same one are the same file", arguments: ["first", "second", "file"])
    func redirected(api: String) async throws {
        let fixture = try DownloadFixture()
        for path in ["/first", "/second"] {
            fixture.server.route("GET", path) { _ in MockResponse(statusCode: 302, headers: ["Location": "/file"]) }
        }
        fixture.file.change { _, _, response in response.fault = .truncate(after: 100_000) }
        await fixture.run(fixture.operation(FileRequest(api: "first")))
        fixture.file.change { _, _, _ in }
        await expect(fixture.run(fixture.operation(FileRequest(api: api))).code == nil)
        expect(fixture.file.ranges, equals: [nil, "bytes=100000-"])
        expect(fixture.folder.data("out"), equals: fixture.file.data)
    }

    // MARK: - Whole answers

    @Test(
        "TRF-3: a whole file that is shorter than before under the same ETag is an error",
        arguments: [true, false]
    )
    func shorterWhole(hasLength: Bool) async throws {
        let fixture = try DownloadFixture()
        fixture.folder.write("old", to: "out")
        await fixture.breakOff(after: 100_000)
        fixture.file.change { request, _, response in
            // The response sends the range with status 200.
            response.statusCode = 200
            guard !hasLength, case .data(let data) = response.body else { return }
            response.body = .chunks([data])
        }
        let result = await fixture.run(fixture.operation())
        expect(result.code, equals: .badServerResponse)
        expect(fixture.folder.data("out"), equals: Data("old".utf8))
        // The next attempt requests the whole file.
        fixture.file.change { _, _, _ in }
        await expect(fixture.run(fixture.operation()).code == nil)
        expect(fixture.file.ranges, equals: [nil, "bytes=100000-", nil])
        expect(fixture.folder.data("out"), equals: fixture.file.data)
    }

    @Test("TRF-3: a 200 to a range is the whole file, whatever its Content-Range says")
    func wholeWithRange() async throws {
        let fixture = try DownloadFixture()
        let data = fixture.file.data
        await fixture.breakOff(after: 100_000)
        fixture.file.change { _, _, response in
            response.statusCode = 200
            response.body = .data(data)
        }
        await expect(fixture.run(fixture.operation()).code == nil)
        expect(fixture.folder.data("out"), equals: data)
        expect(fixture.file.ranges, equals: [nil, "bytes=100000-"])
    }

    @Test("TRF-2: an answer that has no content is no file, and the old file stays", arguments: [204, 205])
    func noContent(status: Int) async throws {
        let fixture = try DownloadFixture()
        fixture.folder.write("old", to: "out")
        fixture.file.change { _, _, response in
            response = MockResponse(statusCode: status, headers: ["ETag": "\"one\""])
        }
        let result = await fixture.run(fixture.operation())
        guard case .failure(let error) = result else { return expect(Bool(false)) }
        expect(error.code == .unacceptableStatus && error.statusCode == status)
        expect(fixture.folder.data("out"), equals: Data("old".utf8))
        expect(fixture.folder.names, equals: ["out"])
    }

    // MARK: - Ranges

    @Test(
        "TRF-3: a range that does not say all that it must is given up, and the file comes whole",
        arguments: ["multipart", "no tag", "weak tag", "no total", "other length"]
    )
    func unsoundRange(what: String) async throws {
        let fixture = try DownloadFixture()
        let data = fixture.file.data
        fixture.file.change { request, _, response in
            response.body = .chunks([data])
            response.fault = .truncate(after: 100_000)
        }
        await fixture.run(fixture.operation())
        fixture.file.change { request, _, response in
            guard request.headers["Range"] != nil else { return }
            switch what {
            case "multipart": response.headers["Content-Type"] = "Multipart/ByteRanges; boundary=x"
            case "no tag": response.headers["ETag"] = nil
            case "weak tag": response.headers["ETag"] = "W/\"one\""
            case "no total":
                // The total length is unknown, so the file may go on.
                response.headers["Content-Range"] = "bytes 100000-199999/*"
                response.body = .data(data[100_000..<200_000])
            default: response.headers["Content-Range"] = "bytes 100000-149999/300000"
            }
        }
        await expect(fixture.run(fixture.operation()).code == nil)
        expect(fixture.folder.data("out"), equals: data)
        expect(fixture.file.ranges, equals: [nil, "bytes=100000-", nil])
    }

    @Test("TRF-3: bytes behind the range that an answer names are not taken")
    func longRange() async throws {
        let fixture = try DownloadFixture(retries: 1)
        let data = fixture.file.data
        fixture.file.change { _, number, response in
            if number == 0 { response.fault = .truncate(after: 100_000) }
            guard number == 1 else { return }
            response.headers["Content-Range"] = "bytes 100000-149999/300000"
            response.body = .chunks([data[100_000..<150_000], Data(repeating: 0, count: 50_000)])
        }
        await expect(fixture.run(fixture.operation()).code == nil)
        expect(fixture.folder.data("out"), equals: data)
        expect(fixture.file.ranges, equals: [nil, "bytes=100000-", "bytes=150000-"])
    }

    @Test("TRF-3: a 416 of another state of the file is no sign that all is there")
    func unsatisfiedOfAnother() async throws {
        let fixture = try DownloadFixture()
        let data = fixture.file.data
        fixture.file.change { _, _, response in
            response.body = .chunks([data])
            response.fault = .truncate(after: 300_000)
        }
        await fixture.run(fixture.operation())
        let other = RangedFile.bytes(300_000, seed: 2)
        fixture.file.replace(other, tag: "\"two\"")
        fixture.file.change { request, _, response in
            guard request.headers["Range"] != nil else { return }
            let headers: HTTPHeaders = ["Content-Range": "bytes */300000", "ETag": "\"two\""]
            response = MockResponse(statusCode: 416, headers: headers)
        }
        await expect(fixture.run(fixture.operation()).code == nil)
        expect(fixture.folder.data("out"), equals: other)
    }

    // MARK: - Names

    @Test("TRF-2: in a folder, an existing file is kept beside the new one unless it is to be replaced")
    func namedByServer() async throws {
        let fixture = try DownloadFixture(10)
        fixture.file.change { _, _, response in
            response.headers["Content-Disposition"] = "attachment; filename=\"report.pdf\""
        }
        fixture.folder.write("old", to: "report.pdf")
        let result = await fixture.run(fixture.operation(to: fixture.folder.url))
        try expect(result.get().lastPathComponent, equals: "report (2).pdf")
        expect(fixture.folder.data("report.pdf"), equals: Data("old".utf8))
        expect(fixture.folder.data("report (2).pdf"), equals: fixture.file.data)
        let replacing = await fixture.run(fixture.operation(to: fixture.folder.url) { $0.replacesExistingFile = true })
        try expect(replacing.get().lastPathComponent, equals: "report.pdf")
        expect(fixture.folder.data("report.pdf"), equals: fixture.file.data)
    }

    @Test("TRF-2: several downloads into one folder at once get different names")
    func namesAtOnce() async throws {
        let fixture = try DownloadFixture(10_000)
        let files = (0..<8).map { RangedFile(RangedFile.bytes(10_000, seed: UInt64($0) + 10)) }
        for (index, file) in files.enumerated() {
            fixture.server.route("GET", "/\(index)/file") { file.answer($0) }
        }
        let queue = NetworkQueue(name: "downloads", maxConcurrentOperationCount: 8)
        let operations = (0..<8).map { fixture.operation(FileRequest(api: "\($0)/file"), to: fixture.folder.url) }
        for operation in operations { queue.addOperation(operation) }
        for operation in operations { await operation.ended() }
        for (operation, file) in zip(operations, files) {
            let name = try #require(try operation.result?.get().lastPathComponent)
            expect(fixture.folder.data(name), equals: file.data)
        }
        expect(fixture.folder.names.count, equals: 8)
    }

    // MARK: - Parts and journals

    @Test(
        "TRF-3: a part that is a link or not a file is replaced, and the target of the link is not changed",
        arguments: ["link", "pipe"]
    )
    func noPart(kind: String) async throws {
        let fixture = try DownloadFixture()
        let place = try DownloadLocation(fixture.destination, resource: "")
        let victim = fixture.folder.write("mine", to: "victim")
        if kind == "link" {
            try FileManager.default.createSymbolicLink(atPath: place.part, withDestinationPath: victim.path)
        } else {
            expect(mkfifo(place.part, 0o600), equals: 0)
        }
        await expect(fixture.run(fixture.operation()).code == nil)
        expect(fixture.folder.data("out"), equals: fixture.file.data)
        expect(fixture.folder.data("victim"), equals: Data("mine".utf8))
        expect(fixture.folder.names, equals: ["out", "victim"])
    }

    @Test("TRF-3: a part with a second name, as after a kill during the move, is not changed")
    func linkedPart() async throws {
        let fixture = try DownloadFixture()
        let place = try DownloadLocation(fixture.destination, resource: "")
        fixture.folder.write("landed", to: "landed")
        expect(link(fixture.folder.file("landed").path, place.part), equals: 0)
        await expect(fixture.run(fixture.operation()).code == nil)
        expect(fixture.folder.data("out"), equals: fixture.file.data)
        expect(fixture.folder.data("landed"), equals: Data("landed".utf8))
        expect(fixture.folder.names, equals: ["landed", "out"])
    }

    @Test("TRF-3: a journal that is a link is ignored, and none is written through a link")
    func linkedJournal() async throws {
        let fixture = try DownloadFixture()
        await fixture.breakOff(after: 100_000)
        let place = try DownloadLocation(fixture.destination, resource: "")
        let elsewhere = fixture.folder.file("elsewhere")
        try FileManager.default.moveItem(atPath: place.journal, toPath: elsewhere.path)
        let text = fixture.folder.data("elsewhere")
        try FileManager.default.createSymbolicLink(atPath: place.journal, withDestinationPath: elsewhere.path)
        try FileManager.default.createSymbolicLink(atPath: place.journal + ".new", withDestinationPath: elsewhere.path)
        await fixture.breakOff(after: 50_000)
        expect(fixture.file.ranges, equals: [nil, nil])
        expect(fixture.folder.data("elsewhere"), equals: text)
        // The second attempt has written a new journal.
        await expect(fixture.run(fixture.operation()).code == nil)
        expect(fixture.file.ranges, equals: [nil, nil, "bytes=50000-"])
        expect(fixture.folder.names, equals: ["elsewhere", "out"])
    }

    @Test(
        "TRF-3: a part and a journal of another user are not taken",
        .enabled(if: geteuid() == 0, "a file can be given away by root alone"),
        arguments: ["part", "journal"]
    )
    func ofAnotherUser(what: String) async throws {
        let fixture = try DownloadFixture()
        await fixture.breakOff(after: 100_000)
        let place = try DownloadLocation(fixture.destination, resource: "")
        expect(chown(what == "part" ? place.part : place.journal, 12_345, 12_345), equals: 0)
        await expect(fixture.run(fixture.operation()).code == nil)
        expect(fixture.file.ranges, equals: [nil, nil])
        expect(fixture.folder.data("out"), equals: fixture.file.data)
        var found = stat()
        expect(stat(fixture.destination.path, &found) == 0 && found.st_uid == geteuid())
        expect(fixture.folder.names, equals: ["out"])
    }

    @Test("TRF-3: a journal that a kill left beside its file is removed by the next download in the folder")
    func strayJournal() async throws {
        let fixture = try DownloadFixture(10)
        fixture.folder.write("{}", to: ".easynetwork-1.part.journal")
        fixture.folder.write("{}", to: ".easynetwork-2.part.journal.new")
        fixture.folder.write("x", to: ".easynetwork-3.part")
        fixture.folder.write("{}", to: ".easynetwork-3.part.journal")
        await expect(fixture.run(fixture.operation()).code == nil)
        expect(fixture.folder.names, equals: [".easynetwork-3.part", ".easynetwork-3.part.journal", "out"])
    }
}
