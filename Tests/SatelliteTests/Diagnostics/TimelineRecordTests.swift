import Foundation
import Testing

@testable import EasyNetwork
@testable import EasyNetworkDiagnostics
@testable import TestSupport

@Suite("Rows of a timeline", .timeLimit(.minutes(10)))
struct TimelineRecordTests {
    private let origin = Date(timeIntervalSinceReferenceDate: 800_000_000)
    private let url = URL(fileURLWithPath: "/users")

    private func job(_ name: String) -> NetworkOperation {
        let operation = NetworkOperation()
        operation.name = name
        return operation
    }

    /// - Parameter time: in milliseconds.
    private func event(
        _ kind: NetworkEvent.Kind,
        _ time: Double,
        _ operation: Operation? = nil,
        call: UInt64? = nil,
        priority: Operation.QueuePriority = .normal,
        group: Operation? = nil,
        wait: WaitNote? = nil
    ) -> NetworkEvent {
        var event = NetworkEvent(
            kind,
            at: origin.addingTimeInterval(time / 1_000),
            operation: operation,
            operationID: (operation as? NetworkOperation)?.operationID,
            callNumber: call,
            host: "api.example.com",
            tags: ["sync"]
        )
        (event.priority, event.group, event.wait) = (priority, group.map { ObjectIdentifier($0) }, wait)
        return event
    }

    private func attempt(_ reason: NetworkAttempt.Reason = .first) -> NetworkAttempt {
        NetworkAttempt(reason: reason, request: NetworkError.Request(method: "GET", url: url))
    }

    private func beginning(_ reason: NetworkAttempt.Reason = .first) -> NetworkEvent.Kind {
        .attemptStarted(attempt(reason), TransportRequest(url: url))
    }

    private func end(_ status: Int, _ code: NetworkError.Code? = nil, total: TimeInterval? = nil) -> NetworkEvent.Kind {
        var attempt = attempt()
        attempt.statusCode = status
        attempt.errorCode = code
        if let total {
            attempt.metrics = TransportMetrics(total: total)
            attempt.metrics?.firstByte = total / 2
        }
        return .attemptEnded(attempt, .success(NetworkResponse(statusCode: status)))
    }

    private func picture(_ record: TimelineRecord, at time: Double = 1_000) -> TimelinePicture {
        TimelinePicture(record, at: origin.addingTimeInterval(time / 1_000))
    }

    @Test("DIA-1: a row has the times of waiting, of slots, of attempts with their phases, and of delays")
    func life() throws {
        var record = TimelineRecord()
        let job = job("profile")
        let events = [
            event(.added(waitingFor: []), 0, job), event(.started, 10, job),
            event(.missedCache(.absent), 11, job, call: 7), event(.credentialAwaited, 12, job, call: 7),
            event(beginning(), 20, job, call: 7), event(end(503, .unacceptableStatus), 40, job, call: 7),
            event(.retryScheduled(delay: 0.03, after: nil), 40, job, call: 7), event(.slotReleased, 41, job),
            event(.slotRegained, 75, job), event(beginning(.retry), 80, job, call: 7),
            event(end(200, total: 0.02), 100, job, call: 7), event(.finished(nil), 101, job),
        ]
        for event in events { record.note(event, fromQueue: true) }
        let row = try #require(picture(record).rows.first)
        expect(row.name == "profile" && row.host == "api.example.com" && row.tags == ["sync"])
        expect(row.id == "#\(job.operationID)" && row.request == "GET file:///users")
        expect([row.added, row.started, row.end] == [0, 10, 101] && row.outcome == .succeeded)
        expect(row.slots.map(\.start) == [10, 75] && row.slots.map(\.end) == [41, 101])
        expect(row.waits.map(\.why), equals: [nil, "a credential", "the delay before a retry"])
        expect(row.waits.map(\.start) == [0, 12, 40] && row.waits.map(\.end) == [10, 20, 70])
        expect(row.attempts.map(\.reason) == ["first", "retry"] && row.attempts.map(\.status) == [503, 200])
        expect(row.attempts.map(\.error), equals: ["unacceptableStatus", nil])
        expect(row.attempts[1].phases.map(\.kind), equals: ["firstByte", "body"])
        expect(row.attempts[1].phases.map(\.start) == [80, 90] && row.attempts[1].phases.map(\.end) == [90, 100])
        expect(row.cache.map(\.miss) == ["absent"] && row.result == "200")
    }

