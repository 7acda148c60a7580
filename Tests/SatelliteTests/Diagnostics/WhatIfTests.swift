import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork
@testable import EasyNetworkDiagnostics
@testable import TestSupport

/// A recording that is made up. Times are in milliseconds.
private struct MadeUp {
    struct Job {
        var name: String
        var added = 0.0
        var requested: Double?
        /// The times with a slot. Empty for a job that never started.
        var slots: [ClosedRange<Double>] = []
        var ended: Double
        var needs: [String] = []
        var host: String?
        var tags: Set<String> = []
        var categories: [String] = []
        var priority = Operation.QueuePriority.normal
        var error: NetworkError.Code?
        var retryDelay: ClosedRange<Double>?
        var group: String?
        /// The operation, for a group.
        var operation: NetworkOperation?
        var isBarrier = false
        var yields = false

        init(_ name: String, _ slots: ClosedRange<Double>...) {
            (self.name, self.slots, ended) = (name, slots, slots.last?.upperBound ?? 0)
        }

        func with(_ change: (inout Self) -> Void) -> Self {
            var copy = self
            change(&copy)
            return copy
        }
    }

    static let origin = Date(timeIntervalSinceReferenceDate: 0)
    let queue = NSObject()
    var jobs: [Job]
    var rules: [(Double, QueueRules)] = []

    init(_ jobs: [Job], limit: Int? = nil, _ change: (inout QueueRules) -> Void = { _ in }) {
        self.jobs = jobs
        var rules = QueueRules()
        rules.limits[.queueLane] = limit
        change(&rules)
        self.rules = [(-.infinity, rules)]
    }

    var record: TimelineRecord {
        var record = TimelineRecord()
        let queue = ObjectIdentifier(queue)
        func date(_ time: Double) -> Date { Self.origin.addingTimeInterval(time / 1_000) }
        for (time, rules) in rules { record.note(rules, of: queue, at: time == -.infinity ? .distantPast : date(time)) }
        var operations: [String: NetworkOperation] = [:]
        for job in jobs {
            let operation = job.operation ?? NetworkOperation()
            operation.name = job.name
            operations[job.name] = operation
        }
        var events: [(time: Double, kind: NetworkEvent.Kind, job: Job, wait: WaitNote?, isFirst: Bool)] = []
        for job in jobs {
            events.append((job.added, .added(waitingFor: job.needs.compactMap { operations[$0] }), job, nil, true))
            for (number, slot) in job.slots.enumerated() {
                let asked = number == 0 ? job.requested ?? job.added : job.retryDelay?.upperBound ?? slot.lowerBound
                let wait = WaitNote(
                    since: 0,
                    seconds: (slot.lowerBound - asked) / 1_000,
                    reason: slot.lowerBound > asked ? .turn : nil,
                    before: nil,
                    isAfterJobs: !job.needs.isEmpty
                )
                events.append((slot.lowerBound, number == 0 ? .started : .slotRegained, job, wait, number == 0))
                if slot.upperBound < job.ended {
                    events.append((slot.upperBound, job.yields ? .slotYielded : .slotReleased, job, nil, false))
                }
            }
            if let delay = job.retryDelay {
                let length = (delay.upperBound - delay.lowerBound) / 1_000
                events.append((delay.lowerBound, .retryScheduled(delay: length, after: nil), job, nil, false))
            }
            events.append((job.ended, .finished(job.error.map { NetworkError(code: $0) }), job, nil, false))
        }
        let order = events.indices.sorted { (events[$0].time, $0) < (events[$1].time, $1) }
        for (time, kind, job, wait, isFirst) in order.map({ events[$0] }) {
            var note: AdmissionNote?
            if isFirst {
                note = AdmissionNote()
                note?.categories = job.categories
                note?.occupiesSlot = !(job.operation is GroupOperation)
                note?.isBarrier = job.isBarrier
            }
            let operation = operations[job.name]
            var event = NetworkEvent(
                kind,
                at: date(time),
                operation: operation,
                operationID: operation?.operationID,
                callNumber: nil,
                host: job.host,
                tags: job.tags
            )
            event.priority = job.priority
            event.group = job.group.flatMap { operations[$0] }.map { ObjectIdentifier($0) }
            (event.wait, event.admission) = (wait, note)
            record.note(event, fromQueue: true, of: queue)
        }
        return record
    }

