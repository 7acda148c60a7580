import Foundation

/// Requests that are promised to be sent: they survive kills, restarts and days without a network.
///
/// ```swift
/// struct SendMessage: APIRequest, Codable {
///     typealias Item = Void
///     let text: String
///     var api: String { "messages" }
///     var method: NetworkService.Method { .post }
///     var params: [String: Any]? { ["text": text] }
/// }
///
/// func launch(_ folder: URL) throws -> Outbox {
///     let outbox = try Outbox(directory: folder)
///     outbox.register(SendMessage.self, name: "message")
///     outbox.start()
///     try outbox.add(SendMessage(text: "Hello"), lane: "chat 7")
///     return outbox
/// }
/// ```
///
/// When ``add(_:lane:priority:after:)`` has returned, the request is on disk. It is sent as a job of a ``NetworkQueue`` until
/// the server accepts it: at least once, always with the same `Idempotency-Key`, so that a server that knows the key acts
/// once. Between two tries the outbox waits longer and longer, up to ten minutes, or as long as the server says
/// (`Retry-After`), and less when the host's ``HostSettings/reachability`` returns. Entries of one lane are delivered in
/// their order: one that fails holds up those behind it. Lanes are delivered side by side.
///
/// A request that the server refuses for good becomes a dead letter, and so does one whose type is not registered, whose file
/// is damaged, or that is older than ``maximumAge``: nothing is dropped. ``retry(_:)`` sends it again, ``remove(_:)`` drops it.
///
/// Several processes may use one directory: one of them delivers, and when it ends another one takes over within a second.
/// All members may be used from any thread.
public final class Outbox: Sendable {
    /// A type of requests as it was registered.
    private struct RequestType: Sendable {
        let version: Int
        let decode: @Sendable (Data, Int) throws -> any APIRequest
    }

    private struct State {
        var types: [String: RequestType] = [:]
        var isStarted = false
        /// Held while this outbox delivers.
        var lock: OutboxFolder.Lock?
        /// What is to be delivered, while this outbox does it.
        var index = OutboxIndex()
        /// The entries that are being read or sent.
        var running: [UUID: NetworkOperation?] = [:]
        /// The number of failed tries, and the last failure.
        var failures: [UUID: (count: Int, error: NetworkError)] = [:]
        var lastSequence: UInt64 = 0
        var ticker: (any ClockTimer)?
        var bell: Data?
        var wasReachable = true
        var listeners: [Int: AsyncStream<OutboxEvent>.Continuation] = [:]
        var lastListener = 0
        /// The drains that wait for all entries, and those that wait for the jobs that they cancelled.
        var drains: [OneShot] = []
        var idles: [OneShot] = []
    }

    /// Jobs in the queue at once, so that their number is bounded.
    private static let window = 32
    /// Between two looks for changes by other processes and for lanes that may go on, in seconds.
    private static let interval: TimeInterval = 1
    /// The bounds of the delay after a failure, in seconds.
    private static let delays = RetryPolicy(
        maximumRetryCount: .max,
        baseDelay: 2,
        maximumDelay: 600,
        maximumRetryAfter: .greatestFiniteMagnitude
    )

    /// The number of entries above which ``add(_:lane:priority:after:)`` throws. Dead letters do not count.
    public let maximumCount: Int
    /// The age in seconds at which an entry that was not delivered becomes a dead letter.
    public let maximumAge: TimeInterval

    private let folder: OutboxFolder
    private let queue: NetworkQueue
    private let service: EasyNetworkService
    private let state = Locked(State())

    private var clock: any NetworkClock { service.configuration.settings.clock }

    /// Opens or creates an outbox.
    ///
    /// - Parameters:
    ///   - directory: a folder for this outbox alone, on a local disk. It is created with the ones above it.
    ///   - queue: runs the jobs, with its limits, conditions and events. Default ``NetworkQueue/shared``.
    ///   - service: gives the host. Default ``HostConfiguration/shared`` as it is now.
    ///   - maximumCount: the number of entries at which the outbox is full. Default no limit.
    ///   - maximumAge: the longest age of an entry in seconds. Default no limit.
    /// - Throws: ``NetworkError/Code/cannotWriteFile`` when the directory cannot be used.
    public convenience init(
        directory: URL,
        queue: NetworkQueue = .shared,
        service: EasyNetworkService = EasyNetworkService(HostConfiguration.shared),
        maximumCount: Int = .max,
        maximumAge: TimeInterval = .infinity
    ) throws(NetworkError) {
        try self.init(OutboxFolder(directory), queue, service, maximumCount, maximumAge)
    }

