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
    private let turn = UploadTurn()
    /// The task that sends a resumable upload, and a promise that completes when it has ended; `nil` before the start.
    private let run = Locked<(task: Task<Void, Never>, hasEnded: Promise<Void>)?>(nil)
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
            run = (task, hasEnded)
        }
    }

    private func upload(_ request: CallRequest, _ settings: ResumableUpload) async {
        do throws(NetworkError) {
            try await waitWithoutSlot(until: -.infinity) { turn.resumed }
            let upload = try read(request, settings)
            let journal = try await openJournal(of: upload, afterEnd: false)
            guard await send(upload, request, journal) else { return close(journal, removing: false) }
            // Keep the journal until the callbacks have returned. If the process is killed before, the next one finds
            // that the upload is complete, and does not send it again.
            whenFinished { self.close(journal, removing: true) }
        } catch {
            finish(error)
        }
    }

    /// Reads the request, its bytes, and what names its upload.
    private func read(_ request: CallRequest, _ settings: ResumableUpload) throws(NetworkError) -> ResumableRequest {
        try ResumableRequest(settings, request.read(for: callGroup.host), itemType: Request.Item.self)
    }

    /// Opens the journal of an upload, which no other operation of this process uses until it is closed.
    private func openJournal(of upload: ResumableRequest, afterEnd: Bool) async throws(NetworkError) -> UploadJournal {
        let path = UploadJournal.path(of: upload.identity, upload.settings)
        guard await claimTransfer(path, afterEnd: afterEnd) else {
            throw NetworkError(code: .refused, message: "another operation already uploads this to the same address")
        }
        do throws(NetworkError) {
            return try UploadJournal(path, at: clock.date)
        } catch {
            releaseTransfer(path)
            throw error
        }
    }

    private func close(_ journal: UploadJournal, removing: Bool) {
        journal.close(removing: removing)
        releaseTransfer(journal.path)
    }

    /// Sends the messages of the upload, and ends the operation.
    ///
    /// - Returns: whether nothing is left to resume.
    private func send(_ upload: ResumableRequest, _ request: CallRequest, _ journal: UploadJournal) async -> Bool {
        var transfer = UploadTransfer(upload, journal, owner: self, turn: turn, meter: meter)
        do throws(NetworkError) {
            switch try await transfer.run() {
            case .unsupported: perform(CallRequest(upload.snapshot))
            case .response(let response): finish(with: response, request)
            }
            return true
        } catch {
            if transfer.isAnnounced { callGroup.host.postEnd(of: request.request, nil, error) }
            finish(error)
            return transfer.isOver
        }
    }

    /// Ends with the item of the last response.
    private func finish(with response: NetworkResponse, _ request: CallRequest) {
        let own = typed(request.request)
        let result = response.item(own.item)
        callGroup.host.postEnd(of: own, response, result.failure)
        switch result {
        case .success(let item):
            var kept = response
            if !keepsResponseBody { kept.dropBody() }
            state.discard { exchange(&$0.response, with: kept) }
            finish(with: item)
        case .failure(let error): finish(error)
        }
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
        try await WorkQueue.task { await self.discard(request, settings) }.joined().get()
    }

    private func discard(_ request: CallRequest, _ settings: ResumableUpload) async -> Result<Void, NetworkError> {
        do throws(NetworkError) {
            let upload = try read(request, settings)
            let journal = try await openJournal(of: upload, afterEnd: true)
            var result = Result<Void, NetworkError>.success(())
            if let address = journal.record?.address { result = await upload.delete(address) }
            close(journal, removing: result.failure == nil)
            return result
        } catch {
            return .failure(error)
        }
    }

    // MARK: - The end

    override func endWork(after error: NetworkError?) -> [Promise<Void>] {
        guard let run = run.withLock({ $0 }) else { return super.endWork(after: error) }
        run.task.cancel()
        return super.endWork(after: error) + [run.hasEnded]
    }
}