    func whatIf(at now: Double = 10_000, _ change: (inout Timeline.Changes) -> Void = { _ in }) -> Timeline.Prediction {
        var changes = Timeline.Changes()
        change(&changes)
        return Timeline.Prediction(record, Self.origin.addingTimeInterval(now / 1_000), changes)
    }
}

extension Timeline.Prediction {
    /// The predicted starts and ends in milliseconds.
    fileprivate var times: [[Double]] {
        jobs.map { job in [job.start, job.end].map { time in time.map { ($0 * 1e6).rounded() / 1e3 } ?? -1 } }
    }
}

@Suite("What if", .timeLimit(.minutes(10)))
struct WhatIfTests {
    private typealias Job = MadeUp.Job

    /// Jobs that were added together and ran one after the other.
    private let row = MadeUp([Job("a", 0...10), Job("b", 10...30), Job("c", 30...60)], limit: 1)

    @Test("BEY-22: without changes, the prediction is the recording")
    func nothing() {
        let prediction = row.whatIf()
        expect(prediction.times, equals: [[0, 10], [10, 30], [30, 60]])
        expect(prediction.end == prediction.recordedEnd && prediction.unknownNames.isEmpty)
        expect("\(prediction)", equals: "60 ms instead of 60 ms: no change")
        let empty = MadeUp([]).whatIf { $0.maximumConcurrentOperationCount = 3 }
        expect(empty.end == 0 && empty.jobs.isEmpty && empty.text().contains("Predicted"))
    }

    @Test("BEY-22: with another limit of the queue, a host, a tag or a batch, jobs start when that limit lets them")
    func limits() {
        expect(row.whatIf { $0.maximumConcurrentOperationCount = 2 }.times, equals: [[0, 10], [0, 20], [10, 40]])
        expect(row.whatIf { $0.maximumConcurrentOperationCount = -1 }.end, equals: 0.03)
        var keyed = MadeUp(row.jobs.map { job in job.with { ($0.host, $0.tags) = ("a.example", ["t"]) } }) {
            $0.limits = [.host("a.example"): 1]
        }
        expect(keyed.whatIf().times, equals: [[0, 10], [10, 30], [30, 60]])
        let ofHost = keyed.whatIf { $0.setMaximumConcurrentOperationCount(3, forHost: "A.example") }
        expect(ofHost.end, equals: 0.03)
        let ofTag = keyed.whatIf {
            $0.setMaximumConcurrentOperationCount(-1, forHost: "a.example")
            $0.setMaximumConcurrentOperationCount(2, forTag: "t")
        }
        expect(ofTag.times, equals: [[0, 10], [0, 20], [10, 40]])
        keyed = MadeUp(keyed.jobs) { $0.hostLimit = 1 }
        expect(keyed.whatIf { $0.maximumConcurrentOperationCountPerHost = 2 }.end, equals: 0.04)
        let batch = Job("batch", 0...60).with { $0.operation = BatchOperation(maxConcurrentOperationCount: 1) }
        let children = MadeUp([batch] + row.jobs.map { job in job.with { $0.group = "batch" } })
        expect(children.whatIf().times, equals: [[0, 60], [0, 10], [10, 30], [30, 60]])
        let wide = children.whatIf { $0.setMaximumConcurrentOperationCount(2, ofBatch: "batch") }
        expect(wide.times, equals: [[0, 40], [0, 10], [0, 20], [10, 40]])
    }

    @Test("BEY-22: a job that no limit lets start has no end, and neither has the whole")
    func forever() {
        let prediction = row.whatIf { $0.maximumConcurrentOperationCount = 0 }
        expect(prediction.end == nil && prediction.jobs.allSatisfy { $0.start == nil && $0.end == nil })
        expect(prediction.description.hasPrefix("no end instead of 60 ms: 0 jobs at once"))
        expect(prediction.text().contains("…"))
    }

