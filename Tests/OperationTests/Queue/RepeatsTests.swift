import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("Repeats", .timeLimit(.minutes(10)))
struct RepeatsTests {
    private let fixture: RepeatsFixture
    private var server: MockServer { fixture.server }
    private var service: EasyNetworkService { fixture.service }
    private var queue: NetworkQueue { fixture.queue }

    init() throws {
        fixture = try RepeatsFixture()
    }

    @Test("OPQ-6: a newer one cancels the older one, whether that runs or waits")
    func cancelOlder() async throws {
        let request = Repeated(api: "stall", repeatPolicy: .cancelOlder)
        let running = fixture.operation(request)
        queue.addOperation(running)
        await server.waitForRequests(1)
        queue.isSuspended = true
        let waiting = fixture.operation(request)
        queue.addOperation(waiting)
        await running.ended()
        expect(running.error?.code == .cancelled && !waiting.isFinished)
        let other = fixture.operation(Repeated(api: "stall", text: "else", repeatPolicy: .cancelOlder))
        let newest = fixture.operation(Repeated(api: "stall", repeatPolicy: .cancelOlder))
        queue.addOperations([other, newest], waitUntilFinished: false)
        await waiting.ended()
        expect(waiting.error?.code == .cancelled && !other.isCancelled && !newest.isCancelled)
        queue.cancelAllOperations()
        await expect(server.waitForConnections(0))
        expect(server.requests.count, equals: 1)
    }

    @Test("OPQ-6: a newer one is refused while the older one waits or runs, and nothing is sent for it")
    func ignoreNewer() async throws {
        let request = Repeated(repeatPolicy: .ignoreNewer)
        queue.isSuspended = true
        let (older, newer) = (fixture.operation(request), fixture.operation(request))
        queue.addOperations([older, newer], waitUntilFinished: false)
        await newer.ended()
        expect(newer.error?.code == .refused && newer.error?.message?.hasPrefix("the equal job Repeated") == true)
        expect(newer.error?.attempts, equals: 0)
        queue.isSuspended = false
        try await expect(older.value.statusCode, equals: 200)
        let next = fixture.operation(request)
        queue.addOperation(next)
        try await expect(next.value.statusCode, equals: 200)
        expect(server.requests.count, equals: 2)
    }

    @Test("OPQ-6: an operation that has ended no longer counts: cancelled, or in its own callback")
    func overCountsNoMore() async throws {
        let request = Repeated(repeatPolicy: .ignoreNewer)
        queue.isSuspended = true
        let cancelled = fixture.operation(request)
        queue.addOperation(cancelled)
        cancelled.cancel()
        let next = fixture.operation(request)
        let again = fixture.operation(request)
        let queue = queue
        next.success = { _ in queue.addOperation(again) }
        queue.addOperation(next)
        queue.isSuspended = false
        try await expect(next.value.statusCode, equals: 200)
        try await expect(again.value.statusCode, equals: 200)
    }

    @Test("OPQ-6: a custom key decides what is a repeat; an operation may have another policy than its request")
    func ownKey() async throws {
        queue.isSuspended = true
        let allowed = fixture.operation(Repeated(text: "a", repeatPolicy: .allow, repeatKey: "search"))
        let unnamed = fixture.operation(Repeated(text: "b", repeatPolicy: .allow))
        let newer = fixture.operation(Repeated(text: "b", repeatPolicy: .allow))
        newer.repeatPolicy = .cancelOlder
        newer.repeatKey = "search"
        queue.addOperations([allowed, unnamed, newer], waitUntilFinished: false)
        await allowed.ended()
        expect(allowed.error?.code == .cancelled && !unnamed.isCancelled)
        newer.repeatPolicy = .allow
        expect(newer.repeatPolicy, equals: .cancelOlder)
        queue.isSuspended = false
        try await expect(newer.value.statusCode, equals: 200)
        try await expect(unnamed.value.statusCode, equals: 200)
    }

