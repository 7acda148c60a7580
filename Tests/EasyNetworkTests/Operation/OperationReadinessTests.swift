import Foundation
import Testing

@testable import EasyNetwork

@Suite("OperationReadiness", .timeLimit(.minutes(5)))
struct OperationReadinessTests {
    @Test("OPQ-1: ready when every dependency has finished, those included that finish while they are looked at")
    func course() {
        var readiness = OperationReadiness()
        readiness.beginWatching(dependencyCount: 2)
        let finishedAtOnce = readiness.dependencyFinished()
        #expect(!finishedAtOnce)
        readiness.watchingBegan()
        let before = readiness.answer(isFree: false)
        #expect(!before.isReady && !before.announceAgain)
        readiness.dependencyAdded()
        let stillOne = readiness.dependencyFinished()
        let last = readiness.dependencyFinished()
        #expect(!stillOne && last)
    }

    @Test("OPQ-1: after a no, the first yes is announced again, once, for a queue that missed the announcement")
    func announcedAgain() {
        var readiness = OperationReadiness()
        readiness.beginWatching(dependencyCount: 1)
        readiness.watchingBegan()
        _ = readiness.answer(isFree: false)
        _ = readiness.dependencyFinished()
        let first = readiness.answer(isFree: false)
        let second = readiness.answer(isFree: false)
        #expect(first.isReady && first.announceAgain && second.isReady && !second.announceAgain)
    }

    @Test("OPQ-2: a cancelled operation is ready whatever it waits for")
    func free() {
        var readiness = OperationReadiness()
        readiness.beginWatching(dependencyCount: 3)
        readiness.watchingBegan()
        let answer = readiness.answer(isFree: true)
        #expect(answer.isReady && !answer.announceAgain)
    }

    @Test("OPQ-1: an operation that is watched at the moment it finishes is not missed", arguments: 0..<2)
    func finishingWhileWatched(kind: Int) async {
        let queue = OperationQueue()
        for _ in 0..<2_000 {
            let plain = BlockOperation {}
            let dependent: Operation = kind == 0 ? BlockOperation {} : TestJob { $0.finish() }
            if kind == 1 { dependent.addDependency(plain) }
            queue.addOperation(plain)
            if kind == 1 { queue.addOperation(dependent) }
            await plain.finished()
            if kind == 1 { await dependent.finished() }
        }
    }
}
