import Dispatch
import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("ChainOperation", .timeLimit(.minutes(10)))
struct ChainOperationTests {
    private let queue = NetworkQueue(maxConcurrentOperationCount: 1)

    private struct Profile: APIRequest {
        typealias Item = NetworkResponse
        var token: String
        var api: String { "profile" }
        var headers: [String: String]? { ["Authorization": "Bearer \(token)"] }
    }

    private final class Listener: GroupOperationDelegate {
        let events = Locked<[String]>([])

        func note(_ event: String) { events.withLock { $0.append(event) } }

        func groupOperation(_ group: GroupOperation, didFinish operation: NetworkOperation, at index: Int) {
            note("step \(index)")
        }
        func groupOperationDidSucceed(_ group: GroupOperation) { note("succeeded") }
        func groupOperation(_ group: GroupOperation, didFailWith error: NetworkError) { note("failed \(error.code)") }
    }

    @Test(
        "OPQ-5: the next request is built from the last result, from the chain's own callback",
        arguments: [true, false]
    )
    func grows(onPlainQueue: Bool) async throws {
        let server = try MockServer()
        server.route("GET", "/users/1") { _ in .json(["id": 1, "name": "Ada"]) }
        server.route("GET", "/profile") { _ in .status(200) }
        let service = EasyNetworkService(server.host())
        let listener = Listener()
        let chain = ChainOperation()
        chain.delegate = listener
        chain.success = { _ in listener.note("closure") }
        let signIn = RequestOperation(GetAccount(id: 1), service: service)
        signIn.success = { _ in listener.note("own") }
        chain.addOperation(signIn) { chain, signIn in
            listener.note("then")
            guard let token = try? signIn.result?.get().name else { return }
            let profile = RequestOperation(Profile(token: token), service: service)
            chain.addOperation(profile) { _, profile in listener.note("\(profile.result != nil)") }
            chain.addOperation(RequestOperation(GetAccount(id: 1), service: service))
        }
        let plain = OperationQueue()
        plain.maxConcurrentOperationCount = 1
        if onPlainQueue { plain.addOperation(chain) } else { queue.addOperation(chain) }
        await chain.ended()
        expect(chain.error == nil)
        expect(server.requests(to: "/profile").first?.headers["Authorization"], equals: "Bearer Ada")
        let expected = ["own", "step 0", "then", "step 1", "true", "step 2", "succeeded", "closure"]
        expect(listener.events.withLock { $0 }, equals: expected)
        expect(chain.progress.completedUnitCount == 3 && chain.progress.totalUnitCount == 3)
    }

    @Test("OPQ-5: steps run one after the other, whatever the queue's limit")
    func oneAtATime() async {
        let occupancy = Occupancy()
        let order = Locked<[Int]>([])
        let wide = NetworkQueue(maxConcurrentOperationCount: 8)
        let chain = ChainOperation(
            (0..<50).map { index in
                TestJob(occupancy) { order.withLock { $0.append(index) } }
            }
        )
        wide.addOperation(chain)
        await chain.ended()
        expect(occupancy.most == 1 && order.withLock { $0 } == Array(0..<50))
    }

    @Test("OPQ-5: a failed step is named, and stops the rest, which ends too", arguments: [true, false])
    func failure(onPlainQueue: Bool) async {
        let steps = [
            TestJob(), TestJob { $0.finish(NetworkError(code: .unauthorized, message: "no", statusCode: 401)) },
            TestJob(), TestJob(),
        ]
        steps[1].name = "fetch"
        let thens = Locked(0)
        let chain = ChainOperation()
        let listener = Listener()
        chain.delegate = listener
        for step in steps { chain.addOperation(step) { _, _ in thens.withLock { $0 += 1 } } }
        let plain = OperationQueue()
        plain.maxConcurrentOperationCount = 1
        if onPlainQueue { plain.addOperation(chain) } else { queue.addOperation(chain) }
        await chain.ended()
        expect(chain.error?.code == .unauthorized && chain.error?.statusCode == 401)
        expect(chain.error?.message, equals: "job 2, 'fetch': no")
        expect(chain.error?.underlying == nil && chain.decisiveFailure?.error.message == "no")
        expect(chain.decisiveFailure?.index == 1 && chain.decisiveFailure?.operation === steps[1])
        for step in steps[2...] {
            expect(step.isFinished && step.executionCount == 0)
            expect(step.error?.code == .dependencyFailed && step.error?.rootCause.code == .unauthorized)
            expect(step.error?.message?.contains("fetch"), equals: true)
        }
        expect(thens.withLock { $0 }, equals: 1)
        expect(listener.events.withLock { $0.last }, equals: "failed unauthorized")
    }

