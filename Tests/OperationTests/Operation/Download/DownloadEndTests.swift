import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("DownloadOperation paused and ended at any moment")
struct DownloadEndTests {
    // MARK: - Pauses

    @Test(
        "TRF-3: paused and resumed by several at once, it goes on when it has been resumed last",
        arguments: UInt64(1)...UInt64(TestLoad.count(4, part: 1))
    )
    func manyPauses(seed: UInt64) async throws {
        let fixture = try DownloadFixture(3_000_000)
        let queue = NetworkQueue(name: "downloads", maxConcurrentOperationCount: 1)
        var generator = SeededGenerator(seed: seed)
        for round in 0..<TestLoad.count(40, part: 10) {
            let operation = fixture.operation(to: fixture.folder.file("\(round)")) { options in
                options.segmentCount = seed.isMultiple(of: 2) ? 1 : 2
            }
            queue.addOperation(operation)
            await withTaskGroup(of: Void.self) { group in
                for _ in 0..<3 {
                    let pauses = (0..<30).map { _ in
                        (Bool.random(using: &generator), UInt32.random(in: 0..<200, using: &generator))
                    }
                    group.addTask {
                        for (mustPause, delay) in pauses {
                            if mustPause { operation.pause() } else { operation.resume() }
                            // Varies the moment; nothing waits for it.
                            usleep(delay)
                        }
                    }
                }
            }
            operation.resume()
            guard await eventually({ operation.isFinished }) else {
                Issue.record("seed \(seed), round \(round): it hangs")
                return operation.cancel()
            }
            expect(operation.error == nil, "seed \(seed), round \(round)")
            expect(fixture.folder.data("\(round)"), equals: fixture.file.data, "seed \(seed), round \(round)")
        }
    }

    @Test(
        "TRF-3: paused and resumed while retries wait for their moment, it goes on",
        arguments: UInt64(1)...UInt64(TestLoad.count(4, part: 1))
    )
    func pausesAndRetries(seed: UInt64) async throws {
        let fixture = try DownloadFixture(3_000_000)
        let service = EasyNetworkService(
            fixture.server.host(transport: TransportConfiguration.sharedTransport) { settings in
                settings.retry = RetryPolicy(maximumRetryCount: 1_000, baseDelay: 0.0005, maximumDelay: 0.001)
                settings.retryBudget = .infinity
            }
        )
        let numbers = Locked(SeededGenerator(seed: seed))
        fixture.file.change { _, _, response in
            let count = numbers.withLock { Int.random(in: 0..<8, using: &$0) } * 100_000
            if count < 600_000 { response.fault = count == 0 ? .close : .truncate(after: count) }
        }
        let queue = NetworkQueue(name: "downloads", maxConcurrentOperationCount: 1)
        var generator = SeededGenerator(seed: seed)
        for round in 0..<TestLoad.count(20, part: 5) {
            let name = "\(round)"
            let operation = DownloadOperation(FileRequest(), to: fixture.folder.file(name), service: service)
            operation.segmentCount = seed.isMultiple(of: 2) ? 1 : 2
            operation.bandwidthLimit = 200_000_000
            let others = (0..<10).map { _ in BlockNetworkOperation {} }
            queue.addOperation(operation)
            for other in others { queue.addOperation(other) }
            await withTaskGroup(of: Void.self) { group in
                for _ in 0..<2 {
                    let delays = (0..<40).map { _ in UInt32.random(in: 0..<800, using: &generator) }
                    group.addTask {
                        for (index, delay) in delays.enumerated() {
                            if index.isMultiple(of: 2) { operation.pause() } else { operation.resume() }
                            // Varies the moment; nothing waits for it.
                            usleep(delay)
                        }
                    }
                }
            }
            operation.resume()
            guard await eventually({ operation.isFinished }) else {
                Issue.record("seed \(seed), round \(round): it hangs")
                return operation.cancel()
            }
            for other in others { await other.ended() }
            expect(operation.error == nil, "seed \(seed), round \(round)")
            expect(fixture.folder.data(name), equals: fixture.file.data, "seed \(seed), round \(round)")
        }
    }

    /// Makes a download to a folder. Its operation is released, and does not run.
    private func download(
        in folder: TestFolder,
        sha256: String? = nil,
        calls: FileCalls = FileCalls(),
        clock: any NetworkClock = SystemClock()
    ) throws -> (download: DownloadWriter, location: DownloadLocation) {
        let host = HostConfiguration(baseURL: URL(string: "http://example.com")) { $0.clock = clock }
        let service = EasyNetworkService(host)
        let operation = DownloadOperation(FileRequest(), to: folder.file("out"), service: service)
        operation.sha256 = sha256
        let location = try DownloadLocation(operation.destination, resource: "r")
        let plan = DownloadPlan(resource: "r", boot: nil)
        return (DownloadWriter(try PartialFile(location, calls: calls), plan, of: operation), location)
    }

