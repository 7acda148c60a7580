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
/// When ``add(_:lane:priority:after:options:)`` has returned, the request is on disk. It is sent as a job of a
/// ``/EasyNetwork/NetworkQueue`` until the server accepts it: at least once, always with the same `Idempotency-Key`, so
/// that a server that knows the key acts once. Between two tries the outbox waits longer and longer, up to ten minutes,
/// less when the host's ``/EasyNetwork/HostSettings/reachability`` returns, and as long as the server says
/// (`Retry-After`). Entries of one lane are delivered in their order: one that fails holds up those behind it. Lanes,
/// and entries without one, are delivered side by side. ``OutboxOptions`` say more: a time, a period, a condition, one
/// of a name, a number of tries.
///
/// A request that the server refuses for good becomes a dead letter, and so does one whose type is not registered,
/// whose file is damaged, or that is older than ``maximumAge``: nothing is dropped. ``retry(_:)-(UUID)`` sends it
/// again, ``remove(_:)-(UUID)`` drops it.
///
/// Several processes may use one directory: one of them delivers, and when it ends another one takes over within a
/// second; where apps are suspended, when the directory changes or after two minutes. All members may be used from any
/// thread; those that read or write the directory do so on the caller's.
public final class Outbox: Sendable {
    /// A type of requests as it was registered.
    struct RequestType: Sendable {
        let version: Int
        let options: OutboxOptions
        /// Makes a request of its JSON, the version of that, and what the entries before it left; nil for none of
        /// these.
        let decode: @Sendable (Data, Int, [Data?]?) throws -> any APIRequest
        /// Hands over the item of a delivered request, and returns what is left for those that come after it.
        let deliver: (@Sendable (any APIRequest, ServiceOperation) async -> Data?)?
    }

    /// An entry under way, or one that has been tried or has options.
    struct Entry {
        enum Phase {
            case waiting
            case sending(ServiceOperation, any APIRequest)
            /// It was delivered, and leaves this for those that come after it.
            case delivered(Data)
            /// It is to become a dead letter.
            case dead(NetworkError)
        }

        var phase = Phase.waiting
        var options = OutboxOptions()
        var attemptCount = 0
        /// The last failure.
        var error: NetworkError?
        /// When the last try began; nil before the first one of this process.
        var triedAt: Date?

        /// Its job while it is being sent.
        var job: ServiceOperation? { if case .sending(let job, _) = phase { job } else { nil } }
    }

    struct State {
        /// By their names.
        var types: [String: RequestType] = [:]
        var names: [ObjectIdentifier: String] = [:]
        /// Its next step.
        var logic: OutboxState
        /// Held while this outbox delivers.
        var lock: OutboxFolder.Lock?
        /// That of the last try, while another outbox has it.
        var missedLock: OutboxFolder.Lock?
        /// Needed for the lock where programs are suspended.
        var activity = ExpiringActivity.State.none
        var entries: [UUID: Entry] = [:]
        /// Whether the numbers of the directory are known to be in order.
        var hasSequence = false
        #if os(Linux) || canImport(Darwin)
        var watch: OutboxWatch?
        #endif
        var networkTask: Task<Void, Never>?
        /// When the directory is read again without a sign of a change, which a killed process may have left out.
        var nextLoad: TimeInterval = 0
        var nextSweep: TimeInterval = -.infinity
        /// Whether the network has changed since the last look at one that is there.
        var networkHasChanged = false
        /// The tasks that wait for a drain or a stop, by its number, and whether a start has ended the drain.
        var waits: [Int: (over: Promise<Void>, isRestarted: Bool)] = [:]
        var lastNumber = 0

        mutating func newNumber() -> Int {
            lastNumber += 1
            return lastNumber
        }
    }

    /// The number of entries above which ``add(_:lane:priority:after:options:)`` throws. Dead letters do not count.
    public let maximumCount: Int
    /// The age in seconds, from its time on if it has one, at which an entry that was not delivered becomes a dead
    /// letter.
    public let maximumAge: TimeInterval

