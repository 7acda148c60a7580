import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("Urgent jobs: downloads make way", .timeLimit(.minutes(10)))
struct UrgentDownloadTests {
    private let queue = NetworkQueue(name: "downloads", maxConcurrentOperationCount: 1)

    /// Starts a download that has come to its first write, with the only slot.
    private func started(
        _ fixture: DownloadFixture,
        _ disk: HeldDisk,
        segments: Int = 1
    ) async -> DownloadOperation {
        let download = fixture.operation(calls: disk.calls) { $0.segmentCount = segments }
        download.queuePriority = .low
        queue.addOperation(download)
        await disk.isWriting.opened()
        return download
    }

    /// Lets an urgent job take the slot of a download, which is at its first write then.
    private func yielded(
        _ fixture: DownloadFixture,
        segments: Int = 1
    ) async -> (disk: HeldDisk, download: DownloadOperation, urgent: TestJob) {
        let disk = HeldDisk()
        let download = await started(fixture, disk, segments: segments)
        return (disk, download, await urgentJob())
    }

    /// A job of normal priority that has the only slot until it is finished by hand.
    private func urgentJob() async -> TestJob {
        let hasSlot = Gate()
        let job = TestJob { _ in hasSlot.open() }
        queue.addOperation(job)
        await hasSlot.opened()
        return job
    }

    @Test(
        "OPQ-11: a download makes way, keeps its connection for a while, and goes on without a byte twice",
        arguments: [1, 3]
    )
    func keepsConnection(segments: Int) async throws {
        let clock = ManualClock()
        let fixture = try DownloadFixture(30_000_000, clock: clock)
        fixture.server.route("GET", "/small") { _ in .text("a") }
        let events = queue.events
        let (disk, download, urgent) = await yielded(fixture, segments: segments)
        expect(queue.explain(download), equals: [.slotYielded])
        disk.goOn()
        clock.advance(by: 9)
        // All that while a download that does not stop would have come.
        for _ in 0..<50 { _ = try await fixture.service.send(Get(api: "small")) }
        expect(download.progress.completedUnitCount < 30_000_000 && !download.isFinished)
        urgent.finish()
        await download.ended()
        expect(download.error == nil && fixture.folder.data("out") == fixture.file.data)
        expect(fixture.file.requests.count, equals: segments)
        var kinds: [String] = []
        for await event in events where event.operation === download {
            kinds.append("\(event.kind)")
            if case .finished = event.kind { break }
        }
        expect(kinds.filter { $0.contains("slot") }, equals: ["slotYielded", "slotRegained"])
    }

    @Test("OPQ-11: after half a minute it lets the connection go, and asks for the rest later")
    func letsConnectionGo() async throws {
        let clock = ManualClock()
        let fixture = try DownloadFixture(30_000_000, clock: clock)
        let (disk, download, urgent) = await yielded(fixture)
        disk.goOn()
        await clock.waitForTimers(1)
        clock.advance(by: 30)
        expect(!download.isFinished && fixture.file.requests.count == 1)
        urgent.finish()
        await download.ended()
        expect(download.error == nil && fixture.folder.data("out") == fixture.file.data)
        let ranges = fixture.file.ranges
        expect(ranges.count == 2 && ranges.last??.hasPrefix("bytes=") == true)
        expect(clock.pendingCount, equals: 0)
    }

    @Test("OPQ-11: over URLSession, whose connections are few, it lets the connection go at once")
    func urlSession() async throws {
        let clock = ManualClock()
        let fixture = try DownloadFixture(30_000_000, over: .urlSession, clock: clock)
        let (disk, download, urgent) = await yielded(fixture)
        disk.goOn()
        await clock.waitForTimers(1)
        clock.advance(by: 0)
        urgent.finish()
        await download.ended()
        expect(download.error == nil && fixture.folder.data("out") == fixture.file.data)
        expect(fixture.file.requests.count, equals: 2)
    }

    @Test(
        "TRF-8: a kept connection that the server closes meanwhile costs no retry",
        arguments: [2_000_000, 20_000_000]
    )
    func lostConnection(count: Int) async throws {
        let fixture = try DownloadFixture(30_000_000)
        fixture.file.change { _, number, response in
            if number == 0 { response.fault = .truncate(after: count) }
        }
        let (disk, download, urgent) = await yielded(fixture)
        disk.goOn()
        for _ in 0..<50 { await Task.yield() }
        urgent.finish()
        await download.ended()
        expect(download.error == nil && fixture.folder.data("out") == fixture.file.data)
        expect(fixture.file.ranges, equals: [nil, "bytes=\(count)-"])
    }

