import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

/// An operation of the older way that waits for its call.
private final class LoadNews: ServiceOperation, @unchecked Sendable {
    // Sendable because what changes is behind a lock.
    private let request: Get
    private let notes = Locked<[String]>([])
    private let isOnMain: Bool

    init(_ request: Get, isOnMain: Bool = false, service: EasyNetworkService) {
        (self.request, self.isOnMain) = (request, isOnMain)
        super.init(service: service)
    }

    var seen: [String] { notes.withLock { $0 } }

    override func start() {
        super.start()
        if isOnMain {
            service.requestOnMain(request, success: mainSuccess, failure: mainFailure, cached: mainCached)
        } else {
            service.request(request, success: handleSuccess, failure: handleFailure, cached: handleCached)
        }
    }

    private func note(_ word: String, _ response: Any?) {
        notes.withLock { $0.append("\(word) \((response as? [String: Any])?["number"] as? Int ?? 0)") }
    }

    private func handleCached(_ response: Any?) { note("cached", response) }

    private func handleSuccess(_ response: Any?) {
        note("success", response)
        finish()
    }

    private func handleFailure(_ error: NSError) {
        notes.withLock { $0.append("failure \(error.code == NetworkError.Code.unacceptableStatus.rawValue)") }
        finish(error)
    }

    @MainActor private func mainCached(_ response: Any?) { note("cached", response) }
    @MainActor private func mainSuccess(_ response: Any?) { handleSuccess(response) }
    @MainActor private func mainFailure(_ error: NetworkError) { handleFailure(error.bridged) }
}

/// An operation that hears of the cache's answer only.
private final class Peek: ServiceOperation, @unchecked Sendable {
    // Sendable because nothing changes.
    private let cached: @Sendable () -> Void

    init(service: EasyNetworkService, _ cached: @escaping @Sendable () -> Void) {
        self.cached = cached
        super.init(service: service)
    }

    override func execute() {
        service.request(Get(api: "news"), cached: { _ in self.cached() })
    }
}

@Suite("The older way: features of the calls", .timeLimit(.minutes(10)))
struct OlderStyleFeaturesTests {
    private let transport = InMemoryTransport()
    private let service: EasyNetworkService

    init() {
        let count = Locked(0)
        transport.route("GET", "/news") { _ in
            let number = count.next()
            return number == 3 ? .status(404) : .json(["number": number])
        }
        let url = URL(string: "https://api.example.com")
        let host = HostConfiguration(baseURL: url, transport: transport) { host in
            host.cache = NetworkCache(diskBytes: 0)
            host.cachePolicy = CachePolicy(.cacheThenNetwork)
            host.retry = .never
        }
        service = EasyNetworkService(host)
    }

    /// Loads the news, and waits until the answer is stored, which comes after the closure that ends the operation.
    private func load(_ number: Int, isOnMain: Bool = false, _ queue: NetworkQueue) async -> [String] {
        let load = LoadNews(Get(api: "news"), isOnMain: isOnMain, service: service)
        queue.addOperation(load)
        await load.ended()
        for _ in 0..<12_000 {
            let stored = try? await service.cachedResponse(for: Get(api: "news"))
            if (try? stored?.json() as? [String: Any])?["number"] as? Int == number { break }
            // Paces the polling; it does not synchronise.
            try? await Task.sleep(nanoseconds: 1_000_000)
        }
        return load.seen
    }

    @Test("BEY-16, CCH-3: the cache's answer comes first, and the network's after it", arguments: [false, true])
    func cached(isOnMain: Bool) async throws {
        let queue = NetworkQueue()
        var seen: [[String]] = []
        // The third answer of the server is a failure, which follows the cache's answer, too.
        for number in [1, 2, 2] { seen.append(await load(number, isOnMain: isOnMain, queue)) }
        expect(seen, equals: [["success 1"], ["cached 1", "success 2"], ["cached 2", "failure true"]])
    }

    @Test("BEY-16: a closure for the cache's answer that blocks holds the network's back")
    func order() async throws {
        let queue = NetworkQueue()
        _ = await load(1, queue)
        let (cached, gate, notes) = (Gate(), DispatchSemaphore(value: 0), Locked<[String]>([]))
        service.request(
            Get(api: "news"),
            success: { _ in
                notes.withLock { $0.append("success") }
                gate.signal()
            },
            cached: { _ in
                cached.open()
                gate.wait()
                notes.withLock { $0.append("cached") }
            }
        )
        await cached.opened()
        await transport.waitForRequests(2)
        expect(notes.withLock { $0.isEmpty })
        gate.signal()
        await expect(eventually { notes.withLock { $0 } == ["cached", "success"] })
    }

    @Test("BEY-16: an end that no closure hears of waits for that of the cache's answer, too")
    func unheardEnd() async throws {
        let queue = NetworkQueue()
        for number in 1...2 { _ = await load(number, queue) }
        let (cached, gate, notes) = (Gate(), DispatchSemaphore(value: 0), Locked<[String]>([]))
        // The third answer of the server is a failure, and ends the operation.
        let peek = Peek(service: service) {
            cached.open()
            gate.wait()
            notes.withLock { $0.append("cached") }
        }
        peek.whenFinished { notes.withLock { $0.append("finished") } }
        queue.addOperation(peek)
        await cached.opened()
        await transport.waitForRequests(3)
        await expect(staysFalse { !notes.withLock { $0.isEmpty } })
        gate.signal()
        await peek.ended()
        await expect(eventually { notes.withLock { $0 } == ["cached", "finished"] })
        expect(peek.error?.statusCode, equals: 404)
    }

    @Test("BEY-16, OPQ-6: operations that make their own calls are refused or replaced by their key")
    func repeats() async throws {
        let queue = NetworkQueue()
        queue.isSuspended = true
        func load(_ policy: RepeatPolicy, _ key: String?) -> LoadNews {
            let load = LoadNews(Get(api: "news"), service: service)
            load.repeatPolicy = policy
            load.repeatKey = key
            queue.addOperation(load)
            return load
        }
        let first = load(.ignoreNewer, "news")
        let refused = load(.ignoreNewer, "news")
        let other = load(.ignoreNewer, "other")
        let unnamed = load(.ignoreNewer, nil)
        await refused.ended()
        expect(refused.error?.code == .refused && !first.isFinished)
        let newest = load(.cancelOlder, "news")
        await first.ended()
        expect(first.error?.code, equals: .cancelled)
        queue.isSuspended = false
        let last = [newest, other, unnamed]
        for load in last { await load.ended() }
        expect(last.filter { $0.error == nil }.count, equals: 2, "one of three answers is a failure")
    }
}