    @Test("BEY-22: without a dependency, a job starts when it is added; other dependencies, and a name that no job has")
    func dependencies() {
        let jobs = [
            Job("sign in", 0...10), Job("settings", 10...50).with { $0.needs = ["sign in"] },
            // The job is ready two milliseconds after its dependencies have ended.
            Job("avatar", 52...60).with { ($0.needs, $0.requested) = (["sign in", "settings"], 52) },
        ]
        let recording = MadeUp(jobs.map { job in job.with { $0.requested = $0.requested ?? $0.slots[0].lowerBound } })
        let prediction = recording.whatIf {
            $0.removeDependency(of: "avatar", on: "settings")
            $0.removeDependency(of: "Avatar", on: "settings")
        }
        expect(prediction.times, equals: [[0, 10], [10, 50], [12, 20]])
        expect(
            prediction.unknownNames == ["Avatar"] && prediction.description.hasSuffix("; no job has the name 'Avatar'")
        )
        expect(prediction.criticalPath.map(\.name), equals: ["sign in", "settings"])
        expect(recording.whatIf().criticalPath.map(\.name), equals: ["sign in", "settings", "avatar"])
    }

    @Test("BEY-22: a duration is multiplied while the job runs, and not its delays; a factor is bounded")
    func durations() {
        let retried = Job("a", 0...10, 50...60).with { ($0.retryDelay, $0.ended) = (10...50, 60) }
        let recording = MadeUp([retried, Job("b", 10...40)], limit: 1)
        expect(recording.whatIf().times, equals: [[0, 60], [10, 40]])
        expect(recording.whatIf { $0.multiplyDuration(of: "a", by: 0.5) }.times, equals: [[0, 50], [5, 35]])
        expect(recording.whatIf { $0.removeRetryDelays(of: "a") }.times, equals: [[0, 50], [10, 40]])
        for factor in [-1, -Double.infinity, 0] {
            expect(recording.whatIf { $0.multiplyDuration(of: "a", by: factor) }.times, equals: [[0, 40], [0, 30]])
        }
        expect(recording.whatIf { $0.multiplyDuration(of: "a", by: .nan) }.times, equals: [[0, 60], [10, 40]])
        let most = recording.whatIf {
            for _ in 1...100 { $0.multiplyDuration(of: "b", by: .infinity) }
        }
        expect(most.times[1], equals: [10, 30_010])
    }

    @Test("BEY-22: priorities, rates, categories and barriers hold as in the queue")
    func rules() {
        expect(row.whatIf { $0.setPriority(.high, of: "c") }.times, equals: [[0, 10], [40, 60], [10, 40]])
        // Jobs that are added together wait until all of them have been added, and then the highest priority is first.
        let jobs = [Job("a", 1...11), Job("b", 11...31), Job("c", 31...61)].enumerated().map { index, job in
            job.with { ($0.added, $0.requested) = (0.001 * Double(index), 1) }
        }
        let together = MadeUp(jobs, limit: 1).whatIf { $0.setPriority(.high, of: "c") }
        expect(together.times, equals: [[31, 41], [41, 61], [1, 31]])
        let rate = row.whatIf {
            $0.maximumConcurrentOperationCount = -1
            $0.setRateLimit(RateLimit(1, per: 0.1))
        }
        expect(rate.times, equals: [[0, 10], [100, 120], [200, 230]])
        let exclusive = MadeUp(row.jobs.map { job in job.with { $0.categories = ["one"] } }, limit: 1)
        expect(exclusive.whatIf { $0.maximumConcurrentOperationCount = 9 }.end, equals: 0.06)
        let barrier = Job("b", 10...30).with { ($0.isBarrier, $0.requested) = (true, 10) }
        let fenced = MadeUp([Job("a", 0...10), barrier, Job("c", 30...60).with { $0.requested = 30 }], limit: 1)
        let wide = fenced.whatIf {
            $0.maximumConcurrentOperationCount = 9
            $0.multiplyDuration(of: "a", by: 0.5)
        }
        expect(wide.times, equals: [[0, 5], [5, 25], [25, 55]])
    }

