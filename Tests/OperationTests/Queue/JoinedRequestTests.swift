import EasyNetworkTesting
import Foundation
import Testing

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

@testable import EasyNetwork
@testable import TestSupport

@Suite("Joined requests", .timeLimit(.minutes(10)))
struct JoinedRequestTests {
    private struct Words: APIRequest {
        var api = "a"
        var repeatPolicy = RepeatPolicy.join
        var repeatKey: String?
        var options: RequestOptions { RequestOptions(repeatPolicy: repeatPolicy, repeatKey: repeatKey) }
        func item(from response: NetworkResponse) throws -> [String] {
            try response.text().split(separator: " ").map(String.init)
        }
    }

    private let fixture: RepeatsFixture
    private var server: MockServer { fixture.server }
    private var service: EasyNetworkService { fixture.service }
    private var queue: NetworkQueue { fixture.queue }

    init() throws {
        fixture = try RepeatsFixture()
    }

    @Test("BEY-9: 100 that join send one request; each gets its own item and its callback", arguments: [1, 100])
    func join(limit: Int) async throws {
        let queue = NetworkQueue(maxConcurrentOperationCount: limit)
        // The server answers when all requests have joined.
        let gate = DispatchSemaphore(value: 0)
        server.route("GET", "/held") { _ in
            gate.wait()
            return .text("one two")
        }
        let successes = Locked<[Int]>([])
        let operations = (0..<100).map { number in
            let operation = RequestOperation(Words(api: "held"), service: service)
            operation.success = { words in
                expect(words, equals: ["one", "two"])
                successes.withLock { $0.append(number) }
            }
            operation.failure = { Issue.record($0) }
            return operation
        }
        let response = fixture.operation(Repeated(api: "held"))
        queue.addOperations(operations + [response], waitUntilFinished: false)
        await expect(eventually { queue.joinedCount == 101 })
        expect(queue.operationCount == 101 && queue.operations.count == 101)
        gate.signal()
        for operation in operations { try await expect(operation.value, equals: ["one", "two"]) }
        _ = try await response.value
        expect(server.requests.count, equals: 1)
        expect(successes.withLock { $0.sorted() }, equals: Array(0..<100))
        await expect(eventually { queue.keepsNothing })
    }

    /// Operations that share one message, returned once they do; the server never answers it.
    private func stalled(_ count: Int, _ request: Repeated = Repeated(api: "stall")) async -> [RequestOperation<
        Repeated
    >] {
        let operations = (0..<count).map { _ in fixture.operation(request) }
        queue.addOperations(operations, waitUntilFinished: false)
        await server.waitForRequests(1)
        let queue = queue
        await expect(eventually { queue.joinedCount >= count && operations.allSatisfy(queue.isJoined) })
        return operations
    }

    @Test("BEY-9: cancelled operations leave the message to the others; after the last the connection closes")
    func leaving() async throws {
        let operations = await stalled(10)
        let queue = queue
        for (index, operation) in operations.dropLast().enumerated() {
            // With a callback the operation finishes later, but leaves at once.
            operation.failure = { _ in }
            operation.cancel()
            let left = queue.joinedCount
            expect(left, equals: operations.count - index - 1, "it has left when the cancel returns")
        }
        for operation in operations.dropLast() {
            await operation.ended()
            expect(operation.error?.code, equals: .cancelled)
        }
        expect(queue.operationCount == 1 && server.connectionCount == 1)
        let late = fixture.operation(Repeated(api: "stall"))
        queue.addOperation(late)
        await expect(eventually { queue.joinedCount == 2 && queue.isJoined(late) })
        operations.last?.cancel()
        await operations.last?.ended()
        expect(server.connectionCount == 1 && server.requests.count == 1)
        late.cancel()
        expect(queue.joinedCount, equals: 0, "so has the last")
        await expect(server.waitForConnections(0))
        await expect(eventually { queue.keepsNothing })
    }

