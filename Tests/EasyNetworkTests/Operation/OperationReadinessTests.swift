import Foundation
import Testing

@testable import EasyNetwork

@Suite("OperationReadiness", .timeLimit(.minutes(10)))
struct OperationReadinessTests {
    private let queueThread = ObjectIdentifier(Gate.self)
    private let ownThread = ObjectIdentifier(OperationReadinessTests.self)

    @Test("OPQ-1: ready when every dependency has finished, also while the watch is being set up")
    func course() {
        var readiness = OperationReadiness()
        readiness.beginWatching(dependencyCount: 2)
        let finishedAtOnce = readiness.dependencyFinished()
        #expect(!finishedAtOnce)
        readiness.watchingBegan()
        let before = readiness.answer(isFree: false, to: queueThread)
        #expect(!before.isReady && !before.announceAgain)
        readiness.dependencyAdded()
        let stillOne = readiness.dependencyFinished()
        let last = readiness.dependencyFinished()
        #expect(!stillOne && last)
    }

    @Test("OPQ-1: true after false is announced again to the queue, but not when the announcement reads it")
    func announcedAgain() {
        var readiness = OperationReadiness()
        readiness.beginWatching(dependencyCount: 1)
        readiness.watchingBegan()
        _ = readiness.answer(isFree: false, to: queueThread)
        _ = readiness.dependencyFinished()
        readiness.announcementBegins(on: ownThread)
        let toItself = readiness.answer(isFree: false, to: ownThread)
        let toQueue = readiness.answer(isFree: false, to: queueThread)
        readiness.announcementEnds(on: ownThread)
        let afterwards = readiness.answer(isFree: false, to: ownThread)
        #expect(toItself.isReady && !toItself.announceAgain)
        #expect(toQueue.isReady && toQueue.announceAgain)
        #expect(afterwards.announceAgain)
    }

    @Test("OPQ-2: a cancelled operation is ready whatever it waits for")
    func free() {
        var readiness = OperationReadiness()
        readiness.beginWatching(dependencyCount: 3)
        readiness.watchingBegan()
        let answer = readiness.answer(isFree: true, to: queueThread)
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
