import Dispatch
import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork
@testable import EasyNetworkDiagnostics
@testable import TestSupport

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

@Suite("Traces", .timeLimit(.minutes(10)))
struct TraceTests: ServiceSuite {
    private struct Fetch: APIRequest {
        typealias Item = NetworkResponse
        var api: String
        var headers: [String: String]?
        var options = RequestOptions()
    }

    /// A span as a line of OTLP/JSON has it.
    private struct Span: Decodable {
        struct Attribute: Decodable {
            struct Value: Decodable {
                var stringValue: String?
                var intValue: String?
            }
            let key: String
            let value: Value
        }
        struct Link: Decodable { let traceId, spanId: String }
        struct Status: Decodable {
            var message: String?
            let code: Int
        }

        let traceId, spanId, name, startTimeUnixNano, endTimeUnixNano: String
        var parentSpanId, traceState: String?
        let kind: Int
        let attributes: [Attribute]
        var links: [Link]?
        var status: Status?

        subscript(key: String) -> String? {
            let value = attributes.first { $0.key == key }?.value
            return value?.stringValue ?? value?.intValue
        }
    }

    private struct Line: Decodable {
        struct Resource: Decodable {
            struct Scope: Decodable { let spans: [Span] }
            let scopeSpans: [Scope]
        }
        let resourceSpans: [Resource]
    }

    private func spans(in lines: String) throws -> [Span] {
        try lines.split(separator: "\n").flatMap { line in
            try JSONDecoder().decode(Line.self, from: Data(line.utf8)).resourceSpans.flatMap(\.scopeSpans).flatMap(
                \.spans
            )
        }
    }

    /// The span of a job.
    private func span(_ name: String, _ spans: [Span]) throws -> Span {
        try #require(spans.first { $0.name == name }, "no \(name) in \(spans.map(\.name))")
    }

    let transport = InMemoryTransport()
    private let queue = NetworkQueue()

    init() {
        transport.route("GET", "/item") { _ in .text("a") }
        transport.route("GET", "/missing") { _ in .text("b", status: 404) }
        transport.route("GET", "/moved") { _ in .status(302, headers: ["Location": "/item"]) }
    }

    func prepare(_ host: inout HostSettings) { host.sendsTraceContext = true }

    private func job(_ name: String, _ api: String, _ service: EasyNetworkService) -> RequestOperation<Fetch> {
        let job = RequestOperation(Fetch(api: api), service: service)
        job.name = name
        return job
    }

    private func job(_ name: String, _ service: EasyNetworkService) -> RequestOperation<Fetch> {
        job(name, "item", service)
    }

    /// The contexts of the messages to a path, in order.
    private func sent(to path: String = "/item") -> [TraceContext] {
        transport.requests(to: path).compactMap { request in
            request.headers["traceparent"].flatMap {
                TraceContext(traceparent: $0, tracestate: request.headers["tracestate"])
            }
        }
    }

    private func isEmpty() async {
        await withCheckedContinuation { continuation in queue.whenEmpty { continuation.resume() } }
    }

    // MARK: - Headers

    @Test("DIA-3: a host that sends no contexts sends none, and a request overrides its host")
    func switches() async throws {
        let silent = service { $0.sendsTraceContext = false }
        _ = try await TraceContext.$current.withValue(TraceContext()) {
            try await queue.perform(Fetch(api: "item"), service: silent)
        }
        _ = try await silent.send(Fetch(api: "item"))
        expect(transport.requests.count, equals: 2)
        expect(transport.requests.allSatisfy { $0.headers["traceparent"] == nil && $0.headers["tracestate"] == nil })
        _ = try await silent.send(Fetch(api: "item", options: RequestOptions(sendsTraceContext: true)))
        expect(sent().count, equals: 1)
        _ = try await service().send(Fetch(api: "item", options: RequestOptions(sendsTraceContext: false)))
        expect(sent().count == 1 && transport.requests.count == 4)
    }

