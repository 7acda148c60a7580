import Foundation

/// A job that downloads the body of a response to a file, in constant memory, and resumes an earlier download of it.
///
/// ```swift
/// let download = DownloadOperation(FileRequest(), to: folder.appendingPathComponent("movie.mp4"))
/// download.success = { file in play(file) }
/// NetworkQueue.shared.addOperation(download)
/// ```
///
/// The operation writes the bytes to a partial file, the part, in the same directory as the file. The part is named
/// `.easynetwork-….part` and has a journal. When the file is complete and its length and digest are right, the part
/// replaces the destination in one step (`rename(2)`). The destination therefore always has either the complete old
/// file or the complete new one. If the destination is a directory, the file's name comes from the server
/// (`Content-Disposition`, RFC 6266) or from the URL. It is never a path.
///
/// The part is resumed after a retry, ``pause()``, a cancellation, a failure, or a crash of the process. After a crash
/// of the machine, as much is resumed as the disk has stored. Only an operation with the same destination can resume a
/// part. Its URL must be the same, or redirect to the same URL. With a ``sha256``, the URL can differ, for example for
/// a mirror or a signed URL, unless the destination is a directory. The operation requests the rest with `Range` and
/// `If-Range` (RFC 9110, sections 13.1.5 and 14.2). It fetches a file from the beginning if the file has changed, has
/// no strong validator, or was compressed for the transfer. It never resumes another user's part. Progress resets the
/// retry count of the ``RetryPolicy``.
///
/// Two operations with the same destination never write to the same part: the second one ends with
/// ``NetworkError/Code/refused``. If the server rejects the request, its response is in the error, not in the file. The
/// cache is not used. Downloads are never joined: ``RepeatPolicy/join`` has the meaning of ``RepeatPolicy/allow`` here.
///
/// Callbacks and ``ItemOperation/value`` work as in every ``ItemOperation``. The item is the URL of the file.
public final class DownloadOperation: ItemOperation<URL>, @unchecked Sendable {
    // Sendable because all mutable state is in `download` and `calls`, under their locks.
    private struct Download {
        var replacesExistingFile: Bool?
        var sha256: String?
        var segmentCount = 1
        var keepsPart = true
        var turn = DownloadTurn()
        /// The running download; `nil` before the start.
        var run: Run?
    }

    private struct Run {
        /// The task of the whole download.
        let task: Task<Void, Never>
        /// Completes when the destination and the part are in their final state.
        let filesAreDone = Promise<Void>()
        /// The current fetch, which ends with the download or at the next pause; `nil` between two fetches.
        var fetch: (task: Task<Result<Void, NetworkError>, Never>, writer: DownloadWriter)?
    }

    /// The file URL of the file, or of its directory.
    public let destination: URL
    private let download = Locked(Download())
    /// The alarm that is set while the connection is kept for an urgent job.
    private let connectionAlarm = Alarm()
    /// The system calls on files, which tests replace.
    let calls = Locked(FileCalls())

    /// Creates a download.
    ///
    /// - Parameters:
    ///   - request: the request to send. Only a GET request can be resumed.
    ///   - destination: the file URL of the file, or of an existing directory, in which the server names the file. It
    ///     counts as a directory if its path ends with a slash, or if a directory exists there.
    ///   - service: the service, which determines the host. Cancelling it cancels the operation's calls. Defaults to a
    ///     service of the current ``HostConfiguration/shared``.
    public init(
        _ request: some BaseAPIRequest,
        to destination: URL,
        service: EasyNetworkService = EasyNetworkService(HostConfiguration.shared)
    ) {
        self.destination = destination
        super.init(request, request.options, of: service)
        traits.mayYield = true
    }

    /// Creates a download whose request is made by ``then(downloadTo:_:)``.
    fileprivate init<Request: BaseAPIRequest>(
        to destination: URL,
        service: EasyNetworkService,
        makeRequest: @escaping @Sendable () throws -> Request
    ) {
        self.destination = destination
        super.init(service: service) { try makeRequest() }
        traits.mayYield = true
    }

