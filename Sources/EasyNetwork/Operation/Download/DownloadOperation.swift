import Dispatch
import Foundation

/// A job that brings the body of an answer into a file, in constant memory, and goes on where an earlier one stopped.
///
/// ```swift
/// let download = DownloadOperation(FileRequest(), to: folder.appendingPathComponent("movie.mp4"))
/// download.success = { file in play(file) }
/// NetworkQueue.shared.addOperation(download)
/// ```
///
/// What comes is written to a part beside the destination, `.easynetwork-….part`, with a journal. When it is complete
/// and has the length, and the digest if one is wanted, that it must have, it takes its place in one step (`rename(2)`):
/// at the destination lies the old file or the new one, whole. A destination that is a directory takes the name from the
/// server (`Content-Disposition`, RFC 6266), never a path, or from the URL.
///
/// A part is gone on with, after a retry, ``pause()``, a cancel, a failure, a crash of the process or, as far as the disk
/// has it, of the machine: by an operation with the same destination and address, or with a redirect to the same one. With
/// a ``DownloadOptions/sha256`` the address may be another one, as that of a mirror or a signed URL, unless the
/// destination is a directory. The server is asked for the rest with `Range` and `If-Range` (RFC 9110, sections 13.1.5
/// and 14.2); a file that has changed since, or that has no strong validator, comes anew. A part of what was compressed on
/// the way is never gone on with, nor one of another user. A failure of the connection counts as the first one again for
/// the ``RetryPolicy`` when bytes were gained since the last.
///
/// Two operations with one destination never write to one part: the second one ends with ``NetworkError/Code/refused``.
/// The answer of a server that refuses is in the error, and not in the file. It does not use the cache.
///
/// Callbacks, ``RequestOperation/value`` and the rest are those of ``RequestOperation``; the item is the URL of the file.
public final class DownloadOperation: RequestOperation<DownloadRequest>, @unchecked Sendable {
    // Sendable because everything that changes is in `download`, behind its lock.
    private struct Download {
        var transfer: DownloadTransfer?
        var place: PartPlace?
        var request: DownloadRequest?
        /// What is under way. What earlier rounds still bring is ignored.
        var round = 0
        var landings: [Call] = []
        /// The segments of this round that are still to come.
        var missing: Set<Int> = []
        var isPaused = false
        /// What goes on when it is paused no more.
        var held: (@Sendable () -> Void)?
        /// Whether a round is to begin, now or when it is paused no more, which asks for all that is missing.
        var isRoundDue = false
        var keepsPart: Bool
        var isOver = false
    }

    /// Where the file goes: its name, or a directory.
    public let destination: URL
    public let options: DownloadOptions
    private let meter: TransferMeter
    private let calls: PartCalls
    private let queue = DispatchQueue(label: "EasyNetwork.DownloadOperation", autoreleaseFrequency: .workItem)
    private let download: Locked<Download>

    /// - Parameters:
    ///   - request: what is asked for; a GET if it is to be gone on with.
    ///   - destination: a file URL: of the file, or of a directory, which takes the server's name for it. It is one when
    ///     its path ends with a slash, or when a directory lies there.
    ///   - options: default ``DownloadOptions``: an existing file is replaced, in a directory it stays beside a numbered
    ///     one, nothing else is wanted.
    ///   - service: gives the host, and cancels the operation's calls when it is cancelled itself. Default
    ///     ``HostConfiguration/shared`` as it is now.
    public convenience init(
        _ request: some BaseAPIRequest,
        to destination: URL,
        options: DownloadOptions = DownloadOptions(),
        service: EasyNetworkService = EasyNetworkService(HostConfiguration.shared)
    ) {
        self.init(request, to: destination, options: options, service: service, calls: PartCalls())
    }

    init(
        _ request: some BaseAPIRequest,
        to destination: URL,
        options: DownloadOptions,
        service: EasyNetworkService,
        calls: PartCalls
    ) {
        self.destination = destination
        self.options = options
        self.calls = calls
        download = Locked(Download(keepsPart: options.keepsPart))
        meter = TransferMeter(kind: .downloading, clock: service.configuration.settings.clock)
        super.init(DownloadRequest(request), service: service)
        observeProgress()
    }

    /// A download whose request is made when it starts.
    init<Request: BaseAPIRequest>(
        to destination: URL,
        options: DownloadOptions,
        service: EasyNetworkService,
        makeRequest: @escaping @Sendable () throws -> Request
    ) {
        self.destination = destination
        self.options = options
        calls = PartCalls()
        download = Locked(Download(keepsPart: options.keepsPart))
        meter = TransferMeter(kind: .downloading, clock: service.configuration.settings.clock)
        super.init(service: service) { DownloadRequest(try makeRequest()) }
        observeProgress()
    }

    private func observeProgress() {
        meter.whenCancelled { [weak self] in self?.cancel() }
        meter.whenPauseChanges { [weak self] isPaused in
            if isPaused { self?.pause() } else { self?.resume() }
        }
    }

    // MARK: - Progress

