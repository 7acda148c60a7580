import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork
@testable import EasyNetworkDiagnostics
@testable import TestSupport

@Suite("DownloadOperation")
struct DownloadTests {
    @Test("TRF-2: a file comes whole to its destination, and nothing else stays")
    func whole() async throws {
        let fixture = try DownloadFixture()
        let result = await fixture.run(fixture.operation())
        try expect(result.get().path, equals: fixture.destination.path)
        expect(fixture.folder.data("out"), equals: fixture.file.data)
        expect(fixture.folder.names, equals: ["out"])
        expect(fixture.file.ranges, equals: [nil])
        expect(fixture.file.requests.first?.headers["Accept-Encoding"], equals: "identity")
    }

    @Test("TRF-3: over both transports a file comes whole, is resumed, and comes in ranges", arguments: Wire.allCases)
    func wires(wire: Wire) async throws {
        let fixture = try DownloadFixture(3_000_000, retries: 1, over: wire)
        fixture.file.change { _, number, response in
            if number == 0 { response.fault = .truncate(after: 1_000_000) }
        }
        await expect(fixture.run(fixture.operation()).code == nil)
        expect(fixture.folder.data("out"), equals: fixture.file.data)
        let other = fixture.operation(to: fixture.folder.file("other")) { $0.segmentCount = 2 }
        await expect(fixture.run(other).code == nil)
        expect(fixture.folder.data("other"), equals: fixture.file.data)
        expect(fixture.folder.names, equals: ["other", "out"])
        expect(fixture.file.requests.count, equals: 4)
    }

    @Test("TRF-2: an empty file is a file", arguments: [true, false])
    func empty(hasLength: Bool) async throws {
        let fixture = try DownloadFixture(0)
        if !hasLength { fixture.file.change { _, _, response in response.body = .chunks([]) } }
        await expect(fixture.run(fixture.operation()).code == nil)
        expect(fixture.folder.data("out"), equals: Data())
        expect(fixture.folder.names, equals: ["out"])
    }

    @Test("TRF-2: a file of unknown length comes whole")
    func chunked() async throws {
        let fixture = try DownloadFixture()
        let data = fixture.file.data
        fixture.file.change { _, _, response in response.body = .chunks([data.prefix(1_000), data.dropFirst(1_000)]) }
        await expect(fixture.run(fixture.operation()).code == nil)
        expect(fixture.folder.data("out"), equals: data)
    }

    @Test("TRF-2: closures, value and the next operation get the file")
    func outcome() async throws {
        let fixture = try DownloadFixture(10)
        let operation = fixture.operation()
        let told = Locked<URL?>(nil)
        operation.success = { file in told.withLock { $0 = file } }
        let next = operation.then { file in FileRequest.Echo(name: file.lastPathComponent) }
        fixture.server.route("GET", "/echo/out") { _ in .text("ok") }
        NetworkQueue(name: "downloads").addOperations([operation, next], waitUntilFinished: false)
        try await expect(operation.value.lastPathComponent, equals: "out")
        try await expect(next.value, equals: Data("ok".utf8))
        expect(told.withLock { $0?.path }, equals: fixture.destination.path)
    }

    @Test("BEY-2: a download's request is made from another job's item; an error thrown there is its own")
    func then() async throws {
        let fixture = try DownloadFixture(10)
        fixture.server.route("GET", "/echo/name") { _ in .text("file") }
        let first = RequestOperation(FileRequest.Echo(name: "name"), service: fixture.service)
        let second = first.then(downloadTo: fixture.destination) {
            FileRequest(api: String(decoding: $0, as: UTF8.self))
        }
        let third = second.then(downloadTo: fixture.folder.file("never")) { _ -> FileRequest in
            throw CancellationError()
        }
        NetworkQueue(name: "downloads").addOperations([first, second, third], waitUntilFinished: false)
        await third.ended()
        expect(second.error == nil && fixture.folder.data("out") == fixture.file.data)
        expect(third.error != nil && fixture.folder.names == ["out"])
    }

    @Test("TRF-1: a paused download has no rate")
    func restingRate() async throws {
        let fixture = try DownloadFixture(2_000_000)
        fixture.file.change { _, number, response in
            if number == 0 { response.fault = .stall(at: .responseBody(after: 500_000)) }
        }
        let operation = fixture.operation()
        let updates = operation.updates
        NetworkQueue(name: "downloads").addOperation(operation)
        await expect(eventually { operation.progress.completedUnitCount == 500_000 })
        operation.pause()
        var iterator = updates.makeAsyncIterator()
        while let update = await iterator.next() {
            let rate = operation.progress.userInfo[.throughputKey] as? NSNumber
            if update.completedBytes == 500_000, rate?.intValue == 0 { break }
        }
        expect(operation.isPaused && operation.result == nil)
        operation.resume()
        await operation.ended()
        expect(operation.error == nil)
    }