    @Test("BEY-22: the rules that were in force later, and a suspension, are in force again")
    func laterRules() {
        var recording = MadeUp([Job("a", 0...10), Job("b", 10...30), Job("c", 20...60)], limit: 1)
        var rules = recording.rules[0].1
        rules.limits[.queueLane] = 2
        recording.rules.append((20, rules))
        expect(recording.whatIf().times, equals: [[0, 10], [10, 30], [20, 60]])
        rules.isSuspended = true
        recording.rules[1] = (5, rules)
        rules.isSuspended = false
        recording.rules.append((90, rules))
        expect(recording.whatIf().times, equals: [[0, 10], [90, 110], [90, 130]])
    }

    @Test("BEY-22: steps of a chain and children of a batch come with their group")
    func groups() {
        let chain = Job("chain", 20...62).with {
            ($0.operation, $0.needs, $0.requested) = (ChainOperation(), ["a"], 20)
        }
        let steps = [
            Job("one", 22...40).with { ($0.added, $0.requested, $0.group) = (21, 22, "chain") },
            Job("two", 42...60).with { ($0.added, $0.requested, $0.group) = (41, 42, "chain") },
        ]
        let after = Job("after", 62...70).with { ($0.needs, $0.requested) = (["chain"], 62) }
        let recording = MadeUp([Job("a", 0...20), chain] + steps + [after])
        expect(recording.whatIf().times, equals: [[0, 20], [20, 62], [62, 70], [22, 40], [42, 60]])
        let faster = recording.whatIf {
            $0.multiplyDuration(of: "a", by: 0)
            $0.multiplyDuration(of: "two", by: 2)
        }
        expect(faster.times, equals: [[0, 0], [0, 60], [60, 68], [2, 20], [22, 58]])
    }

    @Test("BEY-22: a failure ends the jobs that it ended, and a cancelled job ends at its time")
    func failures() {
        let failed = Job("fails", 0...30).with { $0.error = .timedOut }
        let dependent = Job("dependent").with { ($0.needs, $0.error, $0.ended) = (["fails"], .dependencyFailed, 30) }
        let tolerant = Job("tolerant", 30...40).with { ($0.needs, $0.requested) = (["fails"], 30) }
        let cancelled = Job("cancelled").with { ($0.needs, $0.error, $0.ended) = (["fails"], .cancelled, 25) }
        let recording = MadeUp([failed, dependent, tolerant, cancelled])
        expect(recording.whatIf().times, equals: [[0, 30], [-1, 30], [30, 40], [-1, 25]])
        let faster = recording.whatIf { $0.multiplyDuration(of: "fails", by: 0.5) }
        expect(faster.times, equals: [[0, 15], [-1, 15], [15, 25], [-1, 25]])
    }

    @Test("BEY-22: a download that gave its slot to an urgent job gives it to each urgent job")
    func yields() {
        let download = Job("download", 0...20, 30...60).with { ($0.priority, $0.yields) = (.low, true) }
        let urgent = Job("urgent", 20...30).with { $0.added = 20 }
        let recording = MadeUp([download, urgent], limit: 1)
        expect(recording.whatIf().times, equals: [[0, 60], [20, 30]])
        expect(recording.whatIf { $0.multiplyDuration(of: "urgent", by: 3) }.times, equals: [[0, 80], [20, 50]])
        expect(recording.whatIf { $0.maximumConcurrentOperationCount = 2 }.times, equals: [[0, 50], [20, 30]])
        expect(recording.whatIf { $0.setPriority(.normal, of: "download") }.times, equals: [[0, 50], [50, 60]])
    }

    @Test("BEY-22: the suggestions are the changes that shorten the whole, the best first")
    func suggestions() async throws {
        let retried = Job("c", 32...42, 67...77).with { $0.retryDelay = 42...67 }
        let last = Job("d", 77...97).with { ($0.needs, $0.requested) = (["c"], 77) }
        let recording = MadeUp([Job("a", 0...10), Job("b", 10...32), retried, last], limit: 1)
        let now = MadeUp.origin.addingTimeInterval(1)
        let found = Timeline.suggestions(TimelinePlan(recording.record, at: now), recording.record, now)
        expect(
            found.map(\.description),
            equals: [
                "0.025 s earlier: 'c' retries without a delay", "0.022 s earlier: 2 jobs at once",
                "0.02 s earlier: 'd' does not wait for 'c'",
            ]
        )
        for suggestion in found {
            let prediction = recording.whatIf { $0 = suggestion.changes }
            expect(abs(prediction.recordedEnd - (prediction.end ?? 0) - suggestion.seconds) < 1e-9)
        }
    }