    @Test("DIA-3: a header of the user's is not overwritten, and a custom message is left as it is")
    func ownHeaders() async throws {
        let own = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"
        _ = try await service().send(Fetch(api: "item", headers: ["Traceparent": own]))
        _ = try await service { $0.headers = ["traceparent": own] }.send(Fetch(api: "item"))
        let caller = try #require(TraceContext(traceparent: own, tracestate: "a=1"))
        _ = try await TraceContext.$current.withValue(caller) {
            try await service().send(Fetch(api: "item", headers: ["traceparent": own]))
        }
        expect(transport.requests.map { $0.headers.values(for: "traceparent") }, equals: [[own], [own], [own]])
        expect(transport.requests.allSatisfy { $0.headers["tracestate"] == nil })
        let url = try #require(URL(string: "http://one.example/item"))
        _ = try await service().send(Fetch(api: "", options: RequestOptions(customURLRequest: URLRequest(url: url))))
        expect(transport.requests.last?.headers["traceparent"] == nil)
    }

    @Test("DIA-3, SEC-1: another origin gets no context, by redirect, absolute URL or interceptor, unless it is named")
    func origins() async throws {
        let caller = try #require(
            TraceContext(traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", tracestate: "a=1")
        )
        transport.route("GET", "/away") { _ in .status(302, headers: ["Location": "http://other.example/item"]) }
        transport.route("GET", "/back") { _ in .status(302, headers: ["Location": "http://one.example/item"]) }
        /// Which of the two fields the message to `/item` had.
        func fields(
            _ api: String,
            _ options: RequestOptions = RequestOptions(),
            _ change: @escaping (inout HostSettings) -> Void = { _ in }
        ) async throws -> [Bool] {
            let host = service { host in
                host.baseURL = URL(string: "http://one.example")
                change(&host)
            }
            _ = try await TraceContext.$current.withValue(caller) {
                try await host.send(Fetch(api: api, options: options))
            }
            let headers = try #require(transport.requests(to: "/item").last).headers
            return ["traceparent", "tracestate"].map { headers[$0] != nil }
        }
        let (both, none) = ([true, true], [false, false])
        let asks = RequestOptions(sendsTraceContext: true)
        try await expect(fields("item"), equals: both)
        try await expect(fields("away"), equals: none)
        try await expect(fields("http://other.example/item"), equals: none)
        // To the host's own origin again.
        try await expect(fields("http://other.example/back"), equals: none)
        try await expect(fields("http://other.example/item", asks), equals: both)
        try await expect(fields("http://other.example/back", asks), equals: none)
        try await expect(fields("http://other.example/item") { $0.baseURL = nil }, equals: both)
        try await expect(fields("http://one.example/away") { $0.baseURL = nil }, equals: none)
        let named: @Sendable (inout HostSettings) -> Void = { $0.redirects.crossOriginHeaders = ["TraceParent"] }
        try await expect(fields("away", RequestOptions(), named), equals: [true, false])
        try await expect(fields("http://other.example/item", RequestOptions(), named), equals: [true, false])
        struct Elsewhere: RequestInterceptor {
            func adapt(_ message: TransportRequest, context: AttemptContext) async throws -> TransportRequest {
                var message = message
                message.url = URL(string: "http://other.example/item") ?? message.url
                return message
            }
        }
        try await expect(fields("item") { $0.interceptors = [Elsewhere()] }, equals: none)
    }