    @Test("OPQ-6: where the request is made at the start, the policy acts then")
    func knownAtStart() async throws {
        let first = fixture.operation(Repeated(repeatPolicy: .allow))
        let stalled = fixture.operation(Repeated(api: "stall", repeatPolicy: .ignoreNewer))
        queue.addOperation(stalled)
        await server.waitForRequests(1)
        let next = first.then { _ in Repeated(api: "stall", repeatPolicy: .ignoreNewer) }
        queue.addOperations([first, next], waitUntilFinished: false)
        await next.ended()
        expect(next.error?.code == .refused && server.requests.count == 2)
        stalled.cancel()
        await stalled.ended()
    }

    @Test("BEY-18, OPQ-6: requests with interceptors of their own are repeats by a key only")
    func ownInterceptors() async throws {
        for policy in [RepeatPolicy.ignoreNewer, .cancelOlder] {
            queue.isSuspended = true
            let users = ["ada", "bob"]
            let operations = users.map {
                RequestOperation(Personal(api: "a", user: $0, repeatPolicy: policy), service: service)
            }
            queue.addOperations(operations, waitUntilFinished: false)
            queue.isSuspended = false
            for operation in operations { try await expect(operation.value.statusCode, equals: 200) }
            queue.isSuspended = true
            let named = users.map {
                RequestOperation(Personal(api: "a", user: $0, repeatPolicy: policy, repeatKey: "k"), service: service)
            }
            queue.addOperations(named, waitUntilFinished: false)
            queue.isSuspended = false
            for operation in named { await operation.ended() }
            expect(named.filter { $0.error == nil }.count, equals: 1)
        }
    }

    @Test("BEY-18, OPQ-6: after another sign-in a request is no repeat", arguments: [false, true])
    func anotherUser(byCookie: Bool) async throws {
        let jar = CookieJar()
        let session = AuthenticationSession(TestTokens { _ in "new" }, credential: "ada")
        let host = server.host { ($0.cookies, $0.authentication) = (jar, session) }
        queue.isSuspended = true
        let operations = (0..<2).map { _ in
            RequestOperation(Repeated(repeatPolicy: .ignoreNewer), service: EasyNetworkService(host))
        }
        queue.addOperation(operations[0])
        if byCookie { jar.store(["Set-Cookie": "user=bob"], from: server.baseURL) } else { session.signIn("bob") }
        queue.addOperation(operations[1])
        queue.isSuspended = false
        for operation in operations { try await expect(operation.value.statusCode, equals: 200) }
    }

    @Test("OPQ-6: a queue notices its own jobs only, and a plain queue none")
    func otherQueues() async throws {
        let request = Repeated(repeatPolicy: .ignoreNewer)
        let plain = OperationQueue()
        let operations = (0..<4).map { _ in fixture.operation(request) }
        queue.isSuspended = true
        queue.addOperation(operations[0])
        NetworkQueue().addOperation(operations[1])
        plain.addOperation(operations[2])
        operations[3].repeatPolicy = .join
        plain.addOperation(operations[3])
        for operation in operations.dropFirst() { try await expect(operation.value.source, equals: .network) }
        queue.cancelAllOperations()
        await operations[0].ended()
        expect(server.requests.count, equals: 3)
    }

    @Test("OPQ-6: of many added at once from many threads one is sent, and nothing is kept", arguments: 1...5)
    func ignoreNewerFromManyThreads(round: Int) async throws {
        let request = Repeated(api: "stall", repeatPolicy: .ignoreNewer)
        let operations = (0..<64).map { _ in fixture.operation(request) }
        let queue = queue
        DispatchQueue.concurrentPerform(iterations: operations.count) { queue.addOperation(operations[$0]) }
        await expect(eventually { operations.filter(\.isFinished).count == 63 })
        await server.waitForRequests(1)
        queue.cancelAllOperations()
        for operation in operations { await operation.ended() }
        expect(operations.filter { $0.error?.code == .refused }.count, equals: 63)
        expect(server.requests.count, equals: 1)
        await expect(eventually { queue.repeats.withLock { $0.registry.jobs.count } == 0 })
    }
}
