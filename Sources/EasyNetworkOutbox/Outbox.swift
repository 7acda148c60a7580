import EasyNetwork
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
///     try outbox.start()
///     try outbox.add(SendMessage(text: "Hello"), lane: "chat 7")
///     return outbox
/// }
/// ```
///
/// When ``add(_:lane:priority:after:)`` has returned, the request is on disk. It is sent as a job of a
/// ``/EasyNetwork/NetworkQueue`` until the server accepts it: at least once, always with the same `Idempotency-Key`, so
/// that a server that knows the key acts once. Between two tries the outbox waits longer and longer, up to ten minutes,
/// less when the host's ``/EasyNetwork/HostSettings/reachability`` returns, and as long as the server says
/// (`Retry-After`). Entries of one lane are delivered in their order: one that fails holds up those behind it. Lanes
/// are delivered side by side.
///
/// A request that the server refuses for good becomes a dead letter, and so does one whose type is not registered, whose file
/// is damaged, or that is older than ``maximumAge``: nothing is dropped. ``retry(_:)`` sends it again, ``remove(_:)`` drops it.
///
/// Several processes may use one directory: one of them delivers, and when it ends another one takes over within a second;
/// where apps are suspended, when the directory changes or after two minutes.
/// All members may be used from any thread; those that read or write the directory do so on the caller's.
public final class Outbox: Sendable {
    /// A type of requests as it was registered.
    typealias RequestType = (version: Int, decode: @Sendable (Data, Int) throws -> any APIRequest)

    struct State {
        /// By their names.
        var types: [String: RequestType] = [:]
        var names: [ObjectIdentifier: (name: String, version: Int)] = [:]
        /// What it does next.
        var logic: OutboxState
        /// Held while this outbox delivers.
        var lock: OutboxFolder.Lock?
        /// That of the last try, while another outbox has it.
        var missedLock: OutboxFolder.Lock?
        /// Needed for the lock where programs are suspended.
        var activity = ExpiringActivity.State.none
        /// The jobs of the entries that are being sent.
        var jobs: [UUID: NetworkOperation] = [:]
        /// How the last step of an entry under way has failed, and why it is to become a dead letter.
        var problems: [UUID: NetworkError] = [:]
        var reasons: [UUID: NetworkError] = [:]
        /// The number of failed tries, and the last failure.
        var failures: [UUID: (count: Int, error: NetworkError)] = [:]
        /// Whether the numbers of the directory are known to be in order.
        var hasSequence = false
        /// What it looks at, and when it does so the next time in any case.
        var ticker: (timer: any ClockTimer, time: TimeInterval)?
        #if os(Linux)
        var watch: OutboxWatch?
        #endif
        var networkTask: Task<Void, Never>?
        /// When the directory is read again without a sign of a change, which a killed process may have left out.
        var nextLoad: TimeInterval = 0
        var wasReachable = true
        var listeners: [Int: AsyncStream<OutboxEvent>.Continuation] = [:]
        /// The tasks that wait for a drain or a stop, by its number.
        var waits: [Int: OneShot] = [:]
        /// The drains that have ended since the outbox was started again.
        var restarted: Set<Int> = []
        var lastNumber = 0

        mutating func newNumber() -> Int {
            lastNumber += 1
            return lastNumber
        }
    }

    /// The number of entries above which ``add(_:lane:priority:after:)`` throws. Dead letters do not count.
    public let maximumCount: Int
    /// The age in seconds at which an entry that was not delivered becomes a dead letter.
    public let maximumAge: TimeInterval

    let folder: OutboxFolder
    let queue: NetworkQueue
    let service: EasyNetworkService
    let activity: ExpiringActivity?
    let state: Locked<State>

    var clock: any NetworkClock { service.configuration.settings.clock }