    init(
        _ folder: OutboxFolder,
        _ queue: NetworkQueue,
        _ service: EasyNetworkService,
        _ maximumCount: Int = .max,
        _ maximumAge: TimeInterval = .infinity
    ) {
        (self.folder, self.queue, self.service) = (folder, queue, service)
        (self.maximumCount, self.maximumAge) = (maximumCount, maximumAge)
    }

    deinit {
        let state = state.withLock { $0 }
        state.ticker?.cancel()
        for listener in state.listeners.values { listener.finish() }
    }

    // MARK: - Types

    /// Registers a type of requests. Register all before ``start()``: an entry of another type becomes a dead letter.
    ///
    /// - Parameters:
    ///   - type: encoded as JSON when it is added, decoded each time it is sent.
    ///   - name: the name of the type on disk, which must stay the same for ever.
    ///   - version: the version of what is encoded. Default 1.
    ///   - migrate: makes a request of JSON of an older version, which is its second parameter. Called on a background
    ///     thread. An error makes the entry a dead letter. Default nil: older JSON is decoded like that of this version.
    public func register<Request: APIRequest & Codable>(
        _ type: Request.Type,
        name: String,
        version: Int = 1,
        migrate: (@Sendable (Data, Int) throws -> Request)? = nil
    ) {
        let registered = RequestType(version: version) { data, found in
            if found != version, let migrate { return try migrate(data, found) }
            return try JSONDecoder().decode(Request.self, from: data)
        }
        state.withLock { $0.types[name] = registered }
        names.withLock { $0[ObjectIdentifier(type)] = (name, version) }
    }

    /// The names of the registered types.
    private let names = Locked<[ObjectIdentifier: (name: String, version: Int)]>([:])

    // MARK: - Entries

    /// Writes a request to disk, to be sent when its turn comes. It returns when the request is safe: written, synced and in
    /// its place. It writes on this thread, for some milliseconds.
    ///
    /// Files of the request's body, also in a form, are linked into the outbox, or copied where the file system has no links,
    /// so that they may be removed. A file that is changed in place afterwards, instead of replaced, is changed here too.
    ///
    /// - Parameters:
    ///   - request: of a registered type. The outbox sets its `Idempotency-Key`.
    ///   - lane: entries of a lane are delivered in the order in which they were added. Default one lane for all.
    ///   - priority: of the entry's job, and of its lane while it is the first of that. Default normal.
    ///   - after: entries that must be delivered first. If one of them becomes a dead letter, so does this one, with
    ///     ``NetworkError/Code/dependencyFailed``.
    /// - Returns: the id of the entry.
    /// - Throws: ``NetworkError/Code/invalidRequest`` for a type that is not registered, a request that cannot be encoded or
    ///   whose files cannot be read; ``NetworkError/Code/refused`` when the outbox is full or `after` names a dead letter;
    ///   ``NetworkError/Code/cannotWriteFile`` when it could not be written. Then there is no entry.
    @discardableResult
    public func add<Request: APIRequest & Codable>(
        _ request: Request,
        lane: String = "",
        priority: Operation.QueuePriority = .normal,
        after: [UUID] = []
    ) throws(NetworkError) -> UUID {
        guard let type = names.withLock({ $0[ObjectIdentifier(Request.self)] }) else {
            throw NetworkError(
                code: .invalidRequest,
                message: "register \(Request.self) before it is added to an outbox"
            )
        }
        try OutboxName.check(type.name, "name of the type")
        try OutboxName.check(lane, "lane")
        let data = try RequestBody.encode(request, as: "an entry of an outbox") { try JSONEncoder().encode($0) }
        if !after.isEmpty, let dead = try folder.list(.dead).first(where: { after.contains($0.id) }) {
            throw NetworkError(code: .refused, message: "the entry \(dead.id), which comes first, is a dead letter")
        }
        if maximumCount < .max, try count >= maximumCount {
            throw NetworkError(code: .refused, message: "the outbox has \(maximumCount) entries, which is its limit")
        }
        var (files, attachments): ([String: String], [String: URL]) = ([:], [:])
        _ = try request.body?.build { url throws(NetworkError) in
            if files[url.path] == nil {
                _ = try TransportBody.file(url).length()
                files[url.path] = "file\(files.count)"
                attachments["file\(attachments.count)"] = url.resolvingSymlinksInPath()
            }
            return url
        }
        let name = OutboxName(
            sequence: nextSequence(),
            id: UUID(),
            priority: JobPriority(priority),
            hasDependencies: !after.isEmpty,
            type: type.name,
            lane: lane
        )
        let record = OutboxRecord(
            version: type.version,
            addedAt: clock.date,
            after: after,
            files: files,
            request: data
        )
        try folder.add(name, record, attachments)
        let delivers = state.withLock { state in
            if state.lock != nil { state.index.insert(name, after: after) }
            return state.lock != nil
        }
        tell(name.id, .added)
        if delivers { deliverNext() } else { folder.ring() }
        return name.id
    }

