import EasyNetwork
import Foundation

/// The jobs and calls of a ``Timeline``, collected from events. The record holds no operations or messages, only their
/// names and URLs. These are stored unredacted, unless they are long, because most events are never shown:
/// ``TimelinePicture`` removes the secrets.
struct TimelineRecord: Sendable {
    enum Outcome: String, Sendable, Encodable {
        case succeeded, failed, cancelled, dependencyFailed, unfinished
    }

    /// The identity of a job or call for as long as the record lives.
    enum Key: Hashable, Sendable {
        /// A job, by its ``/EasyNetwork/NetworkOperation/operationID``.
        case job(UInt64)
        /// A plain operation, by a number that it is given, because its address can be reused.
        case plain(Int)
        /// A call without a job, by its number.
        case call(UInt64)
    }

    struct Span: Sendable, Equatable {
        var start: Date
        var end: Date?
    }

    /// A time during which a row had a slot.
    struct Slot: Sendable {
        var span: Span
        /// The time at which the row requested the slot.
        let requested: Date
        /// Whether the slot was given to an urgent job.
        var isYielded = false
    }

    typealias Request = (method: String, url: String)

    struct Attempt: Sendable {
        let call: UInt64?
        let reason: String
        let request: Request
        /// The number of messages of the call before this one.
        let resendCount: Int
        /// The message's span; `nil` if it was sent before traces were used.
        let trace: TraceSpan?
        var span: Span
        var status: Int?
        var error: String?
        var metrics: TransportMetrics?
        /// Whether a file of traces contains the attempt.
        var isWritten = false
    }

    /// A wait of a job in its queue, or of a call between its attempts.
    struct Wait: Sendable {
        enum Kind: Sendable {
            /// A wait for other jobs.
            case job
            /// A wait for what the queue reports, such as a slot, a rate or a condition; `nil` if that was not
            /// recorded.
            case queue(WaitReason?)
            /// A phase of a call.
            case retry, credential, circuit
        }

        /// The number of the wait in its row, from 0.
        let number: Int
        var call: UInt64?
        let kind: Kind
        var span: Span
        /// The end of a delay, or the time from which the job waited for a slot.
        var limit: Date?
        /// Whether a file of traces contains the wait.
        var isWritten = false
    }

    /// `miss` is the reason of a miss; nil for a hit.
    typealias CacheAnswer = (date: Date, miss: String?)

    /// A job or a call.
    struct Row: Sendable {
        let key: Key
        var added: Date
        var name: String
        var host: String?
        var tags: Set<String> = []
        var request: Request?
        var started: Date?
        var ended: Date?
        /// The times during which the row had a slot. For a call without a job, its entire time.
        var slots: [Slot] = []
        var attempts: [Attempt] = []
        var waits: [Wait] = []
        /// The number of waits, including waits that are not kept.
        var waitCount = 0
        var cache: [CacheAnswer] = []
        var dependencies: [(key: Key, name: String)] = []
        var priority = JobPriority.normal
        /// The queue of the row, how the queue admits it, and the host by which the queue counts it.
        var queue: ObjectIdentifier?
        var admission = AdmissionNote()
        var countedHost: String?
        /// Whether the row's request was made from the items of its dependencies.
        var isMadeFromItems = false
        /// The group that the row belongs to.
        var parent: Key?
        /// For a group: the maximum number of children that run at once, 0 for no limit, and whether they run in order.
        var group: (limit: Int, isChain: Bool)?
        var outcome = Outcome.unfinished
        var error: String?
        var rootCause: String?
        /// The row's span, as soon as it has one.
        var trace: TraceSpan?
        /// Whether a file of traces contains the row's span.
        var isWritten = false
        /// Why the row waits at the time of a picture.
        var reason: WaitReason?
        /// Whether a queue posts events of the row.
        var isToldByQueue = false
        /// Whether the host posts the ends of the row's calls.
        var hasCallEvents = false
    }

    private struct WeakOperation: Sendable {
        weak var operation: Operation?
    }

    /// The maximum number of attempts, waits, slots and so on in one row.
    static let partLimit = 100
    /// The length beyond which strings are truncated before they are searched for secrets.
    fileprivate static let lengthLimit = 4_000

