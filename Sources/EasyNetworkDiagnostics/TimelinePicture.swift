import EasyNetwork
import Foundation

/// The rows of a ``Timeline`` at one moment, for the page and the terminal. Times are in milliseconds from the first
/// event.
struct TimelinePicture: Encodable, Sendable {
    struct Part: Encodable, Sendable {
        var kind: String?
        var start: Double
        var end: Double
        /// The reason of a wait, as the end of "waits for …".
        var why: String?
    }

    struct Attempt: Encodable, Sendable {
        let reason: String
        let request: String
        let start: Double
        let end: Double
        let status: Int?
        let error: String?
        let phases: [Part]
        /// The protocol, the connection and the byte counts.
        let note: String?
    }

    struct CacheAnswer: Encodable, Sendable {
        let at: Double
        let miss: String?
    }

    struct Group: Encodable, Sendable {
        /// The maximum number of children that run at once; 0 for no limit.
        let limit: Int
        let isChain: Bool
    }

    struct Row: Encodable, Sendable {
        let name: String
        let id: String?
        let isCall: Bool
        let host: String?
        let tags: [String]
        let request: String?
        let added: Double
        let started: Double?
        /// The end of the row, or the time of the picture if it has not ended.
        let end: Double
        let outcome: TimelineRecord.Outcome
        let error: String?
        let rootCause: String?
        let slots: [Part]
        /// The waits in the order of their starts. Their kinds are `job`, `slot` and `other`.
        let waits: [Part]
        /// The last reason why the row waited, if that wait took a significant part of its time.
        let why: String?
        /// The word for the priority; `nil` for the normal one.
        let priority: String?
        /// The index of the group that the row belongs to.
        var parent: Int?
        let group: Group?
        let attempts: [Attempt]
        let cache: [CacheAnswer]
        /// The indices of the row's dependencies.
        var dependencies: [Int]
        /// The names of dependencies that are not in the picture.
        let others: [String]
        /// The status of the last response, the error's code, or where the response came from.
        let result: String
        var isCritical = false
        /// Whether the row is the heading of the timeline below it.
        var isHeading = false

        private enum CodingKeys: CodingKey {
            case name, id, isCall, host, tags, request, added, started, end, outcome, error, rootCause, slots, waits,
                why
            case priority, parent, group, attempts, cache, dependencies, others, result, isCritical, isHeading
        }

