import Dispatch
import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("The cache and interceptors", .timeLimit(.minutes(10)))
struct CacheInterceptorTests: CacheSuite {
    let fixture = CachedCallFixture()

    @Test("CCH-3: an entry that an interceptor rejects is not used, and the request is sent")
    func refusedByInterceptor() async throws {
        struct Envelope: RequestInterceptor {
            func didReceive(_ result: Result<NetworkResponse, NetworkError>, context: AttemptContext) async
                -> ResponseDecision
            {
                guard case .success(let response) = result, (try? response.text()) == "old" else { return .proceed }
                return .fail(NetworkError(code: .cannotParseResponse))
            }
        }
        transport.route("GET", "/a") { _ in .text("new") }
        let service = service { $0.interceptors = [Envelope()] }
        let call = CachedCall(cache: CachePolicy(.cacheElseNetwork))
        try service.store(NetworkResponse(body: Data("old".utf8)), for: call)
        try await expect(service.send(call).text(), equals: "new")
    }

    private struct Waiting: RequestInterceptor {
        let isAsked = Gate()
        let gate = Gate()

        func didReceive(_ result: Result<NetworkResponse, NetworkError>, context: AttemptContext) async
            -> ResponseDecision
        {
            isAsked.open()
            await gate.opened()
            return .proceed
        }
    }

    @Test("CCH-3: a job that is finished while an interceptor has the stored response sends nothing")
    func finishedByHand() async throws {
        let interceptor = Waiting()
        let service = service { $0.interceptors = [interceptor] }
        let text = CachedText(cache: CachePolicy(.cacheElseNetwork))
        try service.store(NetworkResponse(body: Data("old".utf8)), for: text)
        let queue = NetworkQueue()
        var operation: RequestOperation<CachedText>? = RequestOperation(text, service: service)
        weak let kept = operation
        if let operation { queue.addOperation(operation) }
        await interceptor.isAsked.opened()
        operation?.finish(NetworkError(code: .refused))
        await operation?.ended()
        operation = nil
        interceptor.gate.open()
        await expect(eventually { kept == nil })
        expect(transport.requests.isEmpty)
        try await expect(service.cachedResponse(for: text).text(), equals: "old")
    }

    @Test("CCH-3: the closure cached is released at the end, also without an entry")
    func released() async throws {
        final class Object: Sendable {}
        transport.route("GET", "/a") { _ in .text("new") }
        let operation = RequestOperation(CachedText(), service: service())
        weak var weakly: Object?
        do {
            let object = Object()
            weakly = object
            operation.success = { _ in }
            operation.cached = { _ in withExtendedLifetime(object) {} }
        }
        let queue = NetworkQueue(maxConcurrentOperationCount: 1)
        queue.addOperation(operation)
        await operation.ended()
        await expect(eventually { weakly == nil })
        expect(operation.cached == nil)
    }

    @Test("CCH-3: a sequence has the cached item first, and dependents start after cached")
    func dependents() async throws {
        transport.route("GET", "/a") { _ in .text("new") }
        let service = service()
        try service.store(NetworkResponse(body: Data("old".utf8)), for: CachedText())
        let story = Locked<[String]>([])
        let callbacks = DispatchQueue(label: "callbacks")
        callbacks.suspend()
        let operation = RequestOperation(CachedText(), service: service)
        operation.callbackQueue = callbacks
        operation.cached = { _ in story.withLock { $0.append("cached") } }
        let next = BlockOperation { story.withLock { $0.append("dependent") } }
        next.addDependency(operation)
        let queue = NetworkQueue(maxConcurrentOperationCount: 2)
        queue.addOperation(operation)
        OperationQueue().addOperation(next)
        await expect(staysFalse { !story.withLock { $0.isEmpty } })
        callbacks.resume()
        await next.ended()
        await expect(eventually { story.withLock { $0.count } == 2 })
        expect(story.withLock { $0 }, equals: ["cached", "dependent"])
    }
}

@Suite("Keys of odd requests")
struct OddKeyTests {
    @Test(
        "CCH-5: ignored parameters of odd URLs do not trap",
        arguments: [
            "http://h/?x=[1]&t=1", "http://h/?x=a|b&t=1", "http://h/?x=%zz&t=1", "http://h/?x=%&t=1",
            "http://h/?x=é&t=1",
            "http://h/?%5b=1&t=2", "http://h/?x=\"q\"&t=1", "http://h/?x={a}&t=^#f g", "http://h/?x=%ff&%ff=1&t=1",
            "http://h/??&&t==1",
        ]
    )
    func ignored(text: String) throws {
        for url in [URL(string: text), URL(string: PercentEncoding.encode(text, .query))].compactMap({ $0 }) {
            let message = TransportRequest(method: .get, url: url)
            let key = CacheKey.key(
                for: message,
                CachePolicy(.cacheElseNetwork, ignoredParameters: ["t"]),
                partition: nil
            )
            expect(key != nil && CacheKey.key(for: message, .http, partition: nil) != nil)
        }
    }
}
