import Dispatch
import EasyNetwork
import Foundation

/// Loads resources by URL, decodes them, and keeps them in memory: images, documents, anything that is made from bytes.
///
/// ```swift
/// let texts = ResourceLoader { try $0.text() }
///
/// func show(_ url: URL) async throws {
///     print(try await texts.resource(at: url))
/// }
/// ```
///
/// Many callers that want the same resource share one load: one message, one decoding. Each has a ``ResourceReceipt``.
/// A load is a job of a ``/EasyNetwork/NetworkQueue``, with its limits, conditions, events and cancellation, and the
/// answer may come from the host's cache (``/EasyNetwork/HostSettings/cache``) by the rules of HTTP. The decoded
/// resources are kept in memory by cost and count, the least recently used leave first; they stay until then, fresh or
/// not. An answer with `Cache-Control: no-store` is not kept. On Apple's platforms memory pressure empties the memory;
/// on Linux call ``removeAll()``.
///
/// The loader lives as long as its loads. All members may be used from any thread.
public final class ResourceLoader<Resource: Sendable>: Sendable {
    fileprivate typealias Failure = (error: NetworkError, end: TimeInterval)
    /// What the receipts of a load want of its operation.
    private typealias Wish = (
        rank: ResourceOrder.Rank, operation: ResourceOperation<Resource>, number: Int, wantsPartials: Bool
    )

    fileprivate struct Load {
        /// Tells it from earlier loads of its key, and from its own earlier job.
        var number: Int
        let url: URL
        private(set) var receipts: [ObjectIdentifier: (receipt: ResourceReceipt<Resource>, rank: ResourceOrder.Rank)] =
            [:]
        /// The number of receipts of each rank.
        private var counts = Array(repeating: 0, count: ResourceOrder.Rank.allCases.count)
        private(set) var wantsPartials = false
        var isStarted = false
        /// Nil until it has been made, which takes the user's code.
        var operation: ResourceOperation<Resource>?

        init(number: Int, url: URL) {
            (self.number, self.url) = (number, url)
        }

        /// The highest rank of a receipt.
        var rank: ResourceOrder.Rank {
            counts.lastIndex { $0 > 0 }.flatMap(ResourceOrder.Rank.init) ?? .prefetch
        }

        mutating func remove(_ receipt: ResourceReceipt<Resource>) -> Bool {
            guard let old = receipts.removeValue(forKey: ObjectIdentifier(receipt)) else { return false }
            counts[old.rank.rawValue] -= 1
            return true
        }

        mutating func insert(_ receipt: ResourceReceipt<Resource>) {
            let rank = receipt.rank
            receipts[ObjectIdentifier(receipt)] = (receipt, rank)
            counts[rank.rawValue] += 1
            if receipt.wantsPartials { wantsPartials = true }
        }
    }

    struct State {
        fileprivate(set) var order: ResourceOrder
        fileprivate(set) var memory: RecencyList<Resource>
        fileprivate var failures = RecencyList<Failure>(costLimit: 0, countLimit: 1_000)
        /// The loads that wait or run, and have receipts.
        fileprivate var loads: [String: Load] = [:]
        /// The loads that take one of the places, by number, and whether each is a prefetch. A cancelled one takes its
        /// place until its job has finished.
        fileprivate var running: [Int: Bool] = [:]
        fileprivate var lastNumber = 0

        /// Whether nothing waits or runs.
        var isIdle: Bool { loads.isEmpty && running.isEmpty && order.count == 0 }
    }

    private let queue: NetworkQueue
    private let service: EasyNetworkService
    private let startsNewestFirst: Bool
    private let maximumLoadCount: Int
    private let memoryCostLimit: Int
    private let memoryCountLimit: Int
    private let failureLifetime: TimeInterval
    private let makeKey: @Sendable (URL) -> String
    private let makeRequest: @Sendable (URL) -> any BaseAPIRequest
    private let cost: (@Sendable (Resource) -> Int)?
    private let decodePartial: (@Sendable (NetworkResponse) throws -> Resource?)?
    private let decode: @Sendable (NetworkResponse) throws -> Resource
    let state: Locked<State>
    #if canImport(Darwin)
    private let pressure = Locked<(any DispatchSourceMemoryPressure)?>(nil)
    #endif