    @Test("TRF-3: only the rest of the same file is asked for")
    func resumed() async throws {
        let fixture = try DownloadFixture()
        await fixture.breakOff(after: 100_000)
        expect(fixture.folder.data("out") == nil)
        expect(fixture.folder.names.contains { $0.hasSuffix(".part") })
        expect(fixture.folder.names.contains { $0.hasSuffix(".journal") })
        await expect(fixture.run(fixture.operation()).code == nil)
        expect(fixture.folder.data("out"), equals: fixture.file.data)
        expect(fixture.folder.names, equals: ["out"])
        expect(fixture.file.ranges, equals: [nil, "bytes=100000-"])
        expect(fixture.file.requests.last?.headers["If-Range"], equals: "\"one\"")
    }

    @Test("TRF-3: a retry resumes where the attempt before stopped, and progress resets the retry count")
    func retried() async throws {
        let fixture = try DownloadFixture(retries: 1)
        fixture.file.change { _, number, response in
            if number < 20 { response.fault = .truncate(after: 10_000) }
        }
        await expect(fixture.run(fixture.operation()).code == nil)
        expect(fixture.folder.data("out"), equals: fixture.file.data)
        expect(fixture.file.ranges.dropFirst(), equals: (1...20).map { "bytes=\($0 * 10_000)-" }[...])
    }

    @Test("BEY-21: an attempt shows the range that was asked for")
    func shownRange() async throws {
        let fixture = try DownloadFixture(retries: 1)
        fixture.file.change { _, number, response in
            if number == 0 { response.fault = .truncate(after: 10_000) } else { response = .status(404) }
        }
        guard case .failure(let error) = await fixture.run(fixture.operation()) else {
            Issue.record("it has not failed")
            return
        }
        expect(error.history.map { $0.request.headers["Range"] }, equals: [nil, "bytes=10000-"])
        expect(error.request?.headers["If-Range"], equals: "\"one\"")
        expect(error.curlCommand()?.contains("'Range: bytes=10000-'"), equals: true)
    }

    @Test("TRF-3: without progress the retries come to an end")
    func noProgress() async throws {
        let fixture = try DownloadFixture(retries: 2)
        fixture.file.change { _, number, response in
            response.fault = number == 0 ? .truncate(after: 10_000) : .close
        }
        await expect(fixture.run(fixture.operation()).code, equals: .connectionLost)
        // The progress of the first attempt resets the retry count, so two retries follow.
        expect(fixture.file.requests.count, equals: 3)
    }

    @Test("TRF-3: a server that gives a byte an attempt is not asked without end")
    func creeping() async throws {
        let fixture = try DownloadFixture(retries: 1)
        fixture.file.change { _, number, response in
            if number < 400 { response.fault = .truncate(after: 1) }
        }
        await expect(fixture.run(fixture.operation()).code, equals: .connectionLost)
        expect(fixture.file.requests.count, equals: 101)
    }

    @Test("TRF-3: a file that has changed comes from its beginning")
    func changed() async throws {
        let fixture = try DownloadFixture()
        await fixture.breakOff(after: 100_000)
        let other = RangedFile.bytes(50_000, seed: 2)
        fixture.file.replace(other, tag: "\"two\"")
        await expect(fixture.run(fixture.operation()).code == nil)
        expect(fixture.folder.data("out"), equals: other)
        expect(fixture.file.requests.count, equals: 2)
    }

    @Test("TRF-3: a file that changes before a retry comes from its beginning")
    func changedMidway() async throws {
        let fixture = try DownloadFixture(retries: 1)
        let other = RangedFile.bytes(200_000, seed: 2)
        let file = fixture.file
        fixture.file.change { _, number, response in
            guard number == 0 else { return }
            response.fault = .truncate(after: 150_000)
            file.replace(other, tag: "\"two\"")
        }
        await expect(fixture.run(fixture.operation()).code == nil)
        expect(fixture.folder.data("out"), equals: other)
    }

    @Test(
        "TRF-3: after a range that does not fit, the part is given up and the file comes from its beginning",
        arguments: [
            "bytes 99999-299999/300000", "bytes 100000-299999/300001", "bytes 100000-", "lines 100000-299999/300000",
            nil,
        ]
    )
    func wrongRange(field: String?) async throws {
        let fixture = try DownloadFixture()
        await fixture.breakOff(after: 100_000)
        fixture.file.change { request, _, response in
            if request.headers["Range"] != nil { response.headers["Content-Range"] = field }
        }
        await expect(fixture.run(fixture.operation()).code == nil)
        expect(fixture.folder.data("out"), equals: fixture.file.data)
        expect(fixture.file.ranges, equals: [nil, "bytes=100000-", nil])
    }