    @Test(
        "DIA-1: the phases of an attempt follow each other and fit within it, whatever was measured",
        arguments: [0, 0.05, 0.1, 1, -1]
    )
    func phases(length: TimeInterval) {
        var metrics = TransportMetrics(total: 0.2)
        metrics.wait = 0.01
        (metrics.nameLookup, metrics.connect, metrics.tls, metrics.firstByte) = (0.02, 0.015, 0.06, .infinity)
        let phases = metrics.timelinePhases(within: length)
        expect(zip(phases, phases.dropFirst()).allSatisfy { $0.end == $1.start && $0.phase < $1.phase })
        expect(phases.allSatisfy { $0.start < $0.end && $0.end <= max(0, length) && $0.start >= 0 })
        expect(phases.first.map { $0.phase == .waiting } ?? (length <= 0))
        expect(TransportMetrics(total: 1).timelinePhases(within: 1).isEmpty)
    }

    @Test(
        "BEY-20: a job whose name shows nothing has the name of its type",
        arguments: ["\u{2028}\u{2029}", "", " \t\r\n", "\u{200B}\u{FEFF}", "\u{85}\u{A0}\u{3000}", "\u{202E}\u{7F}"]
    )
    func blankName(name: String) {
        var record = TimelineRecord()
        let job = job(name)
        record.note(event(.added(waitingFor: []), 0, job), fromQueue: true)
        expect(picture(record).rows.map(\.name), equals: [String(describing: type(of: job))])
        expect(event(.started, 1, job).description.hasPrefix(String(describing: type(of: job))))
        job.name = name + "a"
        expect(job.nameOrType, equals: name + "a")
    }

    @Test("DIA-1: of a long address it holds what is shown, without secrets")
    func longAddress() throws {
        let path = String(repeating: "a", count: 1_000_000)
        let url = try #require(URL(string: "https://api.example.com/?token=s3cret&q=\(path)"))
        let long = try #require(URL(string: "https://api.example.com/\(path)"))
        var record = TimelineRecord()
        for (number, url) in [url, long].enumerated() {
            let attempt = NetworkAttempt(reason: .first, request: NetworkError.Request(method: "GET", url: url))
            let kind = NetworkEvent.Kind.attemptStarted(attempt, TransportRequest(url: url))
            record.note(event(.callStarted, 0, call: UInt64(number)), fromQueue: false)
            record.note(event(kind, 0, call: UInt64(number)), fromQueue: false)
        }
        var text = ""
        dump(record, to: &text)
        expect(text.utf8.count < 20_000 && !text.contains("s3cret"))
        let rows = picture(record).rows
        expect(rows.map { $0.request?.count }, equals: [1_001, 1_001])
        expect(rows.first?.request?.hasPrefix("GET https://api.example.com/?token="), equals: true)
        expect(rows.last?.name.hasPrefix("GET /aaa"), equals: true)
    }

    @Test("DIA-1: what is not over ends at the moment of the picture; what ends after its job ends with it")
    func open() {
        var record = TimelineRecord()
        let (first, second) = (job("first"), job("second"))
        for (job, time) in [(first, 0.0), (second, 5)] {
            record.note(event(.added(waitingFor: []), time, job), fromQueue: true)
            record.note(event(.started, 10, job), fromQueue: true)
            record.note(event(beginning(), 20, job, call: UInt64(time)), fromQueue: true)
        }
        record.note(event(.finished(NetworkError(code: .cancelled)), 30, first), fromQueue: true)
        record.note(event(end(200, total: 1), 90, first, call: 0), fromQueue: true)
        let rows = picture(record, at: 50).rows
        expect(rows.map(\.outcome) == [.cancelled, .unfinished] && rows.map(\.end) == [30, 50])
        expect(rows.map(\.attempts[0].end) == [30, 50] && rows.map(\.slots[0].end) == [30, 50])
        expect(rows[0].attempts[0].phases.allSatisfy { $0.end <= 30 })
    }

