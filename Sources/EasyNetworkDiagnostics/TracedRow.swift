import EasyNetwork
import Foundation

/// A job or a call in a sampled trace, with the spans that represent it.
struct TracedRow: Sendable {
    private let row: TimelineRecord.Row
    private let trace: TraceSpan
    /// The contexts of the jobs that the row waited for, except its parent.
    private let links: [TraceContext]
    /// Whether the first span is the row's own, which contains the others. A message that several jobs share has no own
    /// span, because only its attempts have an end. These attempts belong to the job that requested the message first.
    let hasOwnSpan: Bool

    /// Returns `nil` if the row is in no trace, or its trace is not sampled.
    ///
    /// - Parameter isNew: whether the row's own span has not been written yet. Defaults to true.
    init?(_ row: TimelineRecord.Row, in record: TimelineRecord, isNew: Bool = true) {
        guard let trace = row.trace, trace.context.isSampled else { return nil }
        (self.row, self.trace) = (row, trace)
        hasOwnSpan = isNew && !row.isCallOfQueue
        links = row.dependencies.compactMap { record.context(of: $0.key) }
            .filter { !$0.isInTrace(of: trace.context) || $0.spanID != trace.parentID }
    }

    var hasEnded: Bool { row.ended != nil }

    /// The host, which names the lanes of a picture; `nil` if there is none.
    var host: String? { row.host.map { TimelineRecord.text($0) } }

    /// Returns the spans of the row, its waits, its messages and their phases.
    ///
    /// - Parameter now: the end of spans that have not ended.
    func spans(until now: Date) -> [RecordedSpan] {
        let end = max(row.ended ?? now, row.added)
        var spans: [RecordedSpan] = []
        let parentID = row.isCallOfQueue ? trace.parentID : trace.context.spanID
        if hasOwnSpan { spans.append(span(until: end)) }
        // Dates are kept within the row, because the clock can be changed, and an attempt can end after its job was
        // cancelled.
        func time(_ date: Date) -> Date { min(max(date, row.added), end) }
        for wait in row.waits {
            let start = time(wait.span.start)
            var last = time(wait.span.end ?? end)
            if let limit = wait.limit { last = min(last, time(limit)) }
            guard last > start else { continue }
            var span = part("wait", UInt64(wait.number), start, last, parentID)
            let words = words(for: wait.kind)
            span.add("easynetwork.wait.kind", words.kind)
            span.add("easynetwork.wait.for", words.why)
            spans.append(span)
        }
        for attempt in row.attempts {
            let start = time(attempt.span.start)
            let last = max(start, time(attempt.span.end ?? end))
            guard let context = attempt.trace?.context else { continue }
            spans.append(message(attempt, context, start, last, parentID))
            let phases = attempt.metrics?.timelinePhases(within: last.timeIntervalSince(start)) ?? []
            for (index, phase) in phases.enumerated() {
                let (from, until) = (start.addingTimeInterval(phase.start), start.addingTimeInterval(phase.end))
                spans.append(
                    part(Self.name(of: phase.phase), context.span &+ UInt64(index), from, until, context.spanID)
                )
            }
        }
        return spans
    }

    private static func name(of phase: TransportPhase) -> String {
        switch phase {
        case .waiting: "wait for a connection"
        case .resolve: "name lookup"
        case .connect: "connect"
        case .tls: "TLS"
        // No transport measures the end of sending the request.
        case .send, .firstByte: "request, first byte"
        case .body: "body"
        }
    }

    /// Returns the span of a wait or phase. Its id is derived from the row's or the message's id, so that each export
    /// has the same id.
    private func part(_ name: String, _ seed: UInt64, _ start: Date, _ end: Date, _ parentID: String?) -> RecordedSpan {
        // The finalizer of SplitMix64 maps different numbers to different ids.
        var id = trace.context.span ^ (seed &+ 1) &* 0x9e37_79b9_7f4a_7c15
        id = (id ^ (id >> 30)) &* 0xbf58_476d_1ce4_e5b9
        id = (id ^ (id >> 27)) &* 0x94d0_49bb_1331_11eb
        id ^= id >> 31
        return RecordedSpan(trace.context, id: TraceContext.hex(max(1, id)), parentID, name: name, start, end)
    }

