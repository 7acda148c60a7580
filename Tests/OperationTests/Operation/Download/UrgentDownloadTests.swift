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
        let fixture = try DownloadFixture(30_000_000, clock: ManualClock())
        fixture.server.route("GET", "/small") { _ in .text("a") }
        let events = queue.events
        let (disk, download, urgent) = await yielded(fixture, segments: segments)
        expect(queue.explain(download), equals: [.slotYielded])
        disk.goOn()
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

    @Test("OPQ-11: after two seconds it lets the connection go, and asks for the rest later")
    func letsConnectionGo() async throws {
        let clock = ManualClock()
        let fixture = try DownloadFixture(30_000_000, clock: clock)
        let (disk, download, urgent) = await yielded(fixture)
        disk.goOn()
        await clock.waitForTimers(1)
        clock.advance(by: 2)
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
            clock.advance(by: 2)
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