    /// Makes a fetch without retries.
    private func fetch(over transport: any NetworkTransport) throws -> DownloadWriter.Fetch {
        let url = try #require(URL(string: "http://example.com/file"))
        return { use in
            let (message, read) = await use(TransportRequest(url: url))
            let body = BodyStream()
            body.start(message, over: transport)
            guard let head = try? await body.head() else { return .failure(NetworkError(code: .cancelled)) }
            switch await read(head, true, body) {
            case .used: return .success(())
            case .failed(let error, _, _): return .failure(error)
            case .collect, .again: return .failure(NetworkError(code: .badServerResponse))
            }
        }
    }

    private let whole = TransportHead(statusCode: 200, headers: ["Content-Length": "300", "ETag": "\"a\""])
    private let data = RangedFile.bytes(300)

    @Test("TRF-3: bytes that an exchange still brings when the next one has asked go nowhere")
    func lateBytes() async throws {
        let folder = TestFolder()
        let (download, location) = try download(in: folder)
        let transport = SteeredTransport()
        let fetch = try fetch(over: transport)
        let first = Task { try await download.fetchMissing(fetch).get() }
        let early = try #require(await transport.exchange(0))
        early.head(whole)
        early.body(data[0..<100])
        await expect(eventually { FileManager.default.contents(atPath: location.part)?.count == 100 })
        first.cancel()
        await #expect(throws: NetworkError.self) { try await first.value }
        let second = Task { try await download.fetchMissing(fetch).get() }
        let next = try #require(await transport.exchange(1))
        expect(next.request.headers["Range"], equals: "bytes=100-")
        early.body(data[100..<150])
        next.head(TransportHead(statusCode: 206, headers: ["Content-Range": "bytes 100-299/300", "ETag": "\"a\""]))
        next.body(data[100..<300])
        next.end()
        try await second.value
        expect(FileManager.default.contents(atPath: location.part), equals: data)
        await download.release()
    }

    @Test("TRF-3: an answer that begins when the next exchange has asked does not take the file from that")
    func lateHead() async throws {
        let folder = TestFolder()
        let (download, location) = try download(in: folder)
        let transport = SteeredTransport()
        let fetch = try fetch(over: transport)
        // The first call is cancelled after its answer has begun, and its body is read later.
        let (asked, late) = (Gate(), Gate())
        let reading = Locked<Task<Void, Never>?>(nil)
        let url = try #require(URL(string: "http://example.com/file"))
        let whole = whole
        let first = Task {
            try await download.fetchMissing { use in
                let task = Task {
                    let (_, read) = await use(TransportRequest(url: url))
                    asked.open()
                    await late.opened()
                    _ = await read(whole, true, BodyStream())
                }
                reading.withLock { $0 = task }
                await untilCancelled()
                task.cancel()
                return .failure(NetworkError(code: .cancelled))
            }.get()
        }
        await asked.opened()
        first.cancel()
        await #expect(throws: NetworkError.self) { try await first.value }
        let second = Task { try await download.fetchMissing(fetch).get() }
        let next = try #require(await transport.exchange(0))
        next.head(whole)
        next.body(data[0..<100])
        late.open()
        await reading.withLock { $0 }?.value
        next.body(data[100..<300])
        next.end()
        try await second.value
        expect(FileManager.default.contents(atPath: location.part), equals: data)
        await download.release()
    }

    @Test("TRF-3: paused and resumed while it learns how many segments there are, it asks for all of them")
    func pausedBeforeSplit() async throws {
        let fixture = try DownloadFixture(3_000_000)
        let queue = NetworkQueue(name: "downloads", maxConcurrentOperationCount: 1)
        let paused = Locked<DownloadOperation?>(nil)
        var calls = FileCalls()
        calls.freeBytes = { _ in
            let operation = paused.exchange(nil)
            operation?.pause()
            operation?.resume()
            return nil
        }
        let operation = fixture.operation(calls: calls) { $0.segmentCount = 2 }
        paused.withLock { $0 = operation }
        queue.addOperation(operation)
        await operation.ended()
        expect(operation.error == nil)
        expect(fixture.folder.data("out"), equals: fixture.file.data)
    }

    // MARK: - Ends

