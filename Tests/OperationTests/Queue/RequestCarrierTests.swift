import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("RequestCarrier")
struct RequestCarrierTests {
    private static let host = HostConfiguration(baseURL: nil)

    private static func message(_ name: String = "a", _ host: HostConfiguration = host) -> SharedMessage {
        let options = RequestOptions(baseURL: host.baseURL ?? URL(string: "http://one.example"))
        // The request is valid.
        // swift-format-ignore: NeverUseForceTry
        let snapshot = try! RequestSnapshot(Get(api: name), options, for: host)
        let key = SharingKey(name: name, snapshot, itemType: NetworkResponse.self)
        return SharedMessage(key: key, snapshot: snapshot, host: nil) { _ in }
    }

    @Test("BEY-9, SEC-1: requests that differ in a field with a credential share nothing, whatever their key")
    func credentials() throws {
        let host = HostConfiguration(baseURL: URL(string: "http://one.example"))
        func key(_ headers: HTTPHeaders) throws -> SharingKey {
            let snapshot = try RequestSnapshot(Get(api: "a"), RequestOptions(), for: host) { $0.headers = headers }
            return SharingKey(name: "n", snapshot, itemType: NetworkResponse.self)
        }
        for name in ["Authorization", "Cookie", "Proxy-Authorization", "X-Api-Key", "X-Auth-Token"] {
            let ada = try key([name: "ada"])
            try expect(ada != key([name: "bob"]))
            try expect(ada != key([:]))
            try expect(ada, equals: key([name: "ada", "X-Page": "1"]))
        }
    }

    @Test("BEY-9: the first has a message sent, others share it, and a late one has another one sent")
    func steps() async throws {
        let queue = NetworkQueue()
        queue.isSuspended = true
        let carriers = { queue.repeats.withLock { Array($0.carriers.values) } }
        // Each is on the queue before the next step, which may cancel all there.
        let share = { name in
            let count = queue.joinedCount
            let task = Task { await queue.response(to: Self.message(name), for: TestJob()) }
            let isOnQueue = await eventually {
                queue.joinedCount == count + 1 && carriers().allSatisfy { $0.scheduling != nil }
            }
            expect(isOnQueue)
            return task
        }
        let first = await share("a")
        let carrier = try #require(carriers().first)
        let (second, other) = (await share("a"), await share("b"))
        let carrierOfOther = try #require(carriers().first { $0 !== carrier })
        expect(carrier.waiterCount == 2 && carrierOfOther.waiterCount == 1)
        carrier.finish(NetworkError(code: .timedOut))
        for task in [first, second] { await expect(task.value.result.failure?.code, equals: .timedOut) }
        let late = await share("a")
        let next = try #require(carriers().first { $0 !== carrierOfOther })
        first.cancel()
        expect(next !== carrier && next.waiterCount == 1 && !next.isCancelled)
        // The last member leaves.
        late.cancel()
        expect(next.isCancelled)
        await expect(late.value.result.failure?.code, equals: .cancelled)
        let last = await share("a")
        queue.cancelAllOperations()
        for task in [other, last] { await expect(task.value.result.failure?.code, equals: .cancelled) }
        await expect(eventually { queue.keepsNothing })
    }

    @Test("BEY-5: for an operation that was cancelled while it joined, nothing is sent")
    func cancelledMeanwhile() async {
        let transport = InMemoryTransport()
        let host = HostConfiguration(baseURL: URL(string: "http://memory.test"), transport: transport)
        let queue = NetworkQueue()
        let gate = Gate()
        let task = Task {
            await gate.opened()
            return await queue.response(to: Self.message("a", host), for: TestJob())
        }
        task.cancel()
        gate.open()
        await expect(task.value.result.failure?.code, equals: .cancelled)
        await expect(eventually { queue.keepsNothing })
        expect(transport.requests.isEmpty)
    }

    @Test("CCH-2, BEY-9: an answer of which no item can be made is not stored", arguments: [false, true])
    func unmappable(isMappable: Bool) async throws {
        let transport = InMemoryTransport()
        transport.route("GET", "/a") { _ in .text("x", headers: ["Cache-Control": "max-age=60"]) }
        let cache = NetworkCache(diskBytes: 0)
        let host = HostConfiguration(baseURL: URL(string: "http://memory.test"), transport: transport) { host in
            (host.cache, host.cachePolicy) = (cache, .http)
        }
        let message = Self.message("a", host)
        let carrier = RequestCarrier(
            SharedMessage(key: message.key, snapshot: message.snapshot, host: nil) { _ in
                if !isMappable { throw NetworkError(code: .cannotParseResponse) }
            }
        )
        NetworkQueue().add(carrier)
        // Whoever shares it gets the answer, and makes an item of its own.
        try await expect(carrier.value.body, equals: Data("x".utf8))
        carrier.keepAnswer()
        await expect(cache.entries.count, equals: (isMappable ? 1 : 0))
    }

    @Test("BEY-9: random joins and leaves go as in a list", arguments: UInt64(1)...UInt64(TestLoad.count(50, part: 12)))
    func histories(seed: UInt64) async {
        var generator = SeededGenerator(seed: seed)
        let queue = NetworkQueue()
        queue.isSuspended = true
        let carrier = RequestCarrier(Self.message())
        queue.add(carrier)
        let wait = {
            let begun = Promise<Void>()
            let task = Task { try await carrier.valueAsCounted { begun.set() } }
            await begun.wait()
            return task
        }
        var left: [Task<NetworkResponse, any Error>] = []
        var members = [0: await wait()]
        for _ in 0..<Int.random(in: 1..<100, using: &generator) {
            let number = Int.random(in: 0..<20, using: &generator)
            if let member = members.removeValue(forKey: number) {
                member.cancel()
                left.append(member)
            } else {
                let isOpen = carrier.join()
                expect(isOpen != carrier.isCancelled, "seed \(seed)")
                if isOpen { members[number] = await wait() }
            }
            expect(carrier.waiterCount == members.count && carrier.isCancelled == members.isEmpty, "seed \(seed)")
        }
        for member in left {
            let error = await #expect(throws: NetworkError.self) { try await member.value }
            expect(error?.code, equals: .cancelled, "seed \(seed)")
        }
        carrier.finish(with: NetworkResponse())
        for member in members.values { await expect((try? member.value)?.statusCode, equals: 200, "seed \(seed)") }
        expect(!carrier.join(), "seed \(seed)")
    }
}