    // MARK: - Options

    /// Whether the download replaces an existing file. The file is replaced in one step, when the download is complete
    /// and has been checked. With `false`, the existing file stays and is the result. The operation then fetches
    /// nothing if the name is known in advance, and little if the server names the file. A symbolic link to a file
    /// counts as a file, and is itself replaced.
    ///
    /// Defaults to `nil`. If the destination names the file, an existing file is then replaced. In a directory, where
    /// the server would choose the file to replace, both files stay and the new one gets a number: `report (2).pdf`.
    /// Set it before the operation is added to a queue.
    public var replacesExistingFile: Bool? {
        get { download.withLock { $0.replacesExistingFile } }
        set { download.withLock { $0.replacesExistingFile = newValue } }
    }

    /// The SHA-256 digest (FIPS 180-4) that the file must have, as 64 hexadecimal digits. With any other string, the
    /// operation fails. Defaults to `nil`: any digest. Set it before the operation is added to a queue.
    public var sha256: String? {
        get { download.withLock { $0.sha256 } }
        set { download.withLock { $0.sha256 = newValue } }
    }

    /// The number of ranges to fetch at once, each of at least a megabyte. It has an effect if the server sends
    /// `Accept-Ranges: bytes`, a length and a strong validator. A value below 1 counts as 1. Defaults to `1`. Set it
    /// before the operation is added to a queue.
    ///
    /// The ranges belong to one operation, which counts once in the limits of a queue.
    public var segmentCount: Int {
        get { download.withLock { $0.segmentCount } }
        set { download.withLock { $0.segmentCount = newValue } }
    }

    /// Whether to keep the part when the operation fails or is cancelled, so that another operation can resume it.
    /// Defaults to `true`. It can be set at any time before the end. A part is removed seven days after its last
    /// change, by the first download of a process to the same directory.
    public var keepsPart: Bool {
        get { download.withLock { $0.keepsPart } }
        set { download.withLock { $0.keepsPart = newValue } }
    }

    /// The maximum rate of the file in bytes per second, in addition to ``NetworkQueue/bandwidthLimit``. A value below
    /// 1 counts as 1. Defaults to `nil`: no limit. The rate is an average over a tenth of a second or more. A change
    /// takes effect with the next bytes.
    public var bandwidthLimit: Int? {
        get { ownBandwidthLimit }
        set { ownBandwidthLimit = newValue }
    }

    // MARK: - Progress

    /// The number of bytes of the file that have been fetched, and its length, `nil` while that is unknown. Values are
    /// sent as they change, at most ten times a second, and once more at the end. Each read returns a new sequence. A
    /// slow reader misses intermediate values, but never the last one. The rate in bytes per second and the remaining
    /// time in seconds are in the `userInfo` of ``ItemOperation/progress``, under `throughputKey` and
    /// `estimatedTimeRemainingKey`.
    public var updates: AsyncStream<(completedBytes: Int64, totalBytes: Int64?)> { meter.updates() }

    override func claimProgress() -> OrderedProgress? { meter.claimShare() }

    override func makeMeter() -> TransferMeter {
        let meter = TransferMeter(kind: .downloading, clock: clock)
        meter.whenPauseChanges { [weak self] isPaused in
            if isPaused { self?.pause() } else { self?.resume() }
        }
        return meter
    }

    // MARK: - Pausing

    /// Whether the download is paused: ``pause()`` was called after the last ``resume()``.
    public var isPaused: Bool { download.withLock { $0.turn.isPaused } }

    /// Stops fetching and gives up the slot until ``resume()`` is called. The received part and its journal are kept,
    /// so the download can be resumed even if the process ends. An operation that was paused before its start waits for
    /// ``resume()`` when its turn comes.
    ///
    /// A download that cannot be resumed keeps its connection and stops reading. This avoids sending a request other
    /// than GET twice, and fetching bytes twice that have no strong validator or come from a server without ranges. If
    /// the server closes the connection during the pause, a GET request starts again after ``resume()``. Any other
    /// request fails with ``NetworkError/Code/connectionLost``.
    public func pause() {
        apply { turn in hasOutcome ? [] : turn.pause() }
    }

