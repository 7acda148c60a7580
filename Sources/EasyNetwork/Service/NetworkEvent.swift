import Foundation

/// An event of a job in a ``NetworkQueue``, or of a call to a host.
///
/// ```swift
/// for await event in queue.events where event.level >= .info {
///     print(event)   // 'profile' #3: first: GET https://api.example.com/me → 200, 0.041 s
/// }
/// ```
///
/// ``NetworkQueue/events`` has the events of a queue, ``HostConfiguration/events`` the events of the calls to a host.
/// An event contains complete requests and responses, including their secrets. Its description contains no secrets.
public struct NetworkEvent: Sendable {
    /// The kind of an event. More kinds can be added, so a `switch` needs a `default`.
    ///
    /// ```swift
    /// for await event in queue.events {
    ///     if case .retryScheduled(let delay, _) = event.kind { print("again in", delay) }
    /// }
    /// ```
    public enum Kind: Sendable {
        // Events of a job. Only its queue posts them.

        /// The job was added, and waits for these operations.
        case added(waitingFor: [Operation])
        /// The job was given its slot. A job that ends without having run was never started.
        case started
        /// The job gave up its slot, to wait for a retry, a credential or a pause.
        case slotReleased
        /// The job gave its slot to a job of higher priority: see ``NetworkQueue/yieldingPriority``.
        case slotYielded
        /// The job has a slot again.
        case slotRegained
        /// The job has ended and its callbacks have run. The error is nil for success. A plain `Operation` has an error
        /// only if it was cancelled.
        case finished(NetworkError?)

        // Events of a call. The host posts all of them except the last two; the queue of the call's job posts all except
        // the first two.

        /// The call began. Only the host posts this event.
        case callStarted
        /// The call ended. The error is nil for success. Only the host posts this event. A cancelled operation can
        /// finish before its calls have ended.
        case callEnded(NetworkError?)
        /// The request's headers have a Content-Type that contradicts its body, so the body's own type is sent. Posted
        /// once for each host and type of request.
        case contentTypeReplaced(String, by: String)
        /// A message is sent: the first of the call, a redirect, or a retry.
        indirect case attemptStarted(NetworkAttempt, TransportRequest)
        /// The response has arrived, or the message has failed. The response has no body if the body was consumed as it
        /// arrived. After a cancellation, the job can finish before this event.
        indirect case attemptEnded(NetworkAttempt, Result<NetworkResponse, NetworkError>)
        /// The call waits this number of seconds for its next attempt, because of the error, or because of an
        /// interceptor if the error is nil.
        case retryScheduled(delay: TimeInterval, after: NetworkError?)
        /// The call waits for a credential, because a sign-in or a refresh is in progress.
        case credentialAwaited
        /// The call waits for the open circuit to its server: see ``CircuitBreaker/waitsWhileOpen``.
        case circuitAwaited
        /// The call's message or its response has opened the circuit to its server. The error is the one that the next
        /// call gets.
        case circuitOpened(NetworkError)
        /// The call's message was a trial, and has closed the circuit to its server.
        case circuitClosed
        /// The response was found in the cache.
        indirect case servedFromCache(NetworkResponse)
        /// The cache has no usable response, for this reason.
        case missedCache(CacheMiss)
        /// Transferred bytes of an upload, a download or a request whose ``ItemOperation/progress`` is read. Posted at
        /// most ten times a second. The total is nil while it is unknown. Only the queue posts this event.
        case progress(completed: Int64, total: Int64?)
        /// A resumable upload begins again, for this reason: the file has changed, the user has signed out or in,
        /// or the server no longer has the upload. Only the queue posts this event.
        case uploadStartedOver(String)

        // Events of a queue.

        /// The queue starts no more jobs.
        case suspended
        /// The queue starts jobs again.
        case resumed
        /// The queue accepts no more jobs, and its jobs have finished or been cancelled:
        /// ``NetworkQueue/shutDown(deadline:file:line:)`` has ended.
        case shutDown
    }

    /// The importance of an event, and the level of detail of a log.
    ///
    /// ```swift
    /// let logger = NetworkLogger(level: .debug)
    /// ```
    public enum Level: Int, Comparable, Sendable {
        /// The level of a log that shows what ``heads`` shows, and the beginnings of bodies as text. No event has this
        /// level.
        case bodies = -2
        /// The level of a log that shows all events, with the heads of requests and responses. No event has this level.
        case heads
        /// All other events. A log with this level shows every event.
        case debug
        /// The end of a message, of a job, and of a call without a job; a header that was replaced.
        case info
        /// The failure of a job, or of a call without one.
        case error

        init?(name: String) {
            let all: [Level] = [.bodies, .heads, .debug, .info, .error]
            guard let level = all.first(where: { "\($0)" == name.lowercased() }) else { return nil }
            self = level
        }

        public static func < (one: Level, other: Level) -> Bool { one.rawValue < other.rawValue }
    }

    /// The kind of the event.
    public let kind: Kind

    /// The time of the event, by the system's clock. The first events of a listener, which report the existing jobs,
    /// have the time at which it began to listen.
    public let date: Date

    /// The job. Nil for an event of the queue, for a call without a job, and for a message that several jobs share.
    public let operation: Operation?

    /// The ``NetworkOperation/operationID`` of the job; nil for a plain `Operation` and without a job.
    public let operationID: UInt64?

    /// The number of the call in this process; nil for an event that belongs to no call. A job can make several calls.
    public let callNumber: UInt64?

    /// The host of the job or the call; nil if it has no host, or the host is not known yet.
    public let host: String?

