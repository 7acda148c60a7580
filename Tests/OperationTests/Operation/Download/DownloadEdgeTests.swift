import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("DownloadOperation: edge cases")
struct DownloadEdgeTests {
    // MARK: - Segments

    @Test("TRF-3, BEY-17: a time that is too long for the policy ends a download, paused or not")
    func endlessRetryAfter() async throws {
        let fixture = try DownloadFixture(retries: 1, clock: ManualClock())
        let hasAnswered = Gate()
        fixture.file.change { _, _, response in
            response = MockResponse(statusCode: 503, headers: ["Retry-After": "1000000000"])
            hasAnswered.open()
        }
        let download = fixture.operation()
        NetworkQueue(name: "downloads").addOperation(download)
        await hasAnswered.opened()
        download.pause()
        download.resume()
        await download.ended()
        expect(download.error?.code, equals: .unacceptableStatus)
    }

    @Test("TRF-3, BEY-17: a pause does not shorten the time that the server has asked for")
    func retryAfterPause() async throws {
        let clock = ManualClock()
        let fixture = try DownloadFixture(retries: 1, clock: clock)
        fixture.file.change { _, number, response in
            if number == 0 { response = MockResponse(statusCode: 503, headers: ["Retry-After": "10"]) }
        }
        let (queue, download) = (NetworkQueue(clock: clock), fixture.operation())
        queue.addOperation(download)
        func waitsForRetry() -> Bool { if case .retry? = queue.explain(download).first { true } else { false } }
        await expect(eventually { waitsForRetry() })
        download.pause()
        await expect(eventually { !waitsForRetry() })
        download.resume()
        await expect(staysFalse { fixture.file.requests.count > 1 })
        clock.advance(by: 11)
        await download.ended()
        expect(download.error == nil && fixture.file.requests.count == 2)
    }

    @Test("TRF-3: a file that changes when only one segment is missing comes from its beginning, in one segment")
    func lastSegment() async throws {
        let fixture = try DownloadFixture(5_000_001)
        fixture.file.change { request, _, response in
            guard request.headers["Range"]?.hasSuffix("-") == true else { return }
            response.fault = .stall(at: .responseBody(after: 100_000))
        }
        let first = fixture.operation { $0.segmentCount = 4 }
        NetworkQueue(name: "downloads").addOperation(first)
        await expect(eventually { first.progress.completedUnitCount == 3_850_000 })
        first.cancel()
        await first.ended()
        fixture.file.change { _, _, _ in }
        let other = RangedFile.bytes(3_000_000, seed: 2)
        fixture.file.replace(other, tag: "\"two\"")
        await expect(fixture.run(fixture.operation { $0.segmentCount = 4 }).code == nil)
        expect(fixture.folder.data("out"), equals: other)
    }

    /// A plan of a file of 100 bytes in two segments, with the bytes that each has.
    private func plan(counts first: Int64, _ second: Int64) -> DownloadPlan {
        let record = ResumeJournal(
            resource: "r",
            validator: .entityTag("\"a\""),
            total: 100,
            segments: [
                ResumeJournal.Segment(lower: 0, upper: 50, count: first),
                ResumeJournal.Segment(lower: 50, upper: 100, count: second),
            ],
            boot: "b"
        )
        return DownloadPlan(record, resource: "r", boot: "b", segmentLimit: 2)
    }

    @Test("TRF-3: a 416 for a segment that has all, beside others that have not, takes nothing from them")
    func unsatisfiedSegment() {
        var plan = plan(counts: 50, 20)
        let question = plan.question(for: 0)
        let head = TransportHead(statusCode: 416, headers: ["Content-Range": "bytes */100"])
        expect(plan.answer(head, to: question, of: 0, isAccepted: false), equals: .complete)
        expect(plan.count, equals: 70)
    }