    // MARK: - Recordings of queues

    private final class GatedJob: NetworkOperation, @unchecked Sendable {
        // Sendable because nothing changes here.
        private let gate: Gate

        init(_ name: String, until gate: Gate) {
            self.gate = gate
            super.init()
            self.name = name
        }

        override func execute() {
            gate.whenOpen { self.finish() }
        }
    }

    @Test("BEY-22: a timeline keeps the limits of a queue, also after the queue is gone")
    func queue() async {
        let timeline = Timeline()
        let gate = Gate()
        do {
            let queue = NetworkQueue(maxConcurrentOperationCount: 1)
            timeline.record(queue)
            let jobs = ["a", "b", "c"].map { GatedJob($0, until: gate) }
            queue.addOperations(jobs)
            gate.open()
            for job in jobs { await job.ended() }
            queue.maxConcurrentOperationCount = 50
            await withCheckedContinuation { continuation in queue.whenEmpty { continuation.resume() } }
        }
        func order(_ prediction: Timeline.Prediction) -> Bool {
            zip(prediction.jobs, prediction.jobs.dropFirst()).allSatisfy { ($0.end ?? .infinity) <= $1.start ?? -1 }
        }
        expect(order(await timeline.whatIf { _ in }))
        let wide = await timeline.whatIf { $0.maximumConcurrentOperationCount = 3 }
        expect(Set(wide.jobs.map(\.start)).count == 1 && (wide.end ?? .infinity) < wide.recordedEnd, "\(wide.jobs)")
        let suggestions = await timeline.suggestions()
        expect(suggestions.first?.changes.maximumConcurrentOperationCount, equals: 2, "\(suggestions)")
    }

    @Test("BEY-22: an event has the rules of its time, whenever a listener hears it")
    func rulesOfEvents() async {
        let queue = NetworkQueue(maxConcurrentOperationCount: 1)
        let events = Locked<[NetworkEvent]>([])
        let subscription = queue.subscribe { event in
            // The limit changes before anyone looks at the event.
            queue.maxConcurrentOperationCount = 50
            events.withLock { $0.append(event) }
        }
        let gate = Gate()
        let job = GatedJob("a", until: gate)
        queue.addOperation(job)
        gate.open()
        await job.ended()
        withExtendedLifetime(subscription) {}
        let rules = events.withLock { $0 }.first?.rules as? QueueRules
        expect(rules?.limits[.queueLane], equals: 1)
    }

    private struct Get: APIRequest {
        typealias Item = NetworkResponse
        var api = "item"
    }

    @Test("BEY-22: no suggestion removes a dependency whose item is part of the request")
    func items() async throws {
        let transport = InMemoryTransport()
        transport.route("GET", "/item") { _ in .text("a") }
        let host = HostConfiguration(baseURL: URL(string: "http://api.example.com"), transport: transport)
        let queue = NetworkQueue()
        let timeline = Timeline()
        timeline.record(queue)
        let first = RequestOperation(Get(), service: EasyNetworkService(host))
        let second = first.then { _ in Get() }
        let third = RequestOperation(Get(), service: EasyNetworkService(host))
        third.addDependency(second)
        for (job, name) in [(first, "first"), (second, "second"), (third, "third")] { job.name = name }
        queue.addOperations([first, second, third])
        _ = try await third.value
        await withCheckedContinuation { continuation in queue.whenEmpty { continuation.resume() } }
        let changes = await timeline.suggestions().map { "\($0.changes)" }
        expect(changes, equals: ["'third' does not wait for 'second'"])
    }

    // MARK: - The page