    @Test("DIA-3: each attempt and each redirect has a span id of its own, in one trace, and counts its resends")
    func attempts() async throws {
        let count = Locked(0)
        transport.route("GET", "/flaky") { _ in
            let number = count.next()
            return number == 1 ? .status(503) : .status(302, headers: ["Location": "/item"])
        }
        let timeline = Timeline()
        timeline.record(queue)
        let service = service { host in
            host.retry = RetryPolicy(maximumRetryCount: 1)
            host.random = { 0 }
        }
        let job = job("flaky", "flaky", service)
        queue.addOperation(job)
        let response = try await job.value
        await isEmpty()
        let contexts = sent(to: "/flaky") + sent()
        expect(contexts.count == 3 && Set(contexts.map(\.spanID)).count == 3 && Set(contexts.map(\.traceID)).count == 1)
        expect(response.history.map { $0.request.headers["traceparent"] }, equals: contexts.map(\.traceparent))
        let spans = try spans(in: await timeline.openTelemetry())
        let messages = spans.filter { $0.kind == 3 }
        expect(messages.map(\.spanId), equals: contexts.map(\.spanID))
        expect(messages.map { $0["http.request.resend_count"] }, equals: [nil, "1", "2"])
        expect(messages.map { $0["http.response.status_code"] }, equals: ["503", "302", "200"])
        expect(messages.map { $0["error.type"] }, equals: ["503", nil, nil])
        expect(messages.map { $0.status?.code }, equals: [2, nil, nil])
        let root = try span("flaky", spans)
        expect(messages.allSatisfy { $0.parentSpanId == root.spanId } && root.parentSpanId == nil && root.kind == 1)
        expect(root.status == nil && root.traceId == contexts[0].traceID)
    }

    // MARK: - Graphs

    @Test("DIA-3: a graph of jobs that are added together is one trace: parents by dependency, the others are links")
    func dependencies() async throws {
        let timeline = Timeline()
        timeline.record(queue)
        let service = service()
        let (first, second) = (job("first", service), job("second", service))
        let (both, last) = (job("both", service), job("last", service))
        both.addDependency(first)
        both.addDependency(second)
        last.addDependency(second)
        let other = job("other", service)
        queue.addOperations([first, second, both, last, other], waitUntilFinished: false)
        for job in [both, last, other] { _ = try await job.value }
        await isEmpty()
        let all = try spans(in: await timeline.openTelemetry())
        let roots = try ["first", "second", "both", "last", "other"].map { try span($0, all) }
        expect(Set(roots.prefix(4).map(\.traceId)).count == 1 && roots[4].traceId != roots[0].traceId)
        let ids = roots.map(\.spanId)
        expect(roots.map(\.parentSpanId), equals: [nil, nil, ids[0], ids[1], nil])
        expect(roots.map { ($0.links ?? []).map(\.spanId) }, equals: [[], [], [ids[1]], [], []])
        // Later jobs go on in the trace.
        let next = last.then { _ in Fetch(api: "item") }
        next.name = "next"
        queue.addOperation(next)
        _ = try await next.value
        await isEmpty()
        let after = try span("next", try spans(in: await timeline.openTelemetry()))
        expect(after.traceId == roots[0].traceId && after.parentSpanId == ids[3])
        expect(Set(sent().map(\.traceID)) == Set(roots.map(\.traceId)) && sent().count == 6)
    }

    @Test("DIA-3: 2,000 jobs in a row are one trace, in whatever order they are added")
    func row() {
        _ = TraceContext()
        for isReversed in [false, true] {
            let queue = NetworkQueue()
            queue.isSuspended = true
            let jobs = (0..<2_000).map { _ in Inner() }
            for index in jobs.indices.dropFirst() { jobs[index].addDependency(jobs[index - 1]) }
            for job in isReversed ? jobs.reversed() : jobs { queue.addOperation(job) }
            expect(Set(jobs.compactMap { $0.trace?.context.traceID }).count, equals: 1)
            let parents = zip(jobs, jobs.dropFirst()).filter { $0.trace?.context.spanID == $1.trace?.parentID }
            // A job that is added before the one that it waits for cannot know its id.
            expect(parents.count, equals: (isReversed ? 0 : 1_999))
            queue.cancelAllOperations()
        }
    }

