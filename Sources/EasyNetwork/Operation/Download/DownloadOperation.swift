import Foundation

/// A job that downloads the body of an answer to a file, in constant memory, and resumes an earlier download of it.
///
/// ```swift
/// let download = DownloadOperation(FileRequest(), to: folder.appendingPathComponent("movie.mp4"))
/// download.success = { file in play(file) }
/// NetworkQueue.shared.addOperation(download)
/// ```
///
/// The bytes are written to a part beside the destination, `.easynetwork-….part`, which has a journal. When the file is
/// complete and its length and its digest are right, it takes its place in one step (`rename(2)`): the destination has the
/// old file or the new one, whole. In a directory it gets its name from the server (`Content-Disposition`, RFC 6266), never
/// a path, or from the URL.
///
/// A part is resumed after a retry, ``pause()``, a cancel, a failure, a crash of the process or, as far as the disk has
/// it, of the machine: by an operation with the same destination and address, or with a redirect to the same one. With a
/// ``DownloadOptions/sha256`` the address may be another one, as that of a mirror or a signed URL, unless the destination
/// is a directory. The server is asked for the rest with `Range` and `If-Range` (RFC 9110, sections 13.1.5 and 14.2). A file
/// that has changed, or that has no strong validator, comes from its beginning, as does one that was compressed for the
/// transfer. The part of another user is not resumed. Progress resets the retry count of the ``RetryPolicy``.
///
/// Two operations with one destination never write to one part: the second one ends with ``NetworkError/Code/refused``.
/// The answer of a server that refuses is in the error, not in the file. The cache is not used.
///
/// Callbacks, ``RequestOperation/value`` and the rest are those of ``RequestOperation``; the item is the URL of the file.
public final class DownloadOperation: RequestOperation<DownloadRequest>, @unchecked Sendable {
    // Sendable because everything that changes is in `run`, behind its lock.
    private struct Run {
        /// Fetches until the end, or the next pause.
        var fetching: Task<Result<Void, NetworkError>, Never>?
        /// Has the whole download; nil before the start.
        var task: Task<Void, Never>?
        /// Over when the files that a user sees are as they stay.
        var filesAreDone: OneShot?
        var isPaused = false
        /// Over when ``resume()`` was called; nil once the download has gone on.
        var resumed: OneShot?
        var keepsPart: Bool
        var isOver = false
    }

    /// Where the file goes: its name, or a directory.
    public let destination: URL
    /// How the file is made.
    public let options: DownloadOptions
    private let meter: TransferMeter
    private let calls: FileCalls
    private let claim = PartClaim()
    private let run: Locked<Run>

    /// - Parameters:
    ///   - request: what is asked for; only a GET can be resumed.
    ///   - destination: the file URL of the file, or of a directory, in which the server names the file. It is a directory
    ///     when its path ends with a slash, or when a directory lies there.
    ///   - options: default ``DownloadOptions``: an existing file is replaced, in a directory it stays beside a numbered
    ///     one.
    ///   - service: gives the host, and cancels the operation's calls when it is cancelled itself. Default
    ///     ``HostConfiguration/shared`` as it is now.
    public convenience init(
        _ request: some BaseAPIRequest,
        to destination: URL,
        options: DownloadOptions = DownloadOptions(),
        service: EasyNetworkService = EasyNetworkService(HostConfiguration.shared)
    ) {
        self.init(request, to: destination, options: options, service: service, calls: FileCalls())
    }

    init(
        _ request: some BaseAPIRequest,
        to destination: URL,
        options: DownloadOptions,
        service: EasyNetworkService,
        calls: FileCalls
    ) {
        self.destination = destination
        self.options = options
        self.calls = calls
        run = Locked(Run(keepsPart: options.keepsPart))
        meter = TransferMeter(kind: .downloading, clock: service.configuration.settings.clock)
        super.init(DownloadRequest(wrapped: request, destination: destination), service: service)
        observeProgress()
    }

    /// A download whose request is made when it starts.
    fileprivate init<Request: BaseAPIRequest>(
        to destination: URL,
        options: DownloadOptions,
        service: EasyNetworkService,
        makeRequest: @escaping @Sendable () throws -> Request
    ) {
        self.destination = destination
        self.options = options
        calls = FileCalls()
        run = Locked(Run(keepsPart: options.keepsPart))
        meter = TransferMeter(kind: .downloading, clock: service.configuration.settings.clock)
        super.init(service: service) { DownloadRequest(wrapped: try makeRequest(), destination: destination) }
        observeProgress()
    }