    @Test("TRF-3: cancelled while it waits for the part, it does not keep the next one from it")
    func cancelledWaiting() async throws {
        let fixture = try DownloadFixture()
        let disk = HeldDisk()
        let first = fixture.operation(calls: disk.calls)
        NetworkQueue(name: "downloads").addOperation(first)
        await disk.isWriting.opened()
        first.cancel()
        let second = fixture.operation()
        second.start()
        second.cancel()
        await second.ended()
        let third = fixture.operation()
        third.start()
        disk.goOn()
        await third.ended()
        expect(third.error == nil)
        expect(fixture.folder.data("out"), equals: fixture.file.data)
        await first.ended()
    }

    @Test("TRF-3: cancelled as soon as it has begun, it does not keep the next one from its part")
    func cancelledAtOnce() async throws {
        let fixture = try DownloadFixture(10)
        for round in 0..<TestLoad.count(200) {
            let first = fixture.operation()
            first.start()
            // Varies the moment; nothing waits for it.
            if round.isMultiple(of: 2) { usleep(UInt32(round)) }
            first.cancel()
            await first.ended()
            let second = fixture.operation()
            second.start()
            await second.ended()
            expect(second.error == nil, "round \(round)")
        }
    }

    /// Makes a download that has all of its bytes.
    private func complete(
        in folder: TestFolder,
        sha256: String? = nil
    ) async throws -> (download: DownloadWriter, location: DownloadLocation) {
        let (download, location) = try download(in: folder, sha256: sha256)
        let (whole, data) = (whole, data)
        let transport = ScriptedTransport { _, _ in [.head(whole), .body(data), .end(TransportEnd())] }
        try await download.fetchMissing(try fetch(over: transport)).get()
        return (download, location)
    }

    @Test("TRF-2: a download that is no longer wanted replaces no file")
    func unwanted() async throws {
        let folder = TestFolder()
        folder.write("old", to: "out")
        let (download, _) = try await complete(in: folder)
        let error = await #expect(throws: NetworkError.self) { try await download.finish { false } }
        expect(error?.code, equals: .cancelled)
        expect(folder.data("out"), equals: Data("old".utf8))
        await download.release()
    }

