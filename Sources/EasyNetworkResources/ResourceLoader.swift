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
/// not, unless there is a `memoryMaximumAge`. An answer with `Cache-Control: no-store` is not kept. On Apple's
/// platforms memory pressure empties the memory; on Linux call ``removeAll()``.
///
/// The loader lives as long as its loads. All members may be used from any thread.
public final class ResourceLoader<Resource: Sendable>: Sendable {
    private let queue: NetworkQueue
    private let service: EasyNetworkService
    private let startsNewestFirst: Bool
    private let maximumLoadCount: Int
    private let maximumDecodeCount: Int
    private let isTimeNeeded: Bool
    private let makeKey: @Sendable (URL) -> String
    private let makeRequest: @Sendable (URL) -> any BaseAPIRequest
    private let cost: (@Sendable (Resource) -> Int)?
    private let decodePartial: (@Sendable (NetworkResponse) throws -> Resource?)?
    private let decode: @Sendable (NetworkResponse) throws -> Resource
    let state: Locked<ResourceLoads<Resource>>
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
    ///   - maximumDecodeCount: the number of resources and variants that are made at once; less than 1 counts as 1.
    ///     Default the number of processors. A load gives its place, and its job the slot in the queue, to the next one
    ///     when its answer has come, until eight times `maximumLoadCount` answers wait to be decoded.
    ///   - memoryCostLimit: the sum of the costs of the resources in memory. Default 64,000,000. A resource of a higher
    ///     cost is not kept.
    ///   - memoryCountLimit: the number of resources in memory. Default no limit.
    ///   - memoryMaximumAge: how long a resource in memory is given to anybody, in seconds since it was made, by
    ///     ``/EasyNetwork/HostSettings/clock``. An older one is loaded again, by the rules of the request for the
    ///     cache. Default nil: no limit.
    ///   - failureLifetime: how long a failure is remembered, in seconds: until then the same error is given at once,
    ///     and nothing is sent. Default 0: not at all. A cancelled load is no failure. The last thousand are
    ///     remembered.
    ///   - key: what makes two URLs the same resource. Called when a resource is asked for, on that thread. After
    ///     another sign-in (``/EasyNetwork/HostSettings/authentication``) none at the host's origin is the same as
    ///     before. Default nil: the URL without its fragment. For signed URLs leave out the signature: the load uses
    ///     the URL that came first.
    ///   - request: the request for a URL, with its headers, deadlines, retries and rules for the cache. Called once a
    ///     load. Default nil: a GET with ``/EasyNetwork/CachePolicy/http``.
    ///   - cost: the cost of a resource in memory, such as the bytes of its pixels. Default nil: the bytes of the
    ///     answer's body, for a variant as well. Called on a background thread, once for each resource that is made.
    ///   - decodePartial: makes a resource of the beginning of an answer for
    ///     ``partialResources(at:ignoresCache:priority:)``; nil when that is not enough. Called on a background thread,
    ///     at most ten times a second for a load. Default nil.
    ///   - decode: makes the resource of an accepted answer. Called on a background thread, once a load, and not when
    ///     all receipts were cancelled. An error that it throws is the error of the load.
    public init(
        queue: NetworkQueue = .shared,
        service: EasyNetworkService = EasyNetworkService(HostConfiguration.shared),
        startsNewestFirst: Bool = false,
        maximumLoadCount: Int = 6,
        maximumDecodeCount: Int = ProcessInfo.processInfo.activeProcessorCount,
        memoryCostLimit: Int = 64_000_000,
        memoryCountLimit: Int = .max,
        memoryMaximumAge: TimeInterval? = nil,
        failureLifetime: TimeInterval = 0,
        key: (@Sendable (URL) -> String)? = nil,
        request: (@Sendable (URL) -> any BaseAPIRequest)? = nil,
        cost: (@Sendable (Resource) -> Int)? = nil,
        decodePartial: (@Sendable (NetworkResponse) throws -> Resource?)? = nil,
        decode: @escaping @Sendable (NetworkResponse) throws -> Resource
    ) {
        (self.queue, self.service) = (queue, service)
        self.startsNewestFirst = startsNewestFirst
        // With fewer nothing would run; more would overflow when they are multiplied.
        self.maximumLoadCount = min(max(1, maximumLoadCount), 1 << 30)
        self.maximumDecodeCount = max(1, maximumDecodeCount)
        isTimeNeeded = memoryMaximumAge != nil || failureLifetime > 0
        makeKey = key ?? { url in url.absoluteString.prefix { $0 != "#" }.description }
        makeRequest = request ?? { GetResource(url: $0) }
        (self.cost, self.decodePartial, self.decode) = (cost, decodePartial, decode)
        state = Locked(
            ResourceLoads(
                isLIFO: startsNewestFirst,
                // Sums of costs up to this limit do not overflow.
                memoryCostLimit: min(memoryCostLimit, 1 << 60),
                memoryCountLimit: memoryCountLimit,
                maximumAge: memoryMaximumAge,
                failureLifetime: failureLifetime
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
    ///   - variant: what is made of it instead, such as a thumbnail. Default nil: the whole resource.
    ///   - ignoresCache: whether it is loaded in any case: neither the memory nor a remembered failure nor the host's
    ///     cache answers, and nothing stored is confirmed. The resource then replaces the older one in memory, with its
    ///     variants, and the answer that in the host's cache; after a failure the older ones stay. Those who ask in the
    ///     meantime get it as well, unless they find the older one in memory. Default false.
    ///   - priority: default normal. The highest of all receipts of a load counts, also while it waits or runs.
    ///   - completion: called once with the result, on the host's ``/EasyNetwork/HostSettings/callbackQueue``, never
    ///     before this method returns if that queue is the default one or another thread's. Default nil.
    /// - Returns: the receipt, to cancel it, to change its priority or to wait for the resource.
    @discardableResult
    public func load(
        _ url: URL,
        variant: ResourceVariant<Resource>? = nil,
        ignoresCache: Bool = false,
        priority: Operation.QueuePriority = .normal,
        completion: (@Sendable (Result<Resource, NetworkError>) -> Void)? = nil
    ) -> ResourceReceipt<Resource> {
        let wish = wish(url, variant, ignoresCache: ignoresCache)
        let rank = ResourceOrder.Rank(priority)
        let receipt = ResourceReceipt(wish.key.memory, rank, self, completion: completion)
        enter(.resource(receipt), rank, wish)
        return receipt
    }

    /// The resource, from memory or when it has been loaded. Cancelling the task cancels its share in the load; a task
    /// that is cancelled already loads nothing.
    ///
    /// - Parameters:
    ///   - url: the address of the resource.
    ///   - variant: what is made of it instead. Default nil: the whole resource.
    ///   - ignoresCache: whether it is loaded in any case, see
    ///     ``load(_:variant:ignoresCache:priority:completion:)``. Default false.
    ///   - priority: default normal.
    /// - Throws: the error of the load; ``/EasyNetwork/NetworkError/Code/cancelled`` after a cancel.
    public func resource(
        at url: URL,
        variant: ResourceVariant<Resource>? = nil,
        ignoresCache: Bool = false,
        priority: Operation.QueuePriority = .normal
    ) async throws(NetworkError) -> Resource {
        guard !Task.isCancelled else { throw NetworkError(code: .cancelled) }
        return try await load(url, variant: variant, ignoresCache: ignoresCache, priority: priority).value
    }

    /// What can be made of a resource while it comes, and at the end the whole resource.
    ///
    /// An element that was not fetched is replaced by the next one. Cancelling the task or leaving the loop cancels the
    /// share in the load.
    ///
    /// - Parameters:
    ///   - url: the address of the resource.
    ///   - ignoresCache: whether it is loaded in any case, see
    ///     ``load(_:variant:ignoresCache:priority:completion:)``. Default false.
    ///   - priority: default normal.
    /// - Returns: a sequence that ends after the whole resource, or throws the ``/EasyNetwork/NetworkError`` of the
    ///   load.
    public func partialResources(
        at url: URL,
        ignoresCache: Bool = false,
        priority: Operation.QueuePriority = .normal
    ) -> AsyncThrowingStream<Resource, any Error> {
        AsyncThrowingStream(bufferingPolicy: .bufferingNewest(1)) { continuation in
            guard !Task.isCancelled else { return continuation.finish(throwing: NetworkError(code: .cancelled)) }
            let wish = wish(url, nil, ignoresCache: ignoresCache)
            let rank = ResourceOrder.Rank(priority)
            let receipt = ResourceReceipt(wish.key.memory, rank, self, partials: continuation)
            // Not in place, see `AsyncStream.Continuation.whenTerminated(_:)`: the receipt yields under its lock.
            continuation.onTermination = { _ in WorkQueue.shared.add { receipt.cancel() } }
            enter(.resource(receipt), rank, wish)
        }
    }

    /// Loads resources that may be wanted soon. They give way: they start after everything that somebody waits for,
    /// with half of the places at most, and asking for one of them makes it an ordinary load. With one place, a
    /// prefetch has it while nothing else is wanted: then it is cancelled, and begins again afterwards.
    ///
    /// - Parameters:
    ///   - urls: the addresses, the first to start first.
    ///   - variant: what is made of each of them instead. Default nil: the whole resource.
    /// - Returns: the receipts, to cancel what is not wanted any more.
    @discardableResult
    public func prefetch(
        _ urls: some Sequence<URL>,
        variant: ResourceVariant<Resource>? = nil
    ) -> [ResourceReceipt<Resource>] {
        prefetch(urls, variant) { .resource($0) }
    }

    /// Fetches the answers for resources that may be wanted later into the host's cache on disk. Nothing is decoded,
    /// and nothing kept in memory: neither resources here nor answers in ``/EasyNetwork/NetworkCache``.
    ///
    /// They give way as those of ``prefetch(_:variant:)`` do. What the cache holds already and may use is not fetched
    /// again. Whether an answer is stored follows from the request's ``/EasyNetwork/CachePolicy``; where that stores
    /// nothing on disk, the receipt ends with ``/EasyNetwork/NetworkError/Code/invalidRequest``, and nothing is sent.
    /// When somebody asks for the resource while its answer comes, the load makes it as usual.
    ///
    /// ```swift
    /// func saveForTheFlight(_ pages: [URL], _ loader: ResourceLoader<Data>) async throws {
    ///     for receipt in loader.prefetchToDisk(pages) { try await receipt.value }
    /// }
    /// ```
    ///
    /// - Parameter urls: the addresses, the first to start first.
    /// - Returns: the receipts, which end when the answer has been handed to the cache.
    @discardableResult
    public func prefetchToDisk(_ urls: some Sequence<URL>) -> [ResourceReceipt<Void>] {
        prefetch(urls, nil) { .answer($0) }
    }

    private func prefetch<Item>(
        _ urls: some Sequence<URL>,
        _ variant: ResourceVariant<Resource>?,
        _ member: (ResourceReceipt<Item>) -> ResourceLoads<Resource>.Member
    ) -> [ResourceReceipt<Item>] {
        let pairs = urls.map { url in
            let wish = wish(url, variant)
            return (wish, ResourceReceipt<Item>(wish.key.memory, .prefetch, self))
        }
        for (wish, receipt) in startsNewestFirst ? pairs.reversed() : pairs {
            enter(member(receipt), .prefetch, wish)
        }
        return pairs.map(\.1)
    }

    // MARK: - The memory

    /// The resource in memory, which counts as used; nil when it is not there, or too old.
    ///
    /// - Parameters:
    ///   - url: the address of the resource.
    ///   - variant: what was made of it. Default nil: the whole resource.
    public func cachedResource(for url: URL, variant: ResourceVariant<Resource>? = nil) -> Resource? {
        let (name, now) = (key(of: url, variant).memory, now)
        return state.withLock { $0.find(name, at: now)?.resource }
    }

    /// Removes a resource, its variants and its failure from memory. The answer in the host's cache stays, and loads go
    /// on.
    public func remove(_ url: URL) {
        let name = key(of: url, nil).resource
        let removed = state.withLock { $0.forget(name) }
        withExtendedLifetime(removed) {}
    }

    /// Removes all resources and failures from memory. The answers in the host's cache stay, and loads go on.
    public func removeAll() {
        let removed = state.withLock { $0.forgetAll() }
        withExtendedLifetime(removed) {}
    }

    // MARK: - Receipts

    /// The key of a URL: what is loaded for one user is not for the next one who signs in.
    private func key(of url: URL, _ variant: ResourceVariant<Resource>?) -> ResourceKey {
        let key = ResourceKey(makeKey(url), version: service.configuration.userVersion(for: url) ?? 0)
        return variant.map { key.variant($0.key) } ?? key
    }

    private func wish(
        _ url: URL,
        _ variant: ResourceVariant<Resource>?,
        ignoresCache: Bool = false
    ) -> ResourceLoad<Resource>.Wish {
        ResourceLoad.Wish(key: key(of: url, variant), url: url, variant: variant, ignoresCache: ignoresCache)
    }

    private var now: TimeInterval { isTimeNeeded ? service.configuration.settings.clock.now : 0 }

    private func enter(
        _ member: ResourceMember<Resource>,
        _ rank: ResourceOrder.Rank,
        _ wish: ResourceLoad<Resource>.Wish
    ) {
        let now = now
        let (result, key) = state.withLock { state in
            (state.enter(member, rank, wish, at: now), state.key(of: member.id, wish.key.memory))
        }
        if let key { adapt(key) }
        guard let result else { return }
        switch member {
        case .resource(let receipt): receipt.end(result)
        case .answer(let receipt): receipt.end(result.map { _ in })
        case .variant: break
        }
    }

    /// Gives a load the highest rank of its receipts, and starts what may start.
    private func adapt(_ key: String) {
        var told: ResourceOrder.Rank?
        // Again if it has changed since: otherwise the slower of two threads would decide.
        while let load = state.withLock({ $0.passOn(key) }), let operation = load.operation, load.rank != told {
            told = load.rank
            listen(to: operation, for: load)
            operation.queuePriority = load.rank.priority
        }
        // Its end starts the next one.
        if maximumLoadCount == 1 { state.withLock { $0.stopPrefetch(for: key) }?.cancel() }
        startNext()
    }

    /// Has the job of a load tell what its receipts want to know.
    private func listen(to operation: ResourceOperation<Resource>, for load: ResourceLoad<Resource>) {
        guard load.wantsPartials || load.wantsCounts else { return }
        let (key, number) = (load.wish.key.load(ignoresCache: load.wish.ignoresCache), load.number)
        if load.wantsPartials { operation.receivePartials { [weak self] in self?.receive($0, key, number) } }
        if load.wantsCounts { operation.receiveCounts { [weak self] in self?.note($0, key, number) } }
    }

    private func receive(_ partial: Resource, _ key: String, _ number: Int) {
        for receipt in state.withLock({ $0.receipts(of: key, number).resources }) { receipt.receive(partial) }
    }

    private func note(_ count: TransferMeter.Count, _ key: String, _ number: Int) {
        let (resources, answers) = state.withLock { state in
            state.note(count, key, number)
            return state.receipts(of: key, number)
        }
        for receipt in resources { receipt.note(count) }
        for receipt in answers { receipt.note(count) }
    }

    // MARK: - Loads

    /// Starts loads for which there is a place, and lets those decode that may.
    private func startNext() {
        while let (key, load) = state.withLock({ $0.takeNext(maximumLoadCount) }) { start(key, load) }
        while let (number, turn) = state.withLock({ $0.takeNextTurn(maximumDecodeCount) }) {
            switch turn {
            case .whole(let run): run(true)
            case .variant(let key, let whole): WorkQueue.shared.add { self.make(key, number, of: whole) }
            }
        }
    }

    private func start(_ key: String, _ load: ResourceLoad<Resource>) {
        let number = load.number
        let request = WorkQueue.userCode { makeRequest(load.wish.url) }
        var options = request.options
        if load.isForCacheAlone {
            var policy = options.cache ?? service.configuration.settings.cachePolicy(for: request.method)
            guard policy.storesOnDisk else {
                let error = NetworkError.invalidRequest("the cache policy of the request stores nothing on disk")
                // Not by conclude(_:), which would start the next one within this call, and so on.
                return tell(state.withLock { $0.refuse(key, number, error) })
            }
            policy.storesInMemory = false
            options.cache = policy
        }
        let operation = ResourceOperation(
            request,
            options,
            url: load.wish.url,
            ignoresCache: load.wish.ignoresCache,
            service: service,
            decodePartial: decodePartial
        ) { [self] response in
            try await loaded(response, key, number)
        }
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

    /// Makes the resource of an answer, when the load may decode.
    private func loaded(
        _ response: NetworkResponse,
        _ key: String,
        _ number: Int
    ) async throws -> LoadedResource<Resource> {
        let isStorable = !CacheControl(response: response.headers).noStore
        let isForCacheAlone = state.withLock { state in
            state.loads[key].map { $0.number == number && $0.isForCacheAlone } ?? false
        }
        if isForCacheAlone { return LoadedResource(resource: nil, cost: 0, isStorable: isStorable) }
        guard await mayDecode(key, number) else { throw NetworkError(code: .cancelled) }
        defer {
            state.withLock { $0.endTurn() }
            startNext()
        }
        // A call whose answer has come goes on although it was cancelled.
        guard !Task.isCancelled, state.withLock({ $0.loads[key]?.number == number }) else {
            throw NetworkError(code: .cancelled)
        }
        do {
            let resource = try decode(response)
            let cost = max(0, cost?(resource) ?? response.body.count)
            return LoadedResource(resource: resource, cost: cost, isStorable: isStorable)
        } catch {
            state.withLock { $0.takePlaceAgain(key, number) }
            throw error
        }
    }

    /// Waits until a load may decode.
    ///
    /// - Returns: false when it was cancelled before.
    private func mayDecode(_ key: String, _ number: Int) async -> Bool {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isWanted = state.withLock { state in
                    state.awaitTurn(key, number) { continuation.resume(returning: $0) }
                }
                guard isWanted else { return continuation.resume(returning: false) }
                // The handler may have run before there was a turn to take back.
                if Task.isCancelled { takeTurnBack(number) }
                startNext()
            }
        } onCancel: {
            takeTurnBack(number)
        }
    }

    private func takeTurnBack(_ number: Int) {
        if case .whole(let run) = state.withLock({ $0.takeTurn(number) }) { run(false) }
    }

    /// Makes a variant.
    private func make(_ key: String, _ number: Int, of whole: ResourceLoads<Resource>.Made) {
        let load = state.withLock { $0.loads[key] }
        var result: Result<ResourceLoads<Resource>.Made, NetworkError>?
        if let load, load.number == number, let variant = load.wish.variant {
            do {
                let resource = try variant.make(whole.resource)
                let cost = max(0, cost?(resource) ?? whole.cost)
                result = .success(whole.replacing(resource, cost: cost))
            } catch {
                result = .failure(.mapping(error))
            }
        }
        let now = service.configuration.settings.clock.now
        let end = state.withLock { state in
            state.endTurn()
            guard let result, state.loads[key]?.number == number else { return ResourceLoads<Resource>.End() }
            return state.conclude(key, result, at: now)
        }
        conclude(end)
    }

    private func finish(_ key: String, _ number: Int, _ result: Result<LoadedResource<Resource>, NetworkError>) {
        let now = service.configuration.settings.clock.now
        conclude(state.withLock { $0.finish(key, number, result, at: now) })
    }

    private func conclude(_ end: ResourceLoads<Resource>.End) {
        tell(end)
        startNext()
    }

    private func tell(_ end: ResourceLoads<Resource>.End) {
        for (receipt, result) in end.receipts { receipt.end(result) }
        for (receipt, result) in end.answers { receipt.end(result) }
        withExtendedLifetime(end.removed) {}
    }
}

extension ResourceLoader: ResourceReceiptHolder {
    var callbackQueue: DispatchQueue { service.configuration.deliveryQueue }

    func rankHasChanged(_ receipt: ObjectIdentifier, _ name: String) {
        if let key = state.withLock({ $0.setRank(.receipt(receipt), name) }) { adapt(key) }
    }

    func leave(_ receipt: ObjectIdentifier, _ name: String) {
        let (goesOn, stopped) = state.withLock { $0.leave(.receipt(receipt), name) }
        if let (load, turn) = stopped {
            load.operation?.cancel()
            if case .whole(let run) = turn { run(false) }
        }
        if let goesOn { adapt(goesOn) } else { startNext() }
    }

    func wantsCounts(_ receipt: ObjectIdentifier, _ name: String) -> TransferMeter.Count? {
        let (key, count) = state.withLock { state -> (String?, TransferMeter.Count?) in
            guard let key = state.key(of: .receipt(receipt), name) else { return (nil, nil) }
            state.loads[key]?.wantsCounts = true
            return (key, state.loads[key]?.count)
        }
        if let key { adapt(key) }
        return count
    }
}
