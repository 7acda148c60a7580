import EasyNetwork
import Foundation

/// A recording of jobs and calls, shown as bars over time: when each waited, ran, sent its messages and ended. It is a
/// page, a text, or a trace for the tools that read those.
///
/// ```swift
/// let timeline = Timeline()
/// timeline.record(NetworkQueue.shared)
/// // … run the jobs …
/// let page = await timeline.html()
/// try Data(page.utf8).write(to: URL(fileURLWithPath: "timeline.html"))
/// ```
///
/// It records until it is released, and keeps the newest 20,000 jobs and calls, each with its newest 100 attempts; the
/// page says how many older ones were left out. A row has the name of its job: ``/EasyNetwork/NetworkOperation`` has a
/// `name`, and without one the type of the request names it. It holds neither operations nor messages, only their names
/// and addresses, from which ``/EasyNetwork/Redaction/standard`` takes the secrets before they are shown; header fields
/// and bodies are not recorded. All members may be used from any thread.
public final class Timeline: Sendable {
    private let content = Locked(TimelineRecord())
    private let subscriptions = EventSubscriptions()
    private let queues = Locked<[WeakQueue]>([])
    /// Nil without a file.
    private let file: TraceFile?
    private let clock: any NetworkClock

    private struct WeakQueue: Sendable {
        weak var queue: NetworkQueue?
    }

    /// Creates a recording of nothing yet.
    public convenience init() {
        self.init(clock: SystemClock())
    }

    /// - Parameter clock: that of the queues and hosts.
    package init(clock: any NetworkClock) {
        file = nil
        self.clock = clock
        TraceContext.isUsed.isSet = true
    }

    /// Creates a recording that also writes its traces to a file: for each job or call that ends a line of OTLP/JSON,
    /// as ``openTelemetry(service:)`` has it.
    ///
    /// ```swift
    /// let timeline = try Timeline(traces: URL(fileURLWithPath: "traces.jsonl"))
    /// timeline.record(NetworkQueue.shared)
    /// ```
    ///
    /// For a job whose queue is not recorded, the file has the span as of the end of its first call. The file may be
    /// read and written by its owner only; a symbolic link in its place is not followed, but an error. Lines are
    /// written in the background. At most 10,000 wait; those for which there is no room, there or on the disk, are
    /// dropped, and the next line has their number, `easynetwork.dropped`, in its scope. ``finish()`` waits for the
    /// last ones.
    ///
    /// - Parameters:
    ///   - file: in a directory that exists. A file that is there is kept beside it.
    ///   - service: the `service.name` of the spans. Default the name of the program.
    ///   - rotation: when the traces go on in a new file, and how many files there are. Default: after 10,000,000
    ///     bytes, five files.
    ///   - clock: for the age of a file, and the end of what has not ended. Default ``/EasyNetwork/SystemClock``.
    /// - Throws: ``/EasyNetwork/NetworkError/Code/cannotWriteFile``.
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

    /// Records the jobs of a queue: those that are there, and those that are added later. Recording a queue twice has
    /// no effect. The queue is not kept alive.
    public func record(_ queue: NetworkQueue) {
        queues.withLock { queues in
            queues.removeAll { $0.queue == nil || $0.queue === queue }
            queues.append(WeakQueue(queue: queue))
        }
        subscriptions.add(queue, receiver(fromQueue: true))
    }

    /// Records the calls to a host from now on; a call of a job that is recorded with its queue is shown in that job's
    /// row. Recording a host twice has no effect. The host is not kept alive.
    public func record(_ host: HostConfiguration) {
        subscriptions.add(host, receiver(fromQueue: false))
    }

    private func receiver(fromQueue isFromQueue: Bool) -> @Sendable (NetworkEvent) -> Void {
        let (content, file) = (content, file)
        return { event in
            let ended = content.withLock { content in
                content.note(event, fromQueue: isFromQueue)
                return file == nil ? nil : content.takeEnded(by: event)
            }
            if let ended { file?.add(ended) }
        }
    }

    /// The recording until now as a page of HTML: a single file, which loads nothing and runs offline.
    ///
    /// - Parameter title: its heading. Default `Timeline`.
    public func html(title: String = "Timeline") async -> String {
        await picture().html(title: title)
    }

    /// The recording until now as lines for a terminal, in a font of fixed width.
    ///
    /// - Parameter width: the number of columns, at least 40. Default 100.
    public func text(width: Int = 100) async -> String {
        await picture().lines(width: width).joined(separator: "\n") + "\n"
    }

    /// The traces of the jobs and calls that have ended until now, as lines of OTLP/JSON: one for each job or call, an
    /// `ExportTraceServiceRequest` each. OpenTelemetry's collector and Jaeger read them.
    ///
    /// ```swift
    /// let timeline = Timeline()
    /// timeline.record(NetworkQueue.shared)
    /// // … run the jobs …
    /// let lines = await timeline.openTelemetry(service: "shop")
    /// try Data(lines.utf8).write(to: URL(fileURLWithPath: "traces.jsonl"))
    /// ```
    ///
    /// Spans of a trace that is not sampled, or that began before the first timeline was made, are left out.
    ///
    /// - Parameter service: the `service.name` of the spans. Default the name of the program.
    public func openTelemetry(service: String = ProcessInfo.processInfo.processName) async -> String {
        let text = OpenTelemetryText(service: service)
        let now = clock.date
        return await tracedRows().lazy.filter(\.hasEnded).map { text.line(of: $0.spans(until: now)) + "\n" }.joined()
    }

    /// The traces until now as trace events of Chrome, for Perfetto and `chrome://tracing`: what
    /// ``openTelemetry(service:)`` has, and what is not over as if it ended now.
    public func chromeTrace() async -> String {
        let rows = await tracedRows()
        return ChromeTraceText.document(rows, until: clock.date)
    }

    /// Returns when the file has the lines of all jobs and calls that have ended until now.
    ///
    /// - Throws: ``/EasyNetwork/NetworkError/Code/cannotWriteFile`` if a line was dropped and no later one tells so.
    public func finish() async throws(NetworkError) {
        await subscriptions.settled()
        try await file?.settled()
    }

    private func tracedRows() async -> [TracedRow] {
        await subscriptions.settled()
        return content.withLock { $0 }.tracedRows
    }

    private func picture() async -> TimelinePicture {
        await subscriptions.settled()
        var record = content.withLock { $0 }
        for queue in queues.withLock({ $0.compactMap(\.queue) }) { record.noteReasons(of: queue) }
        return TimelinePicture(record, at: clock.date)
    }
}