    @Test("TRF-3: a part of another state of the file is given up")
    func wrongTag() async throws {
        let fixture = try DownloadFixture()
        await fixture.breakOff(after: 100_000)
        fixture.file.change { request, _, response in
            if request.headers["Range"] != nil { response.headers["ETag"] = "\"two\"" }
        }
        await expect(fixture.run(fixture.operation()).code == nil)
        expect(fixture.file.ranges, equals: [nil, "bytes=100000-", nil])
    }

    @Test("TRF-3: a compressed part is none of the plain file")
    func codedPart() async throws {
        let fixture = try DownloadFixture()
        await fixture.breakOff(after: 100_000)
        fixture.file.change { request, _, response in
            if request.headers["Range"] != nil { response.headers["Content-Encoding"] = "gzip" }
        }
        await expect(fixture.run(fixture.operation()).code == nil)
        expect(fixture.folder.data("out"), equals: fixture.file.data)
    }

    @Test("TRF-3: without a strong validator no part is kept", arguments: [nil, "W/\"one\""])
    func weak(tag: String?) async throws {
        let fixture = try DownloadFixture(tag: tag)
        await fixture.breakOff(after: 100_000)
        expect(fixture.folder.names, equals: [])
        await expect(fixture.run(fixture.operation()).code == nil)
        expect(fixture.file.ranges, equals: [nil, nil])
    }

    @Test("TRF-3: a file that was complete when the process ended is not fetched again")
    func complete() async throws {
        let fixture = try DownloadFixture()
        let place = try DownloadLocation(fixture.folder.file("other"), resource: "")
        try fixture.file.data.write(to: URL(fileURLWithPath: place.part))
        let count = Int64(fixture.file.data.count)
        let segment = ResumeJournal.Segment(lower: 0, upper: count, count: count)
        ResumeJournal(
            resource: fixture.server.baseURL.appendingPathComponent("file").downloadDigest,
            validator: .entityTag("\"one\""),
            total: count,
            segments: [segment],
            boot: ResumeJournal.currentBoot
        ).write(to: place.journal)
        await expect(fixture.run(fixture.operation(to: fixture.folder.file("other"))).code == nil)
        expect(fixture.folder.data("other"), equals: fixture.file.data)
        expect(fixture.file.ranges, equals: ["bytes=\(count)-"])
    }

    @Test("TRF-2: an error's body is in the error, in part, and not in the file")
    func errorBody() async throws {
        let fixture = try DownloadFixture()
        fixture.folder.write("old", to: "out")
        fixture.file.change { _, _, response in
            response.statusCode = 404
            response.body = .data(Data(repeating: 0x61, count: 1_000_000))
        }
        let result = await fixture.run(fixture.operation())
        guard case .failure(let error) = result else { return expect(Bool(false)) }
        expect(error.code, equals: .unacceptableStatus)
        expect(error.statusCode, equals: 404)
        expect(error.responseBody?.count, equals: NetworkError.responseBodyLimit)
        expect(fixture.folder.data("out"), equals: Data("old".utf8))
        expect(fixture.folder.names, equals: ["out"])
    }

    @Test("TRF-2: a wrong digest leaves the old file and no part; with the right one the file is moved")
    func digest() async throws {
        let fixture = try DownloadFixture()
        fixture.folder.write("old", to: "out")
        let digest = SHA256.digest(of: fixture.file.data).hexadecimal
        let wrong = await fixture.run(fixture.operation { $0.sha256 = String(digest.reversed()) })
        expect(wrong.code, equals: .digestMismatch)
        expect(fixture.folder.data("out"), equals: Data("old".utf8))
        expect(fixture.folder.names, equals: ["out"])
        await expect(fixture.run(fixture.operation { $0.sha256 = digest.uppercased() }).code == nil)
        expect(fixture.folder.data("out"), equals: fixture.file.data)
        let none = await fixture.run(fixture.operation { $0.sha256 = "abc" })
        expect(none.code, equals: .invalidRequest)
    }