    /// Greater than that of every entry so far, and not less than the time in nanoseconds.
    private func nextSequence() -> UInt64 {
        let now = UInt64(max(0, clock.date.timeIntervalSince1970) * 1_000_000_000)
        return state.withLock { state in
            state.lastSequence = max(now, state.lastSequence + 1)
            return state.lastSequence
        }
    }

    private var count: Int {
        get throws(NetworkError) {
            if let count = state.withLock({ $0.lock == nil ? nil : $0.index.count }) { return count }
            return try folder.list(.entries).count
        }
    }

    /// The entries that wait or are being sent, in their order, those of other processes included. Read from the directory.
    ///
    /// - Throws: ``NetworkError/Code/cannotWriteFile`` when it cannot be read.
    public var entries: [OutboxEntry] {
        get throws(NetworkError) {
            let names = try folder.list(.entries).sorted { $0.sequence < $1.sequence }
            return state.withLock { state in
                names.map { name in
                    var entry = OutboxEntry(name)
                    entry.isSending = state.running[name.id] != nil
                    entry.error = state.failures[name.id]?.error
                    return entry
                }
            }
        }
    }

    /// The entries that failed for good, in their order, each with its error. Read from the directory.
    ///
    /// - Throws: ``NetworkError/Code/cannotWriteFile`` when it cannot be read.
    public var deadLetters: [OutboxEntry] {
        get throws(NetworkError) {
            let names = try folder.list(.dead).sorted { $0.sequence < $1.sequence }
            return names.map { name in
                var entry = OutboxEntry(name)
                entry.error = folder.failure(of: name)
                return entry
            }
        }
    }

    /// Removes an entry or a dead letter; does nothing when there is none. An entry that is being sent is cancelled, but may
    /// have been sent. Entries that depend on it become dead letters.
    ///
    /// - Throws: ``NetworkError/Code/cannotWriteFile``.
    public func remove(_ id: UUID) throws(NetworkError) {
        let entry = try folder.list(.entries).first { $0.id == id }
        let dead = try entry == nil ? folder.list(.dead).first { $0.id == id } : nil
        guard let name = entry ?? dead else { return }
        try folder.remove(name, from: entry == nil ? .dead : .entries)
        let operation = state.withLock { state -> NetworkOperation? in
            state.index.remove(id)
            state.failures[id] = nil
            return state.running[id] ?? nil
        }
        operation?.cancel()
        tell(id, .removed)
        if entry != nil {
            buryDependents(of: id, NetworkError(code: .cancelled, message: "the entry \(id) was removed"))
        }
        hasChanged()
    }

