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
/// complete and its length and its digest are right, it takes its place in one step (`rename(2)`): the destination has
/// the old file or the new one, whole. In a directory it gets its name from the server (`Content-Disposition`, RFC
/// 6266), never a path, or from the URL.
///
/// A part is resumed after a retry, ``pause()``, a cancel, a failure, a crash of the process or, as far as the disk has
/// it, of the machine: by an operation with the same destination and address, or with a redirect to the same one. With
/// a ``sha256`` the address may be another one, as that of a mirror or a signed URL, unless the destination is a
/// directory. The server is asked for the rest with `Range` and `If-Range` (RFC 9110, sections 13.1.5 and 14.2). A file
/// that has changed, or that has no strong validator, comes from its beginning, as does one that was compressed for the
/// transfer. The part of another user is not resumed. Progress resets the retry count of the ``RetryPolicy``.
///
/// Two operations with one destination never write to one part: the second one ends with ``NetworkError/Code/refused``.
/// The answer of a server that refuses is in the error, not in the file. The cache is not used. Downloads are never
/// joined: ``RepeatPolicy/join`` means ``RepeatPolicy/allow`` here.
///
/// Callbacks, ``ItemOperation/value`` and the rest are those of ``ItemOperation``; the item is the URL of the file.
public final class DownloadOperation: ItemOperation<URL>, @unchecked Sendable {
    // Sendable because everything that changes is in `download`, `calls` and `claims`, behind their locks.
    private struct Download {
        var replacesExistingFile: Bool?
        var sha256: String?
        var segmentCount = 1
        var keepsPart = true
        var turn = DownloadTurn()
        /// Nil before the start.
        var run: Run?
    }

    private struct Run {
        /// Has the whole download.
        let task: Task<Void, Never>
        /// Over when the files that a user sees are as they stay.
        let filesAreDone = Promise<Void>()
        /// Fetches until the end, or the next pause; nil between two fetches.
        var fetch: (task: Task<Result<Void, NetworkError>, Never>, writer: DownloadWriter)?
    }

    /// Where the file goes: its name, or a directory.
    public let destination: URL
    private let download = Locked(Download())
    /// Set while the connection is kept for an urgent job.
    private let connectionAlarm = Alarm()
    /// Changed by tests.
    let calls = Locked(FileCalls())

    /// Creates a download.
    ///
    /// - Parameters:
    ///   - request: what is asked for; only a GET can be resumed.
    ///   - destination: the file URL of the file, or of a directory, in which the server names the file. It is a
    ///     directory when its path ends with a slash, or when a directory lies there. The directory must exist.
    ///   - service: gives the host, and cancels the operation's calls when it is cancelled itself. Default
    ///     ``HostConfiguration/shared`` as it is now.
    public init(
        _ request: some BaseAPIRequest,
        to destination: URL,
        service: EasyNetworkService = EasyNetworkService(HostConfiguration.shared)
    ) {
        self.destination = destination
        super.init(request, request.options, of: service)
        ownTraits.mayYield = true
    }

    /// A download whose request is made as ``then(downloadTo:_:)`` has it.
    fileprivate init<Request: BaseAPIRequest>(
        to destination: URL,
        service: EasyNetworkService,
        makeRequest: @escaping @Sendable () throws -> Request
    ) {
        self.destination = destination
        super.init(service: service) { try makeRequest() }
        ownTraits.mayYield = true
    }

    // MARK: - Options

    /// Whether a file that lies at the destination is replaced, in one step when the download is complete and has been
    /// checked. With false it stays, and is the result: it fetches nothing when its name is known before, and little
    /// when the server names the file. A link to a file counts as the file, and is replaced itself.
    ///
    /// Default nil: a file that the destination names is replaced; in a directory, where the server would choose the
    /// file to replace, both stay, the new one with a number: `report (2).pdf`. Set it before the operation is added to
    /// a queue.
    public var replacesExistingFile: Bool? {
        get { download.withLock { $0.replacesExistingFile } }
        set { download.withLock { $0.replacesExistingFile = newValue } }
    }

