import Dispatch
import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("OperationAccessory", .timeLimit(.minutes(10)))
struct OperationAccessoryTests {
    private let queue = NetworkQueue()

    private final class Log: Sendable {
        static let key = DispatchSpecificKey<Bool>()
        let events = Locked<[String]>([])

        func note(_ event: String) { events.withLock { $0.append(event) } }

        private func note(_ event: String, _ operation: NetworkOperation) {
            note(DispatchQueue.getSpecific(key: Self.key) == true ? event : event + " elsewhere")
        }
        func observe(_ operation: NetworkOperation) {
            operation.addAccessory {
                self.note("will start", $0)
            } willStop: {
                self.note("will stop", $0)
            } didStop: {
                self.note($0.isFinished ? "too late" : "did stop", $0)
            }
        }
    }

    private let callbackQueue = DispatchQueue(label: "callbacks")

    init() {
        callbackQueue.setSpecific(key: Log.key, value: true)
    }

    @Test("CBK-3: will start before the work, will stop before the callbacks, did stop after them, before dependents")
    func order() async {
        let log = Log()
        let group = BatchOperation([
            TestJob { job in
                log.note("work")
                job.finish()
            }
        ])
        group.callbackQueue = callbackQueue
        group.success = { _ in log.note("success") }
        log.observe(group)
        let dependent = TestJob { job in
            log.note("dependent")
            job.finish()
        }
        dependent.addDependency(group)
        queue.addOperation(group)
        queue.addOperation(dependent)
        await dependent.ended()
        let expected = ["will start", "work", "will stop", "success", "did stop", "dependent"]
        expect(log.events.withLock { $0 }, equals: expected)
    }

    @Test("CBK-3: every end is told: success, failure, cancel before and after the start", arguments: [true, false])
    func everyEnd(onPlainQueue: Bool) async {
        let target = NetworkQueue(callbackQueue: callbackQueue)
        let plain = OperationQueue()
        func run(_ job: NetworkOperation) async -> [String] {
            let log = Log()
            log.observe(job)
            if onPlainQueue { plain.addOperation(job) } else { target.addOperation(job) }
            await job.ended()
            return log.events.withLock { $0.map { $0.replacingOccurrences(of: " elsewhere", with: "") } }
        }
        let all = ["will start", "will stop", "did stop"]
        await expect(run(TestJob()), equals: all)
        await expect(run(TestJob { $0.finish(NetworkError(code: .refused)) }), equals: all)
        await expect(run(TestJob { $0.cancel() }), equals: all)
        await expect(run(ChainOperation([TestJob()])), equals: all)
        let cancelled = TestJob()
        cancelled.cancel()
        await expect(run(cancelled), equals: ["will stop", "did stop"])
        let dependent = TestJob()
        dependent.addDependency(cancelled)
        let failed = TestJob { $0.finish(NetworkError(code: .refused)) }
        let strict = TestJob()
        strict.addDependency(failed)
        queue.addOperation(failed)
        await expect(run(strict), equals: ["will stop", "did stop"])
        expect(strict.executionCount, equals: 0)
    }

    @Test("CBK-3: on the callback queue of the NetworkQueue when the operation has none")
    func callbackQueueOfQueue() async {
        let target = NetworkQueue(callbackQueue: callbackQueue)
        let log = Log()
        let job = TestJob()
        log.observe(job)
        target.addOperation(job)
        await job.ended()
        expect(log.events.withLock { $0 }, equals: ["will start", "will stop", "did stop"])
    }

    @Test("CBK-3: cancelled while will start is being told, the work is not begun and the order holds")
    func cancelDuringWillStart() async {
        let log = Log()
        let job = TestJob()
        let target = NetworkQueue(callbackQueue: callbackQueue)
        job.addAccessory(willStart: { operation in
            operation.cancel()
            log.note("cancelled")
        })
        log.observe(job)
        target.addOperation(job)
        await job.ended()
        expect(job.executionCount == 0 && job.error?.code == .cancelled)
        expect(log.events.withLock { $0 }, equals: ["cancelled", "will start", "will stop", "did stop"])
    }

    @Test("CBK-3: an accessory is released at the end, and not kept when it is added too late")
    func released() async {
        weak var early: Log?
        weak var late: Log?
        let job = TestJob()
        do {
            let log = Log()
            early = log
            log.observe(job)
        }
        expect(early != nil)
        queue.addOperation(job)
        await job.ended()
        do {
            let log = Log()
            late = log
            log.observe(job)
        }
        expect(late == nil)
        await expect(eventually { early == nil })
    }
}
