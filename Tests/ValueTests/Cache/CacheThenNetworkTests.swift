import Dispatch
import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("The cache, then the network", .timeLimit(.minutes(10)))
struct CacheThenNetworkTests: CacheSuite {
    let fixture = CachedCallFixture()
    private let queue = NetworkQueue(maxConcurrentOperationCount: 2)

    init() {
        transport.route("GET", "/a") { _ in .text("new") }
    }

    private func keepOld() throws {
        try service().store(NetworkResponse(body: Data("old".utf8)), for: CachedText())
    }

    private final class Story: RequestOperationDelegate {
        let lines = Locked<[String]>([])

        func add(_ line: String) {
            lines.withLock { $0.append(line) }
        }

        func requestOperationDidLoadFromCache(_ operation: ServiceOperation) {
            let item = (operation as? RequestOperation<CachedText>)?.cachedItem
            add("delegate cached \(item ?? "")")
        }

        func requestOperationDidSucceed(_ operation: ServiceOperation) {
            add("delegate success")
        }
    }

    @Test(
        "CCH-3: the cached response has its own closure and delegate method, before the network's, also on a concurrent queue"
    )
    func callbacks() async throws {
        for _ in 0..<20 {
            try keepOld()
            let story = Story()
            let operation = RequestOperation(CachedText(), service: service())
            operation.callbackQueue = DispatchQueue(label: "callbacks", attributes: .concurrent)
            operation.delegate = story
            operation.cached = { story.add("cached \($0)") }
            operation.success = { story.add("success \($0)") }
            queue.addOperation(operation)
            await operation.ended()
            expect(
                story.lines.withLock { $0 },
                equals: [
                    "delegate cached old", "cached old", "delegate success", "success new",
                ]
            )
            expect(operation.cachedItem == "old" && operation.result.flatMap { try? $0.get() } == "new")
        }
    }

    @Test("CCH-3: the network's item is delivered after the cached item, even if it arrives earlier")
    func cachedFirst() async throws {
        try keepOld()
        let story = Story()
        let operation = RequestOperation(CachedText(), service: service())
        let callbacks = DispatchQueue(label: "callbacks")
        callbacks.suspend()
        operation.callbackQueue = callbacks
        operation.cached = { _ in story.add("cached") }
        operation.preprocess = { _ in story.add("preprocess") }
        operation.success = { _ in story.add("success") }
        queue.addOperation(operation)
        await expect(eventually { operation.result != nil })
        await expect(staysFalse { !story.lines.withLock { $0.isEmpty } })
        callbacks.resume()
        await operation.ended()
        expect(story.lines.withLock { $0 }, equals: ["cached", "preprocess", "success"])
    }

    @Test("CCH-3: without a valid entry only the network's item is delivered")
    func absent() async throws {
        let story = Story()
        let operation = RequestOperation(CachedText(), service: service())
        operation.cached = { story.add("cached \($0)") }
        operation.success = { story.add("success \($0)") }
        queue.addOperation(operation)
        await operation.ended()
        expect(story.lines.withLock { $0 } == ["success new"] && operation.cachedItem == nil)
    }

    @Test("CCH-3: a sequence has the cached and then the fresh response")
    func sequence() async throws {
        try keepOld()
        var responses: [String] = []
        for try await response in service().responses(to: CachedText()) {
            responses.append("\(try response.text()) \(response.source)")
        }
        expect(responses, equals: ["old cache", "new network"])
    }

    @Test("CCH-3, BEY-3: an error of the network follows the cached item")
    func failure() async throws {
        try keepOld()
        transport.route("GET", "/a") { _ in .status(500) }
        let operation = RequestOperation(CachedText(), service: service())
        queue.addOperation(operation)
        let error = await #expect(throws: NetworkError.self) { try await operation.value }
        expect(operation.cachedItem == "old" && error?.statusCode == 500)
    }

    @Test("OPQ-2, CCH-3: after a cancel following the cached item no closure is called")
    func cancel() async throws {
        try keepOld()
        transport.route("GET", "/a") { _ in .fault(.stall) }
        let story = Story()
        let shown = Gate()
        let operation = RequestOperation(CachedText(), service: service())
        operation.cached = { item in
            story.add("cached \(item)")
            shown.open()
        }
        operation.failure = { story.add("failure \($0.code)") }
        queue.addOperation(operation)
        await shown.opened()
        operation.cancel()
        await operation.ended()
        expect(story.lines.withLock { $0 }, equals: ["cached old", "failure cancelled"])
    }

    @Test("OPQ-2: after a cancel before the cached item its closure is not called")
    func cancelBefore() async throws {
        try keepOld()
        transport.route("GET", "/a") { _ in .fault(.stall) }
        let story = Story()
        let callbacks = DispatchQueue(label: "callbacks")
        callbacks.suspend()
        let operation = RequestOperation(CachedText(), service: service())
        operation.callbackQueue = callbacks
        operation.cached = { story.add("cached \($0)") }
        operation.failure = { story.add("failure \($0.code)") }
        queue.addOperation(operation)
        await expect(transport.waitForRequests(1))
        operation.cancel()
        callbacks.resume()
        await operation.ended()
        expect(story.lines.withLock { $0 }, equals: ["failure cancelled"])
    }

    @Test("OPQ-6, CCH-3: such requests do not join: each has its own cached item")
    func join() async throws {
        struct Joined: APIRequest {
            var api = "a"
            // Without this, the next request would find the entry of the previous one.
            var cache: CachePolicy? = CachePolicy(.cacheThenNetwork, storesInMemory: false, storesOnDisk: false)
            var options: RequestOptions { RequestOptions(cache: cache, repeatPolicy: .join) }

            func item(from response: NetworkResponse) throws -> String {
                try response.text()
            }
        }
        try keepOld()
        let service = service()
        let operations = (0..<3).map { _ in RequestOperation(Joined(), service: service) }
        queue.addOperations(operations, waitUntilFinished: false)
        for operation in operations {
            try await expect(operation.value, equals: "new")
            expect(operation.cachedItem, equals: "old")
        }
    }
}