    @Test("BEY-9: a cancelled operation is released while the message goes on for the others")
    func releasing() async throws {
        let operations = await stalled(1)
        let queue = queue
        weak var released: RequestOperation<Repeated>?
        do {
            let operation = fixture.operation(Repeated(api: "stall"))
            released = operation
            queue.addOperation(operation)
            await expect(eventually { queue.joinedCount == 2 })
            operation.cancel()
        }
        await expect(eventually { released == nil })
        expect(server.connectionCount, equals: 1)
        operations[0].cancel()
        await expect(server.waitForConnections(0))
    }

    private func authenticated() -> EasyNetworkService {
        EasyNetworkService(
            server.host {
                $0.authentication = AuthenticationSession(TestTokens { _ in "new" }, credential: "old")
            }
        )
    }

    @Test(
        "BEY-9: a request with the host's credential and one without never share an answer",
        arguments: [false, true],
        [nil, "key"]
    )
    func credential(isFirst: Bool, key: String?) async throws {
        let service = authenticated()
        let operations = [isFirst, !isFirst].map { isAuthenticated in
            RequestOperation(
                Repeated(api: "stall", repeatKey: key, isAuthenticated: isAuthenticated),
                service: service
            )
        }
        queue.addOperations(operations, waitUntilFinished: false)
        let server = server
        await expect(eventually { server.requests.count == 2 })
        expect(Set(server.requests.map { $0.headers["Authorization"] }), equals: ["Bearer old", nil])
        queue.cancelAllOperations()
        for operation in operations { await operation.ended() }
    }

    @Test("BEY-9: a message of the user's own, which gets neither credential nor cookies, shares with none that does")
    func custom() throws {
        let service = authenticated()
        let plain = RequestOperation(Repeated(), service: service)
        let message = try #require(plain.sharedMessage(for: CallRequest(Repeated())))
        var custom = URLRequest(url: server.baseURL.appendingPathComponent("a"))
        custom.allHTTPHeaderFields = Dictionary(
            service.configuration.headers(for: server.baseURL, RequestOptions()).map { ($0.name, $0.value) },
            uniquingKeysWith: { $1 }
        )
        let own = try #require(plain.sharedMessage(for: CallRequest(Repeated(customURLRequest: custom))))
        expect(own.key != message.key)
        let same = try #require(plain.sharedMessage(for: CallRequest(Repeated())))
        expect(same.key, equals: message.key)
    }

    @Test("OPQ-6: a request without the host's credential is no repeat of one with it", arguments: [false, true])
    func repeats(isFirst: Bool) async throws {
        let service = authenticated()
        queue.isSuspended = true
        let operations = [isFirst, !isFirst].map { isAuthenticated in
            RequestOperation(
                Repeated(repeatPolicy: .ignoreNewer, isAuthenticated: isAuthenticated),
                service: service
            )
        }
        queue.addOperations(operations, waitUntilFinished: false)
        queue.isSuspended = false
        for operation in operations { try await expect(operation.value.text(), equals: "one two") }
    }

    /// Something that makes the same request another user's.
    enum UserChange: CaseIterable {
        case signIn, signOut, cookie
    }

    @Test(
        "BEY-18, BEY-9: after another sign-in, a sign-out or another cookie an equal request is sent for itself",
        arguments: UserChange.allCases,
        [nil, "key"]
    )
    func anotherUser(change: UserChange, key: String?) async throws {
        let jar = CookieJar()
        let session = AuthenticationSession(TestTokens { _ in "new" }, credential: "ada")
        let host = server.host { ($0.cookies, $0.authentication) = (jar, session) }
        jar.store(["Set-Cookie": "user=ada"], from: server.baseURL)
        let operations = (0..<2).map { _ in
            RequestOperation(Repeated(api: "stall", repeatKey: key), service: EasyNetworkService(host))
        }
        queue.addOperation(operations[0])
        await server.waitForRequests(1)
        switch change {
        case .signIn: session.signIn("bob")
        case .signOut: session.signOut()
        case .cookie: jar.store(["Set-Cookie": "user=bob"], from: server.baseURL)
        }
        queue.addOperation(operations[1])
        await expect(server.waitForRequests(2))
        let credentials = server.requests.map { [$0.headers["Authorization"], $0.headers["Cookie"]] }
        expect(credentials.first, equals: ["Bearer ada", "user=ada"])
        switch change {
        case .signIn: expect(credentials.last, equals: ["Bearer bob", "user=ada"])
        case .signOut: expect(credentials.last, equals: [nil, "user=ada"])
        case .cookie: expect(credentials.last, equals: ["Bearer ada", "user=bob"])
        }
        queue.cancelAllOperations()
        for operation in operations { await operation.ended() }
    }

