import Foundation

/// A job that sends a large body in constant memory, and reports its progress.
///
/// ```swift
/// let upload = UploadOperation(PutMovie(id: 7), from: .file(movie))
/// upload.success = { movie in print(movie.url) }
/// NetworkQueue.shared.addOperation(upload)
/// for await (completed, _) in upload.updates { print(completed) }
/// ```
///
/// The body is the request's own, or one that you pass to replace it: data, a file, a stream or a multipart form. Files
/// and streams are read while they are sent. The length is sent if it is known (`Content-Length`). Otherwise HTTP/1.1
/// sends the body in chunks (RFC 9112, section 7.1). ``URLSessionTransport`` first writes a stream to a temporary file.
///
/// A retry, a redirect that keeps the method, and a challenge send the body again from its beginning. With
/// ``RequestOptions/resuming``, an upload resumes where the server confirms that it stopped, also after a pause and in
/// another process: see <doc:UploadsThatResume>. A body that cannot be read twice
/// (``TransportBodyStream/isReplayable``) is sent once. If a server responds before it has read the body, for example
/// with `413 Content Too Large`, the upload ends at once, and the rest is not sent.
///
/// Callbacks and ``ItemOperation/value`` work as in every ``RequestOperation``. Uploads are never joined:
/// ``RepeatPolicy/join`` has the meaning of ``RepeatPolicy/allow`` here.
public final class UploadOperation<Request: APIRequest>: RequestOperation<Request>, @unchecked Sendable {
    // Sendable because all mutable state is in `run` and `turn`, under their locks. `isWanted` is written before the
    // operation is added to a queue.
    private struct Run {
        let task: Task<Void, Never>
        /// Completes when the task has ended.
        let hasEnded: Promise<Void>
    }

    private let turn = UploadTurn()
    private let run = Locked<Run?>(nil)
    /// The request as it was when the operation was created, if the upload resumes.
    private let resumable: (settings: ResumableUpload, request: CallRequest)?

    /// Creates an upload.
    ///
    /// - Parameters:
    ///   - request: the request, with a method that has a body, such as POST or PUT.
    ///   - body: the body, with its Content-Type. The parameters of the request are then sent in its query (`.path`).
    ///     Defaults to `nil`: the request's body.
    ///   - service: the service, which determines the host. Cancelling it cancels this operation's call. Defaults to a
    ///     service of the current ``HostConfiguration/shared``.
    public convenience init(
        _ request: Request,
        from body: RequestBody? = nil,
        service: EasyNetworkService = EasyNetworkService(HostConfiguration.shared)
    ) {
        self.init(request, request.options.with { $0.body = body }, of: service)
    }

    /// Creates an upload with other options than its request's.
    package override init(_ request: Request, _ options: RequestOptions?, of service: EasyNetworkService?) {
        let options = options ?? request.options
        resumable = options.resuming.map { ($0, CallRequest(request, options)) }
        super.init(request, options, of: service)
        changeRequestOptions { options in
            options.beginBody = { [weak self] body throws(NetworkError) in try self?.begin(body) ?? body }
        }
    }

    /// Returns whether the upload is still wanted. Called when it begins. Set it before the operation is added to a
    /// queue.
    package var isWanted: (@Sendable () -> Bool)?

    // MARK: - Progress

    /// The number of bytes of the body that have been sent, and its length, `nil` while that is unknown. Values are
    /// sent as they change, at most ten times a second, and once more at the end. Each read returns a new sequence. A
    /// slow reader misses intermediate values, but never the last one. The rate in bytes per second and the remaining
    /// time in seconds are in the `userInfo` of ``ItemOperation/progress``, under `throughputKey` and
    /// `estimatedTimeRemainingKey`.
    public var updates: AsyncStream<(completedBytes: Int64, totalBytes: Int64?)> { meter.updates() }

    override func claimProgress() -> OrderedProgress? { meter.claimShare() }

    override func makeMeter() -> TransferMeter {
        // Foundation on Linux has no constant for this kind.
        let kind = Progress.FileOperationKind(rawValue: "NSProgressFileOperationKindUploading")
        let meter = TransferMeter(kind: kind, clock: clock)
        guard resumable != nil else { return meter }
        meter.whenPauseChanges { [weak self] isPaused in
            if isPaused { self?.pause() } else { self?.resume() }
        }
        return meter
    }

    override func note(_ counts: BodyStream.Counts, _ total: Int64?, in meter: TransferMeter) {
        // A redirect can have another method and no body.
        if counts.sent > 0 { meter.set(completed: Int64(counts.sent)) }
    }

    // MARK: - Bandwidth