    /// Creates a loader.
    ///
    /// - Parameters:
    ///   - queue: runs the loads. Default ``/EasyNetwork/NetworkQueue/shared``.
    ///   - service: gives the host; cancelling it cancels the loads. Default ``/EasyNetwork/HostConfiguration/shared``
    ///     as it is now.
    ///   - startsNewestFirst: whether of the loads of one priority the newest starts first: for a list that is
    ///     scrolled, what is seen now before what was seen a moment ago. Default false: the oldest. A load whose
    ///     priority has changed counts as the newest.
    ///   - maximumLoadCount: the number of loads at once; less than 1 counts as 1. Default 6. The limits of the queue
    ///     hold as well: with a lower one there, the loads that wait for it run in the queue's order.
    ///   - memoryCostLimit: the sum of the costs of the resources in memory. Default 64,000,000. A resource of a higher
    ///     cost is not kept.
    ///   - memoryCountLimit: the number of resources in memory. Default no limit.
    ///   - failureLifetime: how long a failure is remembered, in seconds: until then the same error is given at once,
    ///     and nothing is sent. Default 0: not at all. A cancelled load is no failure. The last thousand are remembered.
    ///   - key: what makes two URLs the same resource. Called when a resource is asked for, on that thread. After another
    ///     sign-in (``/EasyNetwork/HostSettings/authentication``) none at the host's origin is the same as before.
    ///     Default nil: the URL without its fragment. For signed URLs leave out the signature: the load uses the URL
    ///     that came first.
    ///   - request: the request for a URL, with its headers, deadlines, retries and rules for the cache. Called once a
    ///     load. Default nil: a GET with ``/EasyNetwork/CachePolicy/http``.
    ///   - cost: the cost of a resource in memory, such as the bytes of its pixels. Default nil: the bytes of the
    ///     answer's body. Called on a background thread, once a load.
    ///   - decodePartial: makes a resource of the beginning of an answer for ``partialResources(at:priority:)``; nil
    ///     when that is not enough. Called on a background thread, at most ten times a second for a load. Default nil.
    ///   - decode: makes the resource of an accepted answer. Called on a background thread, once a load, and not when
    ///     all receipts were cancelled. An error that it throws is the error of the load.
    public init(
        queue: NetworkQueue = .shared,
        service: EasyNetworkService = EasyNetworkService(HostConfiguration.shared),
        startsNewestFirst: Bool = false,
        maximumLoadCount: Int = 6,
        memoryCostLimit: Int = 64_000_000,
        memoryCountLimit: Int = .max,
        failureLifetime: TimeInterval = 0,
        key: (@Sendable (URL) -> String)? = nil,
        request: (@Sendable (URL) -> any BaseAPIRequest)? = nil,
        cost: (@Sendable (Resource) -> Int)? = nil,
        decodePartial: (@Sendable (NetworkResponse) throws -> Resource?)? = nil,
        decode: @escaping @Sendable (NetworkResponse) throws -> Resource
    ) {
        // Sums of costs up to this limit do not overflow.
        let memoryCostLimit = min(memoryCostLimit, 1 << 60)
        (self.queue, self.service) = (queue, service)
        (self.startsNewestFirst, self.maximumLoadCount) = (startsNewestFirst, maximumLoadCount)
        (self.memoryCostLimit, self.memoryCountLimit) = (memoryCostLimit, memoryCountLimit)
        self.failureLifetime = failureLifetime
        makeKey = key ?? { url in url.absoluteString.prefix { $0 != "#" }.description }
        makeRequest = request ?? { GetResource(url: $0) }
        (self.cost, self.decodePartial, self.decode) = (cost, decodePartial, decode)
        state = Locked(
            State(
                order: ResourceOrder(isLIFO: startsNewestFirst),
                memory: RecencyList(costLimit: memoryCostLimit, countLimit: memoryCountLimit)
            )
        )
        #if canImport(Darwin)
        let source = DispatchSource.makeMemoryPressureSource(eventMask: [.warning, .critical])
        source.setEventHandler { [weak self] in self?.removeAll() }
        source.activate()
        pressure.exchange(source)
        #endif
    }

    deinit {
        #if canImport(Darwin)
        pressure.exchange(nil)?.cancel()
        #endif
    }

    // MARK: - Loading

    /// Asks for a resource.
    ///
    /// - Parameters:
    ///   - url: the address of the resource.
    ///   - priority: default normal. The highest of all receipts of a load counts, also while it waits or runs.
    ///   - completion: called once with the result, on the host's ``/EasyNetwork/HostSettings/callbackQueue``, never
    ///     before this method returns if that queue is the default one or another thread's. Default nil.
    /// - Returns: the receipt, to cancel it, to change its priority or to wait for the resource.
    @discardableResult
    public func load(
        _ url: URL,
        priority: Operation.QueuePriority = .normal,
        completion: (@Sendable (Result<Resource, NetworkError>) -> Void)? = nil
    ) -> ResourceReceipt<Resource> {
        let receipt = ResourceReceipt(key(of: url), ResourceOrder.Rank(priority), self, completion: completion)
        enter(receipt, url)
        return receipt
    }