    @Test("BEY-22: the page and the text show the recording above the prediction, each with its critical path")
    func page() throws {
        let job = Job("<script>", 30...60).with { ($0.needs, $0.requested) = (["a"], 30) }
        let recording = MadeUp([Job("a", 0...30), job, Job("c", 60...90)], limit: 1)
        let prediction = recording.whatIf {
            $0.maximumConcurrentOperationCount = 2
            $0.multiplyDuration(of: "</script><b>", by: 2)
        }
        let page = prediction.html()
        expect(page.components(separatedBy: "</script>").count == 3 && !page.contains("<b>"))
        let start = try #require(page.range(of: #"id="data">"#)).upperBound
        let end = try #require(page[start...].range(of: "</script>")).lowerBound
        let json = try JSONSerialization.jsonObject(with: Data(page[start..<end].utf8))
        let rows = try #require((json as? [String: Any])?["rows"] as? [[String: Any]])
        let names = ["As recorded", "a", "<script>", "c", "Predicted", "a", "<script>", "c"]
        expect(rows.map { $0["name"] as? String }, equals: names)
        expect(rows.map { $0["parent"] as? Int }, equals: [nil, 0, 0, 0, nil, 4, 4, 4])
        expect(rows.map { $0["end"] as? Double }, equals: [90, 30, 60, 90, 60, 30, 60, 30])
        expect(rows[6]["dependencies"] as? [Int], equals: [5])
        expect(rows.map { $0["isCritical"] as? Bool ?? false }.map { $0 ? 1 : 0 }, equals: [0, 0, 0, 1, 0, 1, 1, 0])
        expect(rows.map { $0["why"] as? String }, equals: [nil, nil, "a", "its turn", nil, nil, "a", nil])
        let lines = prediction.text(width: 60).split(separator: "\n").map(String.init)
        expect(lines.contains("As recorded: 90 ms") && lines.contains("Predicted: 60 ms"), "\(lines)")
        expect(
            lines.first,
            equals: "60 ms instead of 90 ms: 2 jobs at once; '</script><b>' takes 2 times as long; "
                + "no job has the name '</script><b>'"
        )
    }

    @Test("BEY-22: messages and delays move with the job, and last as long as its duration is multiplied")
    func messages() throws {
        var record = TimelineRecord()
        let queue = NSObject()
        let job = NetworkOperation()
        job.name = "a"
        var attempt = NetworkAttempt(
            reason: .first,
            request: NetworkError.Request(method: "GET", url: URL(fileURLWithPath: "/"))
        )
        attempt.metrics = TransportMetrics(total: 0.02)
        attempt.metrics?.firstByte = 0.01
        let beginning = NetworkEvent.Kind.attemptStarted(attempt, TransportRequest(url: URL(fileURLWithPath: "/")))
        let end = NetworkEvent.Kind.attemptEnded(attempt, .success(NetworkResponse(statusCode: 503)))
        let waits = WaitNote(since: 0, seconds: 0.1, reason: .limit(1), before: nil)
        let events: [(NetworkEvent.Kind, Double, WaitNote?)] = [
            (.added(waitingFor: []), 0, nil), (.started, 100, waits), (.missedCache(.absent), 102, nil),
            (beginning, 110, nil), (end, 130, nil), (.retryScheduled(delay: 0.07, after: nil), 130, nil),
            (.slotReleased, 130, nil), (.slotRegained, 200, nil), (beginning, 210, nil), (end, 230, nil),
            (.finished(nil), 240, nil),
        ]
        for (kind, time, wait) in events {
            var event = NetworkEvent(
                kind,
                at: MadeUp.origin.addingTimeInterval(time / 1_000),
                operation: job,
                operationID: job.operationID,
                callNumber: 1
            )
            event.wait = wait
            record.note(event, fromQueue: true, of: ObjectIdentifier(queue))
        }
        var changes = Timeline.Changes()
        changes.multiplyDuration(of: "a", by: 0.5)
        let plan = TimelinePlan(record, at: MadeUp.origin)
        var replay = TimelineReplay(plan, changes)
        replay.run()
        let picture = TimelinePicture(replay.record(record), at: MadeUp.origin)
        let row = try #require(picture.rows.first)
        // The first run takes 15 ms instead of 30, then the delay of 70 ms follows, and the second run takes 20 ms.
        expect(row.end == 105 && row.slots.map(\.start) == [0, 85] && row.slots.map(\.end) == [15, 105])
        expect(row.attempts.map(\.start) == [5, 90] && row.attempts.map(\.end) == [15, 100], "\(row.attempts)")
        expect(row.attempts.map { $0.phases.map(\.end) } == [[10, 15], [95, 100]], "\(row.attempts)")
        expect(row.waits.map(\.start) == [15] && row.waits.map(\.end) == [85] && row.cache.map(\.at) == [1])
    }