    /// The ``NetworkOperation/tags`` of the job. Empty in the events of a host.
    public let tags: Set<String>

    /// The ``NetworkOperation/queuePriority`` of the job, as its queue knows it.
    package var priority = Operation.QueuePriority.normal

    /// The group that the job is a child of.
    package var group: ObjectIdentifier?

    /// The reason why the job waited for the slot that it was given, or did not get until its end. Nil in other events,
    /// and if the wait began before there were listeners.
    package var wait: WaitNote?

    /// How the queue admits the job, for a job that was added or started; otherwise nil.
    package var admission: AdmissionNote?

    /// The rules by which the queue admitted jobs at that time, in its own type, if a job was added or started, or the
    /// queue suspended or resumed; otherwise nil.
    package var rules: (any Sendable)?

    /// The span of the job, or of a call without one; nil without traces.
    package let trace: TraceSpan?

    /// The broadcast of the queue of the job, in an event that a host posts of a job on a queue; otherwise nil.
    private let jobBroadcast: ObjectIdentifier?

    /// For the start and the end of a call, the broadcast of the queue that posts the start and the end of its job;
    /// otherwise nil.
    package var queueOfCall: ObjectIdentifier? {
        switch kind {
        case .callStarted, .callEnded: operation == nil ? nil : jobBroadcast
        default: nil
        }
    }

    init(
        _ kind: Kind,
        at date: Date = Date(),
        operation: Operation? = nil,
        operationID: UInt64? = nil,
        callNumber: UInt64? = nil,
        host: String? = nil,
        jobBroadcast: EventBroadcast? = nil,
        tags: Set<String> = [],
        trace: TraceSpan? = nil
    ) {
        self.kind = kind
        self.date = date
        self.operation = operation
        self.operationID = operationID
        self.callNumber = callNumber
        self.host = host
        self.jobBroadcast = jobBroadcast.map(ObjectIdentifier.init)
        self.tags = tags
        self.trace = trace
    }

    /// The importance of the event, for a log.
    public var level: Level {
        switch kind {
        case .finished(let error?) where error.code != .cancelled: .error
        case .callEnded(let error?) where operation == nil && error.code != .cancelled: .error
        case .finished, .attemptEnded, .contentTypeReplaced: .info
        case .callEnded where operation == nil: .info
        default: .debug
        }
    }
}

extension NetworkEvent: CustomStringConvertible, CustomReflectable {
    /// The job and the event in one line, without the secrets that ``Redaction`` recognizes.
    public var description: String {
        subject.map { "\($0): \(text)" } ?? text
    }

    /// A mirror without children, so that a dump shows no secrets.
    public var customMirror: Mirror { Mirror(self, children: [:]) }

    /// The line of a log: time, level and description.
    package var logLine: String {
        "\(date.timestamp) \(level) \(description)"
    }

    private var subject: String? {
        if let operation {
            return (operation.quotedName ?? operation.typeName) + (operationID.map { " #\($0)" } ?? "")
        }
        return callNumber.map { "call \($0)" + (host.map { " to \($0)" } ?? "") }
    }

    private var text: String {
        switch kind {
        case .added(let others) where others.isEmpty: "added"
        case .added(let others): "added, waits for \(others.count == 1 ? "another job" : "\(others.count) other jobs")"
        case .started: "started"
        case .slotReleased: "gave its slot back"
        case .slotYielded: "gave its slot to a job of higher priority"
        case .slotRegained: "has a slot again"
        case .finished(let error), .callEnded(let error): Self.end(error)
        case .callStarted: "began"
        case .contentTypeReplaced(let given, let sent):
            "sends the Content-Type of its body, \(sent.cleaned()), instead of \(given.cleaned()) from its headers"
        case .attemptStarted(let attempt, _):
            "\(attempt.reason): \(attempt.request.method) \(Redaction.standard.redacted(attempt.request.url))"
        case .attemptEnded(let attempt, _):
            "\(attempt)" + (attempt.metrics.map { ", \(Self.seconds($0.total))" } ?? "")
        case .retryScheduled(let delay, let error):
            "waits \(Self.seconds(delay)) before it is sent again" + (error.map { ", after \($0.code)" } ?? "")
        case .credentialAwaited: "waits for a credential"
        case .circuitAwaited: "waits because the circuit to its server is open"
        case .circuitOpened(let error): "opened the circuit: \(error.localizedDescription)"
        case .circuitClosed: "closed the circuit"
        case .servedFromCache(let response): "\(response.statusCode) from the cache"
        case .missedCache(let miss): "not from the cache: \(miss)"
        case .progress(let completed, let total): "\(completed) of \(total.map { "\($0)" } ?? "unknown") bytes"
        case .uploadStartedOver(let reason): "starts the upload over: \(reason)"
        case .suspended: "the queue is suspended"
        case .resumed: "the queue is resumed"
        case .shutDown: "the queue is shut down"
        }
    }

    private static func end(_ error: NetworkError?) -> String {
        guard let error else { return "succeeded" }
        return error.code == .cancelled ? "cancelled" : "failed: \(error.code): \(error.localizedDescription)"
    }

    private static func seconds(_ time: TimeInterval) -> String {
        // Most times are short, and `String(format:)` costs more than the rest of a line.
        guard (0..<1_000_000).contains(time) else { return String(format: "%.3f s", time) }
        let milliseconds = Int((time * 1_000).rounded())
        return "\(milliseconds / 1_000).\(String(1_000 + milliseconds % 1_000).dropFirst()) s"
    }
}