    let limit: Int
    /// The kept rows. The row with number n is at index n modulo ``limit``.
    private var ring: [Row] = []
    /// The number of the oldest kept row, which is also the number of dropped rows.
    private(set) var firstNumber = 0
    private(set) var numbers: [Key: Int] = [:]
    /// The rules of each queue, with the times from which they were in force. The newest are kept.
    private(set) var rules: [ObjectIdentifier: [(date: Date, rules: QueueRules)]] = [:]
    private var plain: [ObjectIdentifier: (reference: WeakOperation, number: Int)] = [:]
    private var plainCount = 0
    private var sweepCount = 1_000

    /// The groups that have not finished.
    private var groups: [ObjectIdentifier: Key] = [:]
    /// The dropped jobs that have not finished. Events of their calls create no row. The value is whether a queue posts
    /// the end of the job; otherwise the end of its call counts.
    private var dropped: [Key: Bool] = [:]
    /// The highest number of a dropped call. Numbers ascend, so all calls with lower numbers are treated as dropped.
    private var lastDroppedCall: UInt64?

    /// - Parameter limit: the maximum number of rows. The oldest rows are dropped. Defaults to 20,000.
    init(limit: Int = 20_000) {
        self.limit = limit
    }

    /// The kept rows, oldest first.
    var rows: [Row] {
        let first = ring.isEmpty ? 0 : firstNumber % ring.count
        return Array(ring[first...] + ring[..<first])
    }

    /// Replaces each kept row, oldest first, by the row that `transform` returns for it.
    mutating func replaceRows(_ transform: (_ index: Int, Row) -> Row) {
        for index in ring.indices {
            let place = (firstNumber + index) % limit
            ring[place] = transform(index, ring[place])
        }
    }

    /// Records the rules of a queue, if they have changed.
    mutating func note(_ new: QueueRules, of queue: ObjectIdentifier, at date: Date) {
        guard rules[queue]?.last?.rules != new else { return }
        rules[queue, default: []].append((date, new))
        rules[queue]?.keepNewest()
    }

    /// - Parameters:
    ///   - isFromQueue: whether a queue, not a host, posts the event.
    ///   - queue: the queue. Defaults to `nil`: unknown.
    mutating func note(_ event: NetworkEvent, fromQueue isFromQueue: Bool, of queue: ObjectIdentifier? = nil) {
        guard let number = number(for: event, fromQueue: isFromQueue) else { return forget(event) }
        defer { forget(event) }
        let index = number % limit
        if isFromQueue { (ring[index].isToldByQueue, ring[index].queue) = (true, queue) }
        if case .added(let others) = event.kind, !others.isEmpty, ring[index].dependencies.isEmpty {
            let shown = others.filter { !$0.isHiddenJob }.prefix(Self.partLimit)
            let dependencies = shown.map { (key: key(of: $0), name: $0.nameOrType) }
            ring[index].dependencies = dependencies
        }
        if case .added = event.kind {
            if let group = event.operation as? GroupOperation {
                groups[ObjectIdentifier(group)] = ring[index].key
                let limit = max(0, group.maxConcurrentOperationCount)
                ring[index].group = (limit, isChain: group is ChainOperation)
            }
            if let group = event.group { ring[index].parent = groups[group] }
        }
        ring[index].note(event)
    }

    /// Forgets what was kept for a job until its end.
    private mutating func forget(_ event: NetworkEvent) {
        guard let operation = event.operation else { return }
        let isOfQueue: Bool
        switch event.kind {
        case .finished: isOfQueue = true
        case .callEnded: isOfQueue = false
        default: return
        }
        if isOfQueue, operation is GroupOperation { groups[ObjectIdentifier(operation)] = nil }
        guard !dropped.isEmpty else { return }
        let key = key(of: operation)
        if dropped[key] == isOfQueue { dropped[key] = nil }
    }

    /// Returns the number of an event's row. A row is created when a job is added or a call starts. For a message that
    /// several jobs share, each event can create it.
    private mutating func number(for event: NetworkEvent, fromQueue isFromQueue: Bool) -> Int? {
        let key: Key
        var isFirst = false
        if let operation = event.operation {
            key = self.key(of: operation)
        } else if let call = event.callNumber {
            key = .call(call)
            isFirst = isFromQueue
        } else {
            return nil
        }
        if let number = numbers[key] { return number }
        switch event.kind {
        case .added: break
        case .callStarted: guard !isDropped(key) else { return nil }
        default: guard isFirst, !isDropped(key) else { return nil }
        }
        let number = firstNumber + ring.count
        var name = event.operation.map(\.nameOrType)
        if name == nil { name = event.callNumber.map { "call \($0)" } }
        let row = Row(key: key, added: event.date, name: name ?? "")
        if ring.count < limit {
            ring.append(row)
        } else {
            let index = number % limit
            drop(ring[index])
            ring[index] = row
            firstNumber += 1
        }
        numbers[key] = number
        return number
    }

