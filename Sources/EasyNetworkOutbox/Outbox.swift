import EasyNetwork
import Foundation

/// A store of requests that must be sent. The requests survive kills, restarts and days without a network.
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
/// When ``add(_:lane:priority:after:options:)`` has returned, the request is on disk. The outbox sends it as a job of a
/// ``/EasyNetwork/NetworkQueue`` until the server accepts it: at least once, and always with the same
/// `Idempotency-Key`, so that a server that supports the key processes it once.
///
/// After each failure, the outbox waits longer, up to ten minutes by default. It waits at least as long as the server
/// asks for in `Retry-After`, up to a day. Without a `Retry-After`, the wait ends early when the host's
/// ``/EasyNetwork/HostSettings/reachability`` reports a network again. That property defaults to `nil`: set it, or the
/// outbox does not notice when the network returns.
///
/// Entries of one lane are delivered in the order in which they were added, so an entry that fails delays the entries
/// after it. Lanes are delivered concurrently, and so are entries without a lane. ``OutboxOptions`` add a time, a
/// period, conditions, uniqueness by name, and a limit of failures.
///
/// Nothing is dropped: a request that the server rejects for good becomes a dead letter. So does an entry whose type is
/// not registered, whose file is damaged, or that is older than ``maximumAge``. ``retry(_:)-(UUID)`` sends a dead
/// letter again, and ``remove(_:)-(UUID)`` deletes it.
///
/// Several processes can use one directory. One of them delivers. When it ends, another takes over within a second; on
/// systems that suspend apps, when the directory changes or after two minutes. You can use all members from any thread.
/// Members that read or write the directory do so on the caller's thread.
public final class Outbox: Sendable {
    /// A registered type of requests.
    struct RequestType: Sendable {
        let version: Int
        let options: OutboxOptions
        /// Decodes a request from its JSON and the version of that JSON. The last argument contains the outputs of the
        /// entry's dependencies; `nil` if they aren't needed.
        let decode: @Sendable (Data, Int, [Data?]?) throws -> any APIRequest
        /// Passes the item of a delivered request to the user's closure, and returns its output for dependent entries.
        let deliver: (@Sendable (any APIRequest, ServiceOperation) async -> Data?)?
    }

    /// An entry that is being delivered, has been tried, or has options.
    struct Entry {
        enum Phase {
            case waiting
            case sending(ServiceOperation, any APIRequest)
            /// The entry was delivered. The data is its output for dependent entries.
            case delivered(Data)
            /// The entry must become a dead letter.
            case dead(NetworkError)
        }

        var phase = Phase.waiting
        var options = OutboxOptions()
        var attemptCount = 0
        /// The last failure.
        var error: NetworkError?
        /// The start of the last attempt; `nil` before the first attempt of this process.
        var triedAt: Date?

        var job: ServiceOperation? { if case .sending(let job, _) = phase { job } else { nil } }
    }

    struct State {
        /// The registered types, by their names.
        var types: [String: RequestType] = [:]
        var names: [ObjectIdentifier: String] = [:]
        /// The state machine that decides the next steps.
        var logic: OutboxState
        /// The directory's lock, held while this outbox delivers.
        var lock: OutboxFolder.Lock?
        /// The lock of the last failed attempt, while another outbox holds the lock.
        var missedLock: OutboxFolder.Lock?
        /// The activity that the lock requires on systems that suspend apps.
        var activity = ExpiringActivity.State.none
        var entries: [UUID: Entry] = [:]
        /// Whether the sequence file is known to count from above every entry's number.
        var hasSequence = false
        #if os(Linux) || canImport(Darwin)
        var watch: OutboxWatch?
        #endif
        var networkTask: Task<Void, Never>?
        /// When the directory is read again without a sign of a change. A killed process may not have signalled its
        /// change.
        var nextLoad: TimeInterval = 0
        var nextSweep: TimeInterval = -.infinity
        /// Whether the network has changed since the last check that found a network.
        var networkHasChanged = false
        /// The tasks that wait for a drain or a stop, by its number.
        var waits: [Int: Promise<Void>] = [:]
        var lastNumber = 0

