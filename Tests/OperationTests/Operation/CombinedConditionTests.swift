import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("Conditions made of others", .timeLimit(.minutes(10)))
struct CombinedConditionTests {
    private let log = Locked<[String]>([])

    /// Records its name when it is evaluated.
    private func noted(_ name: String, _ holds: Bool) -> OperationCondition {
        OperationCondition(name) { [log] _ in
            BlockOperation { log.withLock { $0.append("before " + name) } }
        } holds: { [log] _ in
            log.withLock { $0.append(name) }
            if !holds { throw NetworkError(code: .unauthorized, message: name) }
            return true
        }
    }

    /// Runs an operation under this condition on a queue of one slot.
    private func run(_ condition: OperationCondition) async -> (error: NetworkError?, log: [String]) {
        log.withLock { $0 = [] }
        let job = TestJob()
        job.addCondition(condition)
        NetworkQueue(maxConcurrentOperationCount: 1).addOperation(job)
        await job.ended()
        expect(job.executionCount, equals: (job.error == nil ? 1 : 0))
        return (job.error, log.withLock { $0 })
    }

    @Test("BEY-7: all: in order, each after its prerequisite, up to the first that fails")
    func all() async {
        let good = await run(.all(noted("a", true), noted("b", true)))
        expect(good.error == nil && good.log == ["before a", "a", "before b", "b"])
        let bad = await run(.all(noted("a", true), noted("b", false), noted("c", true)))
        expect(bad.error?.code == .unauthorized && bad.error?.message == "b")
        expect(bad.log, equals: ["before a", "a", "before b", "b"])
        await expect(run(.all()).error == nil)
    }

    @Test("BEY-7: any: in order, up to the first that holds; if none does, the error has the reasons")
    func any() async {
        let good = await run(.any(noted("a", false), noted("b", true), noted("c", true)))
        expect(good.error == nil && good.log == ["before a", "a", "before b", "b"])
        await expect(run(.any(noted("a", true), noted("b", false))).log, equals: ["before a", "a"])
        let bad = await run(.any(noted("a", false), noted("b", false)))
        expect(bad.error?.code, equals: .refused)
        expect((bad.error?.underlying as? NetworkError)?.code, equals: .unauthorized)
        let message = bad.error?.message ?? ""
        expect(message.hasPrefix("none of the conditions '(a or b)' holds: ") && message.contains("; "))
        await expect(run(.any()).error?.code, equals: .refused)
    }

    @Test("BEY-7: not: inverts the result, after the prerequisite")
    func not() async {
        let good = await run(.not(noted("a", false)))
        expect(good.error == nil && good.log == ["before a", "a"])
        let bad = await run(.not(noted("a", true)))
        expect(bad.error?.code == .refused && bad.error?.message == "the condition 'a' holds")
        await expect(run(.not(.not(noted("a", true)))).error == nil)
    }

    @Test("BEY-7: withoutPrerequisites: no prerequisite, however deep")
    func withoutPrerequisites() async {
        await expect(run(noted("a", true).withoutPrerequisites).log, equals: ["a"])
        let nested = OperationCondition.all(noted("a", true), .any(noted("b", false), .not(noted("c", false))))
            .withoutPrerequisites
        let good = await run(nested.withoutPrerequisites)
        expect(good.error == nil && good.log == ["a", "b", "c"])
        expect(nested.name, equals: "(a and (b or not c))")
    }

    @Test("BEY-7: cancellation is the result of none of them")
    func cancelled() async {
        let cancelled = OperationCondition("cancelled") { _ in throw CancellationError() }
        await expect(run(.not(cancelled)).error?.code, equals: .cancelled)
        await expect(run(.any(cancelled, noted("a", true))).error?.code, equals: .cancelled)
    }
}
