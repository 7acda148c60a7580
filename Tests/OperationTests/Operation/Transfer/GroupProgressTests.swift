import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

/// A job with a meter, like a transfer.
private final class TestTransfer: NetworkOperation, @unchecked Sendable {
    // Sendable because its own properties are constant.
    let meter: TransferMeter
    let hasBegun = Gate()

    init(clock: any NetworkClock, isPausable: Bool = false) {
        meter = TransferMeter(kind: .downloading, clock: clock)
        super.init()
        meter.progress.cancellationHandler = { [weak self] in self?.cancel() }
        if isPausable { meter.whenPauseChanges { _ in } }
    }

    override func claimProgress() -> OrderedProgress? { meter.claimShare() }

    override func execute() {
        meter.begin(completed: 0, total: 100)
        hasBegun.open()
    }

    override func endWork(after error: NetworkError?) -> [Promise<Void>] { [meter.finish(success: error == nil)] }
}

/// A progress that blocks the cancelling thread, as an observer may.
private final class HeldProgress: Progress, @unchecked Sendable {
    // Sendable because its own properties are constant.
    let isCancelling = Gate()
    let gate = DispatchSemaphore(value: 0)

    static func root() -> HeldProgress { HeldProgress(parent: nil, userInfo: nil) }

    override func cancel() {
        isCancelling.open()
        gate.wait()
        super.cancel()
    }
}

@Suite struct GroupProgressTests {
    private let clock = ManualClock()

    @Test("TRF-1: children count by their weights; the default is 1, and values out of range are clamped")
    func weights() async {
        let jobs = (0..<3).map { _ in TestJob() }
        expect(jobs[0].progressWeight, equals: 1)
        jobs[1].progressWeight = 6
        jobs[2].progressWeight = -4
        expect(jobs[2].progressWeight, equals: 1)
        let batch = BatchOperation(jobs)
        // The group read the weight when it was created.
        jobs[0].progressWeight = .max
        expect(jobs[0].progressWeight, equals: 1 << 40)
        // Another thread may be about to change the progress.
        await expect(eventually { batch.progress.totalUnitCount == 8 } && batch.progress.completedUnitCount == 0)
        NetworkQueue().addOperation(batch)
        await batch.ended()
        expect(batch.progress.completedUnitCount == 8 && batch.progress.fractionCompleted == 1)
    }

    @Test("TRF-1: a transfer in a batch counts by its own progress, forwards and back")
    func transfer() async {
        let transfer = TestTransfer(clock: clock)
        transfer.progressWeight = 3
        let job = TestJob { _ in }
        let batch = BatchOperation([transfer, job])
        let progress = batch.progress
        var updates = transfer.meter.updates().makeAsyncIterator()
        NetworkQueue().addOperation(batch)
        await transfer.hasBegun.opened()
        _ = await updates.next()
        for (completed, expected) in [(50, 0.375), (10, 0.075), (100, 0.749_25), (0, 0), (80, 0.6)] {
            // The steps take less than a second in all; after that the meter would also publish a falling rate.
            clock.advance(by: 0.15)
            transfer.meter.set(completed: Int64(completed))
            await expect(updates.next()?.completedBytes, equals: Int64(completed))
            await expect(eventually { abs(progress.fractionCompleted - expected) < 1e-6 }, "\(completed)")
            expect(progress.completedUnitCount, equals: 0)
        }
        transfer.finish()
        await transfer.ended()
        await expect(eventually { progress.completedUnitCount == 3 && progress.fractionCompleted == 0.75 })
        job.finish()
        await batch.ended()
        expect(progress.completedUnitCount == 4 && progress.fractionCompleted == 1)
    }

    @Test("TRF-1: a transfer that fails halfway, or was over before, has done its part in the batch")
    func failedTransfer() async {
        let transfers = (0..<3).map { _ in TestTransfer(clock: clock) }
        let queue = NetworkQueue()
        queue.addOperation(transfers[0])
        await transfers[0].hasBegun.opened()
        transfers[0].finish()
        await transfers[0].ended()
        let batch = BatchOperation(transfers, policy: .collectAll)
        queue.addOperation(batch)
        await transfers[1].hasBegun.opened()
        transfers[1].meter.add(50)
        transfers[1].finish(NetworkError(code: .timedOut))
        transfers[2].cancel()
        await batch.ended()
        expect(batch.progress.completedUnitCount == 3 && batch.progress.fractionCompleted == 1)
        expect(transfers[1].meter.progress.completedUnitCount == 50 && !transfers[1].meter.progress.isFinished)
    }

