import EasyNetwork
import Foundation

/// A recording of jobs and calls as bars over time, which shows when each waited, ran, sent its messages and ended. You
/// can export it as a page, as text, or as traces for other tools.
///
/// ```swift
/// let timeline = Timeline()
/// timeline.record(NetworkQueue.shared)
/// // … run the jobs …
/// let page = await timeline.html()
/// try Data(page.utf8).write(to: URL(fileURLWithPath: "timeline.html"))
/// ```
///
/// A timeline records until it is released. It keeps the newest 20,000 jobs and calls, each with its newest 100
/// attempts; the page shows how many older ones were dropped. A row has the name of its job, which is
/// ``/EasyNetwork/NetworkOperation``'s `name`, or the type of the request if there is no name.
///
/// A timeline holds no operations or messages, only their names and URLs. ``/EasyNetwork/Redaction/standard`` removes
/// the secrets from these before they are shown. Header fields and bodies are not recorded. You can use all members
/// from any thread.
public final class Timeline: Sendable {
    private let content = Locked(TimelineRecord())
    private let subscriptions = EventSubscriptions()
    private let queues = Locked<[WeakQueue]>([])
    /// The file of traces; `nil` without a file.
    private let file: TraceFile?
    let clock: any NetworkClock

    private struct WeakQueue: Sendable {
        weak var queue: NetworkQueue?
    }

    /// Creates an empty recording.
    public convenience init() {
        self.init(clock: SystemClock())
    }

    /// - Parameter clock: the clock of the queues and hosts.
    package init(clock: any NetworkClock) {
        file = nil
        self.clock = clock
        TraceContext.isUsed.isSet = true
    }

    /// Creates a recording that also writes its traces to a file. Each job or call that ends adds a line of OTLP/JSON,
    /// in the format of ``openTelemetry(service:)``.
    ///
    /// ```swift
    /// let timeline = try Timeline(traces: URL(fileURLWithPath: "traces.jsonl"))
    /// timeline.record(NetworkQueue.shared)
    /// ```
    ///
    /// If the queue of a job is not recorded, the file contains the job's span as it is at the end of its first call.
    /// Only the owner can read and write the file. If a symbolic link is at its path, the initializer throws.
    ///
    /// Lines are written in the background. At most 10,000 lines wait. A line that finds no room in memory or on the
    /// disk is dropped, and the next line has the number of dropped lines, `easynetwork.dropped`, in its scope.
    /// ``finish()`` waits until the last lines are written.
    ///
    /// - Parameters:
    ///   - file: the URL of the file, in a directory that exists. An existing file is kept as an older file.
    ///   - service: the `service.name` of the spans. Defaults to the name of the process.
    ///   - rotation: when the traces start a new file, and how many files are kept. Defaults to a new file after
    ///     10,000,000 bytes, and five files.
    ///   - clock: measures the age of a file, and provides the end of spans that have not ended. Defaults to
    ///     ``/EasyNetwork/SystemClock``.
    /// - Throws: ``/EasyNetwork/NetworkError/Code/cannotWriteFile`` if the file cannot be created.
    public init(
        traces file: URL,
        service: String = ProcessInfo.processInfo.processName,
        rotation: FileRotation = FileRotation(),
        clock: any NetworkClock = SystemClock()
    ) throws(NetworkError) {
        self.file = TraceFile(try LogFile(file, rotation, clock), OpenTelemetryText(service: service))
        self.clock = clock
        TraceContext.isUsed.isSet = true
    }

    /// Records the existing and future jobs of a queue. Recording a queue twice changes nothing. The queue is not kept
    /// alive.
    public func record(_ queue: NetworkQueue) {
        queues.withLock { queues in
            queues.removeAll { $0.queue == nil || $0.queue === queue }
            queues.append(WeakQueue(queue: queue))
        }
        // The subscription keeps the broadcast, so that no other one has its identifier.
        let id = ObjectIdentifier(queue.broadcast)
        let rules = queue.rules
        content.withLock { if $0.rules[id] == nil { $0.note(rules, of: id, at: .distantPast) } }
        subscriptions.add(queue, receiver(of: id))
    }

    /// Records the calls to a host from now on. If a job's queue is recorded, the job's calls are shown in its row.
    /// Recording a host twice changes nothing. The host is not kept alive.
    public func record(_ host: HostConfiguration) {
        subscriptions.add(host, receiver(of: nil))
    }

    /// - Parameter id: the queue that posts the events; `nil` if a host posts them.
    private func receiver(of id: ObjectIdentifier?) -> @Sendable (NetworkEvent) -> Void {
        let (content, file) = (content, file)
        return { event in
            let ended = content.withLock { content in
                if let rules = event.rules as? QueueRules, let id { content.note(rules, of: id, at: event.date) }
                content.note(event, fromQueue: id != nil, of: id)
                return file == nil ? nil : content.takeEnded(by: event)
            }
            if let ended { file?.add(ended) }
        }
    }

    /// Returns the recording up to now as an HTML page: a single file that loads nothing and works offline.
    ///
    /// - Parameter title: the heading of the page. Defaults to `Timeline`.
    public func html(title: String = "Timeline") async -> String {
        await picture().html(title: title)
    }

    /// Returns the recording up to now as lines for a terminal with a fixed-width font.
    ///
    /// - Parameter width: the number of columns, at least 40. Defaults to 100.
    public func text(width: Int = 100) async -> String {
        await picture().lines(width: width).joined(separator: "\n") + "\n"
    }

    /// Returns the traces of the jobs and calls that have ended, as lines of OTLP/JSON. Each job or call is a line, an
    /// `ExportTraceServiceRequest`. The OpenTelemetry Collector and Jaeger can read them.
    ///
    /// ```swift
    /// let timeline = Timeline()
    /// timeline.record(NetworkQueue.shared)
    /// // … run the jobs …
    /// let lines = await timeline.openTelemetry(service: "shop")
    /// try Data(lines.utf8).write(to: URL(fileURLWithPath: "traces.jsonl"))
    /// ```
    ///
    /// Spans are left out if their trace is not sampled, or if they began before the first timeline was created.
    ///
    /// - Parameter service: the `service.name` of the spans. Defaults to the name of the process.
    public func openTelemetry(service: String = ProcessInfo.processInfo.processName) async -> String {
        let text = OpenTelemetryText(service: service)
        let now = clock.date
        return await tracedRows().lazy.filter(\.hasEnded).map { text.line(of: $0.spans(until: now)) + "\n" }.joined()
    }

    /// Returns the traces up to now as Chrome trace events, for Perfetto and `chrome://tracing`. They contain the spans
    /// of ``openTelemetry(service:)``, and spans that have not ended as if they ended now.
    public func chromeTrace() async -> String {
        let rows = await tracedRows()
        return ChromeTraceText.document(rows, until: clock.date)
    }

    /// Returns when the file contains the lines of all jobs and calls that have ended.
    ///
    /// - Throws: ``/EasyNetwork/NetworkError/Code/cannotWriteFile`` if lines were dropped and no later line reports
    ///   their number.
    public func finish() async throws(NetworkError) {
        await subscriptions.settled()
        try await file?.settled()
    }

    private func tracedRows() async -> [TracedRow] {
        await settledRecord().tracedRows
    }

    /// The recording after all events up to now.
    func settledRecord() async -> TimelineRecord {
        await subscriptions.settled()
        return content.withLock { $0 }
    }

    private func picture() async -> TimelinePicture {
        var record = await settledRecord()
        for queue in queues.withLock({ $0.compactMap(\.queue) }) { record.noteReasons(of: queue) }
        return TimelinePicture(record, at: clock.date)
    }
}
