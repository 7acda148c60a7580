import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("Batches of request values", .timeLimit(.minutes(10)))
struct RequestBatchTests {
    private let queue = NetworkQueue()
    private let transport = InMemoryTransport()
    private let service: EasyNetworkService

    init() throws {
        let base = try URLBuilder.base("https://example.com")
        service = EasyNetworkService(
            HostConfiguration(baseURL: base, deadlines: TransportDeadlines(idle: nil), transport: transport)
        )
        for id in 1...9 { transport.route("GET", "/users/\(id)") { _ in .json(["id": id, "name": "n\(id)"]) } }
        transport.route("GET", "/stall") { _ in .fault(.stall) }
    }

    @Test("OPQ-4: the items come in the order of the requests, and the values can be performed again")
    func items() async throws {
        let requests = [3, 1, 2].map { GetAccount(id: $0) }
        for _ in 0..<2 {
            try await expect(queue.perform(requests, service: service).map(\.id), equals: [3, 1, 2])
        }
        try await expect(queue.perform(requests.prefix(0), service: service).isEmpty)
        expect(transport.requests.count == 6 && queue.operationCount == 0)
    }

    @Test("OPQ-4: the first failure cancels the others and says which request it was")
    func failure() async throws {
        let requests = [Get(api: "stall"), Get(api: "stall"), Get(api: "missing")]
        let error = await #expect(throws: NetworkError.self) { try await queue.perform(requests, service: service) }
        expect(error?.statusCode == 404 && error?.message?.hasPrefix("job 3") == true)
        expect(queue.operationCount, equals: 0)
    }

    @Test("BEY-3: cancelling the task cancels all")
    func cancel() async throws {
        let task = Task { try await queue.perform([Get(api: "stall"), Get(api: "stall")], service: service) }
        await transport.waitForRequests(2)
        task.cancel()
        let error = await #expect(throws: NetworkError.self) { try await task.value }
        expect(error?.code, equals: .cancelled)
        await expect(eventually { queue.operationCount == 0 })
    }

    @Test("BEY-3, BEY-16: 3,000 performs in tasks that are cancelled already send nothing", arguments: [false, true])
    func cancelledAlready(isBatch: Bool) async throws {
        let (queue, service) = (queue, service)
        let results = await withTaskGroup(of: Result<[Account], any Error>.self) { group in
            for _ in 0..<3_000 {
                group.addTask {
                    withUnsafeCurrentTask { $0?.cancel() }
                    do {
                        if isBatch { return .success(try await queue.perform([GetAccount(id: 1)], service: service)) }
                        return .success([try await queue.perform(GetAccount(id: 1), service: service)])
                    } catch {
                        return .failure(error)
                    }
                }
            }
            return await group.reduce(into: [Result<[Account], any Error>]()) { $0.append($1) }
        }
        let codes = results.map { result -> NetworkError.Code? in
            guard case .failure(let error) = result else { return nil }
            return (error as? NetworkError)?.code
        }
        expect(codes.count == 3_000 && codes.allSatisfy { $0 == .cancelled })
        expect(transport.requests.isEmpty)
    }

    // MARK: - Results as they land

    @Test("OPQ-4: every result comes once with the place of its request, failures among them")
    func results() async throws {
        let requests = (0..<30).map { Get(api: $0 % 3 == 0 ? "missing" : "users/\($0 % 9 + 1)") }
        var codes: [Int: NetworkError.Code?] = [:]
        for await (index, result) in queue.results(of: requests, service: service) {
            expect(codes[index] == nil)
            if case .failure(let error) = result { codes[index] = error.code } else { codes[index] = .some(nil) }
        }
        expect(codes.count, equals: 30)
        expect(codes.allSatisfy { $0.value == ($0.key % 3 == 0 ? .unacceptableStatus : nil) })
        var count = 0
        for await _ in queue.results(of: requests.prefix(0), service: service) { count += 1 }
        expect(count, equals: 0)
    }

    @Test("OPQ-4: results may be iterated on the main actor, and again")
    @MainActor
    func onMainActor() async throws {
        let results = queue.results(of: (1...5).map { GetAccount(id: $0) }, service: service)
        for _ in 0..<2 {
            var names: Set<String> = []
            for await (_, result) in results { names.insert(try result.get().name) }
            expect(names, equals: ["n1", "n2", "n3", "n4", "n5"])
        }
    }

