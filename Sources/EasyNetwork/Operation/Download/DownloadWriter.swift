import Foundation

/// Requests the missing bytes of a file, writes the received bytes, and moves the part to its destination.
///
/// ``DownloadPlan`` has the rules. Several segments are several concurrent calls, which take turns to write.
actor DownloadWriter {
    /// Makes a call whose body the given consumer uses, and returns when the call has ended.
    typealias Fetch = @Sendable (@escaping BodyConsumer) async -> Result<Void, NetworkError>

    private enum FetchEvent: Sendable {
        case fetch(Int)
        case ended(Result<Void, NetworkError>)
    }

    /// The journal is saved when it lacks this many bytes, or is this many seconds old.
    private static let saveCount = 16_777_216
    private static let saveInterval: TimeInterval = 1
    /// The number of seconds between two requests to the disk to store the written bytes.
    private static let syncInterval: TimeInterval = 10
    /// Larger than usual, because each pause of the sender costs time.
    private static let unreadLimit = 4_194_304

    private let executor = FileExecutor()
    nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    private let file: PartialFile
    private let replacesExistingFile: Bool?
    private let sha256: String?
    private let meter: TransferMeter
    private let clock: any NetworkClock
    private weak var owner: DownloadOperation?
    /// The bodies being received, by their segments.
    private var bodies: [Int: BodyStream] = [:]
    /// Whether the bodies are paused.
    private var isHeld = false
    private var plan: DownloadPlan
    /// The server's name for the file, or the last component of its URL.
    private var proposedName: String?
    /// Whether a file of that name exists and must be kept.
    private var isKept = false
    /// Whether the segments do not match each other, so that all of them are discarded.
    private var mustStartOver = false
    /// Receives further segments while a fetch is running.
    private var events: AsyncStream<FetchEvent>.Continuation?
    /// The time before which the server wants no further request.
    private(set) var notBefore = -TimeInterval.infinity
    /// The number of bytes that the journal does not have yet.
    private var unsavedCount = 0
    private var savedAt: TimeInterval
    private var syncedAt: TimeInterval

    init(_ file: PartialFile, _ plan: DownloadPlan, of owner: DownloadOperation) {
        (self.file, self.plan, self.owner) = (file, plan, owner)
        (replacesExistingFile, sha256) = (owner.replacesExistingFile, owner.sha256)
        (meter, clock) = (owner.meter, owner.clock)
        (savedAt, syncedAt) = (clock.now, clock.now)
    }

    private var location: DownloadLocation { file.location }

    // MARK: - Fetching

    /// Fetches all missing bytes. Cancelling the task stops the fetch, and the received bytes are kept.
    func fetchMissing(_ fetch: @escaping Fetch) async -> Result<Void, NetworkError> {
        while true {
            mustStartOver = false
            if plan.count > 0 { meter.begin(completed: plan.count, total: plan.total) }
            let result = await fetchOnce(fetch)
            guard mustStartOver else { return result }
            do throws(NetworkError) { try discard() } catch { return .failure(error) }
        }
    }

    private func fetchOnce(_ fetch: @escaping Fetch) async -> Result<Void, NetworkError> {
        // The stream holds at most two events of each segment: its fetch and its end.
        let (stream, events) = AsyncStream<FetchEvent>.makeStream()
        self.events = events
        for index in plan.missing { events.yield(.fetch(index)) }
        return await withTaskGroup(of: Void.self) { group in
            var callCount = 0
            for await event in stream {
                switch event {
                case .fetch(let index):
                    callCount += 1
                    group.addTask {
                        events.yield(.ended(await fetch { message in await self.use(message, for: index) }))
                    }
                case .ended(.success):
                    callCount -= 1
                    if callCount == 0 { return .success(()) }
                case .ended(.failure(let error)):
                    group.cancelAll()
                    return .failure(error)
                }
            }
            return .failure(NetworkError(code: .cancelled))
        }
    }

    func use(_ asked: TransportRequest, for index: Int) -> (message: TransportRequest, read: BodyReading) {
        owner?.asks(asked)
        var message = asked
        let question = asked.mayContinueDownload ? plan.question(for: index, at: asked.url.downloadDigest) : nil
        if let question {
            message.headers["Range"] = question.range
            message.headers["If-Range"] = question.validator.fieldValue
        }
        // Request the bytes of the file itself, because compressed bytes have other lengths and offsets.
        if message.headers["Accept-Encoding"] == nil { message.headers["Accept-Encoding"] = "identity" }
        let read: BodyReading = { head, isAccepted, body in
            await self.read(body, head, isAccepted: isAccepted, to: asked, question, for: index)
        }
        return (message, read)
    }

    /// - Parameter asked: the message without the range.
    private func read(
        _ body: BodyStream,
        _ head: TransportHead,
        isAccepted: Bool,
        to asked: TransportRequest,
        _ question: DownloadPlan.RangeRequest?,
        for index: Int
    ) async -> BodyEnd {
        // A cancelled call may still be running while the next one begins.
        if Task.isCancelled || mustStartOver || isKept { return .used }
        let isSplit = plan.segments.count > 1
        let answer = plan.answer(
            head,
            to: question,
            of: index,
            at: asked.url.downloadDigest,
            isAccepted: isAccepted,
            mayContinue: asked.mayContinueDownload
        )
        if answer != .collect { owner?.answered(canResume: plan.canResume) }
        if !isAccepted, let seconds = RetryPolicy.retryAfter(head.headers, now: clock.date) {
            notBefore = clock.now + seconds
        }
        let name = ContentDisposition(head.headers)?.fileName
            .flatMap(SafeFileName.name)
        do throws(NetworkError) {
            switch answer {
            case .collect:
                return .collect
            case .complete:
                proposedName = name ?? proposedName ?? SafeFileName.name(for: asked.url)
                return .used
            case .fail(let code, let message):
                throw NetworkError(code: code, message: message, statusCode: head.statusCode, headers: head.headers)
            case .startOver:
                mustStartOver = isSplit
                guard isSplit else {
                    try discard()
                    return .again
                }
                throw NetworkError(code: .badServerResponse, message: "the ranges of the file do not match each other")
            case .whole:
                proposedName = name ?? SafeFileName.name(for: asked.url)
                try await write(body, index, upTo: nil)
            case .range(let end):
                // A range need not repeat the file's name.
                proposedName = name ?? proposedName ?? SafeFileName.name(for: asked.url)
                try await write(body, index, upTo: end)
            }
            return .used
        } catch {
            let hasGained = !mustStartOver && plan.hasGained(index)
            let isFollowed = error.code == .connectionLost && owner?.outlivesConnection == true
            return .failed(error, hasProgressed: hasGained, mayBeginAgain: !mustStartOver && !isFollowed)
        }
    }

    /// - Parameter end: the offset after the received range; `nil` if the whole file is received.
    private func write(_ body: BodyStream, _ index: Int, upTo end: Int64?) async throws(NetworkError) {
        if replacesExistingFile == false, location.name == nil, let proposedName,
            access(location.path(named: proposedName), F_OK) == 0
        {
            return isKept = true
        }
        if end == nil { try discardPart() }
        try file.check(room: max(0, (plan.total ?? 0) - plan.count))
        meter.begin(completed: plan.count, total: plan.total)
        if end == nil { for other in plan.segments.indices.dropFirst() { events?.yield(.fetch(other)) } }
        bodies[index] = body
        defer { if bodies[index] === body { bodies[index] = nil } }
        applyHold()
        let beginning = plan.beginningCount
        while let chunk = try await body.next() {
            // The response to another segment may have discarded this one.
            guard beginning == plan.beginningCount else { return }
            let (offset, count, isEnough) = plan.place(chunk.count, of: index, upTo: end)
            try file.write(chunk.prefix(count), at: offset)
            plan.wrote(count, of: index)
            meter.add(count)
            unsavedCount += count
            saveInTime()
            if isEnough { break }
            // Apply the hold in this loop. A task that calls `applyHold()` would wait as long as chunks are available.
            if owner?.isHeld ?? false != isHeld { applyHold() }
            let delay = owner?.bandwidthDelay(after: chunk.count) ?? 0
            if delay > 0 { await clock.sleep(delay) }
            // Available chunks are read without suspension, so give the other segments a turn.
            if plan.segments.count > 1 { await Task.yield() }
        }
        // The server may still be sending more.
        body.cancel()
        if beginning == plan.beginningCount { try plan.end(of: index) }
    }

    /// Pauses or resumes the bodies, as the owner requires. Saves what was received before a pause.
    func applyHold() {
        isHeld = owner?.isHeld ?? false
        let limit = isHeld ? 0 : Self.unreadLimit
        for body in bodies.values { body.setUnreadLimit(limit) }
        // The hold can last long, so save the journal.
        if isHeld { save() }
    }

    /// Discards the bytes fetched before.
    private func discard() throws(NetworkError) {
        meter.begin(completed: 0, total: nil)
        try discardPart()
    }

    private func discardPart() throws(NetworkError) {
        unlink(location.journal)
        try file.truncate()
    }

    // MARK: - The journal

    private func saveInTime() {
        let now = clock.now
        guard unsavedCount >= Self.saveCount || now - savedAt >= Self.saveInterval else { return }
        savedAt = now
        save()
        guard now - syncedAt >= Self.syncInterval, let sync = file.makeSync() else { return }
        syncedAt = now
        DispatchQueue.global(qos: .utility).add { [plan] in
            if sync() { WorkQueue.task { await self.synced(plan) } }
        }
    }

    private func synced(_ earlier: DownloadPlan) { plan.synced(earlier) }

    /// Saves the received bytes to the journal, unless the part has disappeared.
    func save() {
        unsavedCount = 0
        if let journal = plan.journal, file.isInPlace { journal.write(to: location.journal) }
    }

    // MARK: - The end

    /// Checks the complete part, and moves it to its destination.
    ///
    /// - Parameter isWanted: called while the digest is computed, and before the part replaces the destination.
    /// - Returns: the URL of the file.
    func finish(isWanted: @Sendable () -> Bool) throws(NetworkError) -> URL {
        let name = location.name ?? proposedName ?? "download"
        guard !isKept else { return URL(fileURLWithPath: location.path(named: name)) }
        guard plan.isComplete else {
            let message = "only \(plan.count) bytes were received, but the file is longer"
            throw NetworkError(code: .connectionLost, message: message)
        }
        // The part may have belonged to a longer state of the file.
        if let total = plan.total, file.size != total { try file.truncate(to: total) }
        if let wanted = sha256?.lowercased() {
            // Computing the digest can take a while. Save the journal first, so that a kill loses no bytes.
            save()
            guard let found = try file.digest(isWanted: isWanted)?.hexadecimal else {
                throw NetworkError(code: .cancelled)
            }
            guard found == wanted else {
                plan.drop()
                let message = "the file's SHA-256 must be \(wanted), but is \(found)"
                throw NetworkError(code: .digestMismatch, message: message)
            }
        }
        // If the download has been cancelled, keep the existing file.
        guard isWanted() else { throw NetworkError(code: .cancelled) }
        guard file.isInPlace else {
            throw .file("the partial file of the download has disappeared from \(location.directory)", ENOENT)
        }
        // Remove the journal before the move, so that no kill leaves it next to the file. If the move fails, `close`
        // saves it again.
        unlink(location.journal)
        return URL(fileURLWithPath: try location.movePart(named: name, replacing: replacesExistingFile))
    }

    /// Leaves the part for another download, or removes it.
    ///
    /// - Parameter keepingPart: whether to keep the part if another download could resume it.
    func close(keepingPart: Bool) {
        // After the move, or if the part has disappeared, another file can have its name.
        guard file.isInPlace else { return }
        if keepingPart, plan.count > 0, plan.journal != nil { save() } else { location.removePart() }
    }

    /// Stores a kept part on the disk, which can take long, and unlocks it.
    func release() {
        if file.isInPlace, file.makeSync()?() == true {
            plan.synced(plan)
            save()
        }
        file.close()
    }
}

