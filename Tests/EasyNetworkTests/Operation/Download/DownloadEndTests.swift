import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork

@Suite("DownloadOperation paused and ended at any moment")
struct DownloadEndTests {
    // MARK: - Pauses

    @Test(
        "TRF-3: paused and resumed by several at once, it goes on when it has been resumed last",
        arguments: UInt64(1)...4
    )
    func manyPauses(seed: UInt64) async throws {
        let fixture = try DownloadFixture(3_000_000)
        let queue = NetworkQueue(name: "downloads", maxConcurrentOperationCount: 1)
        var generator = SeededGenerator(seed: seed)
        for round in 0..<40 {
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
                            // Nothing waits for it: it moves the moment.
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
            #expect(operation.error == nil, "seed \(seed), round \(round)")
            #expect(fixture.folder.data("\(round)") == fixture.file.data, "seed \(seed), round \(round)")
        }
    }

    @Test("TRF-3: paused and resumed while retries wait for their moment, it goes on", arguments: UInt64(1)...4)
    func pausesAndRetries(seed: UInt64) async throws {
        let fixture = try DownloadFixture(3_000_000)
        let service = EasyNetworkService(
            fixture.server.host(transport: DefaultTransport.shared) { settings in
                settings.retry = RetryPolicy(maximumRetryCount: 1_000, baseDelay: 0.0005, maximumDelay: 0.001)
                settings.retryBudget = .unlimited
            }
        )
        let numbers = Locked(SeededGenerator(seed: seed))
        fixture.file.change { _, _, response in
            let count = numbers.withLock { Int.random(in: 0..<8, using: &$0) } * 100_000
            if count < 600_000 { response.fault = count == 0 ? .close : .truncate(after: count) }
        }
        let queue = NetworkQueue(name: "downloads", maxConcurrentOperationCount: 1)
        var generator = SeededGenerator(seed: seed)
        for round in 0..<20 {
            var options = DownloadOptions()
            options.segmentCount = seed.isMultiple(of: 2) ? 1 : 2
            options.bandwidthLimit = BandwidthLimit(bytesPerSecond: 200_000_000)
            let name = "\(round)"
            let operation = DownloadOperation(
                FileRequest(),
                to: fixture.folder.file(name),
                options: options,
                service: service
            )
            let others = (0..<10).map { _ in BlockNetworkOperation {} }
            queue.addOperation(operation)
            for other in others { queue.addOperation(other) }
            await withTaskGroup(of: Void.self) { group in
                for _ in 0..<2 {
                    let delays = (0..<40).map { _ in UInt32.random(in: 0..<800, using: &generator) }
                    group.addTask {
                        for (index, delay) in delays.enumerated() {
                            if index.isMultiple(of: 2) { operation.pause() } else { operation.resume() }
                            // Nothing waits for it: it moves the moment.
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
            for other in others { await other.finished() }
            #expect(operation.error == nil, "seed \(seed), round \(round)")
            #expect(fixture.folder.data(name) == fixture.file.data, "seed \(seed), round \(round)")
        }
    }

    /// A transfer, its part, and a message for it.
    private func transfer(
        in folder: TestFolder,
        to name: String = "out",
        _ options: DownloadOptions = DownloadOptions()
    ) throws -> (transfer: DownloadTransfer, part: PartFile, message: TransportRequest) {
        let part = try PartFile(PartPlace(folder.file(name), resource: "r"), calls: PartCalls())
        let transfer = DownloadTransfer(
            part,
            DownloadCourse(resource: "r", boot: nil),
            options,
            on: DispatchQueue(label: "DownloadEndTests"),
            meter: TransferMeter(kind: .downloading, clock: SystemClock()),
            clock: SystemClock(),
            limits: { [] },
            split: { _ in },
            startOver: {}
        )
        return (transfer, part, TransportRequest(url: try #require(URL(string: "http://example.com/file"))))
    }

    private let whole = TransportHead(statusCode: 200, headers: ["Content-Length": "300", "ETag": "\"a\""])

    @Test("TRF-3: bytes that an exchange still brings when the next one has asked go nowhere")
    func lateBytes() throws {
        let folder = TestFolder()
        let (transfer, part, message) = try transfer(in: folder)
        defer { part.close() }
        let data = RangedFile.bytes(300)
        _ = transfer.queue.sync { transfer.begin() }
        let (_, first) = DownloadSink(transfer: transfer, index: 0).intake(for: message)
        _ = first.begin(whole, isAccepted: true, valve: BodyValve())
        _ = first.take(data[0..<100])
        _ = transfer.queue.sync { transfer.begin() }
        let (again, second) = DownloadSink(transfer: transfer, index: 0).intake(for: message)
        #expect(again.headers["Range"] == "bytes=100-")
        _ = first.take(data[100..<150])
        let rest = TransportHead(statusCode: 206, headers: ["Content-Range": "bytes 100-299/300", "ETag": "\"a\""])
        _ = second.begin(rest, isAccepted: true, valve: BodyValve())
        _ = second.take(data[100..<300])
        transfer.queue.sync {}
        #expect(FileManager.default.contents(atPath: part.place.part) == data)
    }

    @Test("TRF-3: an answer that begins when the next exchange has asked does not take the file from that")
    func lateHead() throws {
        let folder = TestFolder()
        let (transfer, part, message) = try transfer(in: folder)
        defer { part.close() }
        let data = RangedFile.bytes(300)
        _ = transfer.queue.sync { transfer.begin() }
        let (_, first) = DownloadSink(transfer: transfer, index: 0).intake(for: message)
        _ = transfer.queue.sync { transfer.begin() }
        let (_, second) = DownloadSink(transfer: transfer, index: 0).intake(for: message)
        _ = first.begin(whole, isAccepted: true, valve: BodyValve())
        let decision = second.begin(whole, isAccepted: true, valve: BodyValve())
        if case .take = decision {} else { Issue.record("\(decision)") }
        _ = second.take(data)
        transfer.queue.sync {}
        #expect(FileManager.default.contents(atPath: part.place.part) == data)
    }

    @Test("TRF-3: an exchange of an earlier round that begins last does not take the file from the next one")
    func lateQuestion() throws {
        let folder = TestFolder()
        let (transfer, part, message) = try transfer(in: folder)
        defer { part.close() }
        let data = RangedFile.bytes(300)
        _ = transfer.queue.sync { transfer.begin() }
        let late = DownloadSink(transfer: transfer, index: 0)
        _ = transfer.queue.sync { transfer.begin() }
        let (_, intake) = DownloadSink(transfer: transfer, index: 0).intake(for: message)
        let (_, lateIntake) = late.intake(for: message)
        if case .take = intake.begin(whole, isAccepted: true, valve: BodyValve()) {} else { Issue.record("not taken") }
        if case .take = lateIntake.begin(whole, isAccepted: true, valve: BodyValve()) { Issue.record("taken") }
        _ = intake.take(data)
        transfer.queue.sync {}
        #expect(FileManager.default.contents(atPath: part.place.part) == data)
    }

    @Test("TRF-3: paused and resumed while it learns how many segments there are, it asks for all of them")
    func pausedBeforeSplit() async throws {
        let fixture = try DownloadFixture(3_000_000)
        let queue = NetworkQueue(name: "downloads", maxConcurrentOperationCount: 1)
        let paused = Locked<DownloadOperation?>(nil)
        var calls = PartCalls()
        calls.freeBytes = { _ in
            let operation = paused.exchange(nil)
            operation?.pause()
            operation?.resume()
            return nil
        }
        let operation = fixture.operation(calls: calls) { $0.segmentCount = 2 }
        paused.withLock { $0 = operation }
        let other = TestJob { _ in }
        queue.addOperations([operation, other], waitUntilFinished: false)
        #expect(await eventually { other.executionCount == 1 })
        for _ in 0..<300 where !operation.isFinished {
            // Not to synchronise: time for an end that must not come.
            try await Task.sleep(nanoseconds: 1_000_000)
        }
        other.finish()
        await operation.finished()
        #expect(operation.error == nil)
        #expect(fixture.folder.data("out") == fixture.file.data)
    }

    @Test("TRF-3: an exchange is not left paused when the last reason has gone while it was being paused")
    func valve() {
        final class Exchange: TransportExchange {
            let isPaused = Locked(false)
            let pausing: @Sendable () -> Void

            init(pausing: @escaping @Sendable () -> Void) { self.pausing = pausing }

            func cancel() {}

            func pause() {
                pausing()
                isPaused.withLock { $0 = true }
            }

            func resume() { isPaused.withLock { $0 = false } }
        }

        let valve = BodyValve()
        let exchange = Exchange { valve.release(.rate) }
        valve.attach(exchange)
        valve.hold(.rate)
        #expect(!exchange.isPaused.withLock { $0 })
        valve.detach()
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
        await second.finished()
        let third = fixture.operation()
        third.start()
        disk.goOn()
        await third.finished()
        #expect(third.error == nil)
        #expect(fixture.folder.data("out") == fixture.file.data)
        await first.finished()
    }

    @Test("TRF-3: cancelled as soon as it has begun, it does not keep the next one from its part")
    func cancelledAtOnce() async throws {
        let fixture = try DownloadFixture(10)
        for round in 0..<200 {
            let first = fixture.operation()
            first.start()
            // Nothing waits for it: it moves the moment.
            if round.isMultiple(of: 2) { usleep(UInt32(round)) }
            first.cancel()
            await first.finished()
            let second = fixture.operation()
            second.start()
            await second.finished()
            #expect(second.error == nil, "round \(round)")
        }
    }

    @Test("TRF-2: a download that is not wanted any more takes no file's place")
    func unwanted() throws {
        let folder = TestFolder()
        folder.write("old", to: "out")
        let (transfer, part, message) = try transfer(in: folder)
        defer { part.close() }
        _ = transfer.queue.sync { transfer.begin() }
        let (_, intake) = DownloadSink(transfer: transfer, index: 0).intake(for: message)
        _ = intake.begin(whole, isAccepted: true, valve: BodyValve())
        _ = intake.take(RangedFile.bytes(300))
        let error = #expect(throws: NetworkError.self) { try transfer.queue.sync { try transfer.land { false } } }
        #expect(error?.code == .cancelled)
        #expect(folder.data("out") == Data("old".utf8))
    }

    /// A transfer that has all its bytes, on its queue.
    private func complete(_ transfer: DownloadTransfer, _ message: TransportRequest) {
        _ = transfer.queue.sync { transfer.begin() }
        let (_, intake) = DownloadSink(transfer: transfer, index: 0).intake(for: message)
        _ = intake.begin(whole, isAccepted: true, valve: BodyValve())
        _ = intake.take(RangedFile.bytes(300))
        transfer.queue.sync {}
    }

    @Test("TRF-3: a kill while the digest is calculated loses nothing: the journal tells of all bytes by then")
    func journalBeforeDigest() throws {
        let folder = TestFolder()
        var options = DownloadOptions()
        options.sha256 = SHA256.digest(of: RangedFile.bytes(300)).hexadecimal
        let (transfer, part, message) = try transfer(in: folder, options)
        defer { part.close() }
        complete(transfer, message)
        let counts = Locked<[Int]>([])
        #expect(throws: NetworkError.self) {
            try transfer.queue.sync {
                try transfer.land {
                    let record = part.place.readRecord()
                    counts.withLock { $0.append(Int(record?.segments.first?.count ?? 0)) }
                    return false
                }
            }
        }
        #expect(counts.withLock { $0 } == [300])
    }

    @Test("TRF-3: a kill while the file takes its place leaves no journal beside it: that goes before")
    func journalAtLanding() throws {
        let folder = TestFolder()
        let (transfer, part, message) = try transfer(in: folder)
        defer { part.close() }
        complete(transfer, message)
        transfer.queue.sync { transfer.save() }
        #expect(FileManager.default.fileExists(atPath: part.place.journal))
        // So that it stops where a kill would stop it.
        try FileManager.default.createDirectory(at: folder.file("out/sub"), withIntermediateDirectories: true)
        let error = #expect(throws: NetworkError.self) { try transfer.queue.sync { try transfer.land { true } } }
        #expect(error?.code == .cannotWriteFile)
        #expect(!FileManager.default.fileExists(atPath: part.place.journal))
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
                var options = DownloadOptions()
                options.segmentCount = segments
                let download = DownloadOperation(
                    FileRequest(),
                    to: folder.file("out"),
                    options: options,
                    service: service
                )
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
            fixture.server.host(transport: DefaultTransport.shared) { $0.authentication = session }
        )
        let operation = RequestOperation(FileRequest.Items(), service: service)
        NetworkQueue(name: "items").addOperation(operation)
        let isOver = await eventually { operation.isFinished }
        #expect(isOver)
        if !isOver { operation.cancel() }
        #expect(operation.error == nil)
        #expect(folder.data("out") == fixture.file.data)
    }
}

extension FileRequest {
    fileprivate struct Items: APIRequest {
        typealias Item = String
        var api: String { "items" }
        func item(from response: NetworkResponse) throws -> String { try response.text() }
    }
}
