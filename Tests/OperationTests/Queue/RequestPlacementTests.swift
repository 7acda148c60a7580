import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

@Suite("Where a request stands in its queue", .timeLimit(.minutes(10)))
struct RequestPlacementTests {
    private struct Placed: APIRequest {
        typealias Item = NetworkResponse
        var api: String
        var priority = Operation.QueuePriority.normal
        var useCDN = false
        var customURLRequest: URLRequest?
        var options: RequestOptions {
            RequestOptions(priority: priority, useCDN: useCDN, customURLRequest: customURLRequest)
        }
    }

    @Test("OPQ-3: a request that is made by then or join goes by its own priority", arguments: [false, true])
    func priorityOfNext(joins: Bool) async throws {
        let server = try MockServer()
        defer { server.stop() }
        for path in ["/first", "/second", "/other", "/next"] { server.route("GET", path) { _ in MockResponse() } }
        let queue = NetworkQueue(maxConcurrentOperationCount: 1)
        let service = EasyNetworkService(server.host())
        let first = RequestOperation(Placed(api: "first"), service: service)
        let second = RequestOperation(Placed(api: "second"), service: service)
        first.queuePriority = .veryHigh
        second.queuePriority = .veryHigh
        let make: @Sendable (NetworkResponse) -> Placed = { _ in Placed(api: "next", priority: .veryHigh) }
        let next = joins ? join(first, second) { answer, _ in make(answer) } : first.then(make)
        let low = first.then { _ in Placed(api: "other", priority: .veryLow) }
        let gate = Gate()
        // Occupies the only slot until both requests have been made.
        let holder = TestJob { job in gate.whenOpen { job.finish() } }
        let others = (0..<3).map { _ in RequestOperation(Placed(api: "other"), service: service) }
        holder.queuePriority = .high
        queue.addOperations([low, first, second, next, holder] + others, waitUntilFinished: false)
        await expect(eventually { next.queuePriority == .veryHigh && low.queuePriority == .veryLow })
        // Its queue knows that a little later. Without the second request it may run before the holder.
        let isPlaced = await eventually {
            guard let job = next.scheduling?.job else { return next.isFinished }
            return queue.state.withLock { _ in job.line != nil && job.priority == .veryHigh }
        }
        expect(isPlaced)
        gate.open()
        for operation in [low, next] + others { await operation.ended() }
        let paths = server.requests.map(\.path)
        expect(paths, equals: ["/first", "/second", "/next", "/other", "/other", "/other", "/other"])
        expect(low.error == nil && next.error == nil)
    }

    @Test("OPQ-3: a priority that was given to the next operation itself counts, whatever its request says")
    func ownPriorityOfNext() async throws {
        let server = try MockServer()
        defer { server.stop() }
        server.route("GET", "/first") { _ in MockResponse() }
        server.route("GET", "/next") { _ in MockResponse() }
        let queue = NetworkQueue()
        let first = RequestOperation(Placed(api: "first"), service: EasyNetworkService(server.host()))
        let next = first.then { _ in Placed(api: "next", priority: .veryHigh) }
        next.queuePriority = .low
        queue.addOperations([first, next], waitUntilFinished: false)
        await next.ended()
        expect(next.error == nil && next.queuePriority == .low)
    }

    @Test("BEY-6: a job counts under the host that its request goes to, be it the CDN's or that of a URLRequest")
    func hostOfRequest() async throws {
        let cdn = try #require(URL(string: "https://cdn.example"))
        let base = try #require(URL(string: "https://api.example"))
        let configuration = HostConfiguration(baseURL: base) { $0.cdnURL = cdn }
        let service = EasyNetworkService(configuration)
        let custom = try #require(URL(string: "https://other.example:8443/x"))
        let queue = NetworkQueue(maxConcurrentOperationCountPerHost: 0)
        let operations = [
            RequestOperation(Placed(api: "a", useCDN: true), service: service),
            RequestOperation(Placed(api: "b", customURLRequest: URLRequest(url: custom)), service: service),
            RequestOperation(Placed(api: "https://third.example/c", useCDN: true), service: service),
            RequestOperation(Placed(api: "d"), service: service),
        ]
        let hosts = ["cdn.example", "other.example:8443", "third.example", "api.example"]
        expect(operations.map(\.host), equals: hosts)
        queue.addOperations(operations, waitUntilFinished: false)
        for (operation, host) in zip(operations, hosts) {
            expect(queue.explain(operation), equals: [.hostLimit(host: host, 0)])
            queue.cancelOperations(host: host)
            await operation.ended()
            expect(operation.isCancelled)
        }
    }

