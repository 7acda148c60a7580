import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("Events of jobs and calls", .timeLimit(.minutes(10)))
struct NetworkEventTests {
    /// The events of one listener.
    private final class Heard: Sendable {
        let events = Locked<[NetworkEvent]>([])

        func note(_ event: NetworkEvent) { events.withLock { $0.append(event) } }

        var words: [String] { events.withLock { $0.map(Self.word) } }

        static func word(_ event: NetworkEvent) -> String {
            switch event.kind {
            case .added(let others): "added \(others.count)"
            case .started: "started"
            case .slotReleased: "released"
            case .slotYielded: "yielded"
            case .slotRegained: "regained"
            case .finished(let error): "finished\(error.map { " \($0.code)" } ?? "")"
            case .callStarted: "call started"
            case .callEnded(let error): "call ended\(error.map { " \($0.code)" } ?? "")"
            case .contentTypeReplaced: event.description
            case .attemptStarted(let attempt, let message): "\(attempt.reason) \(message.url.path)"
            case .attemptEnded(let attempt, let result):
                "ended \(attempt.statusCode ?? 0)\((try? result.get().body.count).map { ", \($0) bytes" } ?? "")"
            case .retryScheduled(let delay, let error): "waits \(delay) after \(error?.statusCode ?? 0)"
            case .credentialAwaited: "awaits a credential"
            case .circuitAwaited: "awaits the circuit"
            case .circuitOpened: "opened the circuit"
            case .circuitClosed: "closed the circuit"
            case .servedFromCache: "cached"
            case .missedCache(let miss): "missed \(miss)"
            case .progress(let completed, let total): "\(completed) of \(total ?? -1)"
            case .uploadStartedOver(let reason): "starts over: \(reason)"
            case .suspended: "suspended"
            case .resumed: "resumed"
            case .shutDown: "drained"
            }
        }
    }

    private func transport() -> ScriptedTransport {
        ScriptedTransport { _, number in
            switch number {
            case 0: .answer(302, ["Location": "/b"])
            case 1: .answer(503, body: "no")
            default: .answer(200, body: "fine")
            }
        }
    }

    private let story = [
        "first /a", "ended 302, 0 bytes", "redirect /b", "ended 503, 2 bytes", "waits 0.0 after 503", "retry /a",
        "ended 200, 4 bytes",
    ]

    @Test("DIA-1: the end of a call that was cancelled with its job names the job, even if that ended first")
    func cancelled() async {
        let transport = ScriptedTransport { _, _ in [] }
        let (host, heard, queue) = (transport.host(), Heard(), NetworkQueue())
        let subscription = host.subscribe { heard.note($0) }
        for count in 1...200 {
            let operation = RequestOperation(Get(api: "a"), service: EasyNetworkService(host))
            queue.addOperation(operation)
            await expect(eventually { transport.messages.count == count })
            operation.cancel()
            await operation.ended()
        }
        let ends = { heard.events.withLock { $0.filter { event in Heard.word(event).hasPrefix("call ended") } } }
        await expect(eventually { ends().count == 200 })
        expect(ends().filter { $0.operationID == nil }.count, equals: 0)
        withExtendedLifetime(subscription) {}
    }

    @Test("DIA-1: the queue tells the life of a job: its messages, its slot, its end; the host tells its calls")
    func job() async throws {
        let host = transport().host()
        let queue = NetworkQueue()
        let (heard, heardByHost, heardOnce) = (Heard(), Heard(), Heard())
        let subscriptions = [
            queue.subscribe(heard.note), host.subscribe(heardByHost.note),
            queue.subscribe(owner: heardOnce, heardOnce.note), host.subscribe(owner: heardOnce, heardOnce.note),
        ]
        let operation = RequestOperation(Get(api: "a"), service: EasyNetworkService(host))
        operation.tags = ["x"]
        queue.addOperation(operation)
        _ = try await operation.value
        await operation.ended()
        for subscription in subscriptions { await subscription.settled() }
        let slot: Set = ["released", "regained"]
        expect(heard.words.filter { !slot.contains($0) }, equals: ["added 0", "started"] + story + ["finished"])
        expect(heard.words.filter(slot.contains), equals: ["released", "regained"])
        expect(heardByHost.words, equals: ["call started"] + story + ["call ended"])
        let events = heard.events.withLock { $0 }
        expect(events.allSatisfy { $0.operation === operation && $0.operationID == operation.operationID })
        expect(events.allSatisfy { $0.host == "api.example.com" && $0.tags == ["x"] })
        expect(Set(events.compactMap(\.callNumber)).count, equals: 1)
        // Both tell the story to this one, which gets it once.
        expect(heardOnce.words.filter(story.contains), equals: story)
        expect(heardOnce.words.contains("call started") && heardOnce.words.contains("started"))
    }

