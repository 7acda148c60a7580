import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("RequestOperation", .timeLimit(.minutes(10)))
struct RequestOperationTests {
    private let server: MockServer
    private let service: EasyNetworkService
    private let queue = NetworkQueue()

    init() throws {
        server = try MockServer()
        service = EasyNetworkService(server.host())
        server.route("GET", "/users/1") { _ in .json(["id": 1, "name": "Ada"]) }
        server.route("GET", "/users/2") { _ in .json(["id": 2]) }
        server.route("GET", "/stall") { _ in .fault(.stall) }
    }

    @Test("CBK-1, RSP-4: the item comes to the closure once, on its queue, before dependents start")
    func success() async throws {
        let key = DispatchSpecificKey<Bool>()
        let callbackQueue = DispatchQueue(label: "callbacks")
        callbackQueue.setSpecific(key: key, value: true)
        let order = Locked<[String]>([])
        let operation = RequestOperation(GetAccount(id: 1), service: service)
        operation.callbackQueue = callbackQueue
        operation.success = { user in
            let isOnQueue = DispatchQueue.getSpecific(key: key) == true
            order.withLock { $0.append("\(user.name) \(isOnQueue)") }
        }
        operation.failure = { error in order.withLock { $0.append("\(error)") } }
        let dependent = TestJob { job in
            order.withLock { $0.append("dependent") }
            job.finish()
        }
        dependent.addDependency(operation)
        queue.addOperations([dependent, operation], waitUntilFinished: false)
        try await expect(operation.value, equals: Account(id: 1, name: "Ada"))
        await dependent.ended()
        expect(order.withLock { $0 }, equals: ["Ada true", "dependent"])
        try expect(operation.result?.get().id, equals: 1)
        expect(operation.success == nil && operation.failure == nil)
    }

    @Test("RSP-4, RSP-6: an answer that cannot be mapped names the key")
    func mappingFailure() async throws {
        let operation = RequestOperation(GetAccount(id: 2), service: service)
        queue.addOperation(operation)
        let error = await #expect(throws: NetworkError.self) { try await operation.value }
        expect(error?.code == .cannotParseResponse && error?.message?.contains("name") == true)
        expect(error?.statusCode == 200 && error?.request != nil && error?.attempts == 1)
    }

    @Test("BEY-2: a request made from the result before it; the token arrives")
    func then() async throws {
        struct Next: APIRequest {
            typealias Item = NetworkResponse
            var token: String
            var api: String { "profile" }
            var headers: [String: String]? { ["Authorization": "Bearer \(token)"] }
        }
        server.route("GET", "/profile") { _ in .status(200) }
        let first = RequestOperation(GetAccount(id: 1), service: service)
        let second = first.then { Next(token: $0.name) }
        let third = second.then { response in GetAccount(id: response.statusCode == 200 ? 1 : 2) }
        queue.addOperations([third, second, first], waitUntilFinished: false)
        try await expect(third.value.id, equals: 1)
        expect(server.requests(to: "/profile").first?.headers["Authorization"], equals: "Bearer Ada")
        expect(server.requests.map(\.path), equals: ["/users/1", "/profile", "/users/1"])
    }

    @Test("BEY-1, BEY-2: a failed first step ends the rest with the root cause, and nothing more is sent")
    func thenAfterFailure() async throws {
        let first = RequestOperation(GetAccount(id: 404), service: service)
        let second = first.then { _ in GetAccount(id: 1) }
        let third = second.then { _ in GetAccount(id: 1) }
        queue.addOperations([first, second, third], waitUntilFinished: false)
        let error = await #expect(throws: NetworkError.self) { try await third.value }
        expect(error?.code == .dependencyFailed && error?.rootCause.statusCode == 404)
        expect(server.requests.count, equals: 1)
    }

    @Test("BEY-2: an error thrown by the step is that of the next operation")
    func thenThrows() async throws {
        struct Refusal: LocalizedError {
            var errorDescription: String? { "not today" }
        }
        let first = RequestOperation(GetAccount(id: 1), service: service)
        let second = first.then { (_) -> GetAccount in throw Refusal() }
        queue.addOperations([first, second], waitUntilFinished: false)
        let error = await #expect(throws: NetworkError.self) { try await second.value }
        expect(error?.code == .invalidRequest && error?.underlying is Refusal)
        expect(error?.localizedDescription.contains("not today"), equals: true)
        let third = RequestOperation(GetAccount(id: 1), service: service)
        let fourth = third.then { (_) -> GetAccount in throw CancellationError() }
        queue.addOperations([third, fourth], waitUntilFinished: false)
        let cancelled = await #expect(throws: NetworkError.self) { try await fourth.value }
        expect(cancelled?.code, equals: .cancelled)
    }