    @Test("DIA-1: dependencies are rows, also those added later; the critical path leads back from the last end")
    func criticalPath() {
        var record = TimelineRecord()
        let (quick, slow, last, late) = (job("quick"), BlockOperation {}, job("last"), job("late"))
        slow.name = "slow"
        let outside = job("elsewhere")
        record.note(event(.added(waitingFor: [quick, slow, outside]), 0, last), fromQueue: true)
        for (job, end) in [(quick, 10), (slow, 20), (late, 25), (last, 30)] as [(Operation, Double)] {
            if job !== last { record.note(event(.added(waitingFor: []), 1, job), fromQueue: true) }
            record.note(event(.finished(nil), end, job), fromQueue: true)
        }
        let rows = picture(record).rows
        expect(rows.map(\.name), equals: ["last", "quick", "slow", "late"])
        expect(rows[0].dependencies == [1, 2] && rows[0].others == ["elsewhere"])
        expect(rows.filter(\.isCritical).map(\.name), equals: ["last", "slow"])
    }

    /// - Parameter time: in milliseconds, for which it waited for its slot.
    private func wait(_ time: Double, _ reason: WaitReason?, before: WaitReason? = nil) -> WaitNote {
        WaitNote(since: 0, seconds: time / 1_000, reason: reason, before: before, isAfterJobs: true)
    }

    @Test("BEY-20: a wait for a job, for a slot and for something else have kinds of their own, and say what for")
    func reasons() throws {
        var record = TimelineRecord()
        let (signIn, profile) = (job("Sign in"), job("profile"))
        let events = [
            event(.added(waitingFor: []), 0, signIn), event(.started, 0.5, signIn, wait: wait(0, nil)),
            event(.added(waitingFor: [signIn]), 2, profile, priority: .high), event(.finished(nil), 40, signIn),
            event(.started, 100, profile, wait: wait(60, .hostLimit(host: "api.example.com", 3))),
            event(.credentialAwaited, 110, profile, call: 1), event(.slotReleased, 110, profile),
            event(.slotRegained, 200, profile, wait: wait(30, .rate(seconds: 1))),
            event(beginning(), 200, profile, call: 1), event(end(200), 210, profile, call: 1),
            event(.slotReleased, 210, profile),
            event(.slotRegained, 300, profile, wait: wait(0, nil, before: .condition("unlocked"))),
            event(.finished(nil), 301, profile),
        ]
        for event in events { record.note(event, fromQueue: true) }
        let rows = picture(record).rows
        try #require(rows.count == 2)
        let waits = rows[1].waits
        expect(waits.map(\.kind), equals: ["job", "slot", "other", "slot", "other"])
        expect(
            waits.map(\.why),
            equals: [
                "Sign in", "a slot of 3 for its host", "a credential", "its rate", "the condition unlocked",
            ]
        )
        expect(waits.map(\.start) == [2, 40, 110, 170, 210] && waits.map(\.end) == [40, 100, 170, 200, 300])
        expect(rows[1].why == "the condition unlocked" && rows[1].priority == "high")
        expect(rows[0].why == nil && rows[0].priority == nil && rows[0].waits.isEmpty == false)
    }

    @Test("BEY-20: a short last wait does not hide the long one before it; a cancelled job names what it waited for")
    func lastReason() {
        var record = TimelineRecord()
        let (signIn, profile, other) = (job("Sign in"), job("profile"), job("other"))
        let events = [
            event(.added(waitingFor: []), 0, signIn), event(.started, 0, signIn),
            event(.added(waitingFor: [signIn]), 0, profile), event(.added(waitingFor: []), 0, other),
            event(.finished(nil), 90, signIn), event(.started, 91, profile, wait: wait(1, .limit(3))),
            event(.finished(nil), 120, profile),
            event(.finished(NetworkError(code: .cancelled)), 120, other, wait: wait(120, .tagLimit(tag: "sync", 1))),
        ]
        for event in events { record.note(event, fromQueue: true) }
        expect(picture(record).rows.map(\.why), equals: [nil, "Sign in", "the only slot for the tag 'sync'"])
    }