    /// The resource, from memory or when it has been loaded. Cancelling the task cancels its share in the load; a task
    /// that is cancelled already loads nothing.
    ///
    /// - Parameters:
    ///   - url: the address of the resource.
    ///   - priority: default normal.
    /// - Throws: the error of the load; ``/EasyNetwork/NetworkError/Code/cancelled`` after a cancel.
    public func resource(
        at url: URL,
        priority: Operation.QueuePriority = .normal
    ) async throws(NetworkError) -> Resource {
        guard !Task.isCancelled else { throw NetworkError(code: .cancelled) }
        return try await load(url, priority: priority).value
    }

    /// What can be made of a resource while it comes, and at the end the whole resource.
    ///
    /// An element that was not fetched is replaced by the next one. Cancelling the task or leaving the loop cancels the
    /// share in the load.
    ///
    /// - Parameters:
    ///   - url: the address of the resource.
    ///   - priority: default normal.
    /// - Returns: a sequence that ends after the whole resource, or throws the ``/EasyNetwork/NetworkError`` of the
    ///   load.
    public func partialResources(
        at url: URL,
        priority: Operation.QueuePriority = .normal
    ) -> AsyncThrowingStream<Resource, any Error> {
        AsyncThrowingStream(bufferingPolicy: .bufferingNewest(1)) { continuation in
            guard !Task.isCancelled else { return continuation.finish(throwing: NetworkError(code: .cancelled)) }
            let rank = ResourceOrder.Rank(priority)
            let receipt = ResourceReceipt(key(of: url), rank, self, partials: continuation)
            continuation.onTermination = { _ in receipt.cancel() }
            enter(receipt, url)
        }
    }

    /// Loads resources that may be wanted soon. They give way: they start after everything that somebody waits for,
    /// with half of the places at most, and asking for one of them makes it an ordinary load. With one place, a prefetch
    /// has it while nothing else is wanted: then it is cancelled, and begins again afterwards.
    ///
    /// - Parameter urls: the addresses, the first to start first.
    /// - Returns: the receipts, to cancel what is not wanted any more.
    @discardableResult
    public func prefetch(_ urls: some Sequence<URL>) -> [ResourceReceipt<Resource>] {
        let pairs = urls.map { ($0, ResourceReceipt(key(of: $0), .prefetch, self)) }
        for (url, receipt) in startsNewestFirst ? pairs.reversed() : pairs { enter(receipt, url) }
        return pairs.map(\.1)
    }

    // MARK: - The memory

    /// The resource in memory, which counts as used; nil when it is not there.
    public func cachedResource(for url: URL) -> Resource? {
        let key = key(of: url)
        return state.withLock { $0.memory.use(key) }
    }

    /// Removes a resource and its failure from memory. The answer in the host's cache stays, and loads go on.
    public func remove(_ url: URL) {
        let key = key(of: url)
        let removed = state.withLock { state in
            state.failures.remove(key)
            return state.memory.remove(key)
        }
        withExtendedLifetime(removed) {}
    }

    /// Removes all resources and failures from memory. The answers in the host's cache stay, and loads go on.
    public func removeAll() {
        let removed = state.withLock { state in
            state.failures = RecencyList(costLimit: 0, countLimit: state.failures.countLimit)
            return exchange(
                &state.memory,
                with: RecencyList(costLimit: memoryCostLimit, countLimit: memoryCountLimit)
            )
        }
        withExtendedLifetime(removed) {}
    }

    // MARK: - Receipts

    var callbackQueue: DispatchQueue { service.configuration.deliveryQueue }

    /// The key of a URL: what is loaded for one user is not for the next one who signs in.
    private func key(of url: URL) -> String {
        let key = makeKey(url)
        guard let version = service.configuration.userVersion(for: url), version > 0 else { return key }
        return "\(version) \(key)"
    }

    private func enter(_ receipt: ResourceReceipt<Resource>, _ url: URL) {
        let key = receipt.key
        let now = failureLifetime > 0 ? service.configuration.settings.clock.now : 0
        let result = state.withLock { state -> Result<Resource, NetworkError>? in
            if let resource = state.memory.use(key) { return .success(resource) }
            if let failure = state.failures[key] {
                if now < failure.end { return .failure(failure.error) }
                state.failures.remove(key)
            }
            if state.loads[key] == nil {
                state.lastNumber += 1
                state.loads[key] = Load(number: state.lastNumber, url: url)
            }
            state.loads[key]?.insert(receipt)
            return nil
        }
        if let result { receipt.end(result) } else { adapt(key) }
    }

    /// Takes over the new rank of a receipt.
    func rankHasChanged(_ receipt: ResourceReceipt<Resource>) {
        let isHere = state.withLock { state in
            guard state.loads[receipt.key]?.remove(receipt) == true else { return false }
            state.loads[receipt.key]?.insert(receipt)
            return true
        }
        if isHere { adapt(receipt.key) }
    }