    @Test("TRF-3: paused, it gives its slot back and stops fetching; resumed, it goes on where it was")
    func paused() async throws {
        let fixture = try DownloadFixture(2_000_000)
        fixture.file.change { _, number, response in
            if number == 0 { response.fault = .stall(at: .responseBody(after: 500_000)) }
        }
        let operation = fixture.operation()
        let queue = NetworkQueue(name: "downloads", maxConcurrentOperationCount: 1)
        queue.addOperation(operation)
        await expect(eventually { operation.progress.completedUnitCount == 500_000 })
        operation.pause()
        let other = BlockNetworkOperation {}
        queue.addOperation(other)
        await other.ended()
        expect(operation.result == nil)
        operation.pause()
        operation.resume()
        operation.resume()
        await operation.ended()
        expect(operation.error == nil)
        expect(fixture.folder.data("out"), equals: fixture.file.data)
        expect(fixture.file.ranges, equals: [nil, "bytes=500000-"])
    }

    @Test("TRF-3: paused before its start, it waits for being resumed")
    func pausedBefore() async throws {
        let fixture = try DownloadFixture(10)
        let operation = fixture.operation()
        operation.pause()
        let queue = NetworkQueue(name: "downloads", maxConcurrentOperationCount: 1)
        queue.addOperation(operation)
        let other = BlockNetworkOperation {}
        queue.addOperation(other)
        await other.ended()
        expect(fixture.file.requests.isEmpty)
        operation.resume()
        await operation.ended()
        expect(operation.error == nil)
    }

    @Test("TRF-3: cancelled, it keeps its part or drops it; the next one may begin at once", arguments: [true, false])
    func cancelled(keeps: Bool) async throws {
        let fixture = try DownloadFixture(2_000_000)
        fixture.file.change { _, number, response in
            if number == 0 { response.fault = .stall(at: .responseBody(after: 500_000)) }
        }
        let operation = fixture.operation()
        let queue = NetworkQueue(name: "downloads")
        queue.addOperation(operation)
        await expect(eventually { operation.progress.completedUnitCount == 500_000 })
        operation.keepsPart = keeps
        operation.cancel()
        let next = fixture.operation()
        queue.addOperation(next)
        await operation.ended()
        await next.ended()
        expect(operation.error?.code, equals: .cancelled)
        expect(next.error == nil)
        expect(fixture.file.ranges, equals: [nil, keeps ? "bytes=500000-" : nil])
        expect(fixture.folder.names, equals: ["out"])
    }

    @Test("TRF-3: of two with one destination the second is refused, and the first is not harmed")
    func two() async throws {
        let fixture = try DownloadFixture(2_000_000)
        fixture.file.change { _, number, response in
            if number == 0 { response.fault = .stall(at: .responseBody(after: 500_000)) }
        }
        let first = fixture.operation()
        let queue = NetworkQueue(name: "downloads")
        queue.addOperation(first)
        await expect(eventually { first.progress.completedUnitCount == 500_000 })
        await expect(fixture.run(fixture.operation()).code, equals: .refused)
        // Its part is unchanged.
        first.pause()
        first.resume()
        await first.ended()
        expect(first.error == nil)
        expect(fixture.folder.data("out"), equals: fixture.file.data)
    }

    @Test("TRF-1: progress knows the total, counts what was there before, and ends at 1")
    func progress() async throws {
        let fixture = try DownloadFixture()
        await fixture.breakOff(after: 100_000)
        let operation = fixture.operation()
        let all = Task { () -> [TransferMeter.Count] in
            var all: [TransferMeter.Count] = []
            for await update in operation.updates { all.append(update) }
            return all
        }
        await fixture.run(operation)
        let updates = await all.value
        expect(updates.last?.completedBytes, equals: 300_000)
        expect(updates.last?.totalBytes, equals: 300_000)
        expect(updates.allSatisfy { $0.completedBytes >= 100_000 || $0.completedBytes == 0 })
        await expect(eventually { operation.progress.isFinished })
        expect(operation.progress.totalUnitCount, equals: 300_000)
    }

    @Test("TRF-1: pausing, resuming and cancelling the progress does so with the operation")
    func progressActs() async throws {
        let fixture = try DownloadFixture(2_000_000)
        fixture.file.change { _, number, response in
            if number < 2 { response.fault = .stall(at: .responseBody(after: 500_000)) }
        }
        let operation = fixture.operation()
        NetworkQueue(name: "downloads").addOperation(operation)
        await expect(eventually { operation.progress.completedUnitCount == 500_000 })
        operation.progress.pause()
        await expect(eventually { operation.isPaused })
        operation.progress.resume()
        await expect(eventually { operation.progress.completedUnitCount == 1_000_000 })
        operation.progress.cancel()
        await operation.ended()
        expect(operation.error?.code, equals: .cancelled)
    }
}

extension FileRequest {
    struct Echo: APIRequest {
        typealias Item = Data
        var name: String
        var api: String { "echo/\(name)" }
    }
}