    @Test("BEY-20: the critical path ends at the last success, and leads through a chain and what that waited for")
    func criticalPathOfGroups() {
        var record = TimelineRecord()
        let (signIn, stray, early, cancelled) = (job("Sign in"), job("stray"), job("early"), job("cancelled"))
        let (one, two) = (job("one"), job("two"))
        let chain = ChainOperation()
        chain.name = "chain"
        let events = [
            event(.added(waitingFor: []), 0, signIn), event(.added(waitingFor: [signIn]), 0, chain),
            event(.added(waitingFor: []), 0, stray), event(.added(waitingFor: []), 0, early),
            event(.added(waitingFor: []), 0, cancelled), event(.finished(nil), 5, early),
            event(.finished(nil), 10, signIn), event(.started, 10, chain),
            event(.added(waitingFor: []), 11, one, group: chain), event(.finished(nil), 20, one),
            event(.added(waitingFor: []), 21, two, group: chain), event(.finished(nil), 30, two),
            event(.finished(nil), 31, chain), event(.finished(NetworkError(code: .timedOut)), 40, stray),
            event(.finished(NetworkError(code: .cancelled)), 50, cancelled),
        ]
        for event in events { record.note(event, fromQueue: true) }
        let rows = picture(record).rows
        expect(rows.filter(\.isCritical).map(\.name), equals: ["Sign in", "chain", "one", "two"])
        expect(rows.map(\.parent), equals: [nil, nil, nil, nil, nil, 1, 1])
        expect(rows[1].group?.limit == 1 && rows[1].group?.isChain == true)
    }

    @Test("BEY-20: what the calls of a dropped job tell makes no row, so that none is dropped for it")
    func droppedWhole() {
        var record = TimelineRecord(limit: 3)
        let jobs = (0..<6).map { job("\($0)") }
        for job in jobs { record.note(event(.added(waitingFor: []), 0, job), fromQueue: true) }
        for (index, job) in jobs.enumerated() {
            let call = UInt64(index)
            record.note(event(.started, 1, job), fromQueue: true)
            record.note(event(.callStarted, 1, job, call: call), fromQueue: false)
            record.note(event(beginning(), 2, job, call: call), fromQueue: true)
            record.note(event(end(200), 3, job, call: call), fromQueue: true)
            record.note(event(.callEnded(nil), 3, job, call: call), fromQueue: false)
            // A second call of the same job.
            record.note(event(.callStarted, 4, job, call: call + 10), fromQueue: false)
            record.note(event(.finished(nil), 5, job), fromQueue: true)
        }
        let picture = picture(record)
        expect(picture.rows.map(\.name) == ["3", "4", "5"] && picture.rows.allSatisfy { $0.attempts.count == 1 })
        expect(picture.droppedCount == 3 && picture.summary.hasSuffix("the oldest 3 left out, since 3 are kept"))
        for call in 1...4 { record.note(event(.callStarted, 6, call: UInt64(call)), fromQueue: false) }
        record.note(event(beginning(), 7, call: 1), fromQueue: true)
        expect(self.picture(record).rows.map(\.id), equals: ["call 2", "call 3", "call 4"])
    }

    @Test("DIA-1: a job that did not run, since a dependency failed, names the root cause")
    func rootCause() throws {
        var record = TimelineRecord()
        let job = job("profile")
        let cause = NetworkError(code: .timedOut, message: "no answer")
        let error = NetworkError(code: .dependencyFailed, underlying: cause, dependencyPath: ["sign-in", "token"])
        record.note(event(.added(waitingFor: []), 0, job), fromQueue: true)
        record.note(event(.finished(error), 5, job), fromQueue: true)
        let row = try #require(picture(record).rows.first)
        expect(row.outcome == .dependencyFailed && row.started == nil && row.slots.isEmpty)
        expect(row.rootCause?.hasPrefix("sign-in → token: timedOut: "), equals: true, "\(row.rootCause ?? "")")
        expect(row.rootCause?.contains("no answer"), equals: true)
    }