    /// The maximum rate of the body in bytes per second, in addition to ``NetworkQueue/bandwidthLimit``. A value below
    /// 1 counts as 1. Defaults to `nil`: no limit. The rate is an average over a tenth of a second or more.
    ///
    /// Set it before the body begins. A later change takes effect at once for a stream. For data and files, it takes
    /// effect at once if they began with a limit, otherwise when they are sent again. A body with a limit is sent as a
    /// stream, which costs more.
    public var bandwidthLimit: Int? {
        get { ownBandwidthLimit }
        set { ownBandwidthLimit = newValue }
    }

    /// Prepares the body, which begins or begins again.
    ///
    /// - Returns: the body to send.
    private func begin(_ body: TransportBody) throws(NetworkError) -> TransportBody {
        meter.begin(completed: 0, total: try body.length().map(Int64.init))
        return try limited(body)
    }

    /// Returns the body with the limits of the bandwidth.
    private func limited(_ body: TransportBody) throws(NetworkError) -> TransportBody {
        if case .none = body { return body }
        if case .stream = body {} else if bandwidthLimits.isEmpty { return body }
        return try body.paced(
            pieceSize: { [weak self] in
                let slowest = self?.bandwidthLimits.map(\.bytesPerSecond).min()
                // A piece takes a tenth of a second. Larger pieces would leave long pauses between them.
                return slowest.map { min(65_536, max(1, $0 / 10)) } ?? .max
            },
            delay: { [weak self] count in self?.bandwidthLimits.map { $0.delay(after: count) }.max() ?? 0 },
            clock: clock
        )
    }

    // MARK: - Pausing

    /// Whether the upload is paused: ``pause()`` was called after the last ``resume()``.
    public var isPaused: Bool { turn.resumed != nil }

    /// Stops sending and gives up the slot until ``resume()`` is called. The journal is kept, so the upload can be
    /// resumed even if the process ends. An operation that was paused before its start waits for ``resume()`` when its
    /// turn comes. Only the message that completes the upload is sent to its end first, because its response could not
    /// be requested again.
    ///
    /// Has no effect without ``RequestOptions/resuming``.
    public func pause() {
        if resumable != nil, !hasOutcome { turn.pause() }
    }

    /// Continues after ``pause()``, as soon as a slot is free, at the offset that the server confirms.
    public func resume() { turn.resume() }

    override func noteSlot(isThere: Bool) { turn.noteSlot(isThere: isThere) }

    // MARK: - The work

    override var mayShareAnswer: Bool { false }

    public override func execute() {
        guard isWanted?() ?? true else { return finish(NetworkError(code: .cancelled)) }
        guard let settings = resumable?.settings else { return super.execute() }
        guard option({ $0.undo }) == nil else {
            return finish(.invalidRequest("an upload that resumes cannot be undone: set either resuming or undo"))
        }
        guard let request = takeRequest() else { return }
        let hasEnded = Promise<Void>()
        run.withLock { run in
            guard !hasOutcome else { return }
            let task = WorkQueue.task {
                await self.upload(request, settings)
                hasEnded.set()
            }
            run = Run(task: task, hasEnded: hasEnded)
        }
    }

    private func upload(_ request: CallRequest, _ settings: ResumableUpload) async {
        var claimed: String?
        var opened: UploadJournal?
        var isOver = false
        do throws(NetworkError) {
            try await waitWithoutSlot(until: -.infinity) { turn.resumed }
            let snapshot = try request.read(for: callGroup.host)
            let (source, fingerprint, identity) = try Self.plan(settings, snapshot)
            let path = UploadJournal.path(of: identity, settings)
            guard await claimTransfer(path) else { throw Self.taken(by: "another operation") }
            claimed = path
            let journal = try UploadJournal(path, at: callGroup.host.settings.clock.date)
            opened = journal
            var transfer = UploadTransfer(
                settings,
                snapshot,
                source,
                fingerprint,
                identity,
                journal,
                owner: self,
                turn: turn,
                meter: meter,
                limit: { [weak self] body throws(NetworkError) in try self?.limited(body) ?? body }
            )
            let result: Result<UploadTransfer.End, NetworkError>
            do throws(NetworkError) { result = .success(try await transfer.run()) } catch { result = .failure(error) }
            isOver = transfer.isOver
            switch result {
            case .success(.unsupported): perform(CallRequest(snapshot))
            case .success(.response(let response)): finish(with: response, request)
            case .failure(let error):
                if transfer.isAnnounced { callGroup.host.postEnd(of: request.request, nil, error) }
                throw error
            }
        } catch {
            finish(error)
        }
        guard isOver, let opened, let claimed else {
            opened?.close(removing: false)
            if let claimed { releaseTransfer(claimed) }
            return
        }
        // Keep the journal until the callbacks have returned. If the process is killed before, the next one finds that
        // the upload is complete, and does not send it again.
        whenFinished {
            opened.close(removing: true)
            self.releaseTransfer(claimed)
        }
    }