    /// Bytes that have come, of those that the file has; indeterminate while nobody knows how many these are. What an
    /// earlier operation brought counts. Cancelling, pausing and resuming it does so with the operation; ``pause()`` and
    /// ``resume()`` leave its `isPaused` as it is. It changes on background threads, at most ten times a second.
    public var progress: Progress { meter.progress }

    override func claimProgress() -> OrderedProgress? { meter.claimShare() }

    /// Bytes, rate and time left as they change, at most ten times a second, and once more at the end. Each caller gets a
    /// sequence of its own.
    public var updates: AsyncStream<TransferProgress> { meter.updates() }

    // MARK: - Pausing

    /// Whether ``pause()`` was called last, and not ``resume()``.
    public var isPaused: Bool { download.withLock { $0.isPaused } }

    /// Stops fetching and gives the slot back, until ``resume()``. What has come is kept, and its journal written: also
    /// the process may end meanwhile. Before its start, the operation waits for ``resume()`` when its turn has come.
    public func pause() {
        let stopped = download.withLock { download -> [Call]? in
            guard !download.isPaused, !download.isOver else { return nil }
            download.isPaused = true
            guard let transfer = download.transfer, !download.missing.isEmpty else { return nil }
            download.round += 1
            download.missing = []
            download.held = goOn
            download.isRoundDue = true
            let stopped = download.landings.take()
            // In the order of the pauses: what a later resume() asks for is not given up.
            queue.async {
                transfer.save()
                for landing in stopped { landing.cancel() }
                // A landing may have asked for it again, after a delay.
                self.forgoSlot()
            }
            return stopped
        }
        guard let stopped else { return }
        for landing in stopped { landing.cancel() }
        meter.rest()
    }

    /// Goes on after ``pause()``, when there is a slot.
    public func resume() {
        download.withLock { download in
            download.isPaused = false
            guard let held = download.held.take() else { return }
            queue.async { self.reclaimSlot(held) }
        }
    }

    private var goOn: @Sendable () -> Void {
        { self.queue.async { self.beginRound() } }
    }

    /// Cancels the operation.
    ///
    /// - Parameter keepingPart: whether what has come is kept for another operation; `cancel()` does as
    ///   ``DownloadOptions/keepsPart`` says.
    public func cancel(keepingPart: Bool) {
        download.withLock { $0.keepsPart = keepingPart }
        cancel()
    }

    // MARK: - The work

    public override func execute() {
        guard let request = takeRequest() else { return }
        let start = { @Sendable in self.open(request) }
        let isHeld = download.withLock { download in
            guard download.isPaused else { return false }
            download.held = start
            queue.async { self.releaseSlot() }
            return true
        }
        if !isHeld { start() }
    }

    private func open(_ request: DownloadRequest) {
        do throws(NetworkError) {
            try Self.check(options)
            let message = try RequestBuilder.build(request, for: service.configuration)
            let resource = message.url.downloadDigest
            let place = try PartPlace(destination, resource: resource)
            if options.existingFile == .keep, let name = place.name, access(place.path(named: name), F_OK) == 0 {
                return finish(with: URL(fileURLWithPath: place.path(named: name)))
            }
            // Before it is taken: who ends the operation from now on tells the registry.
            download.withLock { $0.place = place }
            let isTaken = PartRegistry.shared.take(place.key, for: self, unless: { hasOutcome }) {
                self.queue.async { self.open(place, resource, request, mayContinue: message.mayContinueDownload) }
            }
            guard isTaken else {
                throw NetworkError(
                    code: .refused,
                    message: "another operation downloads to \(place.shown): let this one depend on it"
                )
            }
        } catch {
            finish(error)
        }
    }

    private static func check(_ options: DownloadOptions) throws(NetworkError) {
        guard let digest = options.sha256 else { return }
        guard digest.utf8.count == 64, digest.allSatisfy(\.isHexDigit) else {
            throw NetworkError(
                code: .invalidRequest,
                message: "a SHA-256 has 64 hexadecimal digits, '\(digest)' is none"
            )
        }
    }

    // MARK: - On the queue

    private func open(_ place: PartPlace, _ resource: String, _ request: DownloadRequest, mayContinue: Bool) {
        guard !hasOutcome else { return PartRegistry.shared.giveBack(place.key) }
        // Who ends the operation gives it back then.
        var isOpen = false
        do throws(NetworkError) {
            if options.createsDirectories { try place.makeDirectory() }
            let clock = service.configuration.settings.clock
            // Its own part first, which the sweep leaves alone then, however old.
            let part = try PartFile(place, calls: calls)
            if let lifetime = options.partLifetime { PartSweep.shared.sweep(place, before: clock.date - lifetime) }
            let boot = MachineBoot.identifier
            let found = mayContinue ? place.readRecord() : nil
            let record = found?.trusted(boot: boot, size: part.size ?? 0)
            let limit = max(1, options.segmentCount)
            let transfer = DownloadTransfer(
                part,
                DownloadCourse(
                    record,
                    resource: resource,
                    boot: boot,
                    segmentLimit: limit,
                    hasDigest: options.sha256 != nil
                ),
                options,
                on: queue,
                meter: meter,
                clock: clock,
                limits: { [weak self] in self?.bandwidthLimits ?? [] },
                split: { [weak self] in self?.ask(for: $0) },
                startOver: { [weak self] in self?.startOver() }
            )
            let isWanted = download.withLock { download in
                guard !download.isOver else { return false }
                download.transfer = transfer
                download.request = request
                return true
            }
            guard isWanted else {
                return transfer.close(keepingPart: download.withLock { $0.keepsPart }, done: {}) {
                    PartRegistry.shared.giveBack(place.key)
                }
            }
            isOpen = true
            if record == nil { try part.truncate() }
            beginRound()
        } catch {
            if !isOpen { PartRegistry.shared.giveBack(place.key) }
            finish(error)
        }
    }

