import Dispatch
import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("Items of the cache before the network's", .timeLimit(.minutes(10)))
struct EarlyItemTests: CacheSuite {
    let fixture = CachedCallFixture()

    private final class Listener: RequestOperationDelegate {
        let count = Locked(0)
        func requestOperationDidLoadFromCache(_ operation: ServiceOperation) { count.withLock { $0 += 1 } }
    }

    @Test(
        "CBK-2, CCH-3: released closures are not called, and the delegate is not retained, while the queue waits"
    )
    func detached() async throws {
        transport.route("GET", "/a") { _ in .text("new") }
        let service = service()
        try service.store(NetworkResponse(body: Data("old".utf8)), for: CachedText())
        let callbacks = DispatchQueue(label: "callbacks")
        callbacks.suspend()
        let calls = Locked(0)
        let operation = RequestOperation(CachedText(), service: service)
        operation.callbackQueue = callbacks
        operation.cached = { _ in calls.withLock { $0 += 1 } }
        operation.success = { _ in calls.withLock { $0 += 1 } }
        var delegate: Listener? = Listener()
        weak var weakly: Listener?
        weakly = delegate
        operation.delegate = delegate
        let queue = NetworkQueue(maxConcurrentOperationCount: 1)
        queue.addOperation(operation)
        await expect(transport.waitForRequests(1))
        await expect(eventually { operation.result != nil })
        delegate = nil
        expect(weakly == nil, "kept alive")
        operation.detach()
        callbacks.resume()
        await operation.ended()
        expect(calls.withLock { $0 }, equals: 0)
    }

    @Test(
        "BEY-3, CCH-3: after any cancel there is one end, and cached is not called after it",
        arguments: [true, false]
    )
    func stress(cancelsService: Bool) async throws {
        transport.route("GET", "/a") { _ in .text("new") }
        let bad = Locked<[String: Int]>([:])
        let queue = NetworkQueue(maxConcurrentOperationCount: 4)
        var operations: [RequestOperation<CachedText>] = []
        for number in 0..<TestLoad.count(3_000, part: 500) {
            let service = service()
            if number % 50 == 0 { try service.store(NetworkResponse(body: Data("old".utf8)), for: CachedText()) }
            let story = Locked<[String]>([])
            let operation = RequestOperation(CachedText(), service: service)
            operation.callbackQueue = DispatchQueue(label: "c", attributes: .concurrent)
            let note = { @Sendable (line: String) in
                let story = story.withLock { story in
                    story.append(line)
                    return story.joined(separator: ",")
                }
                if !["cached", "end", "cached,end"].contains(story) { bad.withLock { $0[story, default: 0] += 1 } }
            }
            operation.cached = { _ in note("cached") }
            operation.success = { _ in note("end") }
            operation.failure = { _ in note("end") }
            operations.append(operation)
            queue.addOperation(operation)
            let delay = number % 40
            DispatchQueue.global().asyncAfter(deadline: .now() + .microseconds(delay * 20)) {
                if cancelsService { service.cancel() } else { operation.cancel() }
            }
            if number % 20 == 0 { await operation.ended() }
        }
        for operation in operations { await operation.ended() }
        for operation in operations { operation.callbackQueue?.sync(flags: .barrier) {} }
        expect(bad.withLock { $0 }, equals: [:])
    }

    @Test(
        "OPQ-2, CCH-3: an operation that ended while its cached item was mapped does not call cached"
    )
    func endedInMapping() async throws {
        struct Slow: APIRequest {
            var api = "a"
            var cache: CachePolicy? = CachePolicy(.cacheThenNetwork)
            var options: RequestOptions { RequestOptions(cache: cache) }
            let mapping: @Sendable () -> Void
            func item(from response: NetworkResponse) throws -> String {
                mapping()
                return try response.text()
            }
        }
        transport.route("GET", "/a") { _ in .text("new") }
        let service = service()
        try service.store(NetworkResponse(body: Data("old".utf8)), for: CachedText())
        let begun = Gate()
        let hold = DispatchSemaphore(value: 0)
        let story = Locked<[String]>([])
        let operation = RequestOperation(
            Slow {
                begun.open()
                hold.wait()
            },
            service: service
        )
        operation.callbackQueue = DispatchQueue(label: "callbacks")
        operation.cached = { _ in story.withLock { $0.append("cached") } }
        operation.failure = { error in story.withLock { $0.append("failure \(error.code)") } }
        let queue = NetworkQueue(maxConcurrentOperationCount: 1)
        queue.addOperation(operation)
        await begun.opened()
        service.cancel()
        await operation.ended()
        hold.signal()
        await expect(staysFalse { story.withLock { $0.count } > 1 })
        expect(story.withLock { $0 }, equals: ["failure cancelled"])
    }
}
