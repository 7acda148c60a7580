import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("Downloads that cannot be resumed", .timeLimit(.minutes(10)))
struct UnresumableDownloadTests {
    private let queue = NetworkQueue(name: "downloads", maxConcurrentOperationCount: 1)

    /// How far the first message is when something happens to the download.
    enum Moment: CaseIterable {
        case asked, answered
    }

    /// A transfer that only a second request could begin again.
    enum Kind: CaseIterable {
        case post, noTag, noRanges

        func fixture(over wire: Wire = .standard, clock: any NetworkClock = SystemClock()) throws -> DownloadFixture {
            try DownloadFixture(6_000_000, tag: self == .noTag ? nil : "\"one\"", over: wire, clock: clock)
        }

        func change(_ response: inout MockResponse) {
            if self == .noRanges { response.headers["Accept-Ranges"] = nil }
        }

        var method: NetworkService.Method { self == .post ? .post : .get }
    }

    /// Starts a download with the only slot.
    ///
    /// - Parameter fault: of the first answer. Default nil.
    /// - Returns: lets the server answer, or the disk write, which wait for it.
    private func started(
        _ fixture: DownloadFixture,
        _ kind: Kind,
        until moment: Moment,
        fault: MockResponse.Fault? = nil
    ) async -> (download: DownloadOperation, goOn: () -> Void) {
        let disk = HeldDisk()
        let (isAsked, gate) = (Gate(), DispatchSemaphore(value: 0))
        fixture.file.change { _, number, response in
            kind.change(&response)
            if number == 0 { response.fault = fault }
            isAsked.open()
            guard moment == .asked else { return }
            // Blocks this connection alone.
            gate.wait()
            gate.signal()
        }
        let download = fixture.operation(
            FileRequest(method: kind.method),
            calls: moment == .answered ? disk.calls : FileCalls()
        )
        download.queuePriority = .low
        queue.addOperation(download)
        await (moment == .asked ? isAsked : disk.isWriting).opened()
        return (
            download,
            {
                gate.signal()
                disk.goOn()
            }
        )
    }

    @Test(
        "BEY-23, TRF-8: it keeps its slot from an urgent job, so that nothing is sent twice and no byte comes twice",
        arguments: Kind.allCases,
        Moment.allCases
    )
    func keepsSlot(kind: Kind, moment: Moment) async throws {
        let clock = ManualClock()
        let fixture = try kind.fixture(clock: clock)
        let (download, goOn) = await started(fixture, kind, until: moment)
        let urgent = TestJob { _ in }
        queue.addOperation(urgent)
        expect(queue.explain(urgent) == [.limit(1)] && queue.explain(download) == [.running])
        clock.advance(by: 60)
        goOn()
        if urgent.isExecuting { urgent.finish() }
        await download.ended()
        urgent.finish()
        expect(download.error == nil && fixture.folder.data("out") == fixture.file.data)
        expect(fixture.file.requests.count, equals: 1)
    }

    @Test(
        "BEY-23: paused, it keeps its connection and gives its slot back; resumed, it goes on there",
        arguments: [Kind.post, .noTag],
        Wire.allCases
    )
    func paused(kind: Kind, wire: Wire) async throws {
        let fixture = try kind.fixture(over: wire)
        let (download, goOn) = await started(fixture, kind, until: .answered)
        download.pause()
        let other = TestJob()
        queue.addOperation(other)
        await other.ended()
        goOn()
        let second = await withSlot()
        download.resume()
        expect(!download.isPaused)
        second.finish()
        await download.ended()
        expect(download.error == nil && fixture.folder.data("out") == fixture.file.data)
        expect(fixture.file.requests.count, equals: 1)
        await queue.waitUntilIdle()
    }

    /// A job that has the only slot until it is finished by hand.
    private func withSlot() async -> TestJob {
        let hasSlot = Gate()
        let job = TestJob { _ in hasSlot.open() }
        queue.addOperation(job)
        await hasSlot.opened()
        return job
    }

    @Test("BEY-23: a POST that is paused before its response is sent once")
    func pausedBeforeResponse() async throws {
        let fixture = try Kind.post.fixture()
        let (download, goOn) = await started(fixture, .post, until: .asked)
        download.pause()
        goOn()
        await withSlot().finish()
        download.pause()
        download.resume()
        download.resume()
        await download.ended()
        expect(download.error == nil && fixture.folder.data("out") == fixture.file.data)
        expect(fixture.file.requests.count, equals: 1)
    }

    @Test("BEY-23: a POST that is paused while it waits for a retry sends nothing until it is resumed")
    func pausedBetweenMessages() async throws {
        let clock = ManualClock()
        let fixture = try Kind.post.fixture(clock: clock)
        fixture.file.change { _, number, response in if number == 0 { response = MockResponse(statusCode: 503) } }
        let retry = RetryPolicy(maximumRetryCount: 1, baseDelay: 5)
        let request = FileRequest(method: .post, headers: ["Idempotency-Key": "one"], retry: retry)
        let download = fixture.operation(request)
        queue.addOperation(download)
        func waitsForRetry() -> Bool { if case .retry? = queue.explain(download).first { true } else { false } }
        await expect(eventually { waitsForRetry() })
        download.pause()
        clock.advance(by: 60)
        await expect(eventually { queue.explain(download) == [.slotReleased] })
        await withSlot().finish()
        expect(fixture.file.requests.count, equals: 1)
        download.resume()
        await download.ended()
        expect(download.error == nil && fixture.folder.data("out") == fixture.file.data)
        expect(fixture.file.requests.count, equals: 2)
    }

    @Test("BEY-23: a POST whose connection is lost in a pause fails, and is not sent again")
    func lostInPause() async throws {
        let fixture = try Kind.post.fixture()
        let (download, goOn) = await started(fixture, .post, until: .answered, fault: .truncate(after: 1_000_000))
        download.pause()
        goOn()
        // Bytes that have come before the pause are read to their end; what comes later is found after it.
        await withSlot().finish()
        download.resume()
        await download.ended()
        expect(download.error?.code == .connectionLost && fixture.file.requests.count == 1)
    }

    @Test("TRF-3: a GET whose connection is lost in a pause begins again when it is resumed, without a retry")
    func beginsAgain() async throws {
        let fixture = try Kind.noTag.fixture()
        let (download, goOn) = await started(fixture, .noTag, until: .answered, fault: .truncate(after: 1_000_000))
        download.pause()
        goOn()
        await withSlot().finish()
        download.resume()
        await download.ended()
        expect(download.error == nil && fixture.folder.data("out") == fixture.file.data)
        expect(fixture.file.ranges, equals: [nil, nil])
    }
}