    @Test("CBK-2, OPQ-2: cancelled in flight it ends once with .cancelled, and the connection is closed")
    func cancelInFlight() async throws {
        let failures = Locked<[NetworkError.Code]>([])
        let operation = RequestOperation(Get(api: "stall"), service: service)
        operation.failure = { error in failures.withLock { $0.append(error.code) } }
        queue.addOperation(operation)
        await server.waitForRequests(1)
        operation.cancel()
        operation.cancel()
        await operation.ended()
        expect(failures.withLock { $0 }, equals: [.cancelled])
        await expect(server.waitForConnections(0))
        expect(queue.operationCount, equals: 0)
    }

    @Test("OPQ-2: an operation of a service cancels its own requests and no others'")
    func cancelLeavesOthers() async throws {
        server.route("GET", "/late") { _ in .text("ok") }
        let cancelled = RequestOperation(Get(api: "stall"), service: service)
        queue.addOperation(cancelled)
        await server.waitForRequests(1)
        cancelled.cancel()
        try await expect(service.send(Get(api: "late")).statusCode, equals: 200)
        let other = RequestOperation(Get(api: "stall"), service: service)
        queue.addOperation(other)
        await server.waitForRequests(3)
        service.cancel()
        await #expect(throws: NetworkError.self) { try await other.value }
    }

    @Test("BEY-3: perform returns the item; cancelling the task cancels the job")
    func perform() async throws {
        let queue = queue
        let port = server.baseURL.absoluteString
        try await expect(queue.perform(Get(api: port + "/users/1")).statusCode, equals: 200)
        let task = Task { try await queue.perform(Get(api: port + "/stall")) }
        await server.waitForRequests(2)
        task.cancel()
        let error = await #expect(throws: NetworkError.self) { try await task.value }
        expect(error?.code, equals: .cancelled)
        await expect(eventually { queue.operationCount == 0 })
    }

    @Test("BEY-3: cancelling a task that awaits an operation on no queue returns at once")
    func valueOfUnqueued() async throws {
        let operation = RequestOperation(GetAccount(id: 1), service: service)
        let task = Task { try await operation.value }
        task.cancel()
        let error = await #expect(throws: NetworkError.self) { try await task.value }
        expect(error?.code == .cancelled && operation.isCancelled && !operation.isFinished)
    }

    @Test("OPQ-1: works on a plain OperationQueue, and finished by hand it still has a result")
    func plainQueue() async throws {
        let plain = OperationQueue()
        let operation = RequestOperation(GetAccount(id: 1), service: service)
        plain.addOperation(operation)
        try await expect(operation.value.name, equals: "Ada")
        let byHand = RequestOperation(GetAccount(id: 1), service: service)
        byHand.finish()
        plain.addOperation(byHand)
        let error = await #expect(throws: NetworkError.self) { try await byHand.value }
        expect(error?.code, equals: .invalidRequest)
        expect(server.requests.count, equals: 1)
    }

    @Test("CBK-1: a closure set after the delivery is not kept, and so keeps nothing alive")
    func closureSetTooLate() async throws {
        weak var released: RequestOperation<GetAccount>?
        do {
            let operation = RequestOperation(GetAccount(id: 1), service: service)
            released = operation
            queue.addOperation(operation)
            _ = try await operation.value
            operation.success = { _ in _ = operation }
            expect(operation.success == nil)
        }
        await expect(eventually { released == nil })
    }

    @Test("CBK-1: an object that a closure retains may use the operation in its deinit")
    func releasedOutsideTheLock() {
        final class Holder: Sendable {
            let operation: RequestOperation<GetAccount>
            init(_ operation: RequestOperation<GetAccount>) { self.operation = operation }
            deinit { _ = operation.success }
        }
        let operation = RequestOperation(GetAccount(id: 1), service: service)
        operation.success = { [holder = Holder(operation)] _ in _ = holder }
        operation.success = nil
        expect(operation.success == nil)
    }

    @Test("OPQ-3: the request's priority is the operation's")
    func priority() {
        struct Urgent: APIRequest {
            typealias Item = NetworkResponse
            var api: String { "a" }
            var options: RequestOptions { RequestOptions(priority: .veryHigh) }
        }
        expect(RequestOperation(Urgent(), service: service).queuePriority, equals: .veryHigh)
    }
}
