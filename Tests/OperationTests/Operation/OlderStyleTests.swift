import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

/// An operation in the older style, with all of its work in `start()`.
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
        await operation.ended()
        await dependent.ended()
        await completed.opened()
        expect(dependent.executionCount, equals: 1)
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
            await expect(run(operation, on: kind), equals: 1)
            expect(operation.outcomes.withLock { $0 }, equals: [outcome])
            expect(operation.error?.code, equals: code)
            if api == "missing" { expect(operation.error?.localizedDescription.contains("no such user"), equals: true) }
        }
    }

    @Test("OPQ-2: a refused connection finishes once", arguments: QueueKind.allCases)
    func refused(kind: QueueKind) async {
        server.stop()
        let operation = SignInOperation("ok", service)
        await expect(run(operation, on: kind), equals: 1)
        expect(operation.error?.code, equals: .cannotConnect)
    }

    @Test("OPQ-2: cancelled before its start it sends nothing", arguments: QueueKind.allCases)
    func cancelledBeforeStart(kind: QueueKind) async {
        let operation = SignInOperation("ok", service)
        operation.cancel()
        await expect(run(operation, on: kind), equals: 1)
        expect(operation.error?.code, equals: .cancelled)
        // The call in start() is refused, which its closure learns after the operation has ended.
        await expect(eventually { operation.outcomes.withLock { $0 } == ["cancelled"] })
        expect(server.requests.isEmpty)
    }

    @Test("OPQ-2: cancelled in flight it finishes once", arguments: QueueKind.allCases)
    func cancelledInFlight(kind: QueueKind) async {
        let operation = SignInOperation("stall", service)
        let completions = await run(operation, on: kind) {
            await server.waitForRequests(1)
            operation.cancel()
        }
        expect(completions, equals: 1)
        expect(operation.error?.code, equals: .cancelled)
        await expect(server.waitForConnections(0))
    }

    @Test("OPQ-2: after a failed dependency it sends nothing", arguments: QueueKind.allCases)
    func failedDependency(kind: QueueKind) async {
        let failing = TestJob { $0.finish(NetworkError(code: .refused)) }
        let operation = SignInOperation("ok", service)
        operation.addDependency(failing)
        NetworkQueue().addOperation(failing)
        await expect(run(operation, on: kind), equals: 1)
        expect(operation.error?.code == .dependencyFailed && operation.error?.rootCause.code == .refused)
        await expect(eventually { operation.outcomes.withLock { $0 } == ["dependencyFailed"] })
        expect(server.requests.isEmpty)
    }
}

// MARK: - As it was written in the older framework

// The sign-in of the framework that this package takes its names from, in its form, with the changes that the article
// "The older way" lists, and with a service of the test.

private struct SignInItem: ParsedItem {
    let userName: String
    let password: String
}

private final class SignInResponseMapper: ResponseMapper<SignInItem>, ResponseMapperProtocol {
    static func process(_ json: Any?) throws -> SignInItem {
        try process(
            json,
            parse: { json in
                let userName = json["userName"] as? String
                let password = json["password"] as? String
                if let userName, let password { return SignInItem(userName: userName, password: password) }
                return nil
            }
        )
    }
}

private final class SignInRequest: BaseAPIRequest {
    private let userName: String
    private let password: String

    init(userName: String, password: String) {
        self.userName = userName
        self.password = password
    }

    var api: String { "/sign_in" }
    var method: NetworkService.Method { .post }
    var query: NetworkService.QueryType { .json }
    var params: [String: Any]? { ["username": userName, "password": password] }
    var headers: [String: String]? { defaultJsonHeader() }
}

private final class NSErrorSignIn: ServiceOperation, @unchecked Sendable {
    // Sendable because the closures are set before the operation is added to a queue.
    private let request: SignInRequest
    var success: (@Sendable (SignInItem) -> Void)?
    var failure: (@Sendable (NSError) -> Void)?

    init(userName: String, password: String, service: EasyNetworkService) {
        request = SignInRequest(userName: userName, password: password)
        super.init(service: service)
    }

    override func start() {
        super.start()
        service.request(request, success: handleSuccess, failure: handleFailure)
    }

    private func handleSuccess(_ response: Any?) {
        do {
            let item = try SignInResponseMapper.process(response)
            success?(item)
            finish()
        } catch { handleFailure(NSError.cannotParseResponse()) }
    }

    private func handleFailure(_ error: NSError) {
        failure?(error)
        finish(error)
    }

    override func cancel() {
        service.cancel()
        super.cancel()
    }
}