    @Test("DIA-3: the children of a batch and the steps of a chain have the group as their parent")
    func groups() async throws {
        let timeline = Timeline()
        timeline.record(queue)
        let service = service()
        let (one, two, three) = (job("one", service), job("two", service), job("three", service))
        let chain = ChainOperation([two, three])
        chain.name = "chain"
        let batch = BatchOperation([one, chain])
        batch.name = "batch"
        let before = job("before", service)
        batch.addDependency(before)
        // Whatever the task says in which they are made.
        let late = TraceContext.$current.withValue(TraceContext()) { job("late", service) }
        chain.addOperation(three) { chain, _ in chain.addOperation(late) }
        queue.addOperations([before, batch], waitUntilFinished: false)
        await batch.ended()
        await isEmpty()
        let all = try spans(in: await timeline.openTelemetry())
        func parent(_ name: String) throws -> String? {
            let id = try span(name, all).parentSpanId
            return all.first { $0.spanId == id }?.name
        }
        try expect(parent("before") == nil && parent("batch") == "before")
        try expect(parent("one") == "batch" && parent("chain") == "batch")
        try expect(parent("two") == "chain" && parent("three") == "chain")
        expect(Set(all.map(\.traceId)).count == 1 && Set(all.map(\.spanId)).count == all.count)
        // Each is a part of another, or the first.
        expect(all.filter { $0.parentSpanId == nil }.map(\.name), equals: ["before"])
        let ids = Set(all.map(\.spanId))
        expect(all.allSatisfy { $0.parentSpanId.map(ids.contains) ?? true })
        for child in all {
            guard let parent = all.first(where: { $0.spanId == child.parentSpanId }), parent.name != "before" else {
                continue
            }
            expect(
                child.startTimeUnixNano >= parent.startTimeUnixNano && child.endTimeUnixNano <= parent.endTimeUnixNano
            )
        }
    }

    @Test("DIA-3: a message that jobs share is a part of the trace of the job that asked first")
    func shared() async throws {
        let timeline = Timeline()
        timeline.record(queue)
        let service = service()
        let jobs = (1...2).map { number in
            let job = job("job \(number)", service)
            job.repeatPolicy = .join
            return job
        }
        queue.addOperations(jobs, waitUntilFinished: false)
        for job in jobs { _ = try await job.value }
        await isEmpty()
        let all = try spans(in: await timeline.openTelemetry())
        let messages = all.filter { $0.kind == 3 }
        expect(messages.count == sent().count && messages.map(\.spanId) == sent().map(\.spanID))
        let parents = try (1...2).map { try span("job \($0)", all).spanId }
        expect(messages.allSatisfy { message in message.parentSpanId.map(parents.contains) == true })
    }

    // MARK: - The caller

    @TaskLocal private static var word: String?

    @Test("DIA-3: other task-local values reach the interceptors of a task's own calls, and not those of its jobs")
    func otherValues() async throws {
        struct Listener: RequestInterceptor {
            let words: Locked<[String?]>

            func adapt(_ message: TransportRequest, context: AttemptContext) async throws -> TransportRequest {
                words.withLock { $0.append(TraceTests.word) }
                return message
            }
        }
        let words = Locked<[String?]>([])
        let service = service { $0.interceptors = [Listener(words: words)] }
        try await Self.$word.withValue("here") {
            _ = try await service.send(Fetch(api: "item"))
            _ = try await queue.perform(Fetch(api: "item"), service: service)
        }
        expect(words.withLock { $0 }, equals: ["here", nil])
    }

    private struct Spy: RequestInterceptor {
        let seen: Locked<[TraceContext?]>

        func adapt(_ message: TransportRequest, context: AttemptContext) async throws -> TransportRequest {
            seen.withLock { $0.append(TraceContext.current) }
            return message
        }

        func didReceive(
            _ result: Result<NetworkResponse, NetworkError>,
            context: AttemptContext
        ) async -> ResponseDecision {
            seen.withLock { $0.append(TraceContext.current) }
            return .proceed
        }
    }

    private final class Inner: NetworkOperation, @unchecked Sendable {
        // Sendable because what changes is behind a lock.
        let seen = Locked<TraceContext?>(nil)

        override func execute() {
            seen.exchange(TraceContext.current)
            finish()
        }
    }