extension URL {
    /// A digest that identifies the URL. The URL itself can contain secrets.
    var downloadDigest: String {
        var parts = URLComponents(url: self, resolvingAgainstBaseURL: true)
        parts?.fragment = nil
        parts?.user = nil
        parts?.password = nil
        return SHA256.digest(of: Data((parts?.string ?? absoluteString).utf8)).hexadecimal
    }
}

extension TransportRequest {
    /// Whether the download can be resumed. A range of the user's own request is not a part of the file.
    var mayContinueDownload: Bool { method == .get && headers["Range"] == nil }

    /// Whether a download can send the request again, whatever the result of the first one was.
    var mayBeRepeated: Bool { mayContinueDownload && body.isReplayable }
}

/// A serial executor for one download, so that a slow disk delays nothing else.
private final class FileExecutor: _Concurrency.SerialExecutor {
    private let queue = DispatchQueue(label: "EasyNetwork.Download", autoreleaseFrequency: .workItem)

    @available(macOS 14, iOS 17, tvOS 17, watchOS 10, *)
    func enqueue(_ job: consuming ExecutorJob) {
        enqueue(UnownedJob(job))
    }

    func enqueue(_ job: UnownedJob) {
        let executor = asUnownedSerialExecutor()
        let part = { @Sendable in job.runSynchronously(on: executor) }
        if let loop = WorkQueue.loop { loop.add(job, to: queue, part) } else { queue.add(part) }
    }

    // Before macOS 14, the protocol has no default implementation.
    func asUnownedSerialExecutor() -> UnownedSerialExecutor {
        UnownedSerialExecutor(ordinary: self)
    }
}