extension OlderStyleTests {
    @Test(
        "BEY-16: the sign-in as it was written, with the changes of the table: finish() takes an NSError back as it was"
    )
    func bridged() async throws {
        let item = ["userName": "ada", "password": "p"]
        let answers = Locked<[MockResponse]>([.json(item), .json(["error": "who?"], status: 403), .json([])])
        server.route("POST", "/sign_in") { _ in answers.withLock { $0.removeFirst() } }
        let outcomes = Locked<[String]>([])
        for code in [nil, .unacceptableStatus, .cannotParseResponse] as [NetworkError.Code?] {
            let signIn = NSErrorSignIn(userName: "ada", password: "p", service: service)
            signIn.success = { item in outcomes.withLock { $0.append(item.userName) } }
            signIn.failure = { error in outcomes.withLock { $0.append("\(error.domain) \(error.code)") } }
            let dependent = TestJob()
            dependent.addDependency(signIn)
            NetworkQueue().addOperations([signIn, dependent], waitUntilFinished: false)
            await dependent.ended()
            expect(signIn.error?.code == code && dependent.executionCount == (code == nil ? 1 : 0))
            expect(signIn.error?.statusCode, equals: (code == .unacceptableStatus ? 403 : nil))
        }
        let domain = NetworkError.errorDomain
        expect(outcomes.withLock { $0 }, equals: ["ada", "\(domain) 200", "\(domain) 202"])
        let sent = try #require(server.requests.first)
        expect(sent.json() as? [String: String], equals: ["username": "ada", "password": "p"])
        expect(sent.headers["Content-Type"], equals: "application/json")
    }

    @Test("BEY-16: a foreign NSError fails the operation and is kept; a bridged one has its text")
    func otherErrors() {
        let own = NSError(domain: "app", code: 7, userInfo: [NSLocalizedDescriptionKey: "not today"])
        let operation = ServiceOperation(service: service)
        operation.finish(own)
        expect(operation.error?.code == .cannotParseResponse && operation.error?.underlying as NSError? == own)
        let bridged = NetworkError(code: .timedOut, message: "late").bridged
        expect(
            bridged.localizedDescription,
            equals: NetworkError(code: .timedOut, message: "late").localizedDescription
        )
        expect(NetworkError(bridged: bridged).message, equals: "late")
    }

    @Test("BEY-16, RSP-4: an NSError for an answer that does not fit keeps the mapper's words")
    func mappersWords() throws {
        let mapping = #expect(throws: (any Error).self) {
            try ArrayResponseMapper<Account>.process([["id": "one"]]) { try AccountMapper.process($0) }
        }
        let words = try #require(mapping).wording
        let operation = ServiceOperation(service: service)
        operation.finish(NSError.cannotParseResponse(underlying: mapping))
        expect(operation.error?.code == .cannotParseResponse && operation.error?.message == words)
        expect(operation.error?.underlying is ResponseMapperError)
        expect(operation.error?.localizedDescription.contains(words), equals: true)
        // One that says it already stays as it is, and nothing is made up.
        let known = NetworkError(code: .cannotParseResponse, message: "no user", statusCode: 203)
        expect(NetworkError(bridged: .cannotParseResponse(underlying: known)).statusCode, equals: 203)
        expect(NetworkError(bridged: .cannotParseResponse()).message == nil)
    }

    @Test("BEY-16: cancelled as the older framework did it, before its start and in flight")
    func cancelledWithService() async throws {
        server.route("POST", "/sign_in") { _ in .fault(.stall) }
        let unstarted = NSErrorSignIn(userName: "ada", password: "p", service: service)
        unstarted.cancel()
        NetworkQueue().addOperation(unstarted)
        await unstarted.ended()
        expect(unstarted.isCancelled && server.requests.isEmpty)
        let running = NSErrorSignIn(userName: "ada", password: "p", service: service)
        NetworkQueue().addOperation(running)
        await server.waitForRequests(1)
        running.cancel()
        await running.ended()
        expect(running.error?.code, equals: .cancelled)
    }

    @Test("BEY-16: closures have a default, and one that names no type gets a NetworkError")
    func closures() async throws {
        let answers = Locked(0)
        let answered = Gate()
        service.request(Get(api: "ok"))
        service.request(Get(api: "ok"), success: nil, failure: nil)
        service.request(
            Get(api: "missing"),
            failure: { error in
                if error.statusCode == 404 { answers.withLock { $0 += 1 } }
                answered.open()
            }
        )
        await answered.opened()
        expect(answers.withLock { $0 }, equals: 1)
        await server.waitForRequests(3)
    }

    @Test(
        "BEY-16: a base URL that is to be completed later is an error that says what to do",
        arguments: [
            "http://", "https://", "http:///v1",
        ]
    )
    func incompleteBase(text: String) async throws {
        let error = #expect(throws: NetworkError.self) { try HostConfiguration.baseURL(text) }
        expect(error?.code, equals: .invalidRequest)
        expect(error?.message?.contains("HostConfiguration.baseURL(_:) when it is complete"), equals: true)
        guard let url = URL(string: text) else { return }
        let later = EasyNetworkService(HostConfiguration(baseURL: url))
        let operation = SignInOperation("ok", later)
        NetworkQueue().addOperation(operation)
        await operation.ended()
        expect(operation.error?.code, equals: .invalidRequest)
        expect(operation.error?.message?.contains("has no host"), equals: true)
    }
}