    @Test("TRF-3: the whole is never taken for a segment behind the first")
    func wholeForSegment() {
        var plan = plan(counts: 10, 20)
        let head = TransportHead(statusCode: 200, headers: ["Content-Length": "100"])
        expect(plan.answer(head, to: nil, of: 1, isAccepted: true, mayContinue: false), equals: .startOver)
        expect(plan.missing, equals: [0])
    }

    @Test("TRF-3: beside a date, another date says that the part is one of another state of the file")
    func otherDate() throws {
        let date = "Sat, 07 Nov 2026 10:00:00 GMT"
        let validator = try #require(
            RangeValidator(["Last-Modified": date, "Date": "Sat, 07 Nov 2026 12:00:00 GMT"])
        )
        let record = ResumeJournal(
            resource: "r",
            validator: validator,
            total: 100,
            segments: [ResumeJournal.Segment(lower: 0, upper: 100, count: 20)],
            boot: "b"
        )
        func answer(_ modified: String?) -> DownloadPlan.Answer {
            var plan = DownloadPlan(record, resource: "r", boot: "b")
            let head = TransportHead(
                statusCode: 206,
                headers: ["Content-Range": "bytes 20-99/100", "Last-Modified": modified].compactMapValues { $0 }
                    .reduce(into: HTTPHeaders()) { $0[$1.key] = $1.value }
            )
            return plan.answer(head, to: plan.question(for: 0), of: 0, isAccepted: true)
        }
        expect(answer(nil), equals: .range(upTo: 100))
        expect(answer(date), equals: .range(upTo: 100))
        expect(answer("Sat, 07 Nov 2026 11:00:00 GMT"), equals: .startOver)
    }

    @Test("TRF-3: a range may lack the media type that the whole file had (RFC 9110, section 15.3.7)")
    func rangeWithoutType() async throws {
        let fixture = try DownloadFixture()
        fixture.file.change { _, _, response in
            response.headers["Content-Type"] = "video/mp4"
            response.fault = .truncate(after: 100_000)
        }
        var request = FileRequest()
        request.validation = ResponseValidation(statusCodes: [200], contentTypes: ["video/*"])
        await fixture.run(fixture.operation(request))
        fixture.file.change { _, _, response in response.headers["Content-Type"] = nil }
        await expect(fixture.run(fixture.operation(request)).code == nil)
        expect(fixture.file.ranges, equals: [nil, "bytes=100000-"])
        expect(fixture.folder.data("out"), equals: fixture.file.data)
    }

    @Test("TRF-3: a request without a range begins again in one segment")
    func segmentsOfAnother() async throws {
        let fixture = try DownloadFixture(5_000_001)
        fixture.file.change { request, _, response in
            response.fault = .stall(at: .responseBody(after: 100_000))
        }
        let first = fixture.operation { $0.segmentCount = 4 }
        NetworkQueue(name: "downloads").addOperation(first)
        await expect(eventually { first.progress.completedUnitCount == 400_000 })
        first.cancel()
        await first.ended()
        fixture.file.change { _, _, _ in }
        let result = await fixture.run(fixture.operation(FileRequest(method: .post)) { $0.segmentCount = 4 })
        expect(result.code == nil)
        expect(fixture.file.requests.count, equals: 5)
        expect(fixture.folder.data("out"), equals: fixture.file.data)
        try expect(FileManager.default.contentsOfDirectory(atPath: fixture.folder.url.path), equals: ["out"])
    }

    @Test(
        "TRF-2: segments that are refused for a while, redirected and sent in portions are one file",
        arguments: UInt64(1)...UInt64(TestLoad.count(4, part: 2))
    )
    func awkwardServer(seed: UInt64) async throws {
        let fixture = try DownloadFixture(5_000_001, retries: 30)
        let other = try MockServer()
        let file = fixture.file
        other.route("GET", "/elsewhere") { file.answer($0) }
        let base = other.baseURL.appendingPathComponent("elsewhere").absoluteString
        let generator = Locked(SeededGenerator(seed: seed))
        file.change { request, number, response in
            let dice = generator.withLock { Int.random(in: 0..<8, using: &$0) }
            guard number < 60 else { return }
            switch dice {
            case 0: response = MockResponse(statusCode: 503, headers: ["Retry-After": "0"])
            case 1: response = MockResponse(statusCode: 429, headers: ["Retry-After": "0"])
            case 2: response = MockResponse(statusCode: 302, headers: ["Location": base])
            case 3: response.fault = .truncate(after: 50_000)
            case 4:
                // Responds with fewer bytes than requested.
                guard response.statusCode == 206, case .data(let data) = response.body, data.count > 70_000,
                    let range = response.headers["Content-Range"].flatMap(ContentRange.init)?.range
                else { return }
                response.body = .data(data.prefix(70_000))
                response.headers["Content-Range"] = "bytes \(range.lowerBound)-\(range.lowerBound + 69_999)/5000001"
            default: break
            }
        }
        let digest = SHA256.digest(of: file.data).hexadecimal
        let result = await fixture.run(
            fixture.operation { options in
                options.segmentCount = 4
                options.sha256 = digest
                options.bandwidthLimit = 50_000_000
            }
        )
        expect(result.code == nil, "seed \(seed)")
        expect(fixture.folder.data("out"), equals: file.data, "seed \(seed)")
        expect(fixture.folder.names, equals: ["out"])
    }

    @Test("TRF-2, OPQ-3: a download is never joined, and takes a slot", arguments: [false, true])
    func join(byRequest: Bool) async throws {
        let fixture = try DownloadFixture()
        let queue = NetworkQueue(name: "downloads", maxConcurrentOperationCount: 1)
        let gate = Gate()
        queue.addOperation(TestJob { job in gate.whenOpen { job.finish() } })
        let downloads = ["a", "b"].map { name in
            fixture.operation(FileRequest(repeatPolicy: byRequest ? .join : .allow), to: fixture.folder.file(name)) {
                if !byRequest { $0.repeatPolicy = .join }
            }
        }
        queue.addOperations(downloads, waitUntilFinished: false)
        expect(downloads.allSatisfy { !$0.repeatRole($0.option { RepeatSetting($0) }).joinsAnother && !$0.isExecuting })
        gate.open()
        for download in downloads { _ = try await download.value }
        for name in ["a", "b"] { expect(fixture.folder.data(name), equals: fixture.file.data) }
        expect(fixture.server.requests.count, equals: 2)
    }

    @Test(
        "TRF-3: ended at any moment, it leaves a part that the next one completes",
        arguments: UInt64(1)...UInt64(TestLoad.count(4, part: 1))
    )
    func endedAnywhere(seed: UInt64) async throws {
        let fixture = try DownloadFixture(3_000_000)
        let queue = NetworkQueue(name: "downloads")
        var generator = SeededGenerator(seed: seed)
        let rounds = TestLoad.count(40, part: 10)
        for round in 0..<rounds {
            let name = "\(round)"
            var operations: [DownloadOperation] = []
            for _ in 0..<4 {
                let segmentCount = Int.random(in: 1...3, using: &generator)
                let operation = fixture.operation(to: fixture.folder.file(name)) { $0.segmentCount = segmentCount }
                operations.append(operation)
                queue.addOperation(operation)
                let what = Int.random(in: 0..<5, using: &generator)
                let delay = UInt32.random(in: 0..<8_000, using: &generator)
                DispatchQueue.global().async {
                    // Varies the moment; nothing waits for it.
                    usleep(delay)
                    switch what {
                    case 0:
                        operation.keepsPart = false
                        operation.cancel()
                    case 1: operation.finish(NetworkError(code: .refused, message: "by hand"))
                    case 2:
                        operation.pause()
                        operation.cancel()
                    case 3: operation.service.cancel()
                    default: operation.cancel()
                    }
                }
                await operation.ended()
            }
            let last = fixture.operation(to: fixture.folder.file(name)) { $0.segmentCount = 2 }
            queue.addOperation(last)
            await last.ended()
            expect(last.error == nil, "seed \(seed), round \(round)")
            expect(fixture.folder.data(name), equals: fixture.file.data, "seed \(seed), round \(round)")
            for operation in operations {
                let isRight = operation.error.map { $0.code == .cancelled || $0.message == "by hand" } ?? true
                expect(isRight, "seed \(seed), round \(round): \(String(describing: operation.error))")
            }
        }
        expect(fixture.folder.names.count, equals: rounds)
        #if os(Linux)
        await expect(
            eventually { openFiles(in: fixture.folder).isEmpty },
            "seed \(seed): \(openFiles(in: fixture.folder))"
        )
        #endif
    }

    #if os(Linux)
    /// The files in the folder that this process has open.
    private func openFiles(in folder: TestFolder) -> [String] {
        let numbers = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")) ?? []
        return numbers.compactMap { try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\($0)") }
            .filter { $0.hasPrefix(folder.url.path) }
    }
    #endif

    // MARK: - Retries

    @Test(
        "TRF-3: bytes that have to come again are no progress, and the retries come to an end",
        arguments: [false, true]
    )
    func noGain(hasTag: Bool) async throws {
        let fixture = try DownloadFixture(tag: hasTag ? "\"one\"" : nil, retries: 2)
        let data = fixture.file.data
        fixture.file.change { _, number, response in
            // The server ignores ranges.
            response = MockResponse(statusCode: 200, headers: response.headers, body: .data(data))
            response.headers["Content-Range"] = nil
            if number < 50 { response.fault = .truncate(after: 10_000) }
        }
        await expect(fixture.run(fixture.operation()).code, equals: .connectionLost)
        expect(fixture.file.requests.count, equals: 3)
    }

    // MARK: - Names and files

    @Test("TRF-2: a name that the server said first is kept when the rest comes without one")
    func nameOfFirst() async throws {
        let fixture = try DownloadFixture(retries: 1)
        fixture.file.change { _, number, response in
            guard number == 0 else { return }
            response.headers["Content-Disposition"] = "attachment; filename=\"report.pdf\""
            response.headers.add("attachment; filename=second.pdf", for: "Content-Disposition")
            response.fault = .truncate(after: 10_000)
        }
        let folder = fixture.folder.url
        try await expect(fixture.run(fixture.operation(to: folder)).get().lastPathComponent, equals: "report.pdf")
        expect(fixture.folder.names, equals: ["report.pdf"])
    }

    @Test("TRF-2: a name is found before a quotation that never ends")
    func endlessQuotation() {
        let field = "attachment; filename=a; x=\"" + String(repeating: "\\\"", count: 60_000)
        expect(ContentDisposition(field)?.fileName, equals: "a")
    }

    @Test("TRF-2: a part that is all there gets the name of its address")
    func nameOfComplete() async throws {
        let fixture = try DownloadFixture()
        let folder = fixture.folder.url
        // Everything has arrived except the end of a chunked answer.
        let data = fixture.file.data
        fixture.file.change { _, _, response in
            response.body = .chunks([data])
            response.fault = .truncate(after: 300_000)
        }
        let first = fixture.operation(to: folder)
        _ = await fixture.run(first)
        fixture.file.change { _, _, _ in }
        let result = await fixture.run(fixture.operation(to: folder))
        try expect(result.get().lastPathComponent, equals: "file")
        expect(fixture.folder.data("file"), equals: data)
    }

    @Test("TRF-3: an operation resumes its own part however old it is")
    func ownOldPart() async throws {
        let fixture = try DownloadFixture()
        await fixture.breakOff(after: 100_000)
        // The operation has finished, but its part stays locked while the disk is busy.
        let place = try DownloadLocation(fixture.destination, resource: "")
        await expect(
            eventually {
                let part = try? PartialFile(place)
                part?.close()
                return part != nil
            }
        )
        // Cleanup has not run in this directory yet.
        let other = TestFolder()
        for name in fixture.folder.names {
            try FileManager.default.moveItem(at: fixture.folder.file(name), to: other.file(name))
            let old = Date(timeIntervalSinceNow: -30 * 24 * 3_600)
            try FileManager.default.setAttributes([.modificationDate: old], ofItemAtPath: other.file(name).path)
        }
        await expect(fixture.run(fixture.operation(to: other.file("out"))).code == nil)
        expect(fixture.file.ranges, equals: [nil, "bytes=100000-"])
        expect(other.data("out"), equals: fixture.file.data)
    }

    @Test("TRF-3: a part that is closed is free, also while the disk takes its time with it")
    func closedWhileSyncing() throws {
        let folder = TestFolder()
        let place = try DownloadLocation(folder.file("out"), resource: "r")
        let part = try PartialFile(place)
        let sync = try #require(part.makeSync())
        part.close()
        try PartialFile(place).close()
        expect(sync())
    }

    @Test("TRF-3: a part is free when no job holds it")
    func released() throws {
        let folder = TestFolder()
        let place = try DownloadLocation(folder.file("out"), resource: "r")
        _ = try PartialFile(place)
        _ = try PartialFile(place)
    }

    @Test("TRF-2: a file system without locks is no obstacle")
    func noLocks() async throws {
        let fixture = try DownloadFixture()
        var calls = FileCalls()
        calls.lock = { _ in
            errno = ENOLCK
            return -1
        }
        await expect(fixture.run(fixture.operation(calls: calls)).code == nil)
        expect(fixture.folder.data("out"), equals: fixture.file.data)
    }

    @Test("TRF-3: a folder by way of a link is the same one: refused while another one is at it, next after its cancel")
    func linkedFolder() async throws {
        let fixture = try DownloadFixture()
        let disk = HeldDisk()
        let links = TestFolder()
        let link = links.file("link")
        try FileManager.default.createSymbolicLink(at: link, withDestinationURL: fixture.folder.url)
        let first = fixture.operation(calls: disk.calls)
        NetworkQueue(name: "downloads").addOperation(first)
        await disk.isWriting.opened()
        let path = link.appendingPathComponent("out")
        await expect(fixture.run(fixture.operation(to: path)).code, equals: .refused)
        first.cancel()
        let next = fixture.operation(to: path)
        next.start()
        disk.goOn()
        await next.ended()
        expect(next.error == nil)
        expect(fixture.folder.data("out"), equals: fixture.file.data)
        await first.ended()
    }

    @Test("TRF-2: an operation is released when it is over, or paused and on no queue")
    func released() async throws {
        let fixture = try DownloadFixture(3_000_000)
        weak var over: DownloadOperation?
        weak var paused: DownloadOperation?
        do {
            let operation = fixture.operation { $0.segmentCount = 2 }
            over = operation
            NetworkQueue(name: "downloads").addOperation(operation)
            operation.pause()
            operation.resume()
            await operation.ended()
            let other = fixture.operation()
            other.pause()
            paused = other
        }
        await expect(eventually { over == nil && paused == nil })
    }

    @Test("TRF-2: a file that comes while the download runs is kept, and the part is removed")
    func keptMeanwhile() async throws {
        let fixture = try DownloadFixture(10)
        let other = Data("another program's".utf8)
        fixture.file.change { [path = fixture.destination] _, _, _ in try? other.write(to: path) }
        let result = await fixture.run(fixture.operation { $0.replacesExistingFile = false })
        expect(result.code == nil && fixture.folder.data("out") == other)
        expect(fixture.folder.names, equals: ["out"])
    }

    @Test("TRF-2: a link to nothing cannot be kept")
    func danglingLink() async throws {
        let fixture = try DownloadFixture(10)
        let path = fixture.destination.path
        try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: path + "-nothing")
        await expect(fixture.run(fixture.operation { $0.replacesExistingFile = false }).code, equals: .cannotWriteFile)
        await expect(fixture.run(fixture.operation()).code == nil)
        expect(fixture.folder.data("out"), equals: fixture.file.data)
    }
}