    @Test("OPQ-4: no more requests run than there is room for, and none is taken early")
    func room() async throws {
        let taken = Locked(0)
        let requests = (0..<50).lazy.map { _ in
            taken.withLock { $0 += 1 }
            return Get(api: "users/1")
        }
        let results = queue.results(of: requests, maxConcurrentOperationCount: 3, service: service)
        var iterator = results.makeAsyncIterator()
        expect(taken.withLock { $0 }, equals: 0)
        for fetched in 1...50 {
            _ = await iterator.next()
            expect(taken.withLock { $0 } <= fetched + 2)
        }
        await expect(iterator.next() == nil && taken.withLock { $0 } == 50)
        expect(transport.requests.count, equals: 50)
        var count = 0
        for await _ in queue.results(of: requests.prefix(4), maxConcurrentOperationCount: 0, service: service) {
            count += 1
        }
        expect(count, equals: 4)
    }

    @Test("OPQ-4: as many requests run as the queue allows, unless the call says another number")
    func roomOfQueue() async throws {
        let queue = NetworkQueue(maxConcurrentOperationCount: 8)
        let results = queue.results(of: (0..<20).map { _ in Get(api: "stall") }, service: service)
        let task = Task { for await _ in results {} }
        let transport = transport
        await expect(eventually { transport.requests.count == 8 })
        task.cancel()
        await task.value
        expect(transport.requests.count, equals: 8)
    }

    @Test("OPQ-4: results come as requests finish, not in their order")
    func asTheyLand() async throws {
        let requests = [Get(api: "stall"), Get(api: "users/1"), Get(api: "users/2")]
        var seen: Set<Int> = []
        for await (index, _) in queue.results(of: requests, maxConcurrentOperationCount: 2, service: service) {
            seen.insert(index)
            if seen.count == 2 { break }
        }
        expect(seen, equals: [1, 2])
        await expect(eventually { queue.operationCount == 0 })
    }

    @Test("BEY-3: cancelling the task ends the loop and cancels the running operations")
    func cancelResults() async throws {
        let task = Task {
            var count = 0
            for await _ in queue.results(of: [Get(api: "stall"), Get(api: "stall")], service: service) { count += 1 }
            return count
        }
        await transport.waitForRequests(2)
        task.cancel()
        await expect(task.value, equals: 0)
        await expect(eventually { queue.operationCount == 0 })
    }

    /// Counts the values that are alive at once: one for a request, one for its item.
    private final class Token: Sendable {
        static let census = Locked((alive: 0, most: 0))

        init() {
            Self.census.withLock { census in
                census.alive += 1
                census.most = max(census.most, census.alive)
            }
        }

        deinit { Self.census.withLock { $0.alive -= 1 } }
    }

    private struct Counted: APIRequest {
        var token: Token
        var api: String { "users/1" }
        func item(from response: NetworkResponse) throws -> Token { token }
    }

    private final class InstantTransport: NetworkTransport {
        private final class Exchange: TransportExchange {
            func cancel() {}
        }

        func start(
            _ request: TransportRequest,
            events: @escaping @Sendable (TransportEvent) -> Void
        ) -> any TransportExchange {
            events(.head(TransportHead(statusCode: 200)))
            events(.end(TransportEnd()))
            return Exchange()
        }
    }

    @Test("OPQ-4: a long lazy sequence of requests needs the memory of the running ones")
    func memory() async throws {
        let base = try URLBuilder.base("https://example.com")
        let service = EasyNetworkService(
            HostConfiguration(baseURL: base, deadlines: TransportDeadlines(idle: nil), transport: InstantTransport())
        )
        let count = TestLoad.count(100_000, part: 2_000)
        let requests = (0..<count).lazy.map { _ in Counted(token: Token()) }
        var sum = 0
        for await (index, result) in queue.results(of: requests, maxConcurrentOperationCount: 8, service: service) {
            if case .success = result { sum += index }
        }
        expect(sum, equals: count * (count - 1) / 2)
        // Eight run, the loop holds one, and some operations are still being released.
        let most = Token.census.withLock { $0.most }
        expect(most < 500, "\(most) at once")
        await expect(eventually { Token.census.withLock { $0.alive } == 0 && queue.operationCount == 0 })
    }
}