    /// Makes a dead letter an entry again, at its old place in its lane, and with it the ones that failed since they depend
    /// on it. Does nothing when there is none.
    ///
    /// - Throws: ``NetworkError/Code/cannotWriteFile``.
    public func retry(_ id: UUID) throws(NetworkError) {
        let dead = try folder.list(.dead)
        guard let name = dead.first(where: { $0.id == id }) else { return }
        var revived = [name]
        // Each may have dependents of its own.
        var index = 0
        while index < revived.count {
            let root = revived[index].id
            for name in dead where name.hasDependencies && !revived.contains(name) {
                guard folder.failure(of: name)?.code == .dependencyFailed,
                    let record = try? folder.read(name, in: .dead), record.after.contains(root)
                else { continue }
                revived.append(name)
            }
            index += 1
        }
        for name in revived {
            let after = (try? folder.read(name, in: .dead))?.after ?? []
            try folder.revive(name)
            state.withLock { state in
                if state.lock != nil { state.index.insert(name, after: after) }
            }
            tell(name.id, .retried)
        }
        hasChanged()
    }

    private func hasChanged() {
        if state.withLock({ $0.lock == nil }) { folder.ring() } else { deliverNext() }
        checkDrains()
    }

    // MARK: - Events

    /// What happens to the entries of this outbox from now on. Each call returns a new sequence, which ends with the outbox.
    /// A listener that is slow loses the oldest of more than a thousand events.
    public var events: AsyncStream<OutboxEvent> {
        AsyncStream(bufferingPolicy: .bufferingNewest(1_000)) { continuation in
            let number = state.withLock { state in
                state.lastListener += 1
                state.listeners[state.lastListener] = continuation
                return state.lastListener
            }
            continuation.onTermination = { [weak self] _ in
                let listener = self?.state.withLock { $0.listeners.removeValue(forKey: number) }
                withExtendedLifetime(listener) {}
            }
        }
    }

    private func tell(_ id: UUID, _ kind: OutboxEvent.Kind) {
        for listener in state.withLock({ Array($0.listeners.values) }) {
            listener.yield(OutboxEvent(id: id, kind: kind))
        }
    }

    // MARK: - Starting and ending

    /// Begins to deliver, or to wait for the process that does. Does nothing when it was started already.
    public func start() {
        let isFirst = state.withLock { state in
            defer { state.isStarted = true }
            return !state.isStarted
        }
        guard isFirst else { return }
        WorkQueue.shared.async { self.tick() }
    }

    /// Delivers what can be delivered until the deadline, and then stops: jobs that are still under way are cancelled, their
    /// entries stay, and another process may take over. ``start()`` begins again.
    ///
    /// - Parameter deadline: seconds from now; zero or less stops at once.
    /// - Returns: the entries that are left.
    /// - Throws: ``NetworkError/Code/cannotWriteFile`` when the directory cannot be read.
    @discardableResult
    public func drain(deadline: TimeInterval) async throws(NetworkError) -> [OutboxEntry] {
        if deadline > 0 {
            let over = OneShot()
            let timer = clock.schedule(after: deadline) { over.end() }
            state.withLock { $0.drains.append(over) }
            checkDrains()
            await over.wait()
            timer.cancel()
        }
        let idle = OneShot()
        let (ticker, operations) = state.withLock { state in
            state.isStarted = false
            state.index = OutboxIndex()
            state.idles.append(idle)
            return (state.ticker.take(), state.running.values.compactMap { $0 })
        }
        ticker?.cancel()
        for operation in operations { operation.cancel() }
        checkDrains()
        await idle.wait()
        return try entries
    }

    /// Ends the waits of drains that are over, and gives the lock back after the last job.
    private func checkDrains() {
        let hasDrains = state.withLock { !$0.drains.isEmpty }
        let isEmpty = hasDrains && (try? count) == 0
        let (over, lock) = state.withLock { state -> ([OneShot], OutboxFolder.Lock?) in
            guard state.running.isEmpty else { return ([], nil) }
            let over = state.idles.take() + (isEmpty ? state.drains.take() : [])
            return (over, state.isStarted ? nil : state.lock.take())
        }
        withExtendedLifetime(lock) {}
        for wait in over { wait.end() }
    }

    // MARK: - Delivery