    private func observeProgress() {
        meter.whenCancelled { [weak self] in self?.cancel() }
        meter.whenPauseChanges { [weak self] isPaused in
            if isPaused { self?.pause() } else { self?.resume() }
        }
    }

    // MARK: - Progress

    /// Bytes that have come, of those that the file has; indeterminate while that is not known. Bytes of an earlier
    /// operation count. Cancelling, pausing and resuming the progress does so with the operation; ``pause()`` and
    /// ``resume()`` leave its `isPaused` as it is. It changes on background threads, at most ten times a second.
    public var progress: Progress { meter.progress }

    override func claimProgress() -> OrderedProgress? { meter.claimShare() }

    /// Bytes, rate and time left as they change, at most ten times a second, and once more at the end. Each call returns a
    /// new sequence.
    public var updates: AsyncStream<TransferProgress> { meter.updates() }

    // MARK: - Pausing

    /// Whether ``pause()`` was called last, and not ``resume()``.
    public var isPaused: Bool { run.withLock { $0.isPaused } }

    /// Stops fetching and gives the slot back, until ``resume()``. The received part is kept, with its journal, so that even the
    /// process may end meanwhile. An operation that was paused before its start waits for ``resume()`` when its turn comes.
    public func pause() {
        let fetching = run.withLock { run -> Task<Result<Void, NetworkError>, Never>? in
            guard !run.isPaused, !run.isOver else { return nil }
            run.isPaused = true
            run.resumed = OneShot()
            return run.fetching
        }
        guard let fetching else { return }
        fetching.cancel()
        meter.rest()
    }

    /// Goes on after ``pause()``, when there is a slot.
    public func resume() {
        let resumed = run.withLock { run in
            run.isPaused = false
            return run.resumed
        }
        resumed?.end()
    }

    /// Cancels the operation.
    ///
    /// - Parameter keepingPart: whether the part is kept for another operation; `cancel()` does as
    ///   ``DownloadOptions/keepsPart`` says.
    public func cancel(keepingPart: Bool) {
        run.withLock { $0.keepsPart = keepingPart }
        cancel()
    }

    // MARK: - The work

    public override func execute() {
        guard let request = takeRequest() else { return }
        let isWanted = run.withLock { run in
            if !run.isOver { run.filesAreDone = OneShot() }
            return !run.isOver
        }
        guard isWanted else { return }
        let task = Task { await self.download(request) }
        let isOver = run.withLock { run in
            run.task = task
            return run.isOver
        }
        if isOver { task.cancel() }
    }

    private func download(_ request: DownloadRequest) async {
        var part: String?
        var download: Download?
        do throws(NetworkError) {
            try await waitWhilePaused()
            try options.check()
            let message = try RequestBuilder.build(request, for: service.configuration)
            let resource = message.url.downloadDigest
            let location = try DownloadLocation(destination, resource: resource)
            if options.existingFile == .keep, let name = location.name, access(location.path(named: name), F_OK) == 0 {
                finish(with: URL(fileURLWithPath: location.path(named: name)))
            } else {
                part = location.key
                guard await claim.take(location.key) else {
                    throw NetworkError(
                        code: .refused,
                        message: "another operation downloads to \(location.shown): make this one depend on it"
                    )
                }
                let opened = try open(location, resource, mayContinue: message.mayContinueDownload)
                download = opened
                finish(with: try await file(of: request, opened))
            }
        } catch {
            finish(error)
        }
        // The operation has ended, perhaps earlier and for another reason. A body that was too long would be so again.
        let isUseful = run.withLock { $0.keepsPart } && error != nil && error?.code != .bodyTooLong
        await download?.close(keepingPart: isUseful)
        run.withLock { $0.filesAreDone }?.end()
        await download?.release()
        if let part { claim.release(part) }
    }