    @Test("TRF-1: a transfer is part of one progress; in a second group it counts as a whole")
    func twoGroups() async {
        let transfer = TestTransfer(clock: clock)
        let batches = (0..<2).map { _ in BatchOperation([transfer]) }
        let queue = NetworkQueue()
        for batch in batches { queue.addOperation(batch) }
        await transfer.hasBegun.opened()
        transfer.meter.add(50)
        // The update may wait for a tenth of a second after the first one.
        clock.advance(by: 1)
        await expect(eventually { batches[0].progress.fractionCompleted == 0.5 })
        expect(batches[1].progress.fractionCompleted, equals: 0)
        transfer.finish()
        for batch in batches {
            await batch.ended()
            expect(batch.progress.fractionCompleted == 1 && batch.progress.completedUnitCount == 1)
        }
    }

    @Test("TRF-1: pausing a batch's progress pauses the transfers in it that can be, cancelling it cancels all")
    func control() async {
        let transfers = [TestTransfer(clock: clock, isPausable: true), TestTransfer(clock: clock)]
        let batch = BatchOperation([ChainOperation([transfers[0]]), transfers[1]])
        NetworkQueue().addOperation(batch)
        for transfer in transfers { await transfer.hasBegun.opened() }
        batch.progress.pause()
        await expect(eventually { transfers[0].meter.progress.isPaused })
        batch.progress.resume()
        await expect(eventually { !transfers[0].meter.progress.isPaused })
        expect(!transfers[1].meter.progress.isPaused)
        batch.progress.cancel()
        await batch.ended()
        expect(transfers.allSatisfy { $0.isCancelled })
    }

    @Test("TRF-1: a blocked tree of progresses holds up no other group and no other transfer")
    func blocked() async {
        let held = HeldProgress.root()
        let batch = BatchOperation([TestJob()])
        let isCounted = await eventually { batch.progress.totalUnitCount == 1 }
        expect(isCounted)
        batch.progress.addChild(held, withPendingUnitCount: 1)
        DispatchQueue.global().async { batch.progress.cancel() }
        await held.isCancelling.opened()
        let transfer = TestTransfer(clock: SystemClock())
        let other = BatchOperation([transfer, BatchOperation([TestJob()])])
        NetworkQueue().addOperation(other)
        await transfer.hasBegun.opened()
        transfer.meter.add(50)
        transfer.finish()
        await expect(eventually { other.isFinished })
        expect(other.progress.fractionCompleted, equals: 1)
        held.gate.signal()
        await other.ended()
    }

    @Test(
        "TRF-1: a group that becomes part of another one while both change counts in it, whole",
        arguments: UInt64(1)...UInt64(TestLoad.count(4, part: 1))
    )
    func joined(seed: UInt64) async {
        var generator = SeededGenerator(seed: seed)
        for round in 0..<20 {
            // Nests the groups in random order while their jobs end.
            let groups = (0..<6).map { _ in BatchOperation(policy: .collectAll) }
            let queue = NetworkQueue(maxConcurrentOperationCount: -1)
            let order = Array(1..<groups.count).shuffled(using: &generator)
            await withTaskGroup(of: Void.self) { tasks in
                for group in groups {
                    tasks.addTask { for _ in 0..<20 { group.addOperation(TestJob()) } }
                }
                for index in order {
                    tasks.addTask { groups[index - 1].addOperation(groups[index]) }
                }
            }
            queue.addOperation(groups[0])
            await groups[0].ended()
            for group in groups {
                let progress = group.progress
                expect(progress.completedUnitCount, equals: progress.totalUnitCount, "seed \(seed), round \(round)")
                expect(abs(progress.fractionCompleted - 1) < 1e-6, "seed \(seed), round \(round)")
            }
        }
    }

    @Test("TRF-1: the progress of many transfers in nested groups is whole at the end, whatever happens on the way")
    func many() async {
        let seed = UInt64.random(in: 0...99_999)
        print("seed of GroupProgressTests.many: \(seed)")
        var generator = SeededGenerator(seed: seed)
        let transfers = (0..<60).map { _ in TestTransfer(clock: SystemClock()) }
        for transfer in transfers { transfer.progressWeight = .random(in: 1...5_000_000, using: &generator) }
        let outer = BatchOperation(policy: .collectAll)
        let inner = (0..<3).map { _ in BatchOperation(policy: .collectAll) }
        for (index, transfer) in transfers.enumerated() {
            (index < 30 ? outer : inner[index % 3]).addOperation(transfer)
        }
        for group in inner { outer.addOperation(group) }
        NetworkQueue(maxConcurrentOperationCount: -1).addOperation(outer)
        await withTaskGroup(of: Void.self) { group in
            for (index, transfer) in transfers.enumerated() {
                group.addTask {
                    await transfer.hasBegun.opened()
                    for _ in 0..<99 { transfer.meter.add(1) }
                    if index % 7 == 3 { transfer.meter.begin(completed: 0, total: nil) }
                    if index % 5 == 2 { transfer.cancel() } else { transfer.finish() }
                }
            }
        }
        await outer.ended()
        for group in inner + [outer] {
            expect(group.progress.completedUnitCount, equals: group.progress.totalUnitCount)
            expect(abs(group.progress.fractionCompleted - 1) < 0.01)
        }
    }
}