    /// Returns what an event has completed, for a file of traces: a job, a call, or a message of a call whose end is
    /// not posted. Each part is returned once.
    mutating func takeEnded(by event: NetworkEvent) -> TracedRow? {
        switch event.kind {
        case .finished, .callEnded, .attemptEnded: break
        default: return nil
        }
        let key: Key
        if let operation = event.operation {
            key = self.key(of: operation)
        } else if let call = event.callNumber {
            key = .call(call)
        } else {
            return nil
        }
        guard let number = numbers[key], ring[number % limit].ended != nil else { return nil }
        let isNew = !ring[number % limit].isWritten
        let row = ring[number % limit].takeUnwritten(by: event.callNumber)
        guard let traced = TracedRow(row, in: self, isNew: isNew), traced.hasOwnSpan || !row.attempts.isEmpty else {
            return nil
        }
        return traced
    }

    /// The rows in sampled traces, oldest first.
    var tracedRows: [TracedRow] { rows.compactMap { TracedRow($0, in: self) } }

    /// Returns the trace context of a job or a call, or `nil` if its row was dropped.
    func context(of key: Key) -> TraceContext? { numbers[key].flatMap { ring[$0 % limit].trace?.context } }

    /// Records why the waiting jobs of a queue wait now.
    mutating func noteReasons(of queue: NetworkQueue) {
        for job in queue.drawnJobs.jobs where !job.isRunning {
            guard let number = numbers[key(of: job.operation)] else { continue }
            ring[number % limit].reason = queue.explain(job.operation).last
        }
    }

    private mutating func drop(_ row: Row) {
        numbers[row.key] = nil
        if case .call(let call) = row.key {
            lastDroppedCall = max(call, lastDroppedCall ?? 0)
        } else if row.outcome == .unfinished {
            dropped[row.key] = row.isToldByQueue
        }
    }

    private func isDropped(_ key: Key) -> Bool {
        if case .call(let call) = key { return lastDroppedCall.map { call <= $0 } ?? false }
        return dropped[key] != nil
    }

    private mutating func key(of operation: Operation) -> Key {
        if let operation = operation as? NetworkOperation { return .job(operation.operationID) }
        let identifier = ObjectIdentifier(operation)
        if let known = plain[identifier], known.reference.operation === operation { return .plain(known.number) }
        if plain.count >= sweepCount {
            plain = plain.filter { $0.value.reference.operation != nil }
            sweepCount = max(1_000, 2 * plain.count)
        }
        plainCount += 1
        plain[identifier] = (WeakOperation(operation: operation), plainCount)
        return .plain(plainCount)
    }

    /// Returns a URL unchanged, or redacted and truncated if it is long.
    private static func address(_ url: URL) -> String {
        let address = url.absoluteString
        return address.utf8.count <= lengthLimit ? address : text(Redaction.standard.redacted(address), limit: 1_000)
    }

    /// Returns a string without secrets, control characters and line breaks.
    static func text(_ text: String, limit: Int = 300) -> String {
        Redaction.standard.redacted(text.cleaned(limit: lengthLimit)).cleaned(limit: limit)
    }
}