    @Test("DIA-1: the oldest rows are dropped beyond the limit, with their later events, and attempts beyond a hundred")
    func limits() {
        var record = TimelineRecord(limit: 3)
        let jobs = (0..<5).map { job("\($0)") }
        for (index, job) in jobs.enumerated() {
            let others = index > 0 ? [jobs[index - 1]] : []
            record.note(event(.added(waitingFor: others), Double(index), job), fromQueue: true)
        }
        record.note(event(.started, 10, jobs[0]), fromQueue: true)
        record.note(event(beginning(), 11, jobs[0], call: 1), fromQueue: true)
        for time in 0..<250 {
            record.note(event(beginning(), Double(time), jobs[4], call: 2), fromQueue: true)
            record.note(event(end(200), Double(time), jobs[4], call: 2), fromQueue: true)
        }
        let picture = picture(record)
        expect(picture.rows.map(\.name) == ["2", "3", "4"] && picture.droppedCount == 2)
        expect(picture.rows.map(\.dependencies) == [[], [0], [1]] && picture.rows[0].others == ["1"])
        expect(picture.rows[2].attempts.count == 100 && picture.rows[2].attempts.last?.start == 247)
    }

    @Test("DIA-1: no operation is kept", arguments: [true, false])
    func release(isPlain: Bool) {
        var record = TimelineRecord()
        weak var operation: Operation?
        func note() {
            let (job, other) = isPlain ? (BlockOperation {}, BlockOperation {}) : (job("a"), job("b"))
            operation = job
            record.note(event(.added(waitingFor: [other]), 0, job), fromQueue: true)
            record.note(event(.finished(nil), 1, job), fromQueue: true)
        }
        note()
        expect(operation == nil)
        expect(record.rows.count, equals: 1)
    }

    @Test("DIA-1: what queue and host tell of a call is one row, whichever comes first", arguments: [true, false])
    func both(isHostFirst: Bool) {
        var record = TimelineRecord()
        let job = job("profile")
        let fromQueue = [
            event(.added(waitingFor: []), 0, job), event(.started, 1, job), event(beginning(), 2, job, call: 3),
            event(end(200), 3, job, call: 3), event(.finished(nil), 5, job),
        ]
        let fromHost = [
            event(.callStarted, 1, job, call: 3), event(.callEnded(nil), 4, job, call: 3),
        ]
        let both = [(fromHost, false), (fromQueue, true)]
        for (events, isFromQueue) in isHostFirst ? both : both.reversed() {
            for event in events { record.note(event, fromQueue: isFromQueue) }
        }
        let rows = picture(record).rows
        expect(rows.count == 1 && rows[0].attempts.count == 1 && rows[0].slots.count == 1)
        expect(rows[0].end == (isHostFirst ? 4 : 5) || rows[0].end == 5)
        expect(rows[0].outcome == .succeeded && !rows[0].isCall)
    }

    @Test("DIA-1: calls without a job are rows: those of a host, and a message that several jobs of a queue share")
    func calls() {
        var record = TimelineRecord()
        record.note(event(.callStarted, 0, call: 1), fromQueue: false)
        record.note(event(.servedFromCache(NetworkResponse()), 1, call: 1), fromQueue: false)
        record.note(event(.callEnded(nil), 2, call: 1), fromQueue: false)
        record.note(event(beginning(), 3, call: 2), fromQueue: true)
        record.note(event(end(500), 4, call: 2), fromQueue: true)
        record.note(event(beginning(.retry), 5, call: 2), fromQueue: true)
        record.note(event(end(200), 6, call: 2), fromQueue: true)
        // Began before the recording.
        record.note(event(end(200), 7, call: 9), fromQueue: false)
        let rows = picture(record).rows
        expect(rows.map(\.id) == ["call 1", "call 2"] && rows.map(\.name) == ["call 1", "GET /users"])
        expect(rows.map(\.isCall), equals: [true, true])
        expect(rows.map(\.end) == [2, 6] && rows.map(\.result) == ["cache", "200"])
        expect(rows[1].attempts.count == 2 && rows.map(\.outcome) == [.succeeded, .succeeded])
    }
}