    @Test("BEY-9: a refresh of the credential, and a cookie of another server, keep requests equal")
    func sameUser() async throws {
        let jar = CookieJar()
        let session = AuthenticationSession(TestTokens { _ in "new" }, credential: "old")
        let host = server.host { ($0.cookies, $0.authentication) = (jar, session) }
        server.route("GET", "/refused") { request in
            request.headers["Authorization"] == "Bearer old" ? .status(401) : .text("ok")
        }
        let operation = RequestOperation(Repeated(), service: EasyNetworkService(host))
        let key = try #require(operation.sharedMessage(for: CallRequest(Repeated()))).key
        jar.store(["Set-Cookie": "user=ada"], from: try #require(URL(string: "https://other.example")))
        _ = try await EasyNetworkService(host).send(Get(api: "refused"))
        expect(session.credential, equals: "new")
        expect(operation.sharedMessage(for: CallRequest(Repeated()))?.key, equals: key)
    }

    @Test("BEY-18, BEY-9: requests with interceptors or redirect rules of their own share only by a key")
    func ownInterceptors() async throws {
        let decide = RedirectPolicy { message, _ in message }
        let requests = [
            Personal(user: "ada"), Personal(user: "bob"), Personal(user: nil, redirects: decide),
            Personal(user: nil, redirects: decide),
        ]
        let queue = NetworkQueue(maxConcurrentOperationCount: 4)
        let operations = requests.map { RequestOperation($0, service: service) }
        queue.addOperations(operations, waitUntilFinished: false)
        await expect(server.waitForRequests(4))
        expect(queue.joinedCount, equals: 0)
        expect(Set(server.requests.map { $0.headers["Authorization"] }), equals: ["ada", "bob", nil])
        // One that shares with none has a slot of its own.
        let fifth = RequestOperation(Personal(user: "eve"), service: service)
        queue.addOperation(fifth)
        expect(!fifth.isExecuting)
        queue.cancelAllOperations()
        for operation in operations + [fifth] { await operation.ended() }
        let named = (0..<2).map { _ in
            RequestOperation(Personal(user: "ada", repeatKey: "key"), service: service)
        }
        queue.addOperations(named, waitUntilFinished: false)
        await expect(eventually { queue.joinedCount == 2 })
        queue.cancelAllOperations()
        for operation in named { await operation.ended() }
    }

    @Test("BEY-9: requests with other redirect rules do not share")
    func redirectRules() throws {
        let operation = RequestOperation(Personal(user: nil), service: service)
        let keys = try [nil, RedirectPolicy(), .never, RedirectPolicy(allowsDowngrade: true)].map { redirects in
            try #require(operation.sharedMessage(for: CallRequest(Personal(user: nil, redirects: redirects)))).key
        }
        expect(keys[0] == keys[1] && Set(keys).count == 3)
    }

    @Test("BEY-9: all but one cancelled, that one gets the answer; the first alone has it from the network")
    func lastGetsAnswer() async throws {
        let gate = DispatchSemaphore(value: 0)
        server.route("GET", "/held") { _ in
            gate.wait()
            return .text("ok")
        }
        let operations = (0..<3).map { _ in fixture.operation(Repeated(api: "held")) }
        queue.addOperation(operations[0])
        await server.waitForRequests(1)
        queue.addOperations(Array(operations.dropFirst()), waitUntilFinished: false)
        let queue = queue
        await expect(eventually { queue.joinedCount == 3 })
        operations[1].cancel()
        await operations[1].ended()
        gate.signal()
        try await expect(operations[0].value.source, equals: .network)
        try await expect(operations[2].value.source, equals: .joined)
        try await expect(operations[2].value.text(), equals: "ok")
        let late = fixture.operation(Repeated(api: "held"))
        gate.signal()
        queue.addOperation(late)
        try await expect(late.value.source, equals: .network)
        expect(server.requests.count, equals: 2)
    }

    @Test("BEY-9: an error goes to all, with the request and the attempts; so does one of a mapping to its own")
    func errors() async throws {
        server.route("GET", "/broken") { _ in .fault(.reset) }
        server.route("GET", "/missing") { _ in .status(404) }
        for (api, code) in [("broken", NetworkError.Code.connectionLost), ("missing", .unacceptableStatus)] {
            queue.isSuspended = true
            let operations = (0..<4).map { _ in fixture.operation(Repeated(api: api)) }
            queue.addOperations(operations, waitUntilFinished: false)
            queue.isSuspended = false
            for operation in operations {
                let error = await #expect(throws: NetworkError.self) { try await operation.value }
                expect(error?.code == code && error?.attempts == 1)
                expect(error?.request?.url.path, equals: "/" + api)
            }
        }
        struct Number: APIRequest {
            typealias Item = Int
            var api = "a"
            var repeatPolicy = RepeatPolicy.join
            var options: RequestOptions { RequestOptions(repeatPolicy: repeatPolicy) }
        }
        let number = RequestOperation(Number(), service: service)
        queue.addOperation(number)
        let error = await #expect(throws: NetworkError.self) { try await number.value }
        expect(error?.code == .cannotParseResponse && error?.attempts == 1 && error?.statusCode == 200)
        expect(error?.request?.url.path, equals: "/a")
    }

    @Test("BEY-9, REQ-10: each that joined reads the answer by its own decoder; other cookies are not joined")
    func ownOptions() async throws {
        struct Moment: APIRequest {
            typealias Item = [Date]
            let api = "held"
            var options: RequestOptions
        }
        let gate = DispatchSemaphore(value: 0)
        server.route("GET", "/held") { _ in
            gate.wait()
            return .text("[0]")
        }
        let forms: [JSONDecoder.DateDecodingStrategy?] = [.secondsSince1970, nil, .deferredToDate]
        let operations = forms.map { form in
            let decoder = form.map { ResponseDecoder.json(dates: $0) }
            return RequestOperation(
                Moment(options: RequestOptions(decoder: decoder, repeatPolicy: .join)),
                service: service
            )
        }
        let (own, none) = (RequestOptions(cookies: CookieJar()), RequestOptions(usesCookies: false))
        let others = [own, none].map { options in
            RequestOperation(Moment(options: options.with { $0.repeatPolicy = .join }), service: service)
        }
        let queue = NetworkQueue()
        queue.addOperations(operations + others, waitUntilFinished: false)
        await expect(server.waitForRequests(2))
        await expect(eventually { queue.joinedCount == 5 })
        for _ in 0..<2 { gate.signal() }
        try await expect(operations[0].value, equals: [Date(timeIntervalSince1970: 0)])
        try await expect(operations[1].value, equals: [Date(timeIntervalSinceReferenceDate: 0)])
        try await expect(operations[2].value, equals: [Date(timeIntervalSinceReferenceDate: 0)])
        for other in others { _ = try await other.value }
        // A host without cookies has none, as the one that wants none.
        expect(server.requests.count, equals: 2)
    }

    @Test("BEY-9: requests that differ in parameters, header fields, credentials, deadline or host are not joined")
    func different() async throws {
        let requests = [
            Repeated(api: "stall"), Repeated(api: "stall", text: "a"), Repeated(api: "stall", text: "b"),
            Repeated(api: "stall", headers: ["Authorization": "Bearer a"]),
            Repeated(api: "stall", headers: ["authorization": "Bearer b"]),
            Repeated(api: "stall", headers: ["Accept": "text/plain"]), Repeated(api: "stall", timeout: 100),
            // An equal key makes no difference.
            Repeated(api: "stall", headers: ["Authorization": "Bearer a"], repeatKey: "a"),
            Repeated(api: "stall", headers: ["Authorization": "Bearer b"], repeatKey: "a"),
            Repeated(api: "stall", headers: ["Cookie": "a"], repeatKey: "a"),
        ]
        let queue = NetworkQueue(maxConcurrentOperationCount: -1)
        let other = EasyNetworkService(server.host())
        let operations = requests.map(fixture.operation) + [RequestOperation(requests[0], service: other)]
        queue.addOperations(operations, waitUntilFinished: false)
        await expect(server.waitForRequests(operations.count))
        // Equal apart from the order of the parameters and the case of the field names.
        let same = [
            Repeated(api: "stall", text: "a"), Repeated(api: "stall", headers: ["AUTHORIZATION": "Bearer a"]),
        ]
        queue.addOperations(same.map(fixture.operation), waitUntilFinished: false)
        let count = operations.count
        await expect(eventually { queue.joinedCount == count + 2 })
        expect(queue.repeats.withLock { $0.carriers.count }, equals: count)
        queue.cancelAllOperations()
        await expect(server.waitForConnections(0))
        expect(server.requests.count, equals: count)
    }

    @Test("BEY-9: with a custom key only operations that expect the same item share a message")
    func itemTypes() async throws {
        queue.isSuspended = true
        let words = (0..<2).map { _ in RequestOperation(Words(repeatKey: "key"), service: service) }
        let responses = (0..<2).map { _ in fixture.operation(Repeated(repeatKey: "key")) }
        queue.addOperations(words + responses, waitUntilFinished: false)
        queue.isSuspended = false
        for operation in words { try await expect(operation.value, equals: ["one", "two"]) }
        for operation in responses { try await expect(operation.value.text(), equals: "one two") }
        expect(server.requests.count >= 2)
    }

    @Test("BEY-9, OPQ-3: the message has the highest priority of those that share it, as that changes")
    func priority() async throws {
        let queue = NetworkQueue(maxConcurrentOperationCount: 1)
        let gate = Gate()
        queue.addOperation(TestJob { job in gate.whenOpen { job.finish() } })
        let operations = (0..<3).map { _ in fixture.operation(Repeated()) }
        operations[0].queuePriority = .low
        // Added alone, so that it is certainly the first.
        queue.addOperation(operations[0])
        await expect(eventually { queue.joinedCount == 1 })
        queue.addOperations(Array(operations.dropFirst()), waitUntilFinished: false)
        await expect(eventually { queue.joinedCount == 3 })
        let priority = {
            queue.state.withLock { $0.graph.allJobs.first { $0.payload is RequestCarrier }?.priority }
        }
        // A joined operation is counted before its priority is applied.
        await expect(eventually { priority() == .normal })
        // Several threads may update the priority at once; the last one applies the newest value.
        operations[0].queuePriority = .veryHigh
        await expect(eventually { priority() == .veryHigh })
        operations[1].queuePriority = .high
        operations[0].cancel()
        await expect(eventually { priority() == .high })
        operations[1].queuePriority = .veryLow
        await expect(eventually { priority() == .normal })
        gate.open()
        try await expect(operations[2].value.source, equals: .joined)
    }

    @Test("BEY-9: a barrier waits for those that share, and not they for it")
    func barrier() async throws {
        let queue = NetworkQueue(maxConcurrentOperationCount: 1)
        let order = Locked<[String]>([])
        queue.isSuspended = true
        let before = fixture.operation(Repeated())
        before.success = { _ in order.withLock { $0.append("before") } }
        queue.addOperation(before)
        queue.addBarrierBlock { order.withLock { $0.append("barrier") } }
        let after = fixture.operation(Repeated())
        after.success = { _ in order.withLock { $0.append("after") } }
        queue.addOperation(after)
        queue.isSuspended = false
        _ = try await after.value
        expect(order.withLock { $0 }, equals: ["before", "barrier", "after"])
    }

    @Test("BEY-9: an operation that joins at its start gives its slot to the message")
    func joinAtStart() async throws {
        let queue = NetworkQueue(maxConcurrentOperationCount: 1)
        let first = fixture.operation(Repeated(repeatPolicy: .allow))
        let next = (0..<5).map { _ in first.then { _ in Repeated(text: "next") } }
        queue.addOperations([first] + next, waitUntilFinished: false)
        for operation in next { try await expect(operation.value.statusCode, equals: 200) }
        await expect(eventually { queue.keepsNothing })
    }

    @Test("BEY-9: an operation that learns from its request that it joins needs no slot")
    func joinWithoutSlot() async throws {
        let queue = NetworkQueue(maxConcurrentOperationCount: 1)
        let gate = DispatchSemaphore(value: 0)
        server.route("GET", "/held") { _ in
            gate.wait()
            return .text("ok")
        }
        let sending = fixture.operation(Repeated(api: "held"))
        queue.addOperation(sending)
        await expect(server.waitForRequests(1))
        let first = fixture.operation(Repeated(repeatPolicy: .allow))
        let next = first.then { _ in Repeated(api: "held") }
        queue.addOperation(next)
        self.queue.addOperation(first)
        await expect(eventually { queue.joinedCount == 2 })
        for _ in 0..<2 { gate.signal() }
        try await expect(next.value.source, equals: .joined)
        try await expect(sending.value.source, equals: .network)
        expect(server.requests.count, equals: 2)
    }

    /// Notes whether its item is made on the queue with the key.
    private struct Placed: APIRequest {
        let key: DispatchSpecificKey<Bool>
        let isThere: Locked<[Bool]>
        let api = "stored"
        var options: RequestOptions { RequestOptions(cache: .http, repeatPolicy: .join) }

        func item(from response: NetworkResponse) throws -> Int {
            let there = DispatchQueue.getSpecific(key: key) == true
            isThere.withLock { $0.append(there) }
            return response.statusCode
        }
    }

    @Test("BEY-9, CBK-4: what is stored for those that share is not read on the callback queue")
    func storedElsewhere() async throws {
        let (key, isThere) = (DispatchSpecificKey<Bool>(), Locked<[Bool]>([]))
        let callbackQueue = DispatchQueue(label: "callbacks")
        callbackQueue.setSpecific(key: key, value: true)
        let cache = NetworkCache(diskBytes: 0)
        server.route("GET", "/stored") { _ in .text("x", headers: ["Cache-Control": "max-age=60"]) }
        let operation = RequestOperation(
            Placed(key: key, isThere: isThere),
            service: EasyNetworkService(server.host { ($0.cache, $0.callbackQueue) = (cache, callbackQueue) })
        )
        let isCalledThere = Locked(false)
        operation.success = { _ in
            let there = DispatchQueue.getSpecific(key: key) == true
            isCalledThere.exchange(there)
        }
        queue.addOperation(operation)
        try await expect(operation.value, equals: 200)
        expect(isCalledThere.withLock { $0 } && isThere.withLock { $0 } == [false, false])
        await expect(cache.entries.count, equals: 1)
    }

    @Test("BEY-9: the message has the tags and categories of the first; cancelling by tag leaves the others")
    func tags() async throws {
        let gate = DispatchSemaphore(value: 0)
        server.route("GET", "/held") { _ in
            gate.wait()
            return .text("ok")
        }
        let (first, second) = (fixture.operation(Repeated(api: "held")), fixture.operation(Repeated(api: "held")))
        first.tags = ["first"]
        for operation in [first, second] { operation.mutualExclusionCategories = ["account"] }
        queue.addOperation(first)
        await server.waitForRequests(1)
        queue.addOperation(second)
        let queue = queue
        await expect(eventually { queue.joinedCount == 2 })
        // The message occupies the slots, not the operations that share it.
        let excluded = TestJob()
        excluded.mutualExclusionCategories = ["account"]
        queue.addOperation(excluded)
        queue.cancelOperations(tag: "first")
        await first.ended()
        expect(first.error?.code == .cancelled && excluded.executionCount == 0)
        gate.signal()
        try await expect(second.value.text(), equals: "ok")
        await excluded.ended()
        expect(excluded.executionCount == 1 && server.requests.count == 1)
    }

    @Test("BEY-9: an operation in a chain with a category does not join one that waits for the category")
    func categoryOfChain() async throws {
        let gate = Gate()
        let part = fixture.operation(Repeated())
        let chain = ChainOperation([TestJob { job in gate.whenOpen { job.finish() } }, part])
        chain.mutualExclusionCategories = ["account"]
        queue.addOperation(chain)
        let other = fixture.operation(Repeated())
        other.mutualExclusionCategories = ["account"]
        queue.addOperation(other)
        let queue = queue
        await expect(eventually { queue.joinedCount == 1 })
        gate.open()
        await expect(eventually { other.isFinished && chain.isFinished })
        expect(chain.error == nil && other.error == nil && server.requests.count == 2)
    }

    @Test("BEY-9: cancelling the queue, or the service of one, ends them; the service of one leaves the others")
    func cancelAll() async throws {
        let own = EasyNetworkService(service.configuration)
        let one = RequestOperation(Repeated(api: "stall"), service: own)
        queue.addOperation(one)
        let operations = await stalled(4)
        own.cancel()
        await one.ended()
        expect(one.error?.code == .cancelled && operations.allSatisfy { !$0.isFinished } && server.connectionCount == 1)
        queue.cancelAllOperations()
        for operation in operations {
            await operation.ended()
            expect(operation.error?.code, equals: .cancelled)
        }
        await expect(server.waitForConnections(0))
    }

    @Test(
        "BEY-9: random joins and cancels from many threads: each ends once, nothing is kept",
        arguments: 1...UInt64(TestLoad.count(6, part: 2))
    )
    func stress(seed: UInt64) async throws {
        let transport = InMemoryTransport()
        for name in ["0", "1", "2"] { transport.route("GET", "/" + name) { _ in .text(name) } }
        let host = HostConfiguration(
            baseURL: URL(string: "http://memory.test"),
            deadlines: TransportDeadlines(idle: nil),
            transport: transport
        )
        let service = EasyNetworkService(host)
        let queue = NetworkQueue(maxConcurrentOperationCount: Int(seed % 3) + 1)
        let endings = Locked<[Int]>([])
        var generator = SeededGenerator(seed: seed)
        let policies: [RepeatPolicy] = [.join, .join, .join, .allow, .cancelOlder, .ignoreNewer]
        let operations = (0..<400).map { number in
            let name = String(Int.random(in: 0..<3, using: &generator))
            let policy = policies.randomElement(using: &generator) ?? .join
            let operation = RequestOperation(Repeated(api: name, repeatPolicy: policy), service: service)
            operation.success = { response in
                expect((try? response.text()), equals: name, "seed \(seed)")
                endings.withLock { $0.append(number) }
            }
            operation.failure = { error in
                expect([.cancelled, .refused].contains(error.code), "seed \(seed): \(error)")
                endings.withLock { $0.append(number) }
            }
            return operation
        }
        let cancelled = (0..<400).map { _ in Int.random(in: 0..<400, using: &generator) }
        let priorities = (0..<400).map { _ in
            [Operation.QueuePriority.veryLow, .low, .normal, .high, .veryHigh].randomElement(using: &generator) ?? .low
        }
        DispatchQueue.concurrentPerform(iterations: 400) { index in
            queue.addOperation(operations[index])
            operations[cancelled[index]].queuePriority = priorities[index]
            if index % 3 == 0 { operations[cancelled[index]].cancel() }
        }
        for operation in operations { await operation.ended() }
        expect(endings.withLock { $0.sorted() }, equals: Array(0..<400), "seed \(seed)")
        await expect(eventually { queue.keepsNothing }, "seed \(seed)")
    }
}
