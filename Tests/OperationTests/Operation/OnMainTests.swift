import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

/// A screen as apps write it: all that it does there is checked by the compiler.
@MainActor
private final class Screen {
    var title = ""
    var rows: [Int] = []

    func load(_ operation: RequestOperation<GetAccount>) {
        operation.onMain(success: { self.title = $0.name }, failure: { self.title = $0.localizedDescription })
    }

    func loadTrailing(_ operation: RequestOperation<GetAccount>) {
        operation.onMain { [weak self] account in
            self?.rows.append(account.id)
        } failure: { error in
            self.title = "\(error.code)"
        }
    }

    func loadAll(_ batch: BatchOperation) {
        batch.onMain(success: { self.title = "\($0.operations.count)" }, failure: { self.title = "\($1.code)" })
    }

    func signIn(_ operation: MainSignIn) {
        operation.success = { self.title = $0.name }
        operation.failure = { self.title = $0.localizedDescription }
    }
}

/// An operation in the older style for a screen.
private final class MainSignIn: ServiceOperation, @unchecked Sendable {
    // Sendable because all is set before the operation is added to a queue.
    private let request: GetAccount
    var success: (@MainActor (Account) -> Void)?
    var failure: (@MainActor (NSError) -> Void)?

    init(_ request: GetAccount, service: EasyNetworkService) {
        self.request = request
        super.init(service: service)
    }

    override func start() {
        super.start()
        service.requestOnMain(request, success: handleSuccess, failure: handleFailure)
    }

    @MainActor
    private func handleSuccess(_ response: Any?) {
        do {
            success?(try AccountMapper.process(response))
            finish()
        } catch {
            handleFailure(NSError.cannotParseResponse(underlying: error))
        }
    }

    @MainActor
    private func handleFailure(_ error: NSError) {
        failure?(error)
        finish(error)
    }
}

/// The main queue runs, as swift-testing's program is asynchronous.
@Suite("Closures on the main actor", .timeLimit(.minutes(10)))
struct OnMainTests: ServiceSuite {
    let transport = InMemoryTransport()
    private let notes = Locked<[String]>([])
    private let callbacks = DispatchQueue(label: "callbacks")

    private static let mainKey = DispatchSpecificKey<Bool>()

    init() {
        DispatchQueue.main.setSpecific(key: Self.mainKey, value: true)
        transport.route("GET", "/users/1") { _ in .json(["id": 1, "name": "Ada"]) }
        transport.route("GET", "/users/2") { _ in .status(404) }
        transport.route("GET", "/users/3") { _ in .json(["id": 3]) }
    }

    func prepare(_ host: inout HostSettings) { host.callbackQueue = callbacks }

    private var note: @Sendable (String) -> Void {
        { [notes] text in
            // On Linux the main queue may run on any thread.
            let place = DispatchQueue.getSpecific(key: Self.mainKey) == true ? "main" : "off"
            notes.withLock { $0.append("\(text) \(place)") }
        }
    }

    private func dependent(on operation: NetworkOperation) -> TestJob {
        let job = TestJob { [note] job in
            note("dependent")
            job.finish()
        }
        job.addDependency(operation, policy: .allowFailure)
        return job
    }

    private func run(_ operation: NetworkOperation, on queue: NetworkQueue = NetworkQueue()) async {
        let dependent = dependent(on: operation)
        queue.addOperations([operation, dependent], waitUntilFinished: false)
        await dependent.ended()
    }

    @Test("CBK-9: a screen sets its properties in closures that the compiler knows to be on the main actor")
    @MainActor
    func screen() async throws {
        let screen = Screen()
        let found = RequestOperation(GetAccount(id: 1), service: service())
        screen.load(found)
        await run(found)
        expect(screen.title, equals: "Ada")
        let missing = RequestOperation(GetAccount(id: 2), service: service())
        screen.load(missing)
        await run(missing)
        expect(screen.title.contains("404"))
        let other = RequestOperation(GetAccount(id: 1), service: service())
        screen.loadTrailing(other)
        await run(other)
        expect(screen.rows, equals: [1])
        let service = service()
        let batch = BatchOperation((0..<3).map { _ in RequestOperation(GetAccount(id: 1), service: service) })
        screen.loadAll(batch)
        await run(batch)
        expect(screen.title, equals: "3")
    }