        /// Encodes the row without empty and false values, which halves a page of many rows.
        func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: CodingKeys.self)
            func encode(_ list: [some Encodable], _ key: CodingKeys) throws {
                if !list.isEmpty { try container.encode(list, forKey: key) }
            }
            try container.encode(name, forKey: .name)
            try container.encodeIfPresent(id, forKey: .id)
            if isCall { try container.encode(isCall, forKey: .isCall) }
            try container.encodeIfPresent(host, forKey: .host)
            try encode(tags, .tags)
            try container.encodeIfPresent(request, forKey: .request)
            try container.encode(added, forKey: .added)
            try container.encodeIfPresent(started, forKey: .started)
            try container.encode(end, forKey: .end)
            try container.encode(outcome, forKey: .outcome)
            try container.encodeIfPresent(error, forKey: .error)
            try container.encodeIfPresent(rootCause, forKey: .rootCause)
            try encode(slots, .slots)
            try encode(waits, .waits)
            try container.encodeIfPresent(why, forKey: .why)
            try container.encodeIfPresent(priority, forKey: .priority)
            try container.encodeIfPresent(parent, forKey: .parent)
            try container.encodeIfPresent(group, forKey: .group)
            try encode(attempts, .attempts)
            try encode(cache, .cache)
            try encode(dependencies, .dependencies)
            try encode(others, .others)
            try container.encode(result, forKey: .result)
            if isCritical { try container.encode(isCritical, forKey: .isCritical) }
            if isHeading { try container.encode(isHeading, forKey: .isHeading) }
        }
    }

    let begin: String
    let length: Double
    /// The number of dropped older rows.
    let droppedCount: Int
    /// The number of rows that a timeline keeps.
    let limit: Int
    private(set) var rows: [Row] = []
    private var ownSummary: String?

    private enum CodingKeys: CodingKey { case begin, length, droppedCount, limit, rows }

    /// - Parameter now: the end of rows that have not ended.
    init(_ record: TimelineRecord, at now: Date) {
        let rows = record.rows
        let origin = rows.map(\.added).min() ?? now
        begin = origin.timestamp
        droppedCount = record.firstNumber
        limit = record.limit
        var length: Double = 0
        for row in rows {
            let made = Self.row(row, origin, now, record, rows)
            length = max(length, made.end)
            self.rows.append(made)
        }
        self.length = length
        markCriticalPath()
    }

    /// Two timelines below each other, each with a heading.
    init(_ recorded: TimelinePicture, above predicted: TimelinePicture, summary: String) {
        begin = recorded.begin
        droppedCount = recorded.droppedCount
        limit = recorded.limit
        length = max(recorded.length, predicted.length)
        ownSummary = summary
        for (picture, name) in [(recorded, "As recorded"), (predicted, "Predicted")] {
            let heading = rows.count
            rows.append(Row(heading: name, picture))
            for var row in picture.rows {
                row.parent = (row.parent ?? -1) + heading + 1
                row.dependencies = row.dependencies.map { $0 + heading + 1 }
                rows.append(row)
            }
        }
    }

    var isPrediction: Bool { ownSummary != nil }

    /// The numbers of rows and failures, and the total time; for two timelines, how they differ.
    var summary: String {
        if let ownSummary { return ownSummary }
        var parts = ["\(rows.count) \(rows.count == 1 ? "row" : "rows") in \(Self.time(length))"]
        for (outcome, word) in [
            (TimelineRecord.Outcome.failed, "failed"), (.dependencyFailed, "whose dependency failed"),
            (.cancelled, "cancelled"), (.unfinished, "unfinished"),
        ] {
            let count = rows.count { $0.outcome == outcome }
            if count > 0 { parts.append("\(count) \(word)") }
        }
        if droppedCount > 0 {
            parts.append("the oldest \(droppedCount) left out, since \(limit) are kept")
        }
        return parts.joined(separator: ", ")
    }

    /// Marks the job that succeeded last, the job that it waited for last, and so on. If no job succeeded, the path
    /// ends at the last failure. A cancelled job is never the end of the path.
    private mutating func markCriticalPath() {
        func last(_ indices: some Sequence<Int>, _ outcomes: Set<TimelineRecord.Outcome>) -> Int? {
            indices.filter { outcomes.contains(rows[$0].outcome) }.max { rows[$0].end < rows[$1].end }
        }
        let ended: Set<TimelineRecord.Outcome> = [.succeeded, .failed, .dependencyFailed, .cancelled]
        let children = Dictionary(grouping: rows.indices.filter { rows[$0].parent != nil }) { rows[$0].parent ?? 0 }
        var next = last(rows.indices, [.succeeded]) ?? last(rows.indices, [.failed])
        while let index = next, !rows[index].isCritical {
            rows[index].isCritical = true
            let row = rows[index]
            // A group ends with its last child. A child waited for its group to start, or for the step before it.
            next = last((children[index] ?? []) + row.dependencies, ended)
            guard next.map({ rows[$0].isCritical }) ?? true, let parent = row.parent else { continue }
            let steps = rows[parent].group?.isChain == true ? children[parent] ?? [] : []
            next = last(steps.filter { rows[$0].end <= row.added }, ended) ?? last(rows[parent].dependencies, ended)
        }
    }

    /// Returns the name of the dependency that ended last before a time.
    private static func dependency(
        of row: TimelineRecord.Row,
        at time: Date,
        _ record: TimelineRecord,
        _ rows: [TimelineRecord.Row]
    ) -> String? {
        var last: (name: String, end: Date)?
        for dependency in row.dependencies {
            guard let number = record.numbers[dependency.key] else { continue }
            let other = rows[number - record.firstNumber]
            if let end = other.ended, end <= time, end >= last?.end ?? end { last = (other.name, end) }
        }
        if let last { return TimelineRecord.text(last.name) }
        guard let first = row.dependencies.first else { return "other jobs" }
        return row.dependencies.count == 1
            ? TimelineRecord.text(first.name) : "one of \(row.dependencies.count) other jobs"
    }

    /// Returns the kind of a wait, and what the wait was for.
    static func words(for reason: WaitReason?) -> (kind: String, why: String?) {
        let (kind, why): (String, String?) =
            switch reason {
            case nil, .running, .finished, .ending, .notHere: ("slot", nil)
            case .dependency(let name, true): ("job", name)
            case .dependency(let name, false): ("job", "\(name), which is on no queue")
            case .notReady: ("other", "its isReady")
            case .suspended: ("slot", "the suspended queue")
            case .limit(let count): ("slot", slot(of: count))
            case .hostLimit(_, let count): ("slot", "\(slot(of: count)) for its host")
            case .tagLimit(let tag, let count): ("slot", "\(slot(of: count)) for the tag '\(tag)'")
            case .mutualExclusion(let category): ("slot", "another job of '\(category)'")
            case .batchLimit(let count): ("slot", "\(slot(of: count)) of its batch")
            case .rate: ("slot", "its rate")
            case .turn: ("slot", "its turn")
            case .condition(let name): ("other", "the condition \(name)")
            case .circuit(let host, _): ("other", "the circuit to \(host)")
            case .credential: ("other", "a credential")
            case .retry: ("other", "a retry")
            case .slotReleased: ("other", "a pause")
            case .slotYielded: ("slot", "urgent jobs")
            }
        return (kind, why.map { TimelineRecord.text($0) })
    }

    private static func slot(of count: Int) -> String { count == 1 ? "the only slot" : "a slot of \(count)" }

    /// Returns the reason of the last significant wait. A wait is insignificant if it is short compared to the other
    /// waits or the total time.
    private static func lastReason(_ waits: [Part], of whole: Double) -> String? {
        let total = waits.reduce(0) { $0 + $1.end - $1.start }
        guard total >= max(1, whole / 50) else { return nil }
        return waits.last { $0.why != nil && $0.end - $0.start >= total / 10 }?.why
    }

    private static func row(
        _ row: TimelineRecord.Row,
        _ origin: Date,
        _ now: Date,
        _ record: TimelineRecord,
        _ rows: [TimelineRecord.Row]
    ) -> Row {
        let added = milliseconds(row.added, origin)
        let end = max(added, milliseconds(row.ended ?? now, origin))
        /// Keeps a date within the row, because the clock can be changed, and an attempt can end after its job was
        /// cancelled.
        func time(_ date: Date) -> Double { min(max(milliseconds(date, origin), added), end) }
        func part(_ span: TimelineRecord.Span, limit: Date? = nil) -> Part {
            let start = time(span.start)
            let last = time(span.end ?? .distantFuture)
            return Part(start: start, end: max(start, limit.map { min(time($0), last) } ?? last))
        }
        var waits = row.waits.map { wait in
            var part = part(wait.span, limit: wait.limit)
            switch wait.kind {
            case .job: (part.kind, part.why) = ("job", dependency(of: row, at: wait.span.end ?? now, record, rows))
            case .queue(let reason): (part.kind, part.why) = words(for: reason)
            case .retry: (part.kind, part.why) = ("other", "the delay before a retry")
            case .credential: (part.kind, part.why) = ("other", "a credential")
            case .circuit: (part.kind, part.why) = ("other", "an open circuit")
            }
            return part
        }
        if let since = row.waitsSince, !row.waits.contains(where: { $0.span.end == nil }) {
            var part = part(TimelineRecord.Span(start: since))
            (part.kind, part.why) = words(for: row.reason)
            if row.reason == nil, !row.dependencies.isEmpty, row.slots.isEmpty { part.kind = "job" }
            waits.append(part)
        }
        waits = waits.filter { $0.end > $0.start }.sorted { $0.start < $1.start }
        var dependencies: [Int] = []
        var others: [String] = []
        for dependency in row.dependencies {
            if let number = record.numbers[dependency.key] {
                dependencies.append(number - record.firstNumber)
            } else {
                others.append(TimelineRecord.text(dependency.name))
            }
        }
        var id: String?
        var isCall = false
        switch row.key {
        case .job(let number): id = "#\(number)"
        case .plain: break
        case .call(let number): (id, isCall) = ("call \(number)", true)
        }
        return Row(
            name: TimelineRecord.text(row.name),
            id: id,
            isCall: isCall,
            host: row.host.map { TimelineRecord.text($0) },
            tags: row.tags.sorted().prefix(20).map { TimelineRecord.text($0, limit: 100) },
            request: row.request.map(line(of:)),
            added: added,
            started: row.started.map(time),
            end: end,
            outcome: row.outcome,
            error: row.error,
            rootCause: row.rootCause,
            slots: row.slots.map { part($0.span) },
            waits: waits,
            why: lastReason(waits, of: end - added),
            priority: row.priority.word,
            parent: row.parent.flatMap { record.numbers[$0] }.map { $0 - record.firstNumber },
            group: row.group.map { Group(limit: $0.limit, isChain: $0.isChain) },
            attempts: row.attempts.map { attempt($0, part($0.span)) },
            cache: row.cache.map { CacheAnswer(at: time($0.date), miss: $0.miss) },
            dependencies: dependencies,
            others: others,
            result: result(of: row)
        )
    }

    private static func result(of row: TimelineRecord.Row) -> String {
        let status = row.attempts.last?.status
        switch row.outcome {
        case .unfinished: return "unfinished"
        case .cancelled: return "cancelled"
        case .dependencyFailed: return "dependency failed"
        case .failed:
            let code = row.error.map { String($0.prefix { $0 != ":" }) } ?? "failed"
            return status.map { "\($0) \(code)" } ?? code
        case .succeeded:
            return status.map { "\($0)" } ?? (row.cache.contains { $0.miss == nil } ? "cache" : "done")
        }
    }

    private static func line(of request: TimelineRecord.Request) -> String {
        TimelineRecord.text("\(request.method) \(Redaction.standard.redacted(request.url))", limit: 1_000)
    }

    private static func attempt(_ attempt: TimelineRecord.Attempt, _ part: Part) -> Attempt {
        let metrics = attempt.metrics
        let phases = metrics?.timelinePhases(within: (part.end - part.start) / 1_000) ?? []
        let notes = [
            metrics?.networkProtocol.map { TimelineRecord.text($0) },
            metrics?.isReusedConnection.map { $0 ? "connection reused" : "new connection" },
            metrics?.bytesSent.map { "\($0) bytes out" }, metrics?.bytesReceived.map { "\($0) bytes in" },
        ]
        .compactMap { $0 }
        return Attempt(
            reason: attempt.reason,
            request: line(of: attempt.request),
            start: part.start,
            end: part.end,
            status: attempt.status,
            error: attempt.error,
            phases: phases.map {
                Part(
                    kind: "\($0.phase)",
                    start: rounded(part.start + $0.start * 1_000),
                    end: rounded(part.start + $0.end * 1_000)
                )
            },
            note: notes.isEmpty ? nil : notes.joined(separator: ", ")
        )
    }

    private static func milliseconds(_ date: Date, _ origin: Date) -> Double {
        rounded(date.timeIntervalSince(origin) * 1_000)
    }

    /// Rounds to a microsecond, which also makes the page shorter.
    private static func rounded(_ time: Double) -> Double {
        // JSON has no infinite numbers.
        time.isFinite ? (min(max(time, -1e15), 1e15) * 1_000).rounded() / 1_000 : 0
    }
}

extension TimelinePicture.Row {
    /// The heading of a timeline, which lasts as long as the timeline.
    fileprivate init(heading name: String, _ picture: TimelinePicture) {
        let outcome =
            picture.rows.contains { $0.outcome == .unfinished } ? TimelineRecord.Outcome.unfinished : .succeeded
        self.init(
            name: name,
            id: nil,
            isCall: false,
            host: nil,
            tags: [],
            request: nil,
            added: 0,
            started: 0,
            end: picture.length,
            outcome: outcome,
            error: nil,
            rootCause: nil,
            slots: [TimelinePicture.Part(start: 0, end: picture.length)],
            waits: [],
            why: nil,
            priority: nil,
            parent: nil,
            group: nil,
            attempts: [],
            cache: [],
            dependencies: [],
            others: [],
            result: outcome == .unfinished ? "unfinished" : "done",
            isHeading: true
        )
    }
}