    private func open(
        _ location: DownloadLocation,
        _ resource: String,
        mayContinue: Bool
    ) throws(NetworkError) -> Download {
        if options.createsDirectories { try location.makeDirectory() }
        let clock = service.configuration.settings.clock
        // Opened before the cleanup, which leaves it alone then, however old it is.
        let file = try PartialFile(location, calls: calls)
        if let lifetime = options.partLifetime { location.cleanUpOnce(before: clock.date - lifetime) }
        let boot = ResumeJournal.currentBoot
        let found = mayContinue ? ResumeJournal(at: location.journal) : nil
        let journal = found?.trusted(boot: boot, size: file.size ?? 0)
        if journal == nil { try file.truncate() }
        let plan = DownloadPlan(
            journal,
            resource: resource,
            boot: boot,
            segmentLimit: max(1, options.segmentCount),
            hasDigest: options.sha256 != nil
        )
        return Download(file, plan, options, meter: meter, clock: clock) { [weak self] in
            BandwidthLimit.both(self?.options.bandwidthLimit, self?.scheduling?.queue.bandwidthLimit)
        }
    }

    /// Fetches what is missing, as often as the download is resumed, and puts the file in its place.
    private func file(of request: DownloadRequest, _ download: Download) async throws(NetworkError) -> URL {
        while true {
            try await waitWhilePaused()
            let fetching = Task { () -> Result<Void, NetworkError> in
                do throws(NetworkError) {
                    try await download.fetchMissing { use in
                        await self.service.result(of: request, using: use).map { _ in }
                    }
                    return .success(())
                } catch {
                    return .failure(error)
                }
            }
            let isWanted = run.withLock { run in
                run.fetching = fetching
                return !run.isPaused && !run.isOver
            }
            if !isWanted { fetching.cancel() }
            let result = await fetching.value
            let wasPaused = run.withLock { run in
                run.fetching = nil
                return run.resumed != nil
            }
            if wasPaused, case .failure = result {
                await download.save()
                continue
            }
            try result.get()
            return try await download.finish { !self.hasOutcome }
        }
    }

    /// Waits without a slot.
    private func waitWhilePaused() async throws(NetworkError) {
        while let resumed = run.withLock({ $0.resumed }) {
            // A call may have asked for the slot again, after a delay.
            forgoSlot()
            await resumed.wait()
            let slot = OneShot()
            if !hasOutcome { reclaimSlot { slot.end() } }
            await slot.wait()
            run.withLock { run in
                if run.resumed === resumed { run.resumed = nil }
            }
        }
        if hasOutcome { throw NetworkError(code: .cancelled) }
    }

    // MARK: - The end

    override func stop() {
        super.stop()
        claim.willRelease()
    }

    override func deliver(_ done: @escaping @Sendable () -> Void) {
        let (task, fetching, filesAreDone) = run.withLock { run in
            run.isOver = true
            return (run.task, run.fetching, run.filesAreDone)
        }
        claim.willRelease()
        fetching?.cancel()
        task?.cancel()
        let finish = { @Sendable in self.meter.finish(success: self.error == nil) { self.deliverResult(done) } }
        if let filesAreDone { filesAreDone.begin(finish) } else { finish() }
    }

    private func deliverResult(_ done: @escaping @Sendable () -> Void) {
        super.deliver(done)
    }
}

/// The request of a ``DownloadOperation``, whose item is the file.
public struct DownloadRequest: APIRequest, RequestWrapper {
    public typealias Item = URL

    public let wrapped: any BaseAPIRequest
    let destination: URL

    /// Two downloads are two files: neither takes its answer from the other.
    public var repeatPolicy: RepeatPolicy { wrapped.repeatPolicy == .join ? .allow : wrapped.repeatPolicy }

    /// Writes a body that is in memory to the destination. The operation itself writes bodies as they come.
    public func item(from response: NetworkResponse) throws -> URL {
        try response.body.write(to: destination, options: .atomic)
        return destination
    }
}

extension RequestOperation {
    /// A download whose request is made from this operation's item.
    ///
    /// ```swift
    /// let report = signIn.then(downloadTo: file) { session in GetReport(token: session.token) }
    /// ```
    ///
    /// It depends on this operation, as that of ``then(_:)`` does. Add both to a queue.
    ///
    /// - Parameters:
    ///   - destination: as that of a ``DownloadOperation``.
    ///   - options: default ``DownloadOptions``.
    ///   - next: called once, on a thread of the queue, when the download starts. An error that it throws is the download's error.
    public final func then<Next: BaseAPIRequest>(
        downloadTo destination: URL,
        options: DownloadOptions = DownloadOptions(),
        _ next: @escaping @Sendable (Request.Item) throws -> Next
    ) -> DownloadOperation {
        let item = itemOfDependency
        let operation = DownloadOperation(to: destination, options: options, service: nextService) {
            try next(item())
        }
        operation.addDependency(self)
        return operation
    }
}