    /// Looks for what has changed since the last time, and again after ``interval``.
    private func tick() {
        guard state.withLock({ $0.isStarted }) else { return }
        let reachability = service.configuration.settings.reachability
        let isReachable = reachability?.status != .unreachable
        let delivers = state.withLock { $0.lock != nil }
        if delivers {
            let bell = folder.bell
            let isRung = state.withLock { state in
                defer { state.bell = bell }
                return state.bell != bell
            }
            if isRung { load() }
        } else if let lock = try? folder.lock() {
            state.withLock { state in
                state.lock = lock
                state.bell = folder.bell
            }
            folder.sweep()
            load()
        }
        let now = clock.now
        state.withLock { state in
            // All that waits tries at once when the network is back.
            state.index.wake(at: isReachable && !state.wasReachable ? .infinity : now)
            state.wasReachable = isReachable
            guard state.isStarted else { return }
            state.ticker = clock.schedule(after: Self.interval) { [weak self] in
                guard let self else { return }
                WorkQueue.shared.async { self.tick() }
            }
        }
        deliverNext()
        checkDrains()
    }

    /// Takes over what the directory has.
    private func load() {
        guard let names = try? folder.list(.entries) else { return }
        let known = state.withLock { state in
            state.lastSequence = max(state.lastSequence, names.map(\.sequence).max() ?? 0)
            let present = Set(names.map(\.id))
            for id in Array(state.index.ids) where !present.contains(id) && state.running[id] == nil {
                state.index.remove(id)
            }
            return Set(state.index.ids)
        }
        let dead = Set(((try? folder.list(.dead)) ?? []).map(\.id))
        for name in names.sorted(by: { $0.sequence < $1.sequence }) where !known.contains(name.id) {
            // A damaged one is found when its turn comes.
            let after = name.hasDependencies ? (try? folder.read(name))?.after ?? [] : []
            if let root = after.first(where: dead.contains) {
                bury(name, Self.dependencyFailed(root, nil))
            } else {
                state.withLock { state in
                    if state.lock != nil, state.running[name.id] == nil { state.index.insert(name, after: after) }
                }
            }
        }
    }

    /// Starts what may start.
    private func deliverNext() {
        while let name = state.withLock({ state -> OutboxName? in
            guard state.isStarted, state.lock != nil, state.running.count < Self.window else { return nil }
            guard let name = state.index.next() else { return nil }
            state.running[name.id] = .some(nil)
            return name
        }) {
            // Not on the thread that adds, which may be the main one.
            WorkQueue.shared.async { self.deliver(name) }
        }
    }

    private func deliver(_ name: OutboxName) {
        let request: any BaseAPIRequest
        do throws(NetworkError) {
            request = try self.request(name)
        } catch {
            state.withLock { _ = $0.running.removeValue(forKey: name.id) }
            switch error.code {
            // It was removed meanwhile.
            case .cancelled: state.withLock { _ = $0.index.remove(name.id) }
            case .cannotWriteFile: postpone(name, error)
            default: bury(name, error)
            }
            deliverNext()
            return checkDrains()
        }
        let operation = RequestOperation(OutboxDelivery(wrapped: request, id: name.id), service: service)
        operation.queuePriority = name.priority.operationPriority
        let isWanted = state.withLock { state in
            guard state.isStarted, state.index.contains(name.id) else {
                state.running.removeValue(forKey: name.id)
                return false
            }
            state.running[name.id] = operation
            return true
        }
        guard isWanted else {
            deliverNext()
            return checkDrains()
        }
        tell(name.id, .sending)
        operation.whenFinished { [weak operation] in
            let result = operation?.result
            WorkQueue.shared.async { self.finish(name, result?.failure) }
        }
        queue.addOperation(operation)
    }

    private func request(_ name: OutboxName) throws(NetworkError) -> any BaseAPIRequest {
        let record = try folder.read(name)
        guard clock.date.timeIntervalSince(record.addedAt) <= maximumAge else {
            throw NetworkError(code: .timedOut, message: "the entry is older than \(maximumAge) seconds")
        }
        guard let type = state.withLock({ $0.types[name.type] }) else {
            throw NetworkError(code: .invalidRequest, message: "no type is registered as \"\(name.type)\"")
        }
        do {
            let request = try WorkQueue.userCode { try type.decode(record.request, record.version) }
            let files = record.files.mapValues { folder.attachment($0, of: name) }
            return files.isEmpty ? request : OutboxFiles(request: request, files: files)
        } catch {
            throw .thrown(error, otherwise: .invalidRequest)
        }
    }