    /// Removes a receipt from its load, and stops the load after the last one.
    func leave(_ receipt: ResourceReceipt<Resource>) {
        let key = receipt.key
        let stopped = state.withLock { state -> Load? in
            guard state.loads[key]?.remove(receipt) == true, state.loads[key]?.receipts.isEmpty == true else {
                return nil
            }
            state.order.remove(key)
            return state.loads.removeValue(forKey: key)
        }
        if let stopped { stopped.operation?.cancel() } else { adapt(key) }
    }

    /// Gives a load the highest rank of its receipts, and starts what may start.
    private func adapt(_ key: String) {
        var told: ResourceOrder.Rank?
        // Again if it has changed since: otherwise the slower of two threads would decide.
        while let (rank, operation, number, wantsPartials) = state.withLock({ state -> Wish? in
            guard let load = state.loads[key] else { return nil }
            let rank = load.rank
            if !load.isStarted { state.order.insert(key, rank) }
            if state.running[load.number] != nil { state.running[load.number] = rank == .prefetch }
            guard let operation = load.operation, rank != told else { return nil }
            return (rank, operation, load.number, load.wantsPartials)
        }) {
            told = rank
            operation.queuePriority = rank.priority
            guard wantsPartials else { continue }
            operation.receivePartials { [weak self] in self?.receive($0, key, number) }
        }
        if maximumLoadCount <= 1 { stopPrefetch(for: key) }
        startNext()
    }

    /// Has the prefetch in the only place begin again later, if a load that is wanted waits for the place.
    private func stopPrefetch(for key: String) {
        let stopped = state.withLock { state -> ResourceOperation<Resource>? in
            guard let wanted = state.loads[key], !wanted.isStarted, wanted.rank != .prefetch,
                let number = state.running.first(where: { $0.value })?.key,
                let (prefetch, load) = state.loads.first(where: { $0.value.number == number }),
                let operation = load.operation
            else { return nil }
            state.lastNumber += 1
            state.loads[prefetch]?.number = state.lastNumber
            state.loads[prefetch]?.operation = nil
            state.loads[prefetch]?.isStarted = false
            state.order.insert(prefetch, .prefetch)
            return operation
        }
        // Its end starts the next one.
        stopped?.cancel()
    }

    // MARK: - Loads

    /// Starts loads for which there is a place.
    private func startNext() {
        let places = max(1, maximumLoadCount)
        while let (key, number, url) = state.withLock({ state -> (String, Int, URL)? in
            guard state.running.count < places else { return nil }
            let prefetchCount = state.running.values.count { $0 }
            let lowest: ResourceOrder.Rank = prefetchCount < max(1, places / 2) ? .prefetch : .veryLow
            guard let key = state.order.takeNext(from: lowest), let load = state.loads[key] else { return nil }
            state.loads[key]?.isStarted = true
            state.running[load.number] = load.rank == .prefetch
            return (key, load.number, load.url)
        }) {
            start(key, number, url)
        }
    }

    private func start(_ key: String, _ number: Int, _ url: URL) {
        let request = WorkQueue.userCode { makeRequest(url) }
        let operation = ResourceOperation(
            request,
            decoder: ResourceDecoder(decode: decode, cost: cost),
            url: url,
            service: service,
            decodePartial: decodePartial
        )
        let isWanted = state.withLock { state in
            guard state.loads[key]?.number == number else {
                state.running[number] = nil
                return false
            }
            state.loads[key]?.operation = operation
            return true
        }
        guard isWanted else { return }
        adapt(key)
        operation.whenFinished { [weak operation] in
            self.finish(key, number, operation?.result ?? .failure(NetworkError(code: .cancelled)))
        }
        queue.addOperation(operation)
    }

    private func receive(_ partial: Resource, _ key: String, _ number: Int) {
        let receipts = state.withLock { state in
            state.loads[key].flatMap { $0.number == number ? $0.receipts.values.map(\.receipt) : nil } ?? []
        }
        for receipt in receipts { receipt.receive(partial) }
    }

    private func finish(_ key: String, _ number: Int, _ result: Result<ResourceDecoder<Resource>.Item, NetworkError>) {
        let now = service.configuration.settings.clock.now
        // Released outside the lock.
        var removed: [Resource] = []
        let receipts = state.withLock { state -> [ResourceReceipt<Resource>] in
            state.running[number] = nil
            guard state.loads[key]?.number == number, let load = state.loads.removeValue(forKey: key) else { return [] }
            switch result {
            case .success(let item):
                guard item.isStorable else { break }
                removed = state.memory.store(item.resource, cost: item.cost, for: key)
            case .failure(let error):
                guard failureLifetime > 0, error.code != .cancelled else { break }
                _ = state.failures.store((error, now + failureLifetime), cost: 0, for: key)
            }
            return load.receipts.values.map(\.receipt)
        }
        withExtendedLifetime(removed) {}
        for receipt in receipts { receipt.end(result.map(\.resource)) }
        startNext()
    }
}