    @Test("DIA-1: a host tells of calls without a job; a failure is told once, and of importance")
    func call() async throws {
        let host = ScriptedTransport { _, _ in .answer(404) }.host()
        let heard = Heard()
        let subscription = host.subscribe(heard.note)
        _ = try? await EasyNetworkService(host).send(Get(api: "a"))
        await subscription.settled()
        expect(
            heard.words,
            equals: ["call started", "first /a", "ended 404, 0 bytes", "call ended unacceptableStatus"]
        )
        let events = heard.events.withLock { $0 }
        expect(events.allSatisfy { $0.operation == nil && $0.callNumber == events[0].callNumber })
        expect(events.map(\.level), equals: [.debug, .debug, .info, .error])
        expect(events[0].host, equals: "api.example.com")
    }

    @Test("REQ-3: the log says once for each type of request that its Content-Type was replaced")
    func replacedContentType() async throws {
        struct Form: BaseAPIRequest {
            let api = "a"
            let method = NetworkService.Method.post
            var headers: [String: String]? { defaultJsonHeader() }
            var body: RequestBody? { .form(["a": 1]) }
        }
        let host = ScriptedTransport { _, _ in .answer(200) }.host()
        let heard = Heard()
        let subscription = host.subscribe(heard.note)
        for _ in 0..<3 { _ = try await EasyNetworkService(host).send(Form()) }
        await subscription.settled()
        let told = heard.events.withLock {
            $0.filter { if case .contentTypeReplaced = $0.kind { true } else { false } }
        }
        expect(told.map(\.level), equals: [.info])
        expect(
            told.first?.description.hasSuffix(
                "sends the Content-Type of its body, application/x-www-form-urlencoded, instead of application/json "
                    + "from its headers"
            ),
            equals: true
        )
    }

    @Test("DIA-1: hits and misses of the cache are told with their reason")
    func cache() async throws {
        let host = ScriptedTransport { _, _ in .answer(200, body: "a") }.host {
            $0.cache = NetworkCache(diskBytes: 0)
            $0.cachePolicy = CachePolicy(.cacheElseNetwork, storesOnDisk: false)
        }
        let heard = Heard()
        let subscription = host.subscribe(heard.note)
        for _ in 1...2 { _ = try await EasyNetworkService(host).send(Get(api: "a")) }
        await subscription.settled()
        let expected = [
            "call started", "missed absent", "first /a", "ended 200, 1 bytes", "call ended", "call started", "cached",
            "call ended",
        ]
        expect(heard.words, equals: expected)
    }

    @Test("DIA-1: a listener that comes late is told first what is there; suspending, resuming and draining are told")
    func snapshot() async {
        let queue = NetworkQueue(maxConcurrentOperationCount: 1)
        let (hasBegun, gate) = (Gate(), Gate())
        let first = TestJob { job in
            hasBegun.open()
            gate.whenOpen { job.finish() }
        }
        let second = TestJob()
        second.addDependency(first)
        queue.addOperations([first, second], waitUntilFinished: false)
        await hasBegun.opened()
        queue.isSuspended = true
        let heard = Heard()
        let subscription = queue.subscribe(heard.note)
        queue.isSuspended = false
        gate.open()
        await queue.shutDown(deadline: 60)
        await subscription.settled()
        let expected = [
            "added 0", "started", "added 1", "suspended", "resumed", "finished", "started", "finished", "drained",
        ]
        expect(heard.words, equals: expected)
    }

