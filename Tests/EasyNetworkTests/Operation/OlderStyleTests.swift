import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork

/// The way operations were written before `execute()`: everything in `start()`.
private final class SignInOperation: ServiceOperation, @unchecked Sendable {
    let outcomes = Locked<[String]>([])
    private let api: String

    init(_ api: String, _ service: EasyNetworkService) {
        self.api = api
        super.init(service: service)
    }

    override func start() {
        super.start()
        service.request(Get(api: api)) { [self] json in
            do {
                let user = try AccountMapper.process(json)
                outcomes.withLock { $0.append(user.name) }
                finish()
            } catch {
                outcomes.withLock { $0.append("unmapped") }
                finish(NetworkError(code: .cannotParseResponse, underlying: error))
            }
        } failure: { [self] error in
            outcomes.withLock { $0.append("\(error.code)") }
            finish(error)
        }
    }
}

@Suite("The older way to write an operation", .timeLimit(.minutes(10)))
struct OlderStyleTests {
    private let server: MockServer
    private let service: EasyNetworkService

    init() throws {
        server = try MockServer()
        service = EasyNetworkService(server.host())
        server.route("GET", "/ok") { _ in .json(["id": 1, "name": "Ada"]) }
        server.route("GET", "/other") { _ in .json(["id": 1]) }
        server.route("GET", "/unparsable") { _ in .text("<html>") }
        server.route("GET", "/missing") { _ in .json(["error": "no such user"], status: 404) }
        server.route("GET", "/private") { _ in .status(401) }
        server.route("GET", "/stall") { _ in .fault(.stall) }
    }

    enum QueueKind: CaseIterable, Sendable { case networkQueue, plain }

    /// Runs the operation with a dependent that allows failure, and counts completions.
    private func run(
        _ operation: SignInOperation,
        on kind: QueueKind,
        during: () async -> Void = {}
    ) async -> Int {
        let completions = Locked(0)
        let completed = Gate()
        operation.completionBlock = {
            completions.withLock { $0 += 1 }
            completed.open()
        }
        let dependent = TestJob()
        dependent.addDependency(operation, policy: .allowFailure)
        switch kind {
        case .networkQueue: NetworkQueue().addOperations([dependent, operation], waitUntilFinished: false)
        case .plain:
            let queue = OperationQueue()
            queue.addOperation(dependent)
            queue.addOperation(operation)
        }
        await during()
        await operation.finished()
        await dependent.finished()
        await completed.opened()
        #expect(dependent.executionCount == 1)
        return completions.withLock { $0 }
    }

    @Test("OPQ-2, CBK-7: each fate finishes once and releases the dependents", arguments: QueueKind.allCases)
    func fates(kind: QueueKind) async {
        let fates: [(String, String, NetworkError.Code?)] = [
            ("ok", "Ada", nil), ("other", "unmapped", .cannotParseResponse),
            ("unparsable", "cannotParseResponse", .cannotParseResponse),
            ("missing", "unacceptableStatus", .unacceptableStatus), ("private", "unauthorized", .unauthorized),
        ]
        for (api, outcome, code) in fates {
            let operation = SignInOperation(api, service)
            #expect(await run(operation, on: kind) == 1)
            #expect(operation.outcomes.withLock { $0 } == [outcome])
            #expect(operation.error?.code == code)
            if api == "missing" { #expect(operation.error?.localizedDescription.contains("no such user") == true) }
        }
    }

    @Test("OPQ-2: a refused connection finishes once", arguments: QueueKind.allCases)
    func refused(kind: QueueKind) async {
        server.stop()
        let operation = SignInOperation("ok", service)
        #expect(await run(operation, on: kind) == 1)
        #expect(operation.error?.code == .cannotConnect)
    }

    @Test("OPQ-2: cancelled before its start it sends nothing", arguments: QueueKind.allCases)
    func cancelledBeforeStart(kind: QueueKind) async {
        let operation = SignInOperation("ok", service)
        operation.cancel()
        #expect(await run(operation, on: kind) == 1)
        #expect(operation.error?.code == .cancelled)
        // Its own call in start() is refused, and says so to its closure, after the operation has ended.
        while operation.outcomes.withLock({ $0.isEmpty }) { await Task.yield() }
        #expect(operation.outcomes.withLock { $0 } == ["cancelled"])
        #expect(server.requests.isEmpty)
    }

    @Test("OPQ-2: cancelled in flight it finishes once", arguments: QueueKind.allCases)
    func cancelledInFlight(kind: QueueKind) async {
        let operation = SignInOperation("stall", service)
        let completions = await run(operation, on: kind) {
            await server.waitForRequests(1)
            operation.cancel()
        }
        #expect(completions == 1)
        #expect(operation.error?.code == .cancelled)
        #expect(await server.waitForConnections(0))
    }

    @Test("OPQ-2: after a failed dependency it sends nothing", arguments: QueueKind.allCases)
    func failedDependency(kind: QueueKind) async {
        let failing = TestJob { $0.finish(NetworkError(code: .refused)) }
        let operation = SignInOperation("ok", service)
        operation.addDependency(failing)
        NetworkQueue().addOperation(failing)
        #expect(await run(operation, on: kind) == 1)
        #expect(operation.error?.code == .dependencyFailed && operation.error?.rootCause.code == .refused)
        #expect(await eventually { operation.outcomes.withLock { $0 } == ["dependencyFailed"] })
        #expect(server.requests.isEmpty)
    }
}
