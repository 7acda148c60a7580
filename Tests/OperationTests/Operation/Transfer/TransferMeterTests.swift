import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite(.timeLimit(.minutes(10)))
struct TransferMeterTests {
    private let clock = ManualClock()

    /// Iterates over the updates.
    private func iterator(_ meter: TransferMeter) -> AsyncStream<TransferMeter.Count>.Iterator {
        meter.updates().makeAsyncIterator()
    }

    private func rate(_ meter: TransferMeter) -> Int? {
        (meter.progress.userInfo[.throughputKey] as? NSNumber)?.intValue
    }

    private func secondsLeft(_ meter: TransferMeter) -> Double? {
        (meter.progress.userInfo[.estimatedTimeRemainingKey] as? NSNumber)?.doubleValue
    }

    private func over(_ meter: TransferMeter, success: Bool) async {
        await meter.finish(success: success).wait()
    }

    @Test("TRF-1: the first count is published at once, later ones ten times a second, and the last one at the end")
    func updates() async {
        let meter = TransferMeter(kind: .downloading, clock: clock)
        var updates = iterator(meter)
        meter.begin(completed: 0, total: 1_000)
        let first = await updates.next()
        expect(first?.completedBytes == 0 && first?.totalBytes == 1_000)
        clock.advance(by: 0.05)
        for _ in 0..<100 { meter.add(1) }
        expect(clock.pendingCount, equals: 1)
        clock.advance(by: 0.04)
        meter.add(100)
        clock.advance(by: 0.011)
        let second = await updates.next()
        expect(second?.completedBytes == 200 && meter.progress.fractionCompleted == 0.2)
        expect(abs((rate(meter) ?? 0) - 2_000) < 30 && abs((secondsLeft(meter) ?? 0) - 0.4) < 0.01)
        clock.advance(by: 0.5)
        meter.add(100)
        await expect(updates.next()?.completedBytes, equals: 300)
        meter.add(700)
        await expect(eventually { clock.pendingCount == 1 })
        await over(meter, success: true)
        expect(clock.pendingCount, equals: 0)
        let last = await updates.next()
        expect(last?.completedBytes == 1_000 && meter.progress.fractionCompleted == 1 && secondsLeft(meter) == 0)
        await expect(updates.next() == nil)
    }