    @Test("TRF-3: a kill while the digest is calculated loses nothing: the journal has all bytes by then")
    func journalBeforeDigest() async throws {
        let folder = TestFolder()
        let digest = SHA256.digest(of: data).hexadecimal
        let (download, location) = try await complete(in: folder, sha256: digest)
        let counts = Locked<[Int64]>([])
        await #expect(throws: NetworkError.self) {
            try await download.finish {
                let journal = ResumeJournal(at: location.journal)
                counts.withLock { $0.append(journal?.segments.first?.count ?? 0) }
                return false
            }
        }
        expect(counts.withLock { $0 }, equals: [300])
        await download.release()
    }

    @Test(
        "TRF-3: a kill at any moment costs at most the last second or the last 16 MiB, whichever is less",
        arguments: [0, 0.25]
    )
    func journalInTime(secondsForEach: TimeInterval) async throws {
        let folder = TestFolder()
        let journalPath = try DownloadLocation(folder.file("out"), resource: "r").journal
        let (clock, count) = (ManualClock(), 40_000_000)
        // How many bytes had come, and how many of them the journal had, when the next ones came.
        let moments = Locked<[(written: Int64, saved: Int64)]>([])
        var calls = FileCalls()
        let write = calls.write
        calls.write = { descriptor, bytes, count, offset in
            let journal = ResumeJournal(at: journalPath)
            moments.withLock { $0.append((offset, journal?.segments.first?.count ?? 0)) }
            clock.advance(by: secondsForEach)
            return write(descriptor, bytes, count, offset)
        }
        let (download, _) = try download(in: folder, calls: calls, clock: clock)
        let head = TransportHead(statusCode: 200, headers: ["Content-Length": "\(count)", "ETag": "\"a\""])
        let chunk = Data(count: 400_000)
        let transport = ScriptedTransport { _, _ in
            [.head(head)] + Array(repeating: .body(chunk), count: count / chunk.count) + [.end(TransportEnd())]
        }
        try await download.fetchMissing(try fetch(over: transport)).get()
        await download.release()
        let all = moments.withLock { $0 }
        expect(all.count, equals: count / chunk.count)
        expect(all.allSatisfy { $0.written - $0.saved < 16 * 1_048_576 })
        expect(all.contains { $0.saved > 0 })
        guard secondsForEach > 0 else { return }
        // What was there a second ago.
        let second = Int(1 / secondsForEach)
        expect(zip(all.dropFirst(second), all).allSatisfy { now, before in now.saved >= before.written })
    }

    @Test("TRF-3: a kill while the file takes its place leaves no journal beside it: the journal goes before")
    func journalBeforeMove() async throws {
        let folder = TestFolder()
        let (download, location) = try await complete(in: folder)
        await download.save()
        expect(FileManager.default.fileExists(atPath: location.journal))
        // Makes it stop where a kill would.
        try FileManager.default.createDirectory(at: folder.file("out/sub"), withIntermediateDirectories: true)
        let error = await #expect(throws: NetworkError.self) { try await download.finish { true } }
        expect(error?.code, equals: .cannotWriteFile)
        expect(!FileManager.default.fileExists(atPath: location.journal))
        await download.release()
    }

    @Test("TRF-2, CBK-7: a download that a refresh makes does not wait for that refresh", arguments: [1, 2])
    func inRefresh(segments: Int) async throws {
        let fixture = try DownloadFixture(3_000_000)
        fixture.server.route("GET", "/items") { request in
            request.headers["Authorization"] == "Bearer token-2" ? .text("items") : .text("who are you?", status: 401)
        }
        let folder = fixture.folder
        struct Tokens: Authenticator {
            var folder: TestFolder
            var segments: Int

            func apply(_ credential: String, to request: inout TransportRequest) {
                request.headers["Authorization"] = "Bearer \(credential)"
            }

            func refresh(_ credential: String?, over service: EasyNetworkService) async throws -> String {
                let download = DownloadOperation(FileRequest(), to: folder.file("out"), service: service)
                download.segmentCount = segments
                NetworkQueue(name: "refresh").addOperation(download)
                _ = try await download.value
                return "token-2"
            }
        }
        let session = AuthenticationSession(
            Tokens(folder: folder, segments: segments),
            credential: "token-1",
            refreshDeadline: nil
        )
        let service = EasyNetworkService(
            fixture.server.host(transport: TransportConfiguration.sharedTransport) { $0.authentication = session }
        )
        let operation = RequestOperation(FileRequest.Items(), service: service)
        NetworkQueue(name: "items").addOperation(operation)
        let isOver = await eventually { operation.isFinished }
        expect(isOver)
        if !isOver { operation.cancel() }
        expect(operation.error == nil)
        expect(folder.data("out"), equals: fixture.file.data)
    }

    @Test("TRF-2, CBK-7: a credential that was renewed before a pause and expires during it is renewed again")
    func expiryInPause() async throws {
        let fixture = try DownloadFixture()
        fixture.file.change { request, _, response in
            if request.headers["Authorization"] != "Bearer token-3" { response = .text("who are you?", status: 401) }
        }
        struct Tokens: Authenticator {
            let hasBegun = Gate(), mayEnd = Gate(), isRenewed = Gate()
            let count = Locked(1)
            let expired = Locked("")

            func apply(_ credential: String, to request: inout TransportRequest) {
                request.headers["Authorization"] = "Bearer \(credential)"
                if credential == "token-2" { isRenewed.open() }
            }

            func isExpired(_ credential: String, at date: Date) -> Bool { expired.withLock { $0 == credential } }

            func refresh(_ credential: String?, over service: EasyNetworkService) async throws -> String {
                hasBegun.open()
                await mayEnd.opened()
                return count.withLock { count in
                    count += 1
                    return "token-\(count)"
                }
            }
        }
        let tokens = Tokens()
        let session = AuthenticationSession(tokens, credential: "token-1")
        let host = fixture.server.host(transport: TransportConfiguration.sharedTransport) {
            $0.authentication = session
        }
        // After a pause, the call of a POST continues, and the call of a GET is replaced.
        let request = FileRequest(method: .post)
        let download = DownloadOperation(request, to: fixture.destination, service: EasyNetworkService(host))
        NetworkQueue(name: "downloads").addOperation(download)
        await tokens.hasBegun.opened()
        download.pause()
        tokens.mayEnd.open()
        await tokens.isRenewed.opened()
        tokens.expired.exchange("token-2")
        download.resume()
        await download.ended()
        expect(download.error == nil, "\(String(describing: download.error))")
        let sent = fixture.file.requests.compactMap { $0.headers["Authorization"] }
        expect(sent, equals: ["Bearer token-1", "Bearer token-3"])
    }
}

extension FileRequest {
    fileprivate struct Items: APIRequest {
        typealias Item = String
        var api: String { "items" }
        func item(from response: NetworkResponse) throws -> String { try response.text() }
    }
}
