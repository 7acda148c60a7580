import EasyNetwork
import Foundation

/// The rows of a ``Timeline`` at one moment, with times in milliseconds from the first event, for the page and the
/// terminal.
struct TimelinePicture: Encodable, Sendable {
    struct Part: Encodable, Sendable {
        var kind = ""
        var start: Double
        var end: Double
    }

    struct Attempt: Encodable, Sendable {
        let reason: String
        let request: String
        let start: Double
        let end: Double
        let status: Int?
        let error: String?
        let phases: [Part]
        /// Protocol, connection and bytes.
        let note: String?
    }

    struct CacheAnswer: Encodable, Sendable {
        let at: Double
        let miss: String?
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
        /// The end, or the moment of the picture.
        let end: Double
        let outcome: TimelineRecord.Outcome
        let error: String?
        let rootCause: String?
        let slots: [Part]
        let waits: [Part]
        let attempts: [Attempt]
        let cache: [CacheAnswer]
        /// The indices of the rows that it waits for.
        let dependencies: [Int]
        /// The names of operations that are not in the picture.
        let others: [String]
        /// The status of the last answer, the error's code, or where the answer came from.
        let result: String
        var isCritical = false
    }

    let begin: String
    let length: Double
    /// The number of older rows that were dropped.
    let droppedCount: Int
    private(set) var rows: [Row] = []

    /// - Parameter now: the end of all that is not over.
    init(_ record: TimelineRecord, at now: Date) {
        let rows = record.rows
        let origin = rows.map(\.added).min() ?? now
        begin = origin.timestamp
        droppedCount = record.firstNumber
        var length: Double = 0
        for row in rows {
            let made = Self.row(row, origin, now, record)
            length = max(length, made.end)
            self.rows.append(made)
        }
        self.length = length
        markCriticalPath()
    }

    /// The numbers of rows and of failures, and the whole time.
    var summary: String {
        var parts = ["\(rows.count) \(rows.count == 1 ? "row" : "rows") in \(Self.time(length))"]
        for (outcome, word) in [
            (TimelineRecord.Outcome.failed, "failed"), (.dependencyFailed, "without a dependency"),
            (.cancelled, "cancelled"), (.unfinished, "unfinished"),
        ] {
            let count = rows.count { $0.outcome == outcome }
            if count > 0 { parts.append("\(count) \(word)") }
        }
        if droppedCount > 0 { parts.append("\(droppedCount) older left out") }
        return parts.joined(separator: ", ")
    }

    /// Marks the job that ended last, the dependency of it that ended last, and so on.
    private mutating func markCriticalPath() {
        func last(_ indices: some Sequence<Int>) -> Int? {
            indices.filter { rows[$0].outcome != .unfinished }.max { rows[$0].end < rows[$1].end }
        }
        var next = last(rows.indices)
        while let index = next, !rows[index].isCritical {
            rows[index].isCritical = true
            next = last(rows[index].dependencies)
        }
    }

    private static func row(_ row: TimelineRecord.Row, _ origin: Date, _ now: Date, _ record: TimelineRecord) -> Row {
        let added = milliseconds(row.added, origin)
        let end = max(added, milliseconds(row.ended ?? now, origin))
        /// Within the row, since the clock may have been set, and an attempt may end after its job was cancelled.
        func time(_ date: Date) -> Double { min(max(milliseconds(date, origin), added), end) }
        func part(_ span: TimelineRecord.Span, _ kind: String = "", limit: Date? = nil) -> Part {
            let start = time(span.start)
            let last = time(span.end ?? .distantFuture)
            return Part(kind: kind, start: start, end: max(start, limit.map { min(time($0), last) } ?? last))
        }
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
            slots: row.slots.map { part($0) },
            waits: row.waits.map { part($0.span, $0.kind.rawValue, limit: $0.limit) },
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

    /// To a microsecond, which also makes the page shorter.
    private static func rounded(_ time: Double) -> Double { (time * 1_000).rounded() / 1_000 }
}