    @Test("BEY-6: a request that is made by then counts under its own host, and its tags and limits hold")
    func hostOfNext() async throws {
        let server = try MockServer()
        defer { server.stop() }
        server.route("GET", "/first") { _ in MockResponse() }
        let queue = NetworkQueue()
        queue.setMaxConcurrentOperationCount(0, forHost: "elsewhere.example")
        let first = RequestOperation(Placed(api: "first"), service: EasyNetworkService(server.host()))
        let next = first.then { _ in Placed(api: "https://elsewhere.example/next") }
        queue.addOperations([first, next], waitUntilFinished: false)
        await expect(eventually { queue.explain(next) == [.hostLimit(host: "elsewhere.example", 0)] })
        queue.cancelOperations(host: "elsewhere.example")
        await next.ended()
        expect(next.isCancelled && queue.operationCount == 0)
    }

    @Test(
        "BEY-1: requests made by then, cancels, limits and a network that comes and goes: each ends, nothing is left",
        arguments: UInt64(1)...UInt64(TestLoad.count(20, part: 5))
    )
    func randomNexts(seed: UInt64) async throws {
        var random = SeededGenerator(seed: seed)
        let transport = InMemoryTransport()
        transport.route("GET", "/x") { _ in .text("x") }
        let base = try #require(URL(string: "http://a.example"))
        let service = EasyNetworkService(HostConfiguration(baseURL: base, transport: transport) { $0.retry = .never })
        let network = NetworkReachability()
        let queue = NetworkQueue(maxConcurrentOperationCount: Int.random(in: 1...3, using: &random))
        queue.reachability = network
        let priorities: [Operation.QueuePriority] = [.veryLow, .low, .normal, .high, .veryHigh]
        let hosts = ["", "http://b.example/"]
        var operations: [RequestOperation<Placed>] = []
        for _ in 0..<60 {
            let priority = priorities.randomElement(using: &random) ?? .normal
            let made = Placed(api: (hosts.randomElement(using: &random) ?? "") + "x", priority: priority)
            let before = Int.random(in: 0..<4, using: &random) == 0 ? nil : operations.randomElement(using: &random)
            let operation = before?.then { _ in made } ?? RequestOperation(made, service: service)
            if Bool.random(using: &random) { operation.mutualExclusionCategories = ["one"] }
            if Bool.random(using: &random) { operation.tags = ["tagged"] }
            operations.append(operation)
        }
        queue.setMaxConcurrentOperationCount(1, forHost: "b.example")
        queue.setMaxConcurrentOperationCount(1, forTag: "tagged")
        queue.addOperations(Array(operations.prefix(40)), waitUntilFinished: false)
        queue.addOperation(
            BatchOperation(Array(operations.dropFirst(40)), policy: .collectAll, maxConcurrentOperationCount: 2)
        )
        for operation in operations.shuffled(using: &random) {
            switch Int.random(in: 0..<8, using: &random) {
            case 0: operation.cancel()
            case 1: operation.queuePriority = .veryHigh
            case 2: network.status = .unreachable
            case 3: network.status = .reachable
            case 4: queue.cancelOperations(host: "b.example")
            case 5: queue.isSuspended.toggle()
            default: await Task.yield()
            }
        }
        network.status = .unknown
        queue.isSuspended = false
        for operation in operations { await operation.ended() }
        let isEmpty = await eventually {
            queue.state.withLock { state in
                state.graph.totalCount == 0 && state.graph.submitted.isEmpty && state.graph.queueLane.runningCount == 0
            }
        }
        expect(isEmpty, "seed \(seed)")
        for operation in operations where operation.error != nil {
            expect([.cancelled, .dependencyFailed].contains(operation.error?.code), "seed \(seed): \(operation)")
        }
    }
}