    /// The SHA-256 digest (FIPS 180-4) that the file must have, 64 hexadecimal digits; any other text is an error of
    /// the operation. Default nil: any digest. Set it before the operation is added to a queue.
    public var sha256: String? {
        get { download.withLock { $0.sha256 } }
        set { download.withLock { $0.sha256 = newValue } }
    }

    /// The number of ranges that are fetched at once, each of at least a megabyte, when the server sends
    /// `Accept-Ranges: bytes`, a length and a strong validator. Less than 1 counts as 1. Default 1. Set it before the
    /// operation is added to a queue.
    ///
    /// They belong to one operation, and count once in the limits of a queue.
    public var segmentCount: Int {
        get { download.withLock { $0.segmentCount } }
        set { download.withLock { $0.segmentCount = newValue } }
    }

    /// Whether the part is kept when the operation fails or is cancelled, so that another one can resume it. Default
    /// true. Set it at any time before the end. A part that stays is removed seven days after it was changed last, by
    /// the first download of a process into the same directory.
    public var keepsPart: Bool {
        get { download.withLock { $0.keepsPart } }
        set { download.withLock { $0.keepsPart = newValue } }
    }

    /// The bytes a second that the file may come at, besides ``NetworkQueue/bandwidthLimit``; less than 1 counts as 1.
    /// Default nil: no limit. It is kept on average, over a tenth of a second and more. A change takes effect with the
    /// next bytes.
    public var bandwidthLimit: Int? {
        get { ownBandwidthLimit }
        set { ownBandwidthLimit = newValue }
    }

    // MARK: - Progress

    /// Bytes that are there, and the length of the file, nil while that is not known: as they change, at most ten times
    /// a second, and once more at the end. Each call returns a new sequence. A slow reader misses the values between,
    /// never the last one. The rate in bytes a second and the seconds that are left are in the `userInfo` of
    /// ``ItemOperation/progress``: `throughputKey` and `estimatedTimeRemainingKey`.
    public var updates: AsyncStream<(completedBytes: Int64, totalBytes: Int64?)> { meter.updates() }

    override func claimProgress() -> OrderedProgress? { meter.claimShare() }

    override func makeMeter() -> TransferMeter {
        let meter = TransferMeter(kind: .downloading, clock: callGroup.host.settings.clock)
        meter.whenPauseChanges { [weak self] isPaused in
            if isPaused { self?.pause() } else { self?.resume() }
        }
        return meter
    }

    // MARK: - Pausing

    /// Whether ``pause()`` was called last, and not ``resume()``.
    public var isPaused: Bool { download.withLock { $0.turn.isPaused } }

    /// Stops fetching and gives the slot back, until ``resume()``. The received part is kept, with its journal, so that
    /// the process may even end in between. An operation that was paused before its start waits for ``resume()`` when
    /// its turn comes.
    ///
    /// A download that cannot be resumed keeps its connection and stops reading: a request of another method than GET
    /// is not sent twice, and bytes without a strong validator, or from a server without ranges, are not fetched twice.
    /// If the server closes that connection during the pause, a GET begins again after ``resume()``, and any other
    /// request fails with ``NetworkError/Code/connectionLost``.
    public func pause() {
        apply { turn in hasOutcome ? [] : turn.pause() }
    }

    /// Goes on after ``pause()``, when there is a slot.
    public func resume() {
        var resumed: Promise<Void>?
        apply { turn in
            resumed = turn.resumed
            return turn.resume()
        }
        resumed?.set()
    }

    // MARK: - Urgent jobs

    override func noteSlot(isThere: Bool) { apply { isThere ? $0.wentOn() : $0.yielded() } }