    /// Continues after ``pause()``, as soon as a slot is free.
    public func resume() {
        var resumed: Promise<Void>?
        apply { turn in
            resumed = turn.resumed
            return turn.resume()
        }
        resumed?.set()
    }

    // MARK: - Urgent jobs

    override func noteSlot(isThere: Bool) { apply { isThere ? $0.resumedAfterYield() : $0.yielded() } }

    /// Applies an event to the turn, and performs the effects outside the lock.
    private func apply(_ event: (inout DownloadTurn) -> [DownloadTurn.Effect]) {
        // Take the current fetch, because this event must not stop a later one.
        let (effects, fetch) = download.withLock { (event(&$0.turn), $0.run?.fetch) }
        for effect in effects {
            switch effect {
            case .stop:
                meter.rest()
                fetch?.task.cancel()
            case .hold, .read:
                if effect == .hold { meter.rest() }
                if let writer = fetch?.writer { WorkQueue.task { await writer.applyHold() } }
            case .startTimer:
                let time = clock.now + callGroup.host.settings.transport.heldConnectionInterval
                connectionAlarm.set(time, clock) { [weak self] in self?.apply { $0.keptLongEnough() } }
            case .cancelTimer: connectionAlarm.set(nil, clock) {}
            case .releaseSlot: releaseSlot { download.withLock { $0.turn.isResting } }
            case .reclaimSlot: reclaimSlot(if: { !isPaused }) { [weak self] in self?.apply { $0.hasSlotAgain() } }
            }
        }
    }

    /// Whether the download must not read, because of a pause or because another job has its slot.
    var isHeld: Bool { download.withLock { $0.turn.isHeld } }

    /// Whether another fetch follows if the connection is lost.
    var outlivesConnection: Bool { download.withLock { $0.turn.outlivesConnection } }

    /// Notes that a message is about to be sent.
    func asks(_ message: TransportRequest) { download.withLock { $0.turn.asks(message.mayBeRepeated) } }

    /// Notes the head of a response whose body is the file or a range of it.
    func answered(canResume: Bool) {
        guard let mayYield = download.withLock({ $0.turn.answered(canResume: canResume) }) else { return }
        setMayYield(mayYield)
    }

    // MARK: - The work

    public override func execute() {
        guard let request = takeRequest() else { return }
        download.withLock { download in
            if !hasOutcome { download.run = Run(task: WorkQueue.task { await self.run(request) }) }
        }
    }

    private func run(_ request: CallRequest) async {
        var part: String?
        var writer: DownloadWriter?
        do throws(NetworkError) {
            try await waitWithoutSlot(until: -.infinity) { resumed }
            if let sha256, sha256.utf8.count != 64 || !sha256.allSatisfy(\.isHexDigit) {
                throw .invalidRequest("sha256 must be 64 hexadecimal digits, but is '\(sha256)'")
            }
            let snapshot = try request.read(for: callGroup.host)
            let location = try DownloadLocation(destination, resource: snapshot.message.url.downloadDigest)
            if replacesExistingFile == false, let path = location.name.map(location.path), access(path, F_OK) == 0 {
                finish(with: URL(fileURLWithPath: path))
            } else {
                guard await claimTransfer(location.key) else {
                    let reason = "another operation already downloads to \(location.shown); make this one depend on it"
                    throw NetworkError(code: .refused, message: reason)
                }
                part = location.key
                let opened = try open(location, snapshot.message)
                writer = opened
                finish(with: try await file(of: snapshot, opened))
            }
        } catch {
            finish(error)
        }
        // The operation has ended, perhaps earlier and for another reason. Don't keep a body that was too long, because
        // it would be too long again.
        await writer?.close(keepingPart: keepsPart && error != nil && error?.code != .bodyTooLong)
        download.withLock { $0.run?.filesAreDone }?.set()
        await writer?.release()
        if let part { releaseTransfer(part) }
    }