    /// Opens or creates an outbox.
    ///
    /// - Parameters:
    ///   - directory: a folder for this outbox alone, on a local disk. It is created with the ones above it.
    ///   - queue: runs the jobs, with its limits, conditions and events. Default ``/EasyNetwork/NetworkQueue/shared``.
    ///   - service: gives the host. Default ``/EasyNetwork/HostConfiguration/shared`` as it is now.
    ///   - maximumCount: the number of entries at which the outbox is full. Default no limit.
    ///   - maximumAge: the longest age of an entry in seconds. Default no limit.
    /// - Throws: ``/EasyNetwork/NetworkError/Code/cannotWriteFile`` when the directory cannot be used.
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
        _ maximumAge: TimeInterval = .infinity,
        activity: ExpiringActivity? = .system
    ) {
        self.activity = activity
        state = Locked(State(logic: OutboxState(window: Self.window, releasesLock: activity != nil)))
        (self.folder, self.queue, self.service) = (folder, queue, service)
        (self.maximumCount, self.maximumAge) = (maximumCount, maximumAge)
    }

    deinit {
        let state = state.withLock { $0 }
        state.ticker?.timer.cancel()
        state.networkTask?.cancel()
        for listener in state.listeners.values { listener.finish() }
    }

    // MARK: - Types

    /// Registers a type of requests. Register all before ``start()``: an entry of another type becomes a dead letter. A
    /// process that only adds registers those that it adds.
    ///
    /// - Parameters:
    ///   - type: encoded as JSON when it is added, decoded each time it is sent.
    ///   - name: the name of the type on disk, which must stay the same for ever. Up to 80 letters and digits.
    ///   - version: the version of what is encoded. Default 1.
    ///   - migrate: makes a request of JSON of another version, which is its second parameter. Called on a background
    ///     thread. An error makes the entry a dead letter. Default nil: all JSON is decoded like that of this version.
    public func register<Request: APIRequest & Codable>(
        _ type: Request.Type,
        name: String,
        version: Int = 1,
        migrate: (@Sendable (Data, Int) throws -> Request)? = nil
    ) {
        let decode: @Sendable (Data, Int) throws -> any APIRequest = { data, found in
            if found != version, let migrate { return try migrate(data, found) }
            return try JSONDecoder().decode(Request.self, from: data)
        }
        let old = state.withLock { state in
            state.names[ObjectIdentifier(type)] = (name, version)
            return exchange(&state.types[name], with: (version, decode))
        }
        // What the closure holds is released outside the lock.
        withExtendedLifetime(old) {}
    }

    // MARK: - Entries

    /// Writes a request to disk, to be sent when its turn comes. It returns when the request is safe: written, synced and in
    /// its place. It writes on this thread, for some milliseconds.
    ///
    /// Files of the request's body, also in a form, are linked into the outbox, or copied where the file system has no links,
    /// so that they may be removed. A file that is changed in place afterwards, instead of replaced, is changed here too.
    ///
    /// - Parameters:
    ///   - request: of a registered type. The outbox sets its `Idempotency-Key`.
    ///   - lane: entries of a lane are delivered in the order in which they were added. Any text of up to 80 letters and
    ///     digits, `-` and `_`; each other byte counts as three. Default one lane for all.
    ///   - priority: of the entry's job, and of its lane while it is the first of that. Default normal.
    ///   - after: entries that must be delivered first. If one of them becomes a dead letter, so does this one, with
    ///     ``/EasyNetwork/NetworkError/Code/dependencyFailed``.
    /// - Returns: the id of the entry.
    /// - Throws: ``/EasyNetwork/NetworkError/Code/invalidRequest`` for a type that is not registered, a name or lane
    ///   that is too long, a request that cannot be encoded or whose files cannot be read;
    ///   ``/EasyNetwork/NetworkError/Code/refused`` when the outbox is full or `after` names a dead letter;
    ///   ``/EasyNetwork/NetworkError/Code/cannotWriteFile`` when it could not be written. Then there is no entry.
    @discardableResult
    public func add<Request: APIRequest & Codable>(
        _ request: Request,
        lane: String = "",
        priority: Operation.QueuePriority = .normal,
        after: [UUID] = []
    ) throws(NetworkError) -> UUID {
        guard let type = state.withLock({ $0.names[ObjectIdentifier(Request.self)] }) else {
            throw NetworkError(
                code: .invalidRequest,
                message: "register \(Request.self) before it is added to an outbox"
            )
        }
        try OutboxName.check(type.name, "name of the type")
        try OutboxName.check(lane, "lane")
        let data = try RequestBody.encode(request, as: "an entry of an outbox") { try JSONEncoder().encode($0) }
        if let dead = try firstDeadLetter(in: after) {
            throw NetworkError(code: .refused, message: "the entry \(dead), which comes first, is a dead letter")
        }
        if maximumCount < .max, try count >= maximumCount {
            throw NetworkError(code: .refused, message: "the outbox has \(maximumCount) entries, which is its limit")
        }
        var (paths, attachments): (Set<String>, [String: URL]) = ([], [:])
        _ = try request.body?.build { url throws(NetworkError) in
            if paths.insert(url.path).inserted {
                _ = try TransportBody.file(url).length()
                attachments[OutboxFolder.attachment(attachments.count)] = url.resolvingSymlinksInPath()
            }
            return url
        }
        let name = OutboxName(
            sequence: try nextSequence(),
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
            fileCount: attachments.count,
            request: data
        )
        try folder.add(name, record, attachments)
        tell(.added(name.id))
        post(.added(name, after: after, changes: folder.changes), onCallersThread: true)
        return name.id
    }

    private func firstDeadLetter(in ids: [UUID]) throws(NetworkError) -> UUID? {
        guard let found = ids.first(where: folder.hasReason) else { return nil }
        // One that is an entry again may have its reason for a moment, or since a program was killed.
        return try folder.list(.entries).contains { $0.id == found } ? nil : found
    }

    /// Greater than that of every entry whose ``add(_:lane:priority:after:)`` has returned, in any process.
    private func nextSequence() throws(NetworkError) -> UInt64 {
        if state.withLock({ $0.hasSequence }) { return try folder.nextSequence() }
        let number = try folder.nextSequence(after: folder.list(.entries).last?.sequence ?? 0)
        state.withLock { $0.hasSequence = true }
        return number
    }

    private var count: Int {
        get throws(NetworkError) {
            if let count = state.withLock({ $0.logic.count }) { return count }
            return try folder.list(.entries).count
        }
    }

    /// The entries that wait or are being sent, in their order, those of other processes included. Read from the directory.
    ///
    /// - Throws: ``/EasyNetwork/NetworkError/Code/cannotWriteFile`` when it cannot be read.
    public var entries: [OutboxEntry] {
        get throws(NetworkError) {
            let names = try folder.list(.entries)
            return state.withLock { state in
                names.map { name in
                    var entry = OutboxEntry(name)
                    entry.isSending = state.logic.isUnderWay(name.id)
                    entry.error = state.failures[name.id]?.error
                    return entry
                }
            }
        }
    }

    /// The entries that failed for good, in their order, each with its error. Read from the directory.
    ///
    /// - Throws: ``/EasyNetwork/NetworkError/Code/cannotWriteFile`` when it cannot be read.
    public var deadLetters: [OutboxEntry] {
        get throws(NetworkError) {
            return try folder.list(.dead).map { name in
                var entry = OutboxEntry(name)
                entry.error = folder.failure(of: name.id)
                return entry
            }
        }
    }

    /// The request of an entry, as it was added or as its type's `migrate` makes it: to show or to examine it.
    ///
    /// - Throws: ``/EasyNetwork/NetworkError/Code/cannotParseResponse`` for a damaged file,
    ///   ``/EasyNetwork/NetworkError/Code/invalidRequest`` for a type that is not registered,
    ///   ``/EasyNetwork/NetworkError/Code/cancelled`` when the entry has left.
    public func request(of entry: OutboxEntry) throws(NetworkError) -> any APIRequest {
        let place: OutboxFolder.Place = folder.has(entry.name) ? .entries : .dead
        return try request(in: try folder.read(entry.name, in: place), of: entry.type)
    }

    /// Removes an entry or a dead letter; does nothing when there is none. An entry that is being sent is cancelled, but may
    /// have been sent. Entries that depend on it become dead letters.
    ///
    /// - Throws: ``/EasyNetwork/NetworkError/Code/cannotWriteFile``. Then it is still there.
    public func remove(_ id: UUID) throws(NetworkError) {
        let entries = try folder.list(.entries)
        let found = entries.first { $0.id == id }
        let dead = try found == nil ? folder.list(.dead) : []
        guard let name = found ?? dead.first(where: { $0.id == id }) else { return }
        // Before: once it has left, they would be sent.
        let error = NetworkError(code: .cancelled, message: "it was removed")
        for name in entries where name.hasDependencies {
            guard let after = (try? folder.read(name))?.after, after.contains(id) else { continue }
            let reason = Self.dependencyFailed(id, error)
            try folder.bury(name, reason)
            tell(.died(name.id, reason))
            post(.removed(name.id), onCallersThread: true)
        }
        try folder.remove(name, from: found == nil ? .dead : .entries)
        tell(.removed(id))
        post(.removed(id), onCallersThread: true)
    }

    /// Makes a dead letter an entry again, at its old place in its lane, and with it the ones that failed since they depend
    /// on it. An entry that waits after a failure is tried at once, if this process delivers.
    ///
    /// - Throws: ``/EasyNetwork/NetworkError/Code/cannotWriteFile``. Then it is still a dead letter, or some that
    ///   depend on it are.
    public func retry(_ id: UUID) throws(NetworkError) {
        guard let name = try folder.list(.dead).first(where: { $0.id == id }) else {
            return post(.hastened(id), onCallersThread: true)
        }
        try revive(name)
        // Only now: until it was an entry again, others could fail as they depend on it.
        var dependents: [UUID: [OutboxName]] = [:]
        for name in try folder.list(.dead)
        where name.hasDependencies && folder.failure(of: name.id)?.code == .dependencyFailed {
            guard let record = try? folder.read(name, in: .dead) else { continue }
            for id in record.after { dependents[id, default: []].append(name) }
        }
        var rest = dependents[id] ?? []
        while let name = rest.popLast() {
            try revive(name)
            // One that depends on two of them comes once.
            rest += dependents.removeValue(forKey: name.id) ?? []
        }
    }

    private func revive(_ name: OutboxName) throws(NetworkError) {
        let after = name.hasDependencies ? (try? folder.read(name, in: .dead))?.after ?? [] : []
        guard try folder.revive(name) else { return }
        tell(.retried(name.id))
        post(.added(name, after: after, changes: folder.changes), onCallersThread: true)
        // Last: those that depend on it find that it is an entry.
        folder.forgetReason(of: name.id)
    }

    // MARK: - Events

    /// What happens to the entries of this outbox from now on. Each call returns a new sequence, which ends with the outbox.
    /// A listener that is slow loses the oldest of more than a thousand events.
    public var events: AsyncStream<OutboxEvent> {
        AsyncStream(bufferingPolicy: .bufferingNewest(1_000)) { continuation in
            let number = state.withLock { state in
                let number = state.newNumber()
                state.listeners[number] = continuation
                return number
            }
            continuation.onTermination = { [weak self] _ in
                let listener = self?.state.withLock { $0.listeners.removeValue(forKey: number) }
                withExtendedLifetime(listener) {}
            }
        }
    }

    func tell(_ event: OutboxEvent) {
        for listener in state.withLock({ Array($0.listeners.values) }) {
            listener.yield(event)
        }
    }

    // MARK: - Starting and ending

    /// Begins to deliver, or to wait for the process that does. Ends each ``drain(deadline:)`` under way, which then does not
    /// stop the outbox.
    ///
    /// - Throws: ``/EasyNetwork/NetworkError/Code/cannotWriteFile`` when the directory cannot be written to.
    public func start() throws(NetworkError) {
        // It shows whether there can be a lock.
        _ = try folder.lock()
        listen()
        post(.start, onCallersThread: true)
        WorkQueue.shared.async { self.look() }
    }

    /// Starts the outbox, delivers until it is empty or the deadline has come, and then stops: jobs that are still under way
    /// are cancelled, their entries stay, and another process may take over. Cancelling the task stops at once. ``start()``
    /// begins again.
    ///
    /// ```swift
    /// func willEnterBackground(_ outbox: Outbox) async {
    ///     let left = try? await outbox.drain(deadline: 20)
    ///     print(left?.count ?? 0, "requests are sent later")
    /// }
    /// ```
    ///
    /// - Parameter deadline: seconds from now; zero or less stops at once.
    /// - Returns: the entries that are left.
    /// - Throws: ``/EasyNetwork/NetworkError/Code/cannotWriteFile`` when the directory cannot be used.
    @discardableResult
    public func drain(deadline: TimeInterval) async throws(NetworkError) -> [OutboxEntry] {
        if deadline > 0, !Task.isCancelled {
            _ = try folder.lock()
            let (number, over) = newWait()
            let timer = clock.schedule(after: deadline) { over.end() }
            listen()
            post(.drain(number))
            look()
            await over.wait()
            timer.cancel()
            let isRestarted = state.withLock { state in
                state.waits[number] = nil
                return state.restarted.remove(number) != nil
            }
            if isRestarted { return try entries }
        }
        let (number, idle) = newWait()
        post(.stop(number))
        await idle.wait()
        return try entries
    }

    /// What a task waits for, which is over when the effect with its number has come.
    private func newWait() -> (Int, OneShot) {
        let wait = OneShot()
        let number = state.withLock { state in
            let number = state.newNumber()
            state.waits[number] = wait
            return number
        }
        return (number, wait)
    }
}