    private var bandwidthLimits: [BandwidthLimit] {
        BandwidthLimit.both(options.bandwidthLimit, scheduling?.queue.bandwidthLimit)
    }

    /// Paused, and perhaps resumed, meanwhile: a round begins when there is a slot again.
    private func startOver() {
        if !download.withLock({ $0.isRoundDue }) { beginRound() }
    }

    /// Asks for all that is missing; what was asked for before counts no more.
    private func beginRound() {
        let (transfer, old) = download.withLock { download -> (DownloadTransfer?, [Call]) in
            guard !download.isOver else { return (nil, []) }
            download.round += 1
            download.missing = []
            let old = download.landings.take()
            download.isRoundDue = download.isPaused
            if download.isPaused {
                download.held = goOn
                return (nil, old)
            }
            return (download.transfer, old)
        }
        for landing in old { landing.cancel() }
        guard let transfer else {
            if !hasOutcome { releaseSlot() }
            return
        }
        ask(for: transfer.begin())
    }

    private func ask(for segments: [Int]) {
        let (transfer, request, round, isRoundDue) = download.withLock { download in
            let isRoundDue = download.isRoundDue
            let isWanted = !download.isPaused && !download.isOver && !isRoundDue
            if isWanted { download.missing.formUnion(segments) }
            // Paused since the round began.
            if download.isPaused, !download.isOver, !isRoundDue {
                download.held = goOn
                download.isRoundDue = true
            }
            return (isWanted ? download.transfer : nil, download.request, download.round, isRoundDue)
        }
        // Paused, and perhaps resumed, when some were under way already: they will all be asked for.
        if isRoundDue { return }
        guard let transfer, let request else {
            if !hasOutcome { releaseSlot() }
            return
        }
        for index in segments { ask(for: index, of: transfer, request, round) }
    }

    private func ask(for index: Int, of transfer: DownloadTransfer, _ request: DownloadRequest, _ round: Int) {
        let sink = DownloadSink(transfer: transfer, index: index)
        let landing = service.start(
            request,
            sink: sink,
            map: { _ in },
            completion: { self.ended(index, round, $0) }
        )
        let isWanted = download.withLock { download in
            if download.round == round { download.landings.append(landing) }
            return download.round == round
        }
        if !isWanted { landing.cancel() }
    }

    private func ended(_ index: Int, _ round: Int, _ result: Result<Void, NetworkError>) {
        let (transfer, isLast) = download.withLock { download -> (DownloadTransfer?, Bool) in
            guard download.round == round else { return (nil, false) }
            download.missing.remove(index)
            return (download.transfer, download.missing.isEmpty)
        }
        guard let transfer else { return }
        if case .failure(let error) = result { return finish(error) }
        guard isLast else { return }
        queue.async {
            do throws(NetworkError) {
                self.finish(with: try transfer.land { !self.hasOutcome })
            } catch {
                self.finish(error)
            }
        }
    }

    // MARK: - The end

    override func stop() {
        super.stop()
        if let place = download.withLock({ $0.place }) { PartRegistry.shared.willGiveBack(place.key, by: self) }
    }

    override func deliver(_ done: @escaping @Sendable () -> Void) {
        let (transfer, held, landings, keepsPart, place) = download.withLock { download in
            download.isOver = true
            download.round += 1
            let landings = download.landings.take()
            return (download.transfer.take(), download.held.take(), landings, download.keepsPart, download.place)
        }
        withExtendedLifetime(held) {}
        if let place { PartRegistry.shared.willGiveBack(place.key, by: self) }
        for landing in landings { landing.cancel() }
        let finish = { @Sendable in self.meter.finish(success: self.error == nil) { self.deliverResult(done) } }
        guard let transfer else { return finish() }
        let key = transfer.part.place.key
        // A body that was too long would be as long again.
        let isUseful = keepsPart && error != nil && error?.code != .bodyTooLong
        transfer.close(keepingPart: isUseful, done: finish) { PartRegistry.shared.giveBack(key) }
    }

    private func deliverResult(_ done: @escaping @Sendable () -> Void) {
        super.deliver(done)
    }
}