extension TimelineRecord.Row {
    fileprivate mutating func note(_ event: NetworkEvent) {
        let date = event.date
        if host == nil { host = event.host }
        if trace == nil { trace = event.trace }
        if tags.isEmpty { tags = event.tags }
        if event.priority != .normal { priority = JobPriority(event.priority) }
        if let admission = event.admission {
            self.admission = admission
            countedHost = event.host
            if admission.isMadeFromItems { isMadeFromItems = true }
        }
        switch event.kind {
        case .added:
            // A call of the job may have ended the row, but the job continues.
            (ended, outcome, error, slots) = (nil, .unfinished, nil, [])
        case .started:
            let requested = waitForSlot(until: event, since: added)
            started = date
            openSlot(date, requested: requested)
        case .slotReleased: closeSlot(date)
        case .slotYielded:
            closeSlot(date)
            if let last = slots.indices.last { slots[last].isYielded = true }
        case .slotRegained:
            let requested = slots.last?.span.end.flatMap { waitForSlot(until: event, since: $0) }
            openSlot(date, requested: requested)
        case .finished(let error):
            if slots.isEmpty, isToldByQueue { waitForSlot(until: event, since: added) }
            end(date, error)
        case .callStarted:
            hasCallEvents = true
            guard !isJobOfQueue else { return }
            if started == nil { started = date }
            openSlot(date)
        case .callEnded(let error): if !isJobOfQueue { end(date, error) }
        case .attemptStarted(let attempt, _):
            endWaits(of: event.callNumber, date)
            let url = attempt.request.url
            let request = (method: attempt.request.method, url: TimelineRecord.address(url))
            if self.request == nil { self.request = request }
            if attempts.isEmpty, case .call = key {
                name = "\(request.method) \(url.path.isEmpty ? "/" : url.path)"
                    .cleaned(limit: TimelineRecord.lengthLimit)
            }
            if isCallOfQueue {
                if started == nil { started = date }
                openSlot(date)
                (ended, outcome, error) = (nil, .unfinished, nil)
            }
            attempts.append(
                TimelineRecord.Attempt(
                    call: event.callNumber,
                    reason: attempt.reason.rawValue,
                    request: request,
                    resendCount: attempts.last { $0.call == event.callNumber }.map { $0.resendCount + 1 } ?? 0,
                    trace: attempt.span,
                    span: TimelineRecord.Span(start: date)
                )
            )
            attempts.keepNewest()
        case .attemptEnded(let attempt, let result):
            let error = result.failure
            if let index = attempts.lastIndex(where: { $0.call == event.callNumber && $0.span.end == nil }) {
                attempts[index].span.end = date
                attempts[index].status = attempt.statusCode
                attempts[index].metrics = attempt.metrics
                attempts[index].error = (attempt.errorCode ?? error?.code).map { "\($0)" }
            }
            if isCallOfQueue { end(date, error) }
        case .retryScheduled(let delay, _):
            wait(.retry, event, until: date.addingTimeInterval(delay))
        case .credentialAwaited: wait(.credential, event)
        case .circuitAwaited: wait(.circuit, event)
        case .servedFromCache: note(cacheMiss: nil, event)
        case .missedCache(let miss): note(cacheMiss: "\(miss)", event)
        default: break
        }
    }

    /// Whether a queue posts the row's start and end.
    private var isJobOfQueue: Bool {
        if case .call = key { false } else { isToldByQueue }
    }

    /// Whether the row's end must be derived from its attempts, because it is a message that several jobs share and the
    /// host's events are not recorded.
    var isCallOfQueue: Bool {
        if case .call = key { !hasCallEvents } else { false }
    }

    /// - Parameter requested: the time at which the slot was requested. Defaults to `nil`: it is not known.
    private mutating func openSlot(_ date: Date, requested: Date? = nil) {
        if let last = slots.last, last.span.end == nil { return }
        slots.append(TimelineRecord.Slot(span: TimelineRecord.Span(start: date), requested: requested ?? date))
        slots.keepNewest()
    }

    private mutating func closeSlot(_ date: Date) {
        if let last = slots.indices.last, slots[last].span.end == nil { slots[last].span.end = date }
    }

    private mutating func wait(_ kind: TimelineRecord.Wait.Kind, _ event: NetworkEvent, until limit: Date? = nil) {
        endWaits(of: event.callNumber, event.date)
        waits.append(
            TimelineRecord.Wait(
                number: waitCount,
                call: event.callNumber,
                kind: kind,
                span: TimelineRecord.Span(start: event.date),
                limit: limit
            )
        )
        waitCount += 1
        waits.keepNewest()
    }

    /// Records what the job waited for until it got a slot, or ended without one.
    ///
    /// - Returns: the time at which the job requested the slot; `nil` if it is not known.
    @discardableResult
    private mutating func waitForSlot(until event: NetworkEvent, since start: Date) -> Date? {
        let end = event.date
        func wait(_ kind: TimelineRecord.Wait.Kind, _ start: Date, _ end: Date) {
            guard end > start else { return }
            let span = TimelineRecord.Span(start: start, end: end)
            waits.append(TimelineRecord.Wait(number: waitCount, kind: kind, span: span))
            waitCount += 1
        }
        defer { waits.keepNewest() }
        guard let note = event.wait else {
            if slots.isEmpty { wait(dependencies.isEmpty ? .queue(nil) : .job, start, end) }
            return slots.isEmpty && dependencies.isEmpty ? start : nil
        }
        var asked = min(max(start, end.addingTimeInterval(-note.seconds)), end)
        let requested = asked
        if slots.isEmpty, note.before == nil, !note.isAfterJobs {
            // The job was ready at once, except for the time that adding it took.
            guard note.reason != nil, note.seconds > 0 else { return requested }
            asked = start
        }
        var isToldByCall = false
        for index in waits.indices where waits[index].call != nil && waits[index].span.end == nil {
            waits[index].limit = min(waits[index].limit ?? asked, asked)
            isToldByCall = true
        }
        if let reason = note.before {
            wait(.queue(reason), start, asked)
        } else if slots.isEmpty {
            wait(.job, start, asked)
        } else if !isToldByCall {
            wait(.queue(.slotReleased), start, asked)
        }
        wait(.queue(note.reason), asked, end)
        return requested
    }