    // MARK: - What can go wrong

    @Test("BEY-22: times that make no sense, cycles and dropped rows neither trap nor keep it running")
    func nonsense() {
        let times = [0, -1e300, 1e300, -.infinity, .infinity, .nan, 5, 3]
        var record = TimelineRecord(limit: 40)
        let queue = NSObject()
        var rules = QueueRules()
        (rules.limits, rules.rates) = ([.queueLane: 1], [.queueLane: RateLimit(.max, per: 1e-9, burst: .max)])
        record.note(rules, of: ObjectIdentifier(queue), at: Date(timeIntervalSinceReferenceDate: .nan))
        let jobs = (0..<64).map { _ in NetworkOperation() }
        for (index, job) in jobs.enumerated() {
            let kinds: [NetworkEvent.Kind] = [
                .added(waitingFor: [jobs[(index + 1) % 64], jobs[index]]), .started, .slotYielded, .slotRegained,
                .slotReleased, .slotRegained, .finished(index % 3 == 0 ? NetworkError(code: .dependencyFailed) : nil),
            ]
            for (number, kind) in kinds.enumerated() {
                let time = times[(index + number) % times.count]
                var event = NetworkEvent(
                    kind,
                    at: Date(timeIntervalSinceReferenceDate: time),
                    operation: job,
                    operationID: job.operationID
                )
                event.wait = WaitNote(since: 0, seconds: times[(index * 3 + number) % times.count], before: nil)
                record.note(event, fromQueue: true, of: ObjectIdentifier(queue))
            }
        }
        for now in times {
            let date = Date(timeIntervalSinceReferenceDate: now)
            var changes = Timeline.Changes()
            changes.maximumConcurrentOperationCount = .max
            let prediction = Timeline.Prediction(record, date, changes)
            expect(prediction.jobs.count == 40 && prediction.html().contains("Predicted"))
            _ = Timeline.suggestions(TimelinePlan(record, at: date), record, date)
        }
    }

