import EasyNetwork
import Foundation

/// A recorder that writes the traffic of queues and hosts to a HAR file (HTTP Archive 1.2), which the tools of browsers
/// can open.
///
/// ```swift
/// let recorder = try TrafficRecorder(file: URL(fileURLWithPath: "traffic.har"))
/// recorder.record(queue)
/// _ = try await queue.perform(GetProfile(), service: service)
/// try await recorder.finish()
/// ```
///
/// Each message is an entry, including redirects, retries and the refresh of a credential. A response from the cache is
/// an entry with `_fromCache`. Entries are in the order in which their messages ended. Fields that start with an
/// underscore contain the job, the call, the reason, the number of the message, the delay and the dependencies. A
/// message that has not ended when the recording ends is an entry with the error
/// ``/EasyNetwork/NetworkError/Code/cancelled``.
///
/// The file is a complete HAR document after each write, even if the process is killed afterwards. A program that reads
/// the file during a write can get part of an entry, and must read it again.
///
/// The recorder writes on its own serial queue. The first entry is written at once. Entries that follow within two
/// milliseconds are written together after that time. If the disk is slower than the traffic, at most 32 MiB of bodies
/// wait, and further entries are dropped. Entries for which the disk has no room are dropped as well. `_dropped` in the
/// file is the number of dropped entries. Only the owner can read and write the file, even if it existed before. If a
/// symbolic link is at its path, the initializer throws.
///
/// A kill, a crash, or an exit without ``finish()`` loses what is not in the file yet: the messages in progress, the
/// entries of about the last two milliseconds, and entries that wait for a slow disk. A kill during a write can also
/// cut a line, which is an entry, and loses the entries after it. A power failure can lose more, because nothing is
/// synced to the disk.
///
/// | body | in the file |
/// |-|-|
/// | JSON, a form, other text | text without its secrets |
/// | text whose secrets cannot be told from the rest | left out |
/// | bytes of a response | Base64, as received |
/// | bytes of a request | left out, because HAR has no field for them |
/// | a download, a stream | left out |
///
/// With a ``FileRotation``, the recording continues in a new file when the current one is full or old. Each file is a
/// complete HAR document.
///
/// A body that is left out or truncated has a comment. The recording ends with ``finish()``, or when the recorder is
/// released.
public final class TrafficRecorder: Sendable {
    /// The start of a message.
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

    /// The maximum number of calls that are kept. Beyond it, calls without a running message are forgotten, because the
    /// end of a shared call is posted only to hosts.
    private static let callLimit = 8_192

    private let writer: HARWriter
    private let file: HARFile
    private let state = Locked(State())
    private let subscriptions = EventSubscriptions()

    /// Creates a recorder and its file. An existing file is overwritten, and becomes accessible to its owner only. With
    /// a rotation, it is kept as an older file.
    ///
    /// - Parameters:
    ///   - file: the URL of the file, in a directory that exists.
    ///   - redaction: removes secrets from URLs, fields, cookies and bodies. Defaults to
    ///     ``/EasyNetwork/Redaction/standard``. If it is `nil`, secrets are kept.
    ///   - maximumBodyCount: the number of bytes that the file contains of each body. Defaults to 65,536. The recorder
    ///     never keeps more than 4 MiB of a body. A longer text is left out, because secrets cannot be found in its
    ///     beginning alone.
    ///   - rotation: when the recording starts a new file, and how many files are kept. Defaults to `nil`: a single
    ///     file.
    ///   - clock: measures the age of a file. Defaults to ``/EasyNetwork/SystemClock``.
    /// - Throws: ``/EasyNetwork/NetworkError/Code/cannotWriteFile`` if the file cannot be created.
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

    /// Records the calls to the host from now on, including calls of jobs. A call whose queue is also recorded is
    /// recorded once. Does nothing after ``finish()``.
    public func record(_ host: HostConfiguration) {
        subscriptions.add(host) { [weak self] event in self?.receive(event) }
    }

    /// Ends the recording. When the method returns, every message is in the file. Messages that have not ended are in
    /// it as cancelled.
    ///
    /// - Throws: ``/EasyNetwork/NetworkError/Code/cannotWriteFile`` if an entry could not be written. The file contains
    ///   the other entries.
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
            let error = NetworkError(code: .cancelled, message: "the attempt had not ended when the recording ended")
            append(start, start.attempt, .failure(error), until: now, number)
        }
        try await file.settled()
    }

    /// Returns when every message that has ended is in the file.
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

    /// - Returns: the result of the closure, or `nil` if the recording has ended.
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