    private func span(until end: Date) -> RecordedSpan {
        let name = TimelineRecord.text(row.name)
        var span = RecordedSpan(trace.context, id: trace.context.spanID, trace.parentID, name: name, row.added, end)
        span.links = links
        switch row.key {
        case .job(let number): span.add("easynetwork.job.id", .number(Int(clamping: number)))
        case .call(let number): span.add("easynetwork.call", .number(Int(clamping: number)))
        case .plain: break
        }
        span.add("easynetwork.host", host)
        if !row.tags.isEmpty {
            let tags = row.tags.sorted().prefix(20).map { TimelineRecord.text($0, limit: 100) }
            span.add("easynetwork.tags", .list(tags))
        }
        span.add("easynetwork.priority", row.priority.word)
        span.add("easynetwork.outcome", row.outcome.rawValue)
        if let answer = row.cache.last {
            span.add("easynetwork.cache", answer.miss.map { TimelineRecord.text($0) } ?? "hit")
        }
        switch row.outcome {
        case .succeeded, .unfinished: break
        case .failed, .cancelled, .dependencyFailed:
            let text = row.error ?? row.outcome.rawValue
            span.fail(String(text.prefix { $0 != ":" }), row.rootCause.map { "\(text): \($0)" } ?? text)
        }
        return span
    }

    private func words(for kind: TimelineRecord.Wait.Kind) -> (kind: String, why: String?) {
        switch kind {
        case .job where row.dependencies.count == 1: ("job", TimelineRecord.text(row.dependencies[0].name))
        case .job: ("job", "\(row.dependencies.count) other jobs")
        case .queue(let reason): TimelinePicture.words(for: reason)
        case .retry: ("retry", "the delay before a retry")
        case .credential: ("credential", "a credential")
        case .circuit: ("circuit", "an open circuit")
        }
    }

    /// The methods that the semantic conventions define.
    private static let methods: Set<String> = [
        "GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH", "QUERY",
    ]

    /// Returns the span of a message, with the attributes of OpenTelemetry's semantic conventions for HTTP clients
    /// (https://opentelemetry.io/docs/specs/semconv/http/http-spans/).
    private func message(
        _ attempt: TimelineRecord.Attempt,
        _ context: TraceContext,
        _ start: Date,
        _ end: Date,
        _ parentID: String?
    ) -> RecordedSpan {
        let method = attempt.request.method
        let isKnown = Self.methods.contains(method)
        let name = isKnown ? method : "HTTP"
        var span = RecordedSpan(context, id: context.spanID, parentID, name: name, start, end)
        span.isMessage = true
        span.add("http.request.method", isKnown ? method : "_OTHER")
        if !isKnown { span.add("http.request.method_original", TimelineRecord.text(method)) }
        // A long URL was already redacted and truncated when it was recorded.
        let url = URL(string: attempt.request.url)
        let address = url.map { Redaction.standard.redacted($0) } ?? Redaction.standard.redacted(attempt.request.url)
        span.add("url.full", address.cleaned(limit: 2_000))
        span.add("server.address", url?.host)
        let standardPort = ["http": 80, "https": 443][url?.scheme?.lowercased() ?? ""]
        if let port = url?.port ?? standardPort { span.add("server.port", .number(port)) }
        if attempt.resendCount > 0 { span.add("http.request.resend_count", .number(attempt.resendCount)) }
        if let status = attempt.status { span.add("http.response.status_code", .number(status)) }
        let networkProtocol = attempt.metrics?.networkProtocol.map { TimelineRecord.text($0) }
        if let version = networkProtocol?.split(separator: "/").last, networkProtocol?.hasPrefix("HTTP/") == true {
            span.add("network.protocol.version", String(version))
        }
        span.add("easynetwork.reason", attempt.reason)
        let isOpen = attempt.span.end == nil
        if let status = attempt.status, status >= 400 {
            // The status explains the failure, so there is no description.
            span.fail("\(status)", nil)
        } else if let error = attempt.error ?? (isOpen && hasEnded ? "\(NetworkError.Code.cancelled)" : nil) {
            span.fail(error, error)
        }
        return span
    }
}

/// A span for export, without secrets.
struct RecordedSpan: Sendable {
    enum Value: Sendable, Equatable {
        case text(String)
        case number(Int)
        case list([String])
    }

    let context: TraceContext
    let id: String
    let parentID: String?
    let name: String
    let start: Date
    let end: Date
    /// Whether the span is a message to a server.
    var isMessage = false
    var links: [TraceContext] = []
    private(set) var attributes: [(name: String, value: Value)] = []
    /// Whether the span failed, and a message if the attributes don't explain the failure.
    private(set) var failure: (isError: Bool, message: String?) = (false, nil)

    init(_ context: TraceContext, id: String, _ parentID: String?, name: String, _ start: Date, _ end: Date) {
        (self.context, self.id, self.parentID, self.name) = (context, id, parentID, name)
        (self.start, self.end) = (start, end)
    }

    mutating func add(_ name: String, _ value: Value) {
        attributes.append((name, value))
    }

    mutating func add(_ name: String, _ text: String?) {
        if let text { add(name, .text(text)) }
    }

    mutating func fail(_ type: String, _ message: String?) {
        add("error.type", type)
        failure = (true, message)
    }
}