    @Test("DIA-3: a caller's context reaches the jobs that are made or added in its task, calls, and interceptors")
    func caller() async throws {
        let text = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
        let caller = try #require(TraceContext(traceparent: text, tracestate: "a=1,b=2"))
        let timeline = Timeline()
        timeline.record(queue)
        let seen = Locked<[TraceContext?]>([])
        let service = service { $0.interceptors = [Spy(seen: seen)] }
        timeline.record(service.group.host)
        let added = job("added", service)
        let inner = Inner()
        let made = try await TraceContext.$current.withValue(caller) {
            let made = job("made", service)
            queue.addOperations([added, inner], waitUntilFinished: false)
            _ = try await service.send(Fetch(api: "item"))
            return made
        }
        _ = try await added.value
        queue.addOperation(made)
        _ = try await made.value
        await inner.ended()
        await isEmpty()
        let all = try spans(in: await timeline.openTelemetry())
        for name in ["added", "made", "Inner", "GET /item"] {
            let span = try span(name, all)
            expect(span.parentSpanId == caller.spanID && span.traceId == caller.traceID, "\(name)")
            expect(span.traceState, equals: "a=1,b=2")
        }
        expect(sent().count == 3 && sent().allSatisfy { $0.isInTrace(of: caller) && $0.tracestate == "a=1,b=2" })
        let jobs = Set(try ["added", "made", "GET /item"].map { try span($0, all).spanId })
        let contexts = seen.withLock { $0 }.compactMap { $0 }
        expect(contexts.count == 6 && Set(contexts.map(\.spanID)) == jobs)
        try expect(inner.seen.withLock { $0 }?.spanID, equals: span("Inner", all).spanId)
        expect(TraceContext.current == nil)
    }

    @Test("DIA-3: a job that is added inside another one is a part of that one")
    func nested() async throws {
        let timeline = Timeline()
        timeline.record(queue)
        let (queue, inner) = (queue, Inner())
        let outer = BlockNetworkOperation { queue.addOperation(inner) }
        outer.name = "outer"
        queue.addOperation(outer)
        await outer.ended()
        await inner.ended()
        await isEmpty()
        let all = try spans(in: await timeline.openTelemetry())
        try expect(span("Inner", all).parentSpanId, equals: span("outer", all).spanId)
    }

    @Test("DIA-3: what is not sampled is passed on, and not recorded")
    func sampling() async throws {
        let caller = try #require(TraceContext(traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"))
        let timeline = Timeline()
        timeline.record(queue)
        let service = service()
        _ = try await TraceContext.$current.withValue(caller) {
            try await queue.perform(Fetch(api: "item"), service: service)
        }
        _ = try await TraceContext.$current.withValue(TraceContext(isSampled: false)) {
            try await queue.perform(Fetch(api: "item"), service: service)
        }
        await isEmpty()
        expect(sent().count == 2 && sent().allSatisfy { !$0.isSampled } && sent()[0].isInTrace(of: caller))
        await expect(timeline.openTelemetry(), equals: "")
        let chrome = try JSONSerialization.jsonObject(with: Data(await timeline.chromeTrace().utf8)) as? [String: Any]
        expect((chrome?["traceEvents"] as? [Any])?.isEmpty, equals: true)
    }

    // MARK: - Spans