    @Test("TRF-8: among urgent jobs without a gap it gets a slot, transfers for a second, and no byte comes twice")
    func urgentJobsWithoutGap() async throws {
        let clock = ManualClock()
        let queue = NetworkQueue(name: "downloads", maxConcurrentOperationCount: 1, clock: clock)
        let fixture = try DownloadFixture(30_000_000, clock: clock)
        let disk = HeldDisk()
        let download = fixture.operation(calls: disk.calls)
        download.queuePriority = .low
        queue.addOperation(download)
        await disk.isWriting.opened()
        let jobs = (0..<500).map { _ in TestJob { _ in } }
        queue.addOperations(jobs, waitUntilFinished: false)
        disk.goOn()
        // The download waits from the moment in which it asks for a slot again, whichever of the jobs runs then.
        var ended = 0
        while ended < jobs.count {
            let next = jobs[ended]
            await expect(eventually { [next, download].contains { queue.explain($0) == [.running] } })
            if queue.explain(download) == [.running] { break }
            expect(queue.explain(download), equals: [.slotYielded])
            clock.advance(by: 3)
            next.finish()
            await next.ended()
            ended += 1
        }
        let next = try #require(ended < jobs.count ? jobs[ended] : nil)
        expect(ended > 1 && queue.explain(next) == [.limit(1)], "\(ended)")
        await expect(
            eventually {
                clock.advance(by: 1)
                return queue.explain(download) == [.slotYielded] && queue.explain(next) == [.running]
            }
        )
        for job in jobs { job.finish() }
        await download.ended()
        expect(download.error == nil && fixture.folder.data("out") == fixture.file.data)
        expect(fixture.file.requests.count, equals: 1)
    }

    @Test("TRF-8: one that came from its beginning although its rest was asked for does not yield again")
    func noRanges() async throws {
        let clock = ManualClock()
        let queue = NetworkQueue(name: "downloads", maxConcurrentOperationCount: 1, clock: clock)
        let fixture = try DownloadFixture(30_000_000, clock: clock)
        fixture.file.change { [data = fixture.file.data] _, number, response in
            guard number > 0 else { return }
            response = MockResponse(headers: ["ETag": "\"one\"", "Accept-Ranges": "bytes"], body: .data(data))
        }
        let disk = HeldDisk()
        let (beginnings, hasBegunAgain, gate) = (Locked(0), Gate(), DispatchSemaphore(value: 0))
        var calls = disk.calls
        let write = calls.write
        calls.write = { descriptor, bytes, count, offset in
            let isSecond = beginnings.withLock { beginnings in
                if offset == 0 { beginnings += 1 }
                return offset == 0 && beginnings == 2
            }
            if isSecond {
                hasBegunAgain.open()
                // Blocks the download's own queue.
                gate.wait()
            }
            return write(descriptor, bytes, count, offset)
        }
        let download = fixture.operation(calls: calls)
        download.queuePriority = .low
        queue.addOperation(download)
        await disk.isWriting.opened()
        let urgent = TestJob { _ in }
        queue.addOperation(urgent)
        disk.goOn()
        clock.advance(by: 60)
        urgent.finish()
        await hasBegunAgain.opened()
        let second = TestJob { _ in }
        queue.addOperation(second)
        clock.advance(by: 2)
        expect(queue.explain(second), equals: [.limit(1)])
        if second.isExecuting { second.finish() }
        gate.signal()
        await download.ended()
        second.finish()
        expect(download.error == nil && fixture.folder.data("out") == fixture.file.data)
        expect(fixture.file.requests.count, equals: 2)
    }

    @Test("OPQ-11: in a suspended queue, explain names the suspension")
    func suspended() async throws {
        let fixture = try DownloadFixture(30_000_000)
        let (disk, download, urgent) = await yielded(fixture)
        queue.isSuspended = true
        expect(queue.explain(download), equals: [.suspended])
        urgent.finish()
        await urgent.ended()
        expect(queue.explain(download), equals: [.suspended])
        queue.isSuspended = false
        disk.goOn()
        await download.ended()
        expect(download.error == nil)
    }

    /// A request that is read when the test says so.
    private struct HeldRequest: BaseAPIRequest {
        let isRead = Gate()
        let gate = DispatchSemaphore(value: 0)
        var api: String { "file" }
        var headers: [String: String]? {
            isRead.open()
            // Blocks the thread that reads requests, as a slow getter does.
            gate.wait()
            gate.signal()
            return nil
        }
    }