    @Test("CBK-9, BEY-16: an operation in the older style calls a screen's closures on the main actor")
    @MainActor
    func older() async throws {
        let screen = Screen()
        for (id, title, code) in [
            (1, "Ada", nil), (2, "404", .unacceptableStatus), (3, "name", .cannotParseResponse),
        ] as [(Int, String, NetworkError.Code?)] {
            let signIn = MainSignIn(GetAccount(id: id), service: service())
            screen.signIn(signIn)
            await run(signIn)
            expect(screen.title.contains(title))
            expect(signIn.error?.code, equals: code)
        }
    }

    @Test("CBK-9, CBK-1: they come after the others and before dependents, on whichever queue those are")
    func order() async throws {
        for (id, name) in [(1, "success"), (2, "failure")] {
            for queue in [callbacks, .main] {
                let operation = RequestOperation(GetAccount(id: id), service: service())
                operation.callbackQueue = queue
                let note = note
                operation.willDeliver = { _ in note("willDeliver") }
                operation.success = { _ in note("success") }
                operation.failure = { _ in note("failure") }
                operation.onMain(success: { _ in note("success") })
                operation.onMain(success: nil, failure: { _ in note("failure") })
                await run(operation)
                let place = queue === callbacks ? "off" : "main"
                let expected = ["willDeliver \(place)", "\(name) \(place)", "\(name) main", "dependent off"]
                expect(notes.exchange([]), equals: expected)
            }
        }
    }

    @Test("CBK-9, CCH-1: the cache's item comes on the main actor, too, before the network's")
    func cached() async throws {
        let service = service {
            $0.cache = NetworkCache(diskBytes: 0)
            $0.cachePolicy = CachePolicy(.cacheThenNetwork, storesOnDisk: false)
        }
        _ = try await service.send(GetAccount(id: 1))
        let operation = RequestOperation(GetAccount(id: 1), service: service)
        let note = note
        operation.cached = { _ in note("cached") }
        operation.onMain(success: { _ in note("success") }, cached: { _ in note("cached") })
        await run(operation)
        expect(notes.withLock { $0 }, equals: ["cached off", "cached main", "success main", "dependent off"])
    }

    @Test("CBK-9, OPQ-6: a group's closures and a chain's then come on the main actor, in order")
    func groups() async throws {
        let note = note
        for id in [1, 2] {
            let chain = ChainOperation()
            let step = RequestOperation(GetAccount(id: 1), service: service())
            step.success = { _ in note("step") }
            chain.addOperation(
                step,
                thenOnMain: { chain, step in
                    MainActor.assertIsolated()
                    note("then \(step.error == nil)")
                    let second = RequestOperation(GetAccount(id: id), service: service())
                    chain.addOperation(second) { _, _ in note("second") }
                }
            )
            chain.success = { _ in note("success") }
            chain.failure = { _, _ in note("failure") }
            chain.onMain(success: { _ in note("success") }, failure: { note("failure \($1.code)") })
            await run(chain)
            let end =
                id == 1
                ? ["second off", "success off", "success main"] : ["failure off", "failure unacceptableStatus main"]
            expect(notes.exchange([]), equals: ["step off", "then true main"] + end + ["dependent off"])
        }
    }

    @Test("CBK-9, CBK-2: cancelled, they get the error once; of an owner that is gone, they are released uncalled")
    @MainActor
    func cancelled() async throws {
        transport.route("GET", "/users/4") { _ in .fault(.stall) }
        let note = note
        let operation = RequestOperation(GetAccount(id: 4), service: service())
        operation.onMain(success: { _ in note("success") }, failure: { note("\($0.code)") })
        let queue = NetworkQueue()
        queue.addOperation(operation)
        await transport.waitForRequests(1)
        operation.cancel()
        await operation.ended()
        expect(notes.exchange([]), equals: ["cancelled main"])
        var owner: OperationOwner? = OperationOwner(detaches: true)
        var token: NSObject? = NSObject()
        weak let held = token
        let detached = RequestOperation(GetAccount(id: 1), service: service())
        detached.owner = owner
        detached.onMain(success: { [token] _ in note("success \(token == nil)") })
        token = nil
        owner = nil
        expect(held == nil && owner == nil)
        await run(detached)
        expect(notes.withLock { $0 }, equals: ["dependent off"])
    }
}