    private func finish(_ name: OutboxName, _ error: NetworkError?) {
        state.withLock { _ = $0.running.removeValue(forKey: name.id) }
        defer {
            deliverNext()
            checkDrains()
        }
        if let error {
            if Self.isFinal(error) { bury(name, error) } else { postpone(name, error) }
            return
        }
        do throws(NetworkError) {
            try folder.remove(name, from: .entries)
        } catch {
            // It was removed by hand, or it will be sent again, with the same key.
            return postpone(name, error)
        }
        state.withLock { state in
            state.index.remove(name.id)
            state.failures[name.id] = nil
        }
        tell(name.id, .delivered)
    }

    /// Whether the same request would fail again.
    static func isFinal(_ error: NetworkError) -> Bool {
        switch error.code {
        case .unacceptableStatus:
            guard let status = error.statusCode else { return true }
            return status < 500 && !delays.statusCodes.contains(status)
        case .invalidRequest, .cannotParseResponse, .redirectFailed, .cannotSendAgain, .bodyTooLong, .dependencyFailed:
            return true
        default: return error.code.rawValue >= 10_000
        }
    }

    private func postpone(_ name: OutboxName, _ error: NetworkError) {
        let count = state.withLock { state -> Int? in
            // Otherwise it was removed meanwhile, or the outbox has been drained.
            guard state.index.contains(name.id) else { return nil }
            let count = (state.failures[name.id]?.count ?? 0) + 1
            state.failures[name.id] = (count, error)
            return count
        }
        guard let count else { return }
        let bound = min(Self.delays.baseDelay * pow(2, Double(min(count - 1, 16))), Self.delays.maximumDelay)
        let floor = RetryPolicy.retryAfter(error.headers, now: clock.date) ?? 0
        let delay = max(bound * min(max(service.configuration.settings.random(), 0), 1), floor)
        state.withLock { $0.index.postpone(name.id, until: clock.now + delay) }
        tell(name.id, .failed(error, retryDelay: delay))
    }

    private func bury(_ name: OutboxName, _ error: NetworkError) {
        do throws(NetworkError) {
            try folder.bury(name, error)
        } catch {
            // It stays where it is.
            return postpone(name, error)
        }
        state.withLock { state in
            state.index.remove(name.id)
            state.failures[name.id] = nil
        }
        tell(name.id, .died(error))
        buryDependents(of: name.id, error)
    }

    private func buryDependents(of id: UUID, _ error: NetworkError) {
        for name in (try? folder.list(.entries)) ?? [] where name.hasDependencies {
            guard let record = try? folder.read(name), record.after.contains(id) else { continue }
            bury(name, Self.dependencyFailed(id, error))
        }
    }

    private static func dependencyFailed(_ id: UUID, _ error: NetworkError?) -> NetworkError {
        let reason = error.map { ": \($0.message ?? $0.code.summary)" } ?? ""
        return NetworkError(
            code: .dependencyFailed,
            message: "the entry \(id), which comes first, has failed\(reason)",
            underlying: error
        )
    }
}

/// The request of an entry, under the one key that it has for ever.
private struct OutboxDelivery: RequestWrapper, APIRequest {
    typealias Item = Void

    let wrapped: any BaseAPIRequest
    let id: UUID

    var idempotencyKey: String? { id.uuidString }
    /// Each entry is delivered.
    var repeatPolicy: RepeatPolicy { .allow }

    /// An answer that the request cannot map is a failure.
    func item(from response: NetworkResponse) throws {
        func map(_ request: some APIRequest) throws { _ = try request.item(from: response) }
        let request = (wrapped as? OutboxFiles)?.wrapped ?? wrapped
        if let request = request as? any APIRequest { try map(request) }
    }
}

/// A request whose files are those of the outbox.
private struct OutboxFiles: RequestWrapper {
    let wrapped: any BaseAPIRequest
    /// By their paths when the request was added.
    let files: [String: URL]

    init(request: any BaseAPIRequest, files: [String: URL]) {
        (wrapped, self.files) = (request, files)
    }

    var body: RequestBody? {
        wrapped.body?.placed { [files] url in files[url.path] ?? url }
    }
}