    @Test("OPQ-5: cancel is final: the remaining steps are cancelled, later ones refused, no callback is left")
    func cancelIsFinal() async {
        let rest = [TestJob(), TestJob()]
        let added = TestJob()
        let failures = Locked<[NetworkError.Code]>([])
        let chain = ChainOperation()
        chain.failure = { _, error in failures.withLock { $0.append(error.code) } }
        chain.addOperation(TestJob()) { chain, _ in
            chain.cancel()
            expect(!chain.addOperation(added))
        }
        for step in rest { chain.addOperation(step) { _, _ in Issue.record("called after the end") } }
        queue.addOperation(chain)
        await chain.ended()
        await added.ended()
        expect(chain.isCancelled && failures.withLock { $0 } == [.cancelled])
        expect(rest.allSatisfy { $0.executionCount == 0 && $0.isFinished && $0.error?.code == .cancelled })
        expect(added.error?.code == .refused && added.executionCount == 0)
        expect(queue.operationCount, equals: 0)
    }

    @Test("OPQ-5: a callback that was on its way when the chain was cancelled is not called")
    func cancelBeforeThen() async {
        let (hasStarted, mayEnd) = (Gate(), Gate())
        let callbackQueue = DispatchQueue(label: "callbacks")
        callbackQueue.suspend()
        let step = TestJob { job in
            hasStarted.open()
            mayEnd.whenOpen { job.finish() }
        }
        let chain = ChainOperation()
        chain.callbackQueue = callbackQueue
        chain.addOperation(step) { _, _ in Issue.record("called after the end") }
        queue.addOperation(chain)
        await hasStarted.opened()
        // The chain registered first, so its callback is already running.
        step.whenFinished {
            chain.cancel()
            callbackQueue.resume()
        }
        mayEnd.open()
        await chain.ended()
        expect(chain.isCancelled && step.error == nil)
    }

    @Test("OPQ-5: an empty chain completes; a chain in a chain, and a chain in a batch")
    func nested() async {
        let order = Locked<[Int]>([])
        func job(_ number: Int) -> TestJob {
            TestJob { job in
                order.withLock { $0.append(number) }
                job.finish()
            }
        }
        let chain = ChainOperation([job(0), ChainOperation([job(1), job(2)]), ChainOperation(), job(3)])
        let batch = BatchOperation([chain])
        queue.addOperation(batch)
        await batch.ended()
        expect(order.withLock { $0 } == [0, 1, 2, 3] && batch.error == nil)
        expect(batch.progress.fractionCompleted, equals: 1)
    }

    @Test("BEY-4: very many steps, run, already done, and cancelled, without deep recursion")
    func long() async {
        let count = TestLoad.count(100_000, part: 2_000)
        let steps = (0..<count).map { _ in TestJob { $0.finish() } }
        let chain = ChainOperation(steps)
        queue.addOperation(chain)
        await chain.ended()
        expect(chain.error == nil && steps.allSatisfy { $0.executionCount == 1 })
        let again = ChainOperation(steps)
        queue.addOperation(again)
        await again.ended()
        expect(again.error == nil && again.progress.completedUnitCount == count)
        let stopped = ChainOperation([TestJob { $0.finish(NetworkError(code: .refused)) }])
        for _ in 0..<count { stopped.addOperation(TestJob()) }
        queue.addOperation(stopped)
        await stopped.ended()
        expect(stopped.failures.count == count + 1 && queue.operationCount == 0)
    }

    @Test("OPQ-5: nothing keeps a chain or its steps alive afterwards, closures that hold them included")
    func released() async {
        weak var chain: ChainOperation?
        weak var step: TestJob?
        for fails in [false, true] {
            do {
                let strong = ChainOperation()
                let first = TestJob { $0.finish(fails ? NetworkError(code: .refused) : nil) }
                let second = TestJob()
                for operation in [first, second] {
                    strong.addOperation(operation) { [strong] _, _ in _ = (strong, first, second) }
                }
                strong.success = { [strong] _ in _ = strong }
                strong.failure = { [strong] _, _ in _ = strong }
                (chain, step) = (strong, second)
                queue.addOperation(strong)
                await strong.ended()
            }
            await expect(eventually { chain == nil && step == nil })
        }
    }
}