    @Test("DIA-3: a message has the attributes of the semantic conventions for HTTP, without secrets")
    func attributes() async throws {
        let timeline = Timeline()
        let service = service()
        timeline.record(service.group.host)
        _ = try await service.send(Fetch(api: "http://other.example.com:8080/item?token=secret2&page=1"))
        let lines = await timeline.openTelemetry(service: "shop")
        expect(!lines.contains("secret") && lines.contains(#"{"key":"service.name","value":{"stringValue":"shop"}}"#))
        let message = try #require(try spans(in: lines).first { $0.kind == 3 })
        expect(message.name == "GET" && message["http.request.method"] == "GET")
        expect(
            message["url.full"]?.contains("token=REDACTED") == true && message["url.full"]?.contains("page=1") == true
        )
        expect(message["server.address"] == "other.example.com" && message["server.port"] == "8080")
        expect(message["http.response.status_code"] == "200" && message["error.type"] == nil)
        expect(!(await timeline.chromeTrace()).contains("secret"))
    }

    @Test(
        "DIA-3: the phases of a message and the waits of a job are spans within them, with the same ids in each export"
    )
    func phases() async throws {
        let server = try MockServer()
        server.route("GET", "/item") { _ in .text("a") }
        let host = server.host { $0.sendsTraceContext = true }
        let timeline = Timeline()
        timeline.record(queue)
        queue.setMaxConcurrentOperationCount(1, forHost: host.host ?? "")
        let jobs = (1...2).map { job("job \($0)", EasyNetworkService(host)) }
        queue.addOperations(jobs, waitUntilFinished: false)
        for job in jobs { _ = try await job.value }
        await isEmpty()
        let lines = await timeline.openTelemetry()
        let all = try spans(in: lines)
        expect(lines, equals: (await timeline.openTelemetry()))
        expect(Set(all.map(\.spanId)).count, equals: all.count)
        let messages = all.filter { $0.kind == 3 }
        expect(messages.count == 2 && messages[0]["network.protocol.version"] == "1.1")
        let phases = all.filter { $0.parentSpanId == messages.first?.spanId }
        expect(phases.contains { $0.name == "request, first byte" }, "\(phases.map(\.name))")
        for phase in phases {
            expect(phase.startTimeUnixNano >= messages[0].startTimeUnixNano)
            expect(phase.endTimeUnixNano <= messages[0].endTimeUnixNano && phase.traceId == messages[0].traceId)
        }
        let second = try span("job 2", all)
        let wait = try #require(all.last { $0.parentSpanId == second.spanId && $0.name == "wait" })
        expect(wait["easynetwork.wait.for"] == "the only slot for its host" && wait["easynetwork.wait.kind"] == "slot")
    }

    @Test("DIA-3: failed, cancelled and dependent jobs have a status of error, each with its type")
    func failures() async throws {
        let timeline = Timeline()
        timeline.record(queue)
        let service = service()
        let failed = job("failed", "missing", service)
        let dependent = job("dependent", service)
        dependent.addDependency(failed)
        let cancelled = job("cancelled", service)
        let never = Gate()
        cancelled.addCondition(
            OperationCondition("never") { _ in
                await never.opened()
                return true
            }
        )
        queue.addOperations([failed, dependent, cancelled], waitUntilFinished: false)
        await dependent.ended()
        cancelled.cancel()
        await cancelled.ended()
        never.open()
        await isEmpty()
        let all = try spans(in: await timeline.openTelemetry())
        let types = ["failed": "unacceptableStatus", "dependent": "dependencyFailed", "cancelled": "cancelled"]
        for (name, type) in types {
            let span = try span(name, all)
            expect(span.status?.code == 2 && span["error.type"] == type && span.status?.message != nil, "\(name)")
        }
        try expect(span("dependent", all).parentSpanId, equals: span("failed", all).spanId)
    }

    @Test("DIA-3: a message under way when its job is cancelled ends with the job, as cancelled")
    func cancelledMessage() async throws {
        // Its answer never comes.
        let transport = InMemoryTransport(clock: ManualClock())
        transport.route("GET", "/slow") { _ in MockResponse(delay: 1) }
        let timeline = Timeline()
        timeline.record(queue)
        let slow = job("slow", "slow", service { $0.transport = transport })
        queue.addOperation(slow)
        await expect(transport.waitForRequests(1))
        slow.cancel()
        await slow.ended()
        await isEmpty()
        let all = try spans(in: await timeline.openTelemetry())
        let message = try #require(all.first { $0.kind == 3 })
        expect(message["error.type"] == "cancelled" && message.status?.code == 2)
        expect(message.endTimeUnixNano <= (try span("slow", all).endTimeUnixNano))
    }

    // MARK: - Files

    /// Blocks a thread of the transport's until it is opened.
    private final class Latch: Sendable {
        private let semaphore = DispatchSemaphore(value: 0)
        func open() { semaphore.signal() }
        func wait() { semaphore.wait() }
    }

    @Test("DIA-3: a file has each job once, as the recording has it, also of a host whose queue is not recorded")
    func file() async throws {
        let folder = TestFolder()
        let (file, calls) = (folder.url.appendingPathComponent("a.jsonl"), folder.url.appendingPathComponent("b.jsonl"))
        let timeline = try Timeline(traces: file)
        let service = service()
        timeline.record(queue)
        timeline.record(service.group.host)
        let hostTimeline = try Timeline(traces: calls)
        hostTimeline.record(service.group.host)
        let jobs = (1...3).map { job("job \($0)", $0 == 2 ? "missing" : "moved", service) }
        queue.addOperations(jobs, waitUntilFinished: false)
        for job in jobs { await job.ended() }
        await isEmpty()
        _ = try await service.send(Fetch(api: "item"))
        try await timeline.finish()
        try await hostTimeline.finish()
        let written = try spans(in: try String(contentsOf: file, encoding: .utf8))
        let recorded = try spans(in: await timeline.openTelemetry())
        expect(Set(written.map(\.spanId)) == Set(recorded.map(\.spanId)) && written.count == recorded.count)
        expect(written.count == Set(written.map(\.spanId)).count && written.filter { $0.kind == 3 }.count == 6)
        let host = try spans(in: try String(contentsOf: calls, encoding: .utf8))
        expect(host.count == Set(host.map(\.spanId)).count && host.filter { $0.kind == 3 }.count == 6)
        expect(Set(host.map(\.name)).isSuperset(of: ["job 1", "job 2", "job 3", "GET /item"]))
        let mode = try FileManager.default.attributesOfItem(atPath: file.path)[.posixPermissions] as? Int
        expect(mode, equals: 0o600)
    }

    private final class TwoCalls: ServiceOperation, @unchecked Sendable {
        // Sendable because nothing changes here.
        override func execute() {
            Task {
                async let one = service.send(Fetch(api: "first"))
                async let two = service.send(Fetch(api: "second"))
                _ = try? await (one, two)
                finish()
            }
        }
    }

    @Test("DIA-3: calls of one job at once are in lanes of their own, and in the file of a host once each")
    func callsAtOnce() async throws {
        let folder = TestFolder()
        let file = folder.url.appendingPathComponent("a.jsonl")
        let (first, second) = (Latch(), Latch())
        // Each answers when the other one has been sent, so that both are under way at once.
        transport.route("GET", "/first") { _ in
            second.open()
            first.wait()
            return .text("a")
        }
        transport.route("GET", "/second") { _ in
            first.open()
            second.wait()
            return .text("b")
        }
        let service = service()
        let timeline = Timeline()
        timeline.record(queue)
        let hostTimeline = try Timeline(traces: file)
        hostTimeline.record(service.group.host)
        let job = TwoCalls(service: service)
        queue.addOperation(job)
        await job.ended()
        await isEmpty()
        try await hostTimeline.finish()
        let written = try spans(in: try String(contentsOf: file, encoding: .utf8))
        expect(written.filter { $0.kind == 3 }.count == 2 && Set(written.map(\.spanId)).count == written.count)
        expect(written.count { $0.name == "TwoCalls" }, equals: 1)
        let json = try JSONSerialization.jsonObject(with: Data(await timeline.chromeTrace().utf8)) as? [String: Any]
        let events = try #require(json?["traceEvents"] as? [[String: Any]]).filter { $0["cat"] as? String == "message" }
        expect(events.count == 2 && Set(events.compactMap { $0["tid"] as? Int }).count == 2)
    }

    @Test("DIA-3: the waits of several calls of one job have ids of their own in the file of a host")
    func waitsOfCalls() async throws {
        let folder = TestFolder()
        let file = folder.url.appendingPathComponent("a.jsonl")
        let isAnswered = Latch()
        let counts = Locked([0, 0])
        for (index, path) in ["/first", "/second"].enumerated() {
            transport.route("GET", path) { _ in
                let number = counts.withLock { counts in
                    counts[index] += 1
                    return counts[index]
                }
                if number == 2 {
                    // The first call ends while the second one waits for its retry.
                    if index == 0 { isAnswered.wait() }
                    return .text("a")
                }
                if index == 0 { return .status(503) }
                isAnswered.open()
                return .status(503, headers: ["Retry-After": "1"])
            }
        }
        let service = service { host in
            host.retry = RetryPolicy(maximumRetryCount: 1, baseDelay: 0.02)
            host.random = { 0.5 }
        }
        let timeline = try Timeline(traces: file)
        timeline.record(service.group.host)
        let job = TwoCalls(service: service)
        queue.addOperation(job)
        await job.ended()
        await isEmpty()
        try await timeline.finish()
        let written = try spans(in: try String(contentsOf: file, encoding: .utf8))
        expect(written.contains { $0.name == "wait" } && written.count { $0.kind == 3 } == 4)
        expect(Set(written.map(\.spanId)).count, equals: written.count)
    }

    @Test("DIA-3: files are bounded, and a line that cannot be written is an error of the end")
    func rotation() async throws {
        let folder = TestFolder()
        let file = folder.url.appendingPathComponent("a.jsonl")
        let timeline = try Timeline(traces: file, rotation: FileRotation(maximumBytes: 1_000, maximumCount: 2))
        timeline.record(queue)
        for _ in 1...10 { queue.addOperation(Inner()) }
        await isEmpty()
        try await timeline.finish()
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.url.path).sorted()
        expect(names, equals: ["a.1.jsonl", "a.jsonl"])
        for name in names {
            let text = try String(contentsOf: folder.url.appendingPathComponent(name), encoding: .utf8)
            try expect(text.utf8.count <= 1_000 && !spans(in: text).isEmpty)
        }
        let missing = folder.url.appendingPathComponent("none/a.jsonl")
        #expect(throws: NetworkError.self) { try Timeline(traces: missing) }
    }

    @Test("DIA-3: the events of a Chrome trace nest in each lane, and each lane has a name")
    func chrome() async throws {
        let timeline = Timeline()
        timeline.record(queue)
        let service = service()
        let batch = BatchOperation(
            (1...20).map { job("job \($0)", $0 % 2 == 0 ? "moved" : "missing", service) },
            policy: .collectAll
        )
        queue.addOperation(batch)
        await batch.ended()
        await isEmpty()
        let text = await timeline.chromeTrace()
        let json = try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any]
        let events = try #require(json?["traceEvents"] as? [[String: Any]])
        struct Lane: Hashable { let process, thread: Int }
        var lanes: [Lane: [(start: Int, end: Int)]] = [:]
        var named: Set<Lane> = []
        for event in events {
            let process = try #require(event["pid"] as? Int)
            let lane = Lane(process: process, thread: try #require(event["tid"] as? Int))
            switch event["ph"] as? String {
            case "X":
                let (start, length) = (try #require(event["ts"] as? Int), try #require(event["dur"] as? Int))
                expect(start >= 0 && length >= 0)
                lanes[lane, default: []].append((start, start + length))
            case "M": named.insert(lane)
            case let kind: Issue.record("an event of kind \(kind ?? "none")")
            }
        }
        let names = events.filter { $0["name"] as? String == "process_name" }.compactMap {
            $0["args"] as? [String: String]
        }
        expect(Set(names.compactMap { $0["name"] }), equals: ["one.example", "jobs"])
        for (lane, events) in lanes {
            expect(named.contains(lane))
            var open: [Int] = []
            for event in events.sorted(by: { ($0.start, $1.end) < ($1.start, $0.end) }) {
                while let end = open.last, end <= event.start { open.removeLast() }
                if let end = open.last { expect(event.end <= end, "\(event) is cut in \(lane)") }
                open.append(event.end)
            }
        }
        expect(events.filter { $0["ph"] as? String == "X" && $0["cat"] as? String == "message" }.count, equals: 30)
        guard let path = ProcessInfo.processInfo.environment["TRACE_OUT"] else { return }
        let folder = URL(fileURLWithPath: path)
        try Data(text.utf8).write(to: folder.appendingPathComponent("test.json"))
        try Data(await timeline.openTelemetry().utf8).write(to: folder.appendingPathComponent("test.jsonl"))
    }
}
