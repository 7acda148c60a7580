import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("OperationReadiness", .timeLimit(.minutes(10)))
struct OperationReadinessTests {
    private let queueThread = ObjectIdentifier(Gate.self)
    private let ownThread = ObjectIdentifier(OperationReadinessTests.self)

    @Test("OPQ-1: ready when every dependency has finished, also while the watch is being set up")
    func course() {
        var readiness = OperationReadiness(dependencyCount: 2)
        let finishedAtOnce = readiness.dependencyFinished()
        expect(!finishedAtOnce)
        readiness.watchingBegan()
        let before = readiness.answer(isFree: false, to: queueThread)
        expect(!before.isReady && !before.announceAgain)
        readiness.dependencyAdded()
        let stillOne = readiness.dependencyFinished()
        let last = readiness.dependencyFinished()
        expect(!stillOne && last)
    }

    @Test("OPQ-1: true after false is announced again to the queue, but not when the announcement reads it")
    func announcedAgain() {
        var readiness = OperationReadiness(dependencyCount: 1)
        readiness.watchingBegan()
        _ = readiness.answer(isFree: false, to: queueThread)
        _ = readiness.dependencyFinished()
        readiness.announcementBegins(on: ownThread)
        let toItself = readiness.answer(isFree: false, to: ownThread)
        let toQueue = readiness.answer(isFree: false, to: queueThread)
        readiness.announcementEnds(on: ownThread)
        let afterwards = readiness.answer(isFree: false, to: ownThread)
        expect(toItself.isReady && !toItself.announceAgain)
        expect(toQueue.isReady && toQueue.announceAgain)
        expect(afterwards.announceAgain)
    }

    @Test("OPQ-1: reads on other threads do not announce again without end, where the queue misses nothing")
    func announcedOnceMore() {
        var readiness = OperationReadiness(dependencyCount: 1)
        readiness.watchingBegan()
        _ = readiness.answer(isFree: false, to: queueThread, repeatsOnce: true)
        _ = readiness.dependencyFinished()
        let answers = (0..<3).map { _ in readiness.answer(isFree: false, to: queueThread, repeatsOnce: true) }
        expect(answers.map(\.announceAgain) == [true, false, false] && answers.allSatisfy(\.isReady))
    }

    @Test("OPQ-2: a cancelled operation is ready whatever it waits for")
    func free() {
        var readiness = OperationReadiness(dependencyCount: 3)
        readiness.watchingBegan()
        let answer = readiness.answer(isFree: true, to: queueThread)
        expect(answer.isReady && !answer.announceAgain)
    }

    @Test("OPQ-1: a dependency that finishes at the moment it begins to be watched is not missed")
    func finishingWhileWatched() async {
        let queue = OperationQueue()
        for round in 0..<2_000 {
            let plain = BlockOperation {}
            let dependent = TestJob { [unowned plain] job in
                expect(plain.isFinished)
                job.finish()
            }
            dependent.addDependency(plain)
            queue.addOperation(plain)
            queue.addOperation(dependent)
            guard await eventually({ dependent.isFinished }) else {
                Issue.record("the dependent of round \(round) was missed")
                return queue.cancelAllOperations()
            }
            expect(dependent.executionCount, equals: 1)
        }
    }
}
