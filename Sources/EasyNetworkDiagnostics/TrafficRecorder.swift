import EasyNetwork
import Foundation

/// Writes the traffic of queues and hosts to a HAR file (HTTP Archive 1.2), which the tools of browsers open.
///
/// ```swift
/// let recorder = try TrafficRecorder(file: URL(fileURLWithPath: "traffic.har"))
/// recorder.record(queue)
/// _ = try await queue.perform(GetProfile(), service: service)
/// try await recorder.finish()
/// ```
///
/// Each attempt is an entry: redirects, retries and the refresh of a credential, too. An answer of the cache is an
/// entry with `_fromCache`. Entries are in the order in which their attempts ended. Fields that begin with an
/// underscore name job, call, reason, number of the attempt, delay and dependencies. An attempt that is under way when
/// the recording ends is an entry with the error ``/EasyNetwork/NetworkError/Code/cancelled``.
///
/// The file is a whole HAR after each write, also when the program is killed afterwards. Who reads it in the moment of
/// a write, while the program runs, may get a part of an entry, and reads it again. It is written on a serial queue of
/// the recorder. The first entry is written at once; those that follow within two milliseconds are written together
/// after that time. If the disk is slower than the traffic, at most 32 MiB of bodies wait, and further entries are
/// dropped; so are those for which a full disk has no room. `_dropped` in the file is the number of all that were
/// dropped by then. The file may be read and written by its owner only, also one that was there; a symbolic link in its
/// place is not followed, but an error.
///
/// A kill, a crash, or an exit without ``finish()`` loses what is not in the file yet: the attempts under way, the
/// entries of about the last two milliseconds, and those that wait for a slow disk. A kill in the moment of a write may
/// also cut a line, which is an entry, and loses the entries behind it. A failure of power may lose more, since nothing
/// is forced onto the disk.
///
/// | body | in the file |
/// |-|-|
/// | JSON, a form, other text | text without its secrets |
/// | text in which secrets cannot be told from the rest | left out |
/// | bytes of an answer | Base64, as they came |
/// | bytes of a request | left out: HAR has no place for them |
/// | a download, a stream | left out |
///
/// With a ``FileRotation`` the recording goes on in a new file when the current one is full or old; each is a whole
/// HAR.
///
/// A body that is left out or cut has a comment. Recording ends with ``finish()``, or when the recorder is released.
public final class TrafficRecorder: Sendable {
    /// An attempt that has begun.
    private final class Start: Sendable {
        let attempt: NetworkAttempt
        let message: TransportRequest
        let date: Date
        let number: Int
        let job: HAREntry.Job?

        init(_ attempt: NetworkAttempt, _ message: TransportRequest, at date: Date, number: Int, job: HAREntry.Job?) {
            (self.attempt, self.message, self.date, self.number, self.job) = (attempt, message, date, number, job)
        }
    }

    private struct RecordedCall {
        var attemptCount = 0
        var start: Start?
    }

    private struct State {
        var calls: [UInt64: RecordedCall] = [:]
        var isFinished = false
    }

    /// Calls that are over are forgotten beyond this number: the end of a shared call is told to hosts only.
    private static let callLimit = 8_192

    private let writer: HARWriter
    private let file: HARFile
    private let state = Locked(State())
    private let subscriptions = EventSubscriptions()

    /// Creates the file. One that is there is overwritten and taken away from all but its owner, or, with a rotation,
    /// kept beside it.
    ///
    /// - Parameters:
    ///   - file: in a directory that exists.
    ///   - redaction: takes secrets out of addresses, fields, cookies and bodies. Default
    ///     ``/EasyNetwork/Redaction/standard``; nil keeps them.
    ///   - maximumBodyCount: in bytes; of longer bodies the file has the beginning. Default 64 KiB. More than 4 MiB of
    ///     a body are never kept: a longer text is left out, since secrets cannot be found in its beginning alone.
    ///   - rotation: when the recording goes on in a new file. Default nil: never.
    ///   - clock: for the age of a file. Default ``/EasyNetwork/SystemClock``.
    /// - Throws: ``/EasyNetwork/NetworkError/Code/cannotWriteFile``.
    public init(
        file: URL,
        redaction: Redaction? = .standard,
        maximumBodyCount: Int = 65_536,
        rotation: FileRotation? = nil,
        clock: any NetworkClock = SystemClock()
    ) throws(NetworkError) {
        writer = HARWriter(redaction: redaction, maximumBodyCount: max(0, maximumBodyCount))
        self.file = try HARFile(file, rotation, clock)
    }