        mutating func newNumber() -> Int {
            lastNumber += 1
            return lastNumber
        }
    }

    /// The maximum number of entries. ``add(_:lane:priority:after:options:)`` throws once it is reached. Dead letters
    /// don't count.
    public let maximumCount: Int
    /// The age in seconds after which an undelivered entry becomes a dead letter. The age of an entry with a time is
    /// counted from that time.
    public let maximumAge: TimeInterval

    let folder: OutboxFolder
    let queue: NetworkQueue
    let service: EasyNetworkService
    let activity: ExpiringActivity?
    let state: Locked<State>
    private let listeners = Multicast<OutboxEvent>()
    /// The timer of the next check.
    let alarm = Alarm()

    var clock: any NetworkClock { service.configuration.settings.clock }

    /// Opens or creates an outbox.
    ///
    /// - Parameters:
    ///   - directory: a folder for this outbox alone, on a local disk. It is created with its parent folders.
    ///   - queue: runs the jobs, with its limits, conditions and events. Defaults to
    ///     ``/EasyNetwork/NetworkQueue/shared``.
    ///   - service: provides the host. Defaults to a service of the current ``/EasyNetwork/HostConfiguration/shared``.
    ///   - maximumCount: the maximum number of entries. Defaults to no limit.
    ///   - maximumAge: the maximum age of an entry in seconds. Defaults to no limit.
    /// - Throws: ``/EasyNetwork/NetworkError/Code/cannotWriteFile`` if the directory cannot be used.
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
        state.withLock { $0.networkTask }?.cancel()
    }

    /// Releases what the system would release if it killed the process. Simulations use it.
    package func abandon() {
        withExtendedLifetime(state.withLock { ($0.lock.take(), $0.missedLock.take()) }) {}
    }

    // MARK: - Types

    /// Registers a type of requests. Register all types before ``start()``: an entry of an unregistered type becomes a
    /// dead letter. A process that only adds entries registers the types that it adds.
    ///
    /// - Parameters:
    ///   - type: encoded as JSON when a request is added, and decoded each time it is sent.
    ///   - name: the name of the type on disk, which must never change. Up to 80 ASCII letters and digits.
    ///   - version: the version of the encoded JSON. Defaults to 1.
    ///   - options: the default options for entries of this type.
    ///   - migrate: makes a request from JSON of another version, which is the second argument. Called on a background
    ///     thread. If it throws, the entry becomes a dead letter. Defaults to `nil`: JSON of every version is decoded
    ///     like the current version.
    ///   - prepare: called on a background thread before an entry that was added with `after` is sent. The arguments
    ///     are its request and the output of `delivered` for each entry in `after`, in the same order. An output is
    ///     `nil` if `delivered` returned `nil`, was not called, or was called a day or more before this entry was
    ///     added. Returns the request to send, with the same files. If it throws, the entry becomes a dead letter.
    ///   - delivered: called with the request and its item when the server has accepted it, before the entry leaves the
    ///     outbox, in the process that delivers. After a kill, the request may be sent again and the closure called
    ///     again. The returned data is kept on disk for the entries that depend on this one. Not called if the response
    ///     cannot be decoded into the item.
    public func register<Request: APIRequest & Codable>(
        _ type: Request.Type,
        name: String,
        version: Int = 1,
        options: OutboxOptions = OutboxOptions(),
        migrate: (@Sendable (Data, Int) throws -> Request)? = nil,
        prepare: (@Sendable (Request, [Data?]) throws -> Request)? = nil,
        delivered: (@Sendable (Request, Request.Item) async -> Data?)? = nil
    ) {
        let decode: @Sendable (Data, Int, [Data?]?) throws -> any APIRequest = { data, found, outputs in
            let request: Request
            if found != version, let migrate {
                request = try migrate(data, found)
            } else {
                request = try JSONDecoder().decode(Request.self, from: data)
            }
            guard let prepare, let outputs, !outputs.isEmpty else { return request }
            return try prepare(request, outputs)
        }
        var deliver: (@Sendable (any APIRequest, ServiceOperation) async -> Data?)?
        if let delivered {
            deliver = { request, operation in
                guard let request = request as? Request, let operation = operation as? ItemOperation<Request.Item>,
                    let item = try? operation.result?.get()
                else { return nil }
                return await delivered(request, item)
            }
        }
        let registered = RequestType(version: version, options: options, decode: decode, deliver: deliver)
        let old = state.withLock { state in
            state.names[ObjectIdentifier(type)] = name
            return exchange(&state.types[name], with: registered)
        }
        // The closures' captures are released outside the lock.
        withExtendedLifetime(old) {}
    }

    // MARK: - Events

    /// The events of this outbox's entries from now on. Each access returns a new sequence, which ends with the outbox.
    /// If a listener is slow, its sequence keeps the newest 1,000 events and drops older ones.
    public var events: AsyncStream<OutboxEvent> { listeners.stream(keeping: 1_000) }

    /// Returns the events of the entries with a tag, as ``events`` does.
    public func events(tag: String) -> AsyncStream<OutboxEvent> { listeners.stream(keeping: 1_000, topic: tag) }

    /// - Parameter options: the options of the entry. Defaults to `nil`: the options that this outbox knows, if any.
    func tell(_ event: OutboxEvent, _ options: OutboxOptions? = nil) {
        let options = options ?? state.withLock { $0.entries[event.id]?.options }
        listeners.send(event, topics: options?.tags ?? [])
    }

    // MARK: - Starting and ending

    /// Starts delivering, or waits until the process that delivers ends. A ``drain(deadline:)`` in progress returns,
    /// and doesn't stop the outbox.
    ///
    /// - Throws: ``/EasyNetwork/NetworkError/Code/cannotWriteFile`` if the directory cannot be locked.
    public func start() throws(NetworkError) {
        // Taking the lock once shows whether the directory can be locked at all.
        _ = try folder.lock()
        listen()
        post(.start, onCallersThread: true)
        WorkQueue.shared.add { self.checkForChanges() }
    }

    /// Starts the outbox, delivers until it is empty or the deadline is reached, and then stops it. Jobs that are still
    /// running are cancelled, their entries stay in the outbox, and another process can take over. If the task is
    /// cancelled, the outbox stops at once. To deliver again, call ``start()``.
    ///
    /// The method waits for entries whose host has no network. It doesn't wait for an entry that waits for its time or
    /// one of its conditions.
    ///
    /// ```swift
    /// func willEnterBackground(_ outbox: Outbox) async {
    ///     let left = try? await outbox.drain(deadline: 20)
    ///     print(left?.count ?? 0, "requests are sent later")
    /// }
    /// ```
    ///
    /// - Parameter deadline: the deadline in seconds from now. If it is zero or less, the outbox stops at once.
    /// - Returns: the remaining entries.
    /// - Throws: ``/EasyNetwork/NetworkError/Code/cannotWriteFile`` if the directory cannot be used.
    @discardableResult
    public func drain(deadline: TimeInterval) async throws(NetworkError) -> [OutboxEntry] {
        var drain: Int?
        if deadline > 0, !Task.isCancelled {
            _ = try folder.lock()
            let (number, over) = newWait()
            drain = number
            let timer = clock.schedule(after: deadline) { over.set() }
            listen()
            post(.drain(number))
            checkForChanges()
            await over.wait()
            timer.cancel()
            state.withLock { $0.waits[number] = nil }
        }
        let (number, idle) = newWait()
        post(.stop(number, after: drain))
        await idle.wait()
        return try entries
    }

    /// Returns the number of a new wait, and the promise that is fulfilled when the effect with this number occurs.
    private func newWait() -> (Int, Promise<Void>) {
        let wait = Promise<Void>()
        let number = state.withLock { state in
            let number = state.newNumber()
            state.waits[number] = wait
            return number
        }
        return (number, wait)
    }
}