    @Test("TRF-1: the rate of a transfer that stalls falls each second, until there is none, and rises again")
    func stalls() async throws {
        let meter = TransferMeter(kind: .downloading, clock: clock)
        var updates = iterator(meter)
        meter.begin(completed: 0, total: 1_000)
        _ = await updates.next()
        clock.advance(by: 1)
        meter.add(500)
        _ = try #require(await updates.next())
        var (lastRate, lastTime) = (try #require(rate(meter)), try #require(secondsLeft(meter)))
        expect(lastRate, equals: 500)
        var count = 0
        while lastRate > 1 {
            // The timer is set after the rate has been published.
            await expect(eventually { clock.pendingCount == 1 })
            clock.advance(by: 1)
            let next = try #require(await updates.next())
            expect(next.completedBytes, equals: 500)
            let (rate, time) = (try #require(self.rate(meter)), try #require(secondsLeft(meter)))
            expect(rate <= lastRate && time > lastTime)
            (lastRate, lastTime) = (rate, time)
            count += 1
        }
        // The rate falls by at most a fifth a second.
        expect((15...40).contains(count))
        // The update is published on another thread: before the second has passed, after it, or both.
        meter.add(100)
        clock.advance(by: 1)
        repeat { _ = try #require(await updates.next()) } while rate(meter) ?? 0 <= 1
        meter.rest()
        clock.advance(by: 1)
        repeat { _ = try #require(await updates.next()) } while rate(meter) != 0
        await over(meter, success: false)
        expect(clock.pendingCount, equals: 0)
    }

    @Test("TRF-1: any number of sequences get the latest value, also after the end")
    func listeners() async {
        let meter = TransferMeter(kind: .downloading, clock: clock)
        var listeners = (0..<10).map { _ in iterator(meter) }
        meter.begin(completed: 5, total: nil)
        for index in listeners.indices { await expect(listeners[index].next()?.completedBytes, equals: 5) }
        var late = iterator(meter)
        await expect(late.next()?.completedBytes, equals: 5)
        meter.add(1)
        await over(meter, success: false)
        meter.add(1)
        meter.begin(completed: 0, total: 1)
        var latest = iterator(meter)
        listeners += [late, latest]
        for index in listeners.indices {
            let last = await listeners[index].next()
            expect(last?.completedBytes == 6 && last?.totalBytes == nil)
            await expect(listeners[index].next() == nil)
        }
        latest = iterator(TransferMeter(kind: .downloading, clock: clock))
        await over(meter, success: true)
    }

    @Test("TRF-1: a sequence that is not iterated over any more is released")
    func stopsListening() async {
        let meter = TransferMeter(kind: .downloading, clock: clock)
        meter.begin(completed: 0, total: nil)
        let task = Task { for await _ in meter.updates() { break } }
        await task.value
        await expect(eventually { meter.counts.state.withLock { $0.readers.isEmpty } })
    }

    @Test("TRF-1: the Progress is in bytes, of a file, and indeterminate until the total is known")
    func progress() async {
        let kind = Progress.FileOperationKind(rawValue: "NSProgressFileOperationKindUploading")
        let meter = TransferMeter(kind: kind, clock: clock)
        let progress = meter.progress
        expect(progress.isIndeterminate && progress.kind == .file && progress.isCancellable && !progress.isPausable)
        expect(progress.userInfo[.fileOperationKindKey] as? Progress.FileOperationKind, equals: kind)
        var updates = iterator(meter)
        meter.begin(completed: 10, total: nil)
        _ = await updates.next()
        await expect(eventually { progress.completedUnitCount == 10 } && progress.isIndeterminate)
        clock.advance(by: 1)
        meter.begin(completed: 10, total: 50)
        _ = await updates.next()
        clock.advance(by: 1)
        meter.add(10)
        _ = await updates.next()
        expect(progress.totalUnitCount == 50 && progress.completedUnitCount == 20 && !progress.isIndeterminate)
        expect((progress.userInfo[.throughputKey] as? NSNumber)?.intValue, equals: 10)
        expect((progress.userInfo[.estimatedTimeRemainingKey] as? NSNumber)?.doubleValue, equals: 3)
        // All bytes have arrived, but the transfer may restart, and a finished progress cannot go back.
        clock.advance(by: 0.4)
        meter.add(30)
        await expect(updates.next()?.completedBytes, equals: 50)
        expect(!progress.isFinished)
        clock.advance(by: 0.4)
        meter.begin(completed: 0, total: 70)
        _ = await updates.next()
        expect(progress.completedUnitCount == 0 && progress.totalUnitCount == 70 && progress.fractionCompleted == 0)
        clock.advance(by: 1)
        meter.begin(completed: 7, total: nil)
        _ = await updates.next()
        clock.advance(by: 1)
        meter.begin(completed: 7, total: 100)
        _ = await updates.next()
        expect(progress.fractionCompleted, equals: 0.07)
        meter.set(completed: 100)
        await over(meter, success: true)
        expect(progress.isFinished && progress.fractionCompleted == 1 && progress.totalUnitCount == 100)
    }

    @Test(
        "TRF-1: after success the progress is complete: of an empty body, an unknown length, a wrong length",
        arguments: [(Int64?(0), Int64(0), Int64(1)), (nil, 0, 1), (nil, 30, 30), (10, 30, 30), (30, 10, 30)]
    )
    func ends(total: Int64?, completed: Int64, expected: Int64) async {
        let meter = TransferMeter(kind: .downloading, clock: clock)
        meter.begin(completed: 0, total: total)
        meter.add(Int(completed))
        await over(meter, success: true)
        let progress = meter.progress
        expect(progress.isFinished && progress.fractionCompleted == 1 && progress.totalUnitCount == expected)
    }

    @Test("TRF-1: a transfer that failed stays where it was, and its end is published")
    func failure() async {
        let meter = TransferMeter(kind: .downloading, clock: clock)
        meter.begin(completed: 0, total: 100)
        meter.add(37)
        await over(meter, success: false)
        expect(meter.progress.completedUnitCount == 37 && !meter.progress.isFinished)
        var updates = iterator(meter)
        let last = await updates.next()
        expect(last?.completedBytes == 37 && secondsLeft(meter) == nil)
        // A second end changes nothing, but still calls back.
        await over(meter, success: true)
        expect(meter.progress.completedUnitCount, equals: 37)
    }

    @Test("TRF-1: counts from several threads add up, and published values never go back")
    func threads() async {
        let meter = TransferMeter(kind: .downloading, clock: SystemClock())
        meter.begin(completed: 0, total: 80_000)
        let task = Task {
            var last: Int64 = -1
            for await progress in meter.updates() {
                guard progress.completedBytes >= last else { return Int64(-1) }
                last = progress.completedBytes
            }
            return last
        }
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<8 { group.addTask { for _ in 0..<10_000 { meter.add(1) } } }
        }
        await over(meter, success: true)
        await expect(task.value, equals: 80_000)
    }

    @Test("TRF-1: cancelling, pausing and resuming the progress reach the owner, and the last of them counts")
    func handlers() async {
        let meter = TransferMeter(kind: .downloading, clock: clock)
        let isCancelled = Gate()
        let state = Locked<[Bool]>([])
        meter.progress.cancellationHandler = { isCancelled.open() }
        meter.whenPauseChanges { isPaused in state.withLock { $0.append(isPaused) } }
        expect(meter.progress.isPausable)
        for _ in 0..<200 {
            meter.progress.pause()
            meter.progress.resume()
        }
        meter.progress.pause()
        await expect(eventually { state.withLock { $0.count == 401 && $0.last == true } })
        meter.progress.cancel()
        await isCancelled.opened()
    }

    @Test("TRF-1: the sequences of a meter end when it is released")
    func neverEnds() async {
        var meter: TransferMeter? = TransferMeter(kind: .downloading, clock: clock)
        let streams = (0..<3).compactMap { _ in meter?.updates() }
        meter?.begin(completed: 1, total: nil)
        meter = nil
        for stream in streams {
            var last: TransferMeter.Count?
            for await progress in stream { last = progress }
            // An update in flight may still arrive.
            expect(last == nil || last?.completedBytes == 1)
        }
    }

    @Test("TRF-1: a meter is released with its owner, while its progress is still used")
    func release() async {
        var meter: TransferMeter? = TransferMeter(kind: .downloading, clock: clock)
        meter?.begin(completed: 0, total: 10)
        meter?.whenPauseChanges { _ in }
        let progress = meter?.progress
        let share = meter?.claimShare()
        expect(share != nil && meter?.claimShare() == nil)
        weak let weakMeter = meter
        if let meter { await over(meter, success: true) }
        meter = nil
        await expect(eventually { weakMeter == nil })
        withExtendedLifetime((progress, share)) {}
    }
}