    @Test("OPQ-11: one that makes way before its first message sends none until it has its slot again")
    func notBegun() async throws {
        let fixture = try DownloadFixture(300_000)
        fixture.server.route("GET", "/small") { _ in .text("a") }
        let request = HeldRequest()
        let download = DownloadOperation(request, to: fixture.destination, service: fixture.service)
        download.queuePriority = .low
        queue.addOperation(download)
        await request.isRead.opened()
        let urgent = await urgentJob()
        request.gate.signal()
        for _ in 0..<50 { _ = try await fixture.service.send(Get(api: "small")) }
        expect(fixture.file.requests.isEmpty && !download.isFinished)
        urgent.finish()
        await download.ended()
        expect(download.error == nil && fixture.folder.data("out") == fixture.file.data)
        expect(fixture.file.requests.count, equals: 1)
    }

    @Test("OPQ-11: cancelled while it makes way, it ends at once", arguments: [false, true])
    func cancelled(isLetGo: Bool) async throws {
        let clock = ManualClock()
        let fixture = try DownloadFixture(30_000_000, clock: clock)
        let (disk, download, urgent) = await yielded(fixture)
        disk.goOn()
        if isLetGo {
            await clock.waitForTimers(1)
            clock.advance(by: 30)
        }
        download.cancel()
        await download.ended()
        expect(download.error?.code == .cancelled && urgent.isExecuting && clock.pendingCount == 0)
        urgent.finish()
        await queue.waitUntilIdle()
    }

    @Test("OPQ-11: paused while it makes way, it waits for resume(), and gets a slot then")
    func paused() async throws {
        let fixture = try DownloadFixture(30_000_000)
        let (disk, download, urgent) = await yielded(fixture)
        download.pause()
        disk.goOn()
        urgent.finish()
        await urgent.ended()
        let another = await urgentJob()
        download.resume()
        another.finish()
        await download.ended()
        expect(download.error == nil && fixture.folder.data("out") == fixture.file.data)
    }

    @Test("OPQ-11: a job of normal priority keeps its slot, and a queue may be told that none yields")
    func keepsSlot() async throws {
        let fixture = try DownloadFixture(30_000_000)
        queue.yieldingPriority = nil
        let disk = HeldDisk()
        let download = await started(fixture, disk)
        let waiting = TestJob { $0.finish() }
        queue.addOperation(waiting)
        expect(queue.explain(waiting) == [.limit(1)] && queue.explain(download) == [.running])
        expect(queue.yieldingPriority == nil)
        disk.goOn()
        await download.ended()
        await waiting.ended()
        expect(fixture.file.requests.count, equals: 1)
    }

    @Test(
        "OPQ-11: among urgent jobs, cancels and pauses every download ends once, and what ends well is whole",
        arguments: [UInt64.random(in: 0...UInt64.max)]
    )
    func mixed(seed: UInt64) async throws {
        var random = SeededGenerator(seed: seed)
        let fixture = try DownloadFixture(3_000_000)
        fixture.server.route("GET", "/small") { _ in .text("a") }
        queue.maxConcurrentOperationCount = 2
        let downloads = (0..<8).map { number in
            fixture.operation(to: fixture.folder.file("\(number)")) {
                $0.segmentCount = number.isMultiple(of: 3) ? 2 : 1
            }
        }
        for download in downloads {
            download.queuePriority = Bool.random(using: &random) ? .low : .veryLow
            queue.addOperation(download)
        }
        for _ in 0..<60 {
            let urgent = RequestOperation(Get(api: "small"), service: fixture.service)
            urgent.queuePriority = Bool.random(using: &random) ? .high : .normal
            queue.addOperation(urgent)
            let download = downloads.randomElement(using: &random)
            switch Int.random(in: 0..<12, using: &random) {
            case 0: download?.cancel()
            case 1: download?.pause()
            case 2, 3: download?.resume()
            default: break
            }
            if Bool.random(using: &random) { _ = try? await urgent.value }
        }
        for download in downloads { download.resume() }
        for download in downloads { await download.ended() }
        for (number, download) in downloads.enumerated() where download.error == nil {
            expect(fixture.folder.data("\(number)"), equals: fixture.file.data, "seed \(seed)")
        }
        for download in downloads { expect([nil, .cancelled].contains(download.error?.code), "seed \(seed)") }
        await queue.waitUntilIdle()
        expect(queue.operationCount, equals: 0)
    }
}
