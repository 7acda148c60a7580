import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("OperationLifecycle")
struct OperationLifecycleTests {
    private let failure = NetworkError(code: .timedOut)

    @Test("BEY-1: start, work, end")
    func plainCourse() {
        var life = OperationLifecycle()
        expect(life.start(), equals: true)
        expect(life.isExecuting)
        expect(life.began(obstacle: nil), equals: .execute)
        expect(life.outcome == nil)
        let ending = life.end(.success(()))
        expect(ending.wins && ending.action == .deliver)
        expect(life.isExecuting)
        life.concluded()
        expect(life.phase == .finished && !life.isExecuting && life.error == nil)
    }

    @Test("BEY-1: a second start and a second ending are ignored")
    func secondCalls() {
        var life = OperationLifecycle()
        _ = life.start()
        expect(life.start(), equals: false)
        _ = life.began(obstacle: nil)
        expect(life.began(obstacle: nil), equals: .none)
        expect(life.end(.failure(failure)).wins)
        expect(!life.end(.success(())).wins)
        expect(!life.cancel().wins)
        expect(life.error?.code == .timedOut && !life.isCancelled)
    }

    @Test("OPQ-2: an ending before the start is kept, and acted on at the start")
    func endingBeforeStart() {
        var life = OperationLifecycle()
        let ending = life.cancel()
        expect(ending.wins && ending.action == .endEarly)
        expect(life.isCancelled && life.phase == .waiting)
        expect(life.start(), equals: true)
        expect(life.began(obstacle: failure), equals: .deliver)
        expect(life.error?.code, equals: .cancelled)
    }

    @Test("OPQ-2: an ending while the start is announced waits for the announcement")
    func endingWhileStarting() {
        var life = OperationLifecycle()
        _ = life.start()
        expect(life.cancel().action, equals: .none)
        expect(life.began(obstacle: nil), equals: .deliver)
    }

    @Test("BEY-1: an obstacle ends the operation instead of the work")
    func obstacle() {
        var life = OperationLifecycle()
        _ = life.start()
        expect(life.began(obstacle: NetworkError(code: .dependencyFailed)), equals: .deliver)
        expect(life.error?.code, equals: .dependencyFailed)
        expect(!life.isCancelled)
    }

    @Test("BEY-16: an ending while a queue's start() runs waits for its return, in whatever order they come")
    func endingInStart() {
        // The steps of the thread that starts, and an ending by another thread or by the code in start() between them.
        for endsAfter in 0...3 {
            var (life, actions) = (OperationLifecycle(), [OperationLifecycle.Action]())
            for step in 0...3 {
                switch step {
                case 0: expect(life.startIsCalled(), equals: true)
                case 1: expect(life.start(), equals: true)
                case 2: actions.append(life.began(obstacle: nil))
                default: actions.append(life.startHasReturned())
                }
                expect(step == 3 || life.phase != .delivering, "ended after step \(endsAfter)")
                if step == endsAfter { actions.append(life.end(.failure(failure)).action) }
            }
            expect(actions.filter { $0 == .deliver }.count, equals: 1, "ended after step \(endsAfter)")
            expect(actions.contains(.execute), equals: (endsAfter > 1))
            expect(life.phase, equals: .delivering)
        }
    }

    @Test("BEY-16: a queue does not start what was started by hand, and that ends without it")
    func startedByHand() {
        var life = OperationLifecycle()
        _ = life.start()
        expect(life.startIsCalled(), equals: false)
        _ = life.began(obstacle: nil)
        expect(life.end(.success(())).action, equals: .deliver)
        expect(life.startHasReturned(), equals: .none)
    }
}