    private mutating func endWaits(of call: UInt64?, _ date: Date) {
        for index in waits.indices where waits[index].call == call && waits[index].span.end == nil {
            waits[index].span.end = date
        }
    }

    private mutating func note(cacheMiss miss: String?, _ event: NetworkEvent) {
        cache.append((event.date, miss))
        cache.keepNewest()
        if isCallOfQueue, miss == nil {
            if started == nil { started = event.date }
            end(event.date, nil)
        }
    }

    private mutating func end(_ date: Date, _ failure: NetworkError?) {
        closeSlot(date)
        ended = date
        switch failure?.code {
        case nil: outcome = .succeeded
        case .cancelled: outcome = .cancelled
        case .dependencyFailed: outcome = .dependencyFailed
        default: outcome = .failed
        }
        error = failure.map(Self.text(of:))
        rootCause = nil
        guard let failure, failure.code == .dependencyFailed else { return }
        let path = failure.dependencyPath.map { TimelineRecord.text($0) }.joined(separator: " → ")
        rootCause = (path.isEmpty ? "" : path + ": ") + Self.text(of: failure.rootCause)
    }

    private static func text(of error: NetworkError) -> String {
        "\(error.code): " + TimelineRecord.text(error.localizedDescription, limit: 1_000)
    }

    /// The start of the current wait for a slot; `nil` if the job has a slot or has ended.
    var waitsSince: Date? {
        guard isToldByQueue, ended == nil else { return nil }
        return slots.isEmpty ? added : slots.last?.span.end
    }

    /// Returns the row with the parts that have ended and were not written yet, and marks these as written.
    ///
    /// - Parameter call: the call that has ended.
    fileprivate mutating func takeUnwritten(by call: UInt64?) -> Self {
        func isOver(_ span: TimelineRecord.Span, _ other: UInt64?) -> Bool {
            isToldByQueue || span.end != nil || other == call
        }
        var new = self
        new.attempts.removeAll { $0.isWritten || !isOver($0.span, $0.call) }
        new.waits.removeAll { $0.isWritten || !isOver($0.span, $0.call) }
        for index in attempts.indices where isOver(attempts[index].span, attempts[index].call) {
            attempts[index].isWritten = true
        }
        for index in waits.indices where isOver(waits[index].span, waits[index].call) { waits[index].isWritten = true }
        isWritten = true
        return new
    }
}

extension Array {
    fileprivate mutating func keepNewest() {
        if count > TimelineRecord.partLimit { removeFirst(count - TimelineRecord.partLimit) }
    }
}

// MARK: - Phases

extension TransportMetrics {
    /// Returns the phases of an exchange, in order and within its attempt, in seconds from the start of the attempt.
    ///
    /// - Parameter length: the length of the attempt in seconds.
    func timelinePhases(
        within length: TimeInterval
    ) -> [(phase: TransportPhase, start: TimeInterval, end: TimeInterval)] {
        var phases: [(phase: TransportPhase, start: TimeInterval, end: TimeInterval)] = []
        var last: TimeInterval = 0
        func add(_ phase: TransportPhase, until time: TimeInterval?) {
            guard let time, time.isFinite else { return }
            let end = min(max(time, last), max(length, 0))
            if end > last { phases.append((phase, last, end)) }
            last = max(last, end)
        }
        add(.waiting, until: wait)
        add(.resolve, until: nameLookup.map { wait + $0 })
        add(.connect, until: connect.map { wait + $0 })
        add(.tls, until: tls.map { wait + $0 })
        // Without the time of the first byte, the rest can't be divided into phases.
        guard firstByte != nil else { return phases }
        add(.firstByte, until: firstByte.map { wait + $0 })
        add(.body, until: wait + total)
        return phases
    }
}