    /// Records the calls of the queue's jobs from now on. Does nothing after ``finish()``.
    public func record(_ queue: NetworkQueue) {
        subscriptions.add(queue) { [weak self] event in self?.receive(event) }
    }

    /// Records the calls to the host from now on, those of jobs too. A call of a queue that is also recorded appears
    /// once. Does nothing after ``finish()``.
    public func record(_ host: HostConfiguration) {
        subscriptions.add(host) { [weak self] event in self?.receive(event) }
    }

    /// Ends the recording. When it returns, every attempt is in the file, those under way as cancelled.
    ///
    /// - Throws: ``/EasyNetwork/NetworkError/Code/cannotWriteFile`` if an entry could not be written; the file has
    ///   the others.
    public func finish() async throws(NetworkError) {
        await subscriptions.settled()
        subscriptions.end()
        let calls = state.withLock { state in
            state.isFinished = true
            return exchange(&state.calls, with: [:])
        }
        let now = Date()
        for (number, call) in calls.sorted(by: { $0.key < $1.key }) {
            guard let start = call.start else { continue }
            let error = NetworkError(code: .cancelled, message: "under way when the recording ended")
            append(start, start.attempt, .failure(error), until: now, number)
        }
        try await file.settled()
    }

    /// Returns when every attempt that has ended is in the file.
    func settled() async throws(NetworkError) {
        await subscriptions.settled()
        try await file.settled()
    }

    private func receive(_ event: NetworkEvent) {
        guard let callNumber = event.callNumber else { return }
        switch event.kind {
        case .attemptStarted(let attempt, let message):
            let job = HAREntry.Job(event)
            withCall(callNumber) { call in
                call.attemptCount += 1
                call.start = Start(attempt, message, at: event.date, number: call.attemptCount, job: job)
            }
        case .attemptEnded(let attempt, let result):
            guard let start = withCall(callNumber, { $0.start.take() }) ?? nil else { return }
            append(start, attempt, result, until: event.date, callNumber)
        case .servedFromCache(let response):
            guard withCall(callNumber, { _ in }) != nil, let url = response.url else { return }
            append(
                HAREntry(
                    TransportRequest(method: response.requestMethod ?? .get, url: url),
                    .success(response),
                    at: event.date,
                    callNumber: callNumber,
                    job: HAREntry.Job(event)
                )
            )
        default: break
        }
    }

    /// - Returns: nil when the recording has ended.
    @discardableResult
    private func withCall<Result>(_ number: UInt64, _ body: (inout RecordedCall) -> Result) -> Result? {
        state.withLock { state in
            guard !state.isFinished else { return nil }
            let result = body(&state.calls[number, default: RecordedCall()])
            if state.calls.count > Self.callLimit {
                let limit = state.calls.keys.sorted()[Self.callLimit / 2]
                state.calls = state.calls.filter { $0.key >= limit || $0.value.start != nil }
            }
            return result
        }
    }

    private func append(
        _ start: Start,
        _ attempt: NetworkAttempt,
        _ result: Result<NetworkResponse, NetworkError>,
        until end: Date,
        _ callNumber: UInt64
    ) {
        let duration = end.timeIntervalSince(start.date)
        append(
            HAREntry(
                start.message,
                result,
                (attempt, start.number, duration),
                at: start.date,
                callNumber: callNumber,
                job: start.job
            )
        )
    }

    private func append(_ entry: HAREntry) {
        file.append(entry.size) { [writer] text in
            writer.write(entry, to: &text)
        }
    }
}