    let folder: OutboxFolder
    let queue: NetworkQueue
    let service: EasyNetworkService
    let activity: ExpiringActivity?
    let state: Locked<State>
    private let listeners = Multicast<OutboxEvent>()
    /// For the next look.
    let alarm = Alarm()

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
        state.withLock { $0.networkTask }?.cancel()
    }

    /// Gives back what the system takes from a process that is killed: for a simulation of that.
    package func abandon() {
        withExtendedLifetime(state.withLock { ($0.lock.take(), $0.missedLock.take()) }) {}
    }

    // MARK: - Types

    /// Registers a type of requests. Register all before ``start()``: an entry of another type becomes a dead letter. A
    /// process that only adds registers those that it adds.
    ///
    /// - Parameters:
    ///   - type: encoded as JSON when it is added, decoded each time it is sent.
    ///   - name: the name of the type on disk, which must stay the same for ever. Up to 80 letters and digits of ASCII.
    ///   - version: the version of what is encoded. Default 1.
    ///   - options: those of entries of this type that say nothing else.
    ///   - migrate: makes a request of JSON of another version, which is its second parameter. Called on a background
    ///     thread. An error makes the entry a dead letter. Default nil: all JSON is decoded like that of this version.
    ///   - prepare: called on a background thread before an entry is sent that was added with `after`: with its request
    ///     and what `delivered` returned for each of those, in their order; nil where it returned nil, was not called,
    ///     or had been called a day or more before this entry was added. Returns the request to send, with the same
    ///     files. An error makes the entry a dead letter.
    ///   - delivered: called with the request and its item when the server has accepted it, before the entry leaves; in
    ///     another process, if that delivers. After a kill the request may be sent again and this called again. Its
    ///     value is kept on disk for the entries that come after this one. Not called for an answer of which no item
    ///     can be made.
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

    /// The events of this outbox's entries from now on. Each call returns a new sequence, which ends with the outbox.
    /// A listener that is slow loses the oldest of more than a thousand events.
    public var events: AsyncStream<OutboxEvent> { listeners.stream(keeping: 1_000) }

    /// The events of the entries with a tag, see ``events``.
    public func events(tag: String) -> AsyncStream<OutboxEvent> { listeners.stream(keeping: 1_000, topic: tag) }

    /// - Parameter options: those of the entry. Default nil: as far as they are known.
    func tell(_ event: OutboxEvent, _ options: OutboxOptions? = nil) {
        let options = options ?? state.withLock { $0.entries[event.id]?.options }
        listeners.send(event, topics: options?.tags ?? [])
    }

    // MARK: - Starting and ending

    /// Begins to deliver, or to wait for the process that does. Ends each ``drain(deadline:)`` under way, which then
    /// does not stop the outbox.
    ///
    /// - Throws: ``/EasyNetwork/NetworkError/Code/cannotWriteFile`` when the directory cannot be written to.
    public func start() throws(NetworkError) {
        // It shows whether there can be a lock.
        _ = try folder.lock()
        listen()
        post(.start, onCallersThread: true)
        WorkQueue.shared.add { self.look() }
    }

    /// Starts the outbox, delivers until it is empty or the deadline has come, and then stops: jobs that are still
    /// under way are cancelled, their entries stay, and another process may take over. Cancelling the task stops at
    /// once. ``start()`` begins again. An entry that waits for the network of its host is waited for; one that waits for
    /// its time, or for one of its own conditions, is not.
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
            let timer = clock.schedule(after: deadline) { over.set() }
            listen()
            post(.drain(number))
            look()
            await over.wait()
            timer.cancel()
            let isRestarted = state.withLock { $0.waits.removeValue(forKey: number)?.isRestarted }
            if isRestarted == true { return try entries }
        }
        let (number, idle) = newWait()
        post(.stop(number))
        await idle.wait()
        return try entries
    }

    /// The promise for a task that waits: it is set when the effect with its number has come.
    private func newWait() -> (Int, Promise<Void>) {
        let wait = Promise<Void>()
        let number = state.withLock { state in
            let number = state.newNumber()
            state.waits[number] = (wait, false)
            return number
        }
        return (number, wait)
    }
}