    @Test("DIA-1: a slow listener has the last 4,096 events of a queue, and loses the oldest ones")
    func slowListener() async {
        let queue = NetworkQueue()
        queue.isSuspended = true
        let first = TestJob()
        queue.addOperation(first)
        let events = queue.events
        let jobs = (0..<4_100).map { _ in TestJob() }
        // What was there when it began, and that the queue is suspended, are no burden to what comes.
        for job in jobs { queue.addOperation(job) }
        var heard: [Operation?] = []
        for await event in events {
            heard.append(event.operation)
            if event.operation === jobs.last { break }
        }
        // One job was there, which has room for two events.
        expect(heard.count, equals: 4_098)
        expect(heard.suffix(4_096).elementsEqual(jobs.suffix(4_096)) { $0 === $1 })
        queue.cancelAllOperations()
        for job in [first] + jobs { await job.ended() }
    }

    @Test("DIA-1: a slow listener has the last 4,096 events of a host, and loses the oldest ones")
    func slowListenerOfHost() async throws {
        /// They end with the host.
        func events(ofCalls count: Int) async throws -> AsyncStream<NetworkEvent> {
            let host = ScriptedTransport(isSynchronous: true) { _, _ in .answer(200) }.host()
            let events = host.events
            for number in 0..<count { _ = try await EasyNetworkService(host).send(Get(api: "\(number)")) }
            return events
        }
        var heard: [String] = []
        for await event in try await events(ofCalls: 1_100) { heard.append(Heard.word(event)) }
        let last = (76..<1_100).flatMap { ["call started", "first /\($0)", "ended 200, 0 bytes", "call ended"] }
        expect(heard, equals: last)
    }

    @Test("DIA-1: bytes of a transfer are told, and all of them at its end")
    func progress() async throws {
        let host = ScriptedTransport { _, _ in .answer(200, ["Content-Length": "4"], body: "body") }.host()
        let queue = NetworkQueue()
        let heard = Heard()
        let subscription = queue.subscribe(heard.note)
        let operation = RequestOperation(Get(api: "a"), service: EasyNetworkService(host))
        _ = operation.progress
        queue.addOperation(operation)
        _ = try await operation.value
        await operation.ended()
        await subscription.settled()
        expect(heard.words.contains("4 of 4"), "\(heard.words)")
    }

    @Test("DIA-1, BEY-3: each of many listeners that come at any moment hears of a job in order, and of no event twice")
    func listenersAtRandom() async {
        let seed = UInt64.random(in: 0...UInt64.max)
        print("seed \(seed)")
        var generator = SeededGenerator(seed: seed)
        let queue = NetworkQueue(maxConcurrentOperationCount: 3)
        var jobs: [NetworkOperation] = []
        var listeners: [(Heard, EventSubscription)] = []
        for number in 0..<300 {
            let job = TestJob()
            if let other = jobs.randomElement(using: &generator), number % 3 == 0 {
                job.addDependency(other, policy: .allowFailure)
            }
            jobs.append(job)
            queue.addOperation(job)
            if number % 7 == 0 { jobs.randomElement(using: &generator)?.cancel() }
            if number % 10 == 0 {
                let heard = Heard()
                listeners.append((heard, queue.subscribe(heard.note)))
            }
        }
        for job in jobs { await job.ended() }
        for (heard, subscription) in listeners {
            await subscription.settled()
            let events = heard.events.withLock { $0 }
            let byJob = Dictionary(grouping: events) { $0.operation.map(ObjectIdentifier.init) }
            for (_, events) in byJob {
                let words = events.map { Heard.word($0).prefix(7) }
                expect(words == ["added 0", "started", "finishe"].filter(words.contains) || words.first == "added 1")
                expect(words.first?.hasPrefix("added") == true && words.last == "finishe", "\(words)")
                expect(words.count <= 3 && Set(words).count == words.count, "\(words)")
            }
        }
        // The first listener was there before all but one job.
        expect(
            Set(listeners[0].0.events.withLock { $0.compactMap { $0.operation.map(ObjectIdentifier.init) } }).count
                >= 299
        )
    }
}