    private func open(_ place: DownloadLocation, _ message: TransportRequest) throws(NetworkError) -> DownloadWriter {
        // Open the part before the cleanup, which leaves an open part alone, however old it is.
        let file = try PartialFile(place, calls: calls.withLock { $0 })
        place.cleanUpOnce(at: clock.date)
        let boot = ResumeJournal.currentBoot
        let found = message.mayContinueDownload ? ResumeJournal(at: place.journal) : nil
        let journal = found?.trusted(boot: boot, size: file.size)
        if journal == nil { try file.truncate() }
        let plan = DownloadPlan(
            journal,
            resource: message.url.downloadDigest,
            boot: boot,
            segmentLimit: segmentCount,
            hasDigest: sha256 != nil
        )
        return DownloadWriter(file, plan, of: self)
    }

    /// Fetches the missing bytes, again after each resume, and moves the file to its destination.
    private func file(of snapshot: RequestSnapshot, _ writer: DownloadWriter) async throws(NetworkError) -> URL {
        while true {
            let time = await writer.notBefore
            // The retry policy handles a longer wait. It ends the request if the server demands the wait again.
            let isLong = time > clock.now + snapshot.retry.maximumRetryAfter
            // The slot cannot be given to an urgent job until a response shows that the download can be resumed.
            repeat {
                try await waitForTurn(until: isLong ? -.infinity : time, mayYield: false) { resumed }
            } while !download.withLock({ $0.turn.begin(mayRepeat: snapshot.message.mayBeRepeated) })
            let fetching = WorkQueue.task {
                await writer.fetchMissing { consumer in
                    var request = CallRequest(snapshot)
                    request.consumer = consumer
                    request.pause = { self.resumed }
                    return await self.callGroup.result(of: request) { response in
                        self.state.discard { exchange(&$0.response, with: response) }
                    }
                }
            }
            let isWanted = download.withLock { download in
                download.run?.fetch = (fetching, writer)
                return !download.turn.isStopped && !hasOutcome
            }
            if !isWanted { fetching.cancel() }
            let result = await fetching.value
            let isFollowed = download.withLock { download in
                download.run?.fetch = nil
                return download.turn.ended(hasLostConnection: result.failure?.code == .connectionLost)
            }
            switch result {
            case .success: return try await writer.finish { !self.hasOutcome }
            case .failure where isFollowed: await writer.save()
            case .failure(let error): throw error
            }
        }
    }

    /// Completes when the pause ends; `nil` while the download is not paused.
    private var resumed: Promise<Void>? { download.withLock { $0.turn.resumed } }

    // MARK: - The end

    override func endWork(after error: NetworkError?) -> [Promise<Void>] {
        connectionAlarm.set(nil, clock) {}
        guard let run = download.withLock({ $0.run }) else { return super.endWork(after: error) }
        run.fetch?.task.cancel()
        run.task.cancel()
        return super.endWork(after: error) + [run.filesAreDone]
    }
}

extension ItemOperation {
    /// Creates a download whose request is made from this operation's item.
    ///
    /// ```swift
    /// let report = signIn.then(downloadTo: file) { session in GetReport(token: session.token) }
    /// ```
    ///
    /// The download depends on this operation, as the operation of ``then(_:)`` does. Add both to a queue.
    ///
    /// - Parameters:
    ///   - destination: the file or directory; see ``DownloadOperation/init(_:to:service:)``.
    ///   - next: called once, on a thread of the queue, when this operation has succeeded and before the download waits
    ///     for its turn. If `next` throws, the error is the download's error.
    public final func then<Next: BaseAPIRequest>(
        downloadTo destination: URL,
        _ next: @escaping @Sendable (Item) throws -> Next
    ) -> DownloadOperation {
        let item = itemOfDependency
        let operation = DownloadOperation(to: destination, service: nextService) {
            try next(item())
        }
        operation.addDependency(self)
        return operation
    }
}