    /// A recording of random jobs that is not one of a queue: the times contradict the rules.
    private func random(_ generator: inout SeededGenerator) -> MadeUp {
        let count = Int.random(in: 1...30, using: &generator)
        var jobs: [Job] = []
        func time(_ range: ClosedRange<Double>) -> Double { .random(in: range, using: &generator) }
        for index in 0..<count {
            let added = Bool.random(using: &generator) ? 0 : time(0...200)
            var start = added + time(0...50)
            let requested = time(added...start)
            var slots: [ClosedRange<Double>] = []
            for _ in 0..<Int.random(in: 1...3, using: &generator) {
                let end = start + time(0.1...60)
                slots.append(start...end)
                start = end + time(0.1...30)
            }
            let job = Job("\(index)").with { job in
                (job.added, job.requested, job.slots) = (added, requested, slots)
                job.ended = slots[slots.count - 1].upperBound + (Bool.random(using: &generator) ? 0 : time(0...10))
                job.needs = jobs.filter { _ in Int.random(in: 0..<8, using: &generator) == 0 }.map(\.name)
                job.host = ["a", "b", nil].randomElement(using: &generator) ?? nil
                job.tags = Bool.random(using: &generator) ? ["t"] : []
                job.categories = Int.random(in: 0..<6, using: &generator) == 0 ? ["c"] : []
                job.priority = [.low, .normal, .high].randomElement(using: &generator) ?? .normal
                job.yields = Int.random(in: 0..<4, using: &generator) == 0
                if Int.random(in: 0..<6, using: &generator) == 0 { job.error = .timedOut }
                if let group = jobs.last(where: { $0.operation != nil }), Bool.random(using: &generator) {
                    (job.group, job.added) = (group.name, max(job.added, group.slots[0].lowerBound))
                    job.requested = max(job.added, requested)
                    if job.requested ?? 0 > slots[0].lowerBound { job.group = nil }
                    if job.group == nil { (job.added, job.requested) = (added, requested) }
                    // A child that waited for its group, or for a job after it, would wait forever.
                    let before = jobs.prefix { $0.name != job.group }.map(\.name)
                    if job.group != nil { job.needs.removeAll { !before.contains($0) } }
                } else if Int.random(in: 0..<6, using: &generator) == 0 {
                    job.operation =
                        Bool.random(using: &generator)
                        ? ChainOperation() : BatchOperation(maxConcurrentOperationCount: 2)
                    (job.slots, job.categories, job.host, job.tags) = ([slots[0].lowerBound...job.ended], [], nil, [])
                }
            }
            jobs.append(job)
        }
        return MadeUp(jobs, limit: Int.random(in: 1...6, using: &generator)) { rules in
            rules.hostLimit = [nil, 2].randomElement(using: &generator) ?? nil
            rules.limits[.tag("t")] = [nil, 2].randomElement(using: &generator) ?? nil
            if Int.random(in: 0..<4, using: &generator) == 0 {
                rules.rates[.host("a")] = RateLimit(10, per: 0.1, burst: 2)
            }
        }
    }

    @Test("BEY-22: the prediction of a prediction is the same, for random jobs, groups and limits")
    func fixpoint() {
        for seed in 0..<UInt64(TestLoad.count(2_000, part: 200, huge: 50_000)) {
            var generator = SeededGenerator(seed: seed)
            let recording = random(&generator)
            let now = MadeUp.origin.addingTimeInterval(10)
            func replayed(_ record: TimelineRecord) -> (TimelineReplay, TimelineRecord) {
                var replay = TimelineReplay(TimelinePlan(record, at: now), Timeline.Changes())
                replay.run()
                return (replay, replay.record(record))
            }
            let (first, record) = replayed(recording.record)
            // Such a lead counts as none after a dependency, which the first replay can delay.
            if first.plan.jobs.contains(where: { $0.lead > 0 && $0.lead < 1e-3 }) { continue }
            let (second, _) = replayed(record)
            for (index, (one, other)) in zip(first.progress, second.progress).enumerated() {
                let name = "seed \(seed), job \(index)"
                expect(one.ended != nil, Comment(rawValue: name))
                for (first, second) in [(one.started, other.started), (one.ended, other.ended)] {
                    guard abs((first ?? -1) - (second ?? -1)) > 1e-5 else { continue }
                    Issue.record("\(name): \(String(describing: first)) became \(String(describing: second))")
                    return
                }
            }
            let limit = recording.rules[0].1.limits[.queueLane] ?? 0
            let changes = zip(first.progress, first.plan.jobs).filter { $1.row.group == nil }.flatMap { progress, _ in
                progress.slots.flatMap { [($0.start, 1), ($0.end ?? .infinity, -1)] }
            }
            var running = 0
            for (_, change) in changes.sorted(by: { ($0.0, $0.1) < ($1.0, $1.1) }) {
                running += change
                expect(running <= limit, "seed \(seed): \(running) jobs run")
            }
        }
    }

    @Test("BEY-22: the cost of a job is flat", .enabled(if: TestLoad.isFull))
    func size() {
        let jobs = (0..<20_000).map { index in
            Job("job \(index)", Double(index)...Double(index + 1)).with { job in
                if index > 0 { (job.needs, job.requested) = (["job \(index - 1)"], Double(index)) }
            }
        }
        let recording = MadeUp(jobs, limit: 1)
        let prediction = recording.whatIf(at: 20_000) { $0.multiplyDuration(of: "job 7", by: 0) }
        expect(abs((prediction.end ?? 0) - 19.999) < 1e-6)
    }
}