    /// Ends with the item of the last response.
    private func finish(with response: NetworkResponse, _ request: CallRequest) {
        // Every initializer takes a `Request`, so the cast succeeds.
        // swift-format-ignore: NeverForceUnwrap
        let typed = request.request as! Request
        let result = response.item(typed.item)
        callGroup.host.postEnd(of: typed, response, result.failure)
        switch result {
        case .success(let item):
            var kept = response
            if !keepsResponseBody { kept.dropBody() }
            let old = state.withLock { exchange(&$0.response, with: kept) }
            withExtendedLifetime(old) {}
            finish(with: item)
        case .failure(let error): finish(error)
        }
    }

    /// Checks the request, and returns its bytes and the digest of what names its upload.
    private static func plan(
        _ settings: ResumableUpload,
        _ snapshot: RequestSnapshot
    ) throws(NetworkError) -> (UploadSource, UploadSource.Fingerprint, identity: String) {
        guard settings.partSize > 0 else {
            throw .invalidRequest("the partSize of an upload must be at least 1, but is \(settings.partSize)")
        }
        let message = snapshot.message
        if settings.kind == .tus {
            guard message.method == .post || message.method == .patch else {
                throw .invalidRequest("tus needs POST, or PATCH for an upload that exists, but not \(message.method)")
            }
            guard settings.item != nil || !(Request.Item.self is any Decodable.Type) else {
                throw .invalidRequest(
                    "tus ends with a response without content, so no \(Request.Item.self) can be decoded; "
                        + "name its address in .tus(item:), or use Void or NetworkResponse"
                )
            }
        }
        let source = try UploadSource(message.body)
        let fingerprint = try source.fingerprint()
        let host = snapshot.host
        let user =
            HTTPCredential.userName(in: message.headers) ?? host.settings.authentication?.userName ?? ""
        let identity = [
            settings.kind.rawValue, message.method.rawValue, message.url.absoluteString,
            // The owner of a journal has one for each file, whose folder can move.
            settings.journal == nil ? source.identity(fingerprint) : "", host.settings.cachePartition ?? "", user,
            // Two entries of an outbox can have the same bytes, and both are wanted.
            message.headers["Idempotency-Key"] ?? "",
        ]
        let digest = SHA256.digest(of: Data(identity.joined(separator: "\n").utf8)).prefix(16).hexadecimal
        return (source, fingerprint, digest)
    }

    private static func taken(by whom: String) -> NetworkError {
        NetworkError(code: .refused, message: "\(whom) already uploads this to the same address")
    }

    /// Cancels the operation, deletes the upload on the server (DELETE), and removes its journal, so that the same
    /// upload begins again. An operation that was never started discards the upload of an earlier one.
    ///
    /// Has no effect on the server after success, or if nothing was uploaded.
    ///
    /// - Throws: the error of the DELETE request, whose ``RetryPolicy`` is the request's, and the journal is kept;
    ///   ``NetworkError/Code/refused`` if another operation or another process uploads the same.
    public func discard() async throws(NetworkError) {
        cancel()
        guard let (settings, request) = resumable else { return }
        // Reading files and digesting data would block the caller's thread, often the main one.
        let task = WorkQueue.task {
            do throws(NetworkError) {
                return Result<Void, NetworkError>.success(try await self.discard(request, settings))
            } catch {
                return .failure(error)
            }
        }
        let result = await withTaskCancellationHandler {
            await task.value
        } onCancel: {
            task.cancel()
        }
        try result.get()
    }

    private func discard(_ request: CallRequest, _ settings: ResumableUpload) async throws(NetworkError) {
        let snapshot = try request.read(for: callGroup.host)
        let path = UploadJournal.path(of: try Self.plan(settings, snapshot).identity, settings)
        guard await claimTransfer(path, afterEnd: true) else { throw Self.taken(by: "another operation") }
        defer { releaseTransfer(path) }
        let journal = try UploadJournal(path, at: callGroup.host.settings.clock.date)
        var isDeleted = false
        defer { journal.close(removing: isDeleted) }
        if let address = journal.record?.address {
            try await UploadTransfer.delete(address, settings, snapshot)
        }
        isDeleted = true
    }

    // MARK: - The end

    override func endWork(after error: NetworkError?) -> [Promise<Void>] {
        guard let run = run.withLock({ $0 }) else { return super.endWork(after: error) }
        run.task.cancel()
        return super.endWork(after: error) + [run.hasEnded]
    }
}