    /// Applies an event to the turn, and performs the effects outside the lock.
    private func apply(_ event: (inout DownloadTurn) -> [DownloadTurn.Effect]) {
        // The fetch of this moment: a later one is not to be stopped by an earlier event.
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
                let settings = callGroup.host.settings
                let time = settings.clock.now + settings.transport.heldConnectionInterval
                connectionAlarm.set(time, settings.clock) { [weak self] in self?.apply { $0.keptLongEnough() } }
            case .cancelTimer: connectionAlarm.set(nil, callGroup.host.settings.clock) {}
            case .releaseSlot: releaseSlot { download.withLock { $0.turn.isResting } }
            case .reclaimSlot: reclaimSlot(if: { !isPaused }) { [weak self] in self?.apply { $0.hasSlotAgain() } }
            }
        }
    }

    /// Whether nothing is to be read, as in a pause or while the slot is another job's.
    var isHeld: Bool { download.withLock { $0.turn.isHeld } }

    /// Whether another fetch follows when the connection is lost.
    var outlivesConnection: Bool { download.withLock { $0.turn.outlivesConnection } }

    /// A message is about to be sent.
    func asks(_ message: TransportRequest) { download.withLock { $0.turn.asks(message.mayBeRepeated) } }

    /// The head of an answer has come that is the file or a range of it.
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
            try await waitWhilePaused()
            try checkDigest()
            let snapshot = try request.read(for: callGroup.host)
            let resource = snapshot.message.url.downloadDigest
            let location = try DownloadLocation(destination, resource: resource)
            if replacesExistingFile == false, let path = location.name.map(location.path), access(path, F_OK) == 0 {
                finish(with: URL(fileURLWithPath: path))
            } else {
                guard await claim(location.key) else {
                    throw NetworkError(
                        code: .refused,
                        message: "another operation downloads to \(location.shown): make this one depend on it"
                    )
                }
                part = location.key
                let opened = try open(location, resource, mayContinue: snapshot.message.mayContinueDownload)
                writer = opened
                finish(with: try await file(of: snapshot, opened))
            }
        } catch {
            finish(error)
        }
        // The operation has ended, perhaps earlier and for another reason. A body that was too long would be so again.
        await writer?.close(keepingPart: keepsPart && error != nil && error?.code != .bodyTooLong)
        download.withLock { $0.run?.filesAreDone }?.set()
        await writer?.release()
        if let part { releaseClaim(part) }
    }

    private func checkDigest() throws(NetworkError) {
        guard let sha256, sha256.utf8.count != 64 || !sha256.allSatisfy(\.isHexDigit) else { return }
        throw NetworkError(code: .invalidRequest, message: "sha256 needs 64 hexadecimal digits, and is '\(sha256)'")
    }

    private func open(
        _ location: DownloadLocation,
        _ resource: String,
        mayContinue: Bool
    ) throws(NetworkError) -> DownloadWriter {
        let clock = callGroup.host.settings.clock
        // Opened before the cleanup, which leaves it alone then, however old it is.
        let file = try PartialFile(location, calls: calls.withLock { $0 })
        location.cleanUpOnce(at: clock.date)
        let boot = ResumeJournal.currentBoot
        let found = mayContinue ? ResumeJournal(at: location.journal) : nil
        let journal = found?.trusted(boot: boot, size: file.size ?? 0)
        if journal == nil { try file.truncate() }
        let plan = DownloadPlan(
            journal,
            resource: resource,
            boot: boot,
            segmentLimit: max(1, segmentCount),
            hasDigest: sha256 != nil
        )
        return DownloadWriter(
            file,
            plan,
            replacesExistingFile: replacesExistingFile,
            sha256: sha256,
            meter: meter,
            clock: clock,
            owner: self
        )
    }

    /// Fetches what is missing, as often as the download is resumed, and puts the file in its place.
    private func file(of snapshot: RequestSnapshot, _ writer: DownloadWriter) async throws(NetworkError) -> URL {
        while true {
            let seconds = await writer.notBefore - callGroup.host.settings.clock.now
            // A longer wait is left to the policy, which ends the request when the server asks for it again.
            try await begin(snapshot.message, after: seconds > snapshot.retry.maximumRetryAfter ? 0 : seconds)
            let fetching = WorkQueue.task { () -> Result<Void, NetworkError> in
                do throws(NetworkError) {
                    try await writer.fetchMissing { consumer in
                        var request = CallRequest(snapshot)
                        request.consumer = consumer
                        request.pause = { self.download.withLock { $0.turn.resumed } }
                        return await self.callGroup.result(of: request) { response in
                            let old = self.state.withLock { exchange(&$0.response, with: response) }
                            withExtendedLifetime(old) {}
                        }
                    }
                    return .success(())
                } catch {
                    return .failure(error)
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

    /// Waits until a fetch may begin: with a slot that no urgent job is given until the answer shows that the download
    /// can be resumed, and not during a pause.
    private func begin(_ message: TransportRequest, after seconds: TimeInterval) async throws(NetworkError) {
        let time = callGroup.host.settings.clock.now + seconds
        repeat {
            try await waitWhilePaused(until: time)
            if !setMayYield(false) { await waitForSlot() }
            if hasOutcome { throw NetworkError(code: .cancelled) }
        } while !download.withLock({ $0.turn.begin(mayRepeat: message.mayBeRepeated) })
    }

    /// Waits without a slot.
    ///
    /// - Parameter time: when the server wants to be asked again. A pause has ended the wait for that.
    private func waitWhilePaused(until time: TimeInterval = -.infinity) async throws(NetworkError) {
        let clock = callGroup.host.settings.clock
        while !hasOutcome {
            let resumed = download.withLock { $0.turn.resumed }
            guard resumed != nil || time > clock.now else { return }
            // A call may have asked for the slot again, after a delay.
            forgoSlot()
            if let resumed { await resumed.wait() } else { await clock.sleep(time - clock.now) }
            if !hasOutcome { await waitForSlot() }
        }
        throw NetworkError(code: .cancelled)
    }

    private func waitForSlot() async {
        let slot = Promise<Void>()
        reclaimSlot(if: { true }) { slot.set() }
        await slot.wait()
    }

    // MARK: - The part

    /// The downloads that have a part, by ``DownloadLocation/key``, and whether it is released: they keep other
    /// downloads of this process away. The lock of ``PartialFile`` keeps other processes away, and cannot tell that a
    /// download is about to release its part.
    private static let claims = Locked<[String: (owner: DownloadOperation, released: Promise<Void>)]>([:])

    /// Whether no download of this process has the part.
    static func isFree(_ part: String) -> Bool { claims.withLock { $0[part] == nil } }

    /// Takes the part, if necessary as soon as a download that has ended has released it.
    ///
    /// - Returns: false when another download has it, or this one has ended.
    private func claim(_ part: String) async -> Bool {
        while !hasOutcome {
            let other = Self.claims.withLock { claims in
                let other = claims[part]
                if other == nil { claims[part] = (self, Promise()) }
                return other
            }
            guard let other else { return true }
            guard other.owner.hasOutcome else { return false }
            await other.released.wait()
        }
        return false
    }

    private func releaseClaim(_ part: String) {
        Self.claims.withLock { $0.removeValue(forKey: part) }?.released.set(())
    }

    // MARK: - The end

    override func endWork(after error: NetworkError?) -> [Promise<Void>] {
        connectionAlarm.set(nil, callGroup.host.settings.clock) {}
        guard let run = download.withLock({ $0.run }) else { return super.endWork(after: error) }
        run.fetch?.task.cancel()
        run.task.cancel()
        return super.endWork(after: error) + [run.filesAreDone]
    }
}

extension ItemOperation {
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
    ///   - next: called once, on a thread of the queue, when this operation has succeeded and before the download
    ///     waits for its turn. An error that it throws is the download's error.
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
