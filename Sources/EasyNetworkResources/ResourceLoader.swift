import Dispatch
import EasyNetwork
import Foundation

/// A loader that fetches resources by URL, decodes them, and keeps them in memory: images, documents, or anything else
/// that is made from bytes.
///
/// ```swift
/// let loader = ResourceLoader { try $0.text() }
///
/// func show(_ url: URL) async throws {
///     print(try await loader.resource(at: url))
/// }
/// ```
///
/// Callers that request the same resource share one load: one message and one decoding. Each caller has a
/// ``ResourceReceipt``. A load is a job of a ``/EasyNetwork/NetworkQueue``, with its limits, conditions, events and
/// cancellation. The response can come from the host's cache (``/EasyNetwork/HostSettings/cache``) by the rules of
/// HTTP.
///
/// Decoded resources are kept in memory up to a cost and a count; the least recently used leave first. Until then they
/// stay, fresh or not, unless you set `memoryMaximumAge`. A resource whose response has `Cache-Control: no-store` is
/// not kept. On Apple platforms, memory pressure empties the memory; on Linux, call ``removeAll()``.
///
/// A loader lives at least as long as its loads. You can use all members from any thread.
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
    ///   - queue: runs the loads. Defaults to ``/EasyNetwork/NetworkQueue/shared``.
    ///   - service: provides the host. Cancelling the service cancels the loads. Defaults to a service of the current
    ///     ``/EasyNetwork/HostConfiguration/shared``.
    ///   - startsNewestFirst: whether the newest load of a priority starts first. Use it for a list that is scrolled,
    ///     so that visible items load before items seen earlier. A load whose priority has changed counts as the
    ///     newest. Defaults to false: the oldest starts first.
    ///   - maximumLoadCount: the number of concurrent loads; less than 1 counts as 1. Defaults to 6. The limits of the
    ///     queue apply as well. If the queue's limit is lower, the loads that wait for it run in the queue's order.
    ///   - maximumDecodeCount: the number of resources and variants that are made concurrently; less than 1 counts as
    ///     1. Defaults to the number of processors. When its response has arrived, a load frees its place, and its job
    ///     frees its slot in the queue. Up to eight times `maximumLoadCount` responses can wait to be decoded.
    ///   - memoryCostLimit: the maximum total cost of the resources in memory. Defaults to 64,000,000. A resource with
    ///     a higher cost is not kept.
    ///   - memoryCountLimit: the maximum number of resources in memory. Defaults to no limit.
    ///   - memoryMaximumAge: the maximum age of a resource that is returned from memory, in seconds since it was made,
    ///     measured by ``/EasyNetwork/HostSettings/clock``. An older resource is loaded again, by the request's rules
    ///     for the cache. Defaults to `nil`: no limit.
    ///   - failureLifetime: the seconds for which a failure is remembered. During this time the same error is returned
    ///     at once, and nothing is sent. A cancelled load is not a failure. At most the last 1,000 failures are
    ///     remembered. Defaults to 0: no failure is remembered.
    ///   - key: returns a key that is equal for URLs of the same resource. Called on the thread that requests a
    ///     resource. After another user signs in (``/EasyNetwork/HostSettings/authentication``), keys at the host's
    ///     origin no longer match earlier ones. For signed URLs, leave out the signature: the load uses the URL that
    ///     was requested first. Defaults to `nil`: the URL without its fragment.
    ///   - request: returns the request for a URL, with its headers, deadlines, retries and rules for the cache. Called
    ///     once per load. Defaults to `nil`: a GET request with ``/EasyNetwork/CachePolicy/http``.
    ///   - cost: returns the cost of a resource in memory, such as the bytes of its pixels. Called on a background
    ///     thread, once for each resource and variant. Defaults to `nil`: the bytes of the response's body, even for a
    ///     variant.
    ///   - decodePartial: makes a resource from the beginning of a response for
    ///     ``partialResources(at:ignoresCache:priority:)``; returns `nil` if the bytes aren't enough. Called on a
    ///     background thread, at most ten times a second for each load. Defaults to `nil`.
    ///   - decode: makes the resource from an accepted response. Called on a background thread, once per load, and not
    ///     if all receipts were cancelled. An error that it throws becomes the error of the load.
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
        // With less than 1 nothing would run. A number above the maximum would overflow when it is multiplied.
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

    /// Requests a resource, and returns a receipt at once.
    ///
    /// - Parameters:
    ///   - url: the URL of the resource.
    ///   - variant: the variant to make from the resource, such as a thumbnail. Defaults to `nil`: the whole resource.
    ///   - ignoresCache: whether to load the resource in any case, without using the memory, a remembered failure or
    ///     the host's cache, and without revalidating a stored response. The new resource replaces the old one and its
    ///     variants in memory, and the new response replaces the old one in the host's cache. After a failure the old
    ///     ones stay. Requests that are made meanwhile share this load, unless they find the old resource in memory.
    ///     Defaults to false.
    ///   - priority: the priority of the load. The highest priority of its receipts applies, even while the load waits
    ///     or runs. Defaults to `.normal`.
    ///   - completion: called once with the result, on the host's ``/EasyNetwork/HostSettings/callbackQueue``. It is
    ///     never called before this method returns if that queue is the default one or runs on another thread. Defaults
    ///     to `nil`.
    /// - Returns: the receipt, with which you can cancel the request, change its priority, or wait for the resource.
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

    /// Returns a resource from memory, or when it has been loaded. Cancelling the task cancels its receipt. A task that
    /// is already cancelled loads nothing.
    ///
    /// - Parameters:
    ///   - url: the URL of the resource.
    ///   - variant: the variant to make from the resource. Defaults to `nil`: the whole resource.
    ///   - ignoresCache: whether to load the resource in any case. See
    ///     ``load(_:variant:ignoresCache:priority:completion:)``. Defaults to false.
    ///   - priority: the priority of the load. Defaults to `.normal`.
    /// - Throws: the error of the load; ``/EasyNetwork/NetworkError/Code/cancelled`` if the task was cancelled.
    public func resource(
        at url: URL,
        variant: ResourceVariant<Resource>? = nil,
        ignoresCache: Bool = false,
        priority: Operation.QueuePriority = .normal
    ) async throws(NetworkError) -> Resource {
        guard !Task.isCancelled else { throw NetworkError(code: .cancelled) }
        return try await load(url, variant: variant, ignoresCache: ignoresCache, priority: priority).value
    }

    /// Returns what can be made from a resource while it arrives, followed by the whole resource.
    ///
    /// An element that was not read is replaced by the next one. Cancelling the task or leaving the loop cancels the
    /// receipt.
    ///
    /// - Parameters:
    ///   - url: the URL of the resource.
    ///   - ignoresCache: whether to load the resource in any case. See
    ///     ``load(_:variant:ignoresCache:priority:completion:)``. Defaults to false.
    ///   - priority: the priority of the load. Defaults to `.normal`.
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
            // The receipt yields under its lock, so it is cancelled elsewhere. See
            // `AsyncStream.Continuation.whenTerminated(_:)`.
            continuation.onTermination = { _ in WorkQueue.shared.add { receipt.cancel() } }
            enter(.resource(receipt), rank, wish)
        }
    }

    /// Loads resources that may be needed soon. The loads give way to other loads: they start after all loads that
    /// someone waits for, and occupy at most half of the places. Requesting one of the resources turns its prefetch
    /// into an ordinary load. If there is only one place, a running prefetch is cancelled when another load needs the
    /// place, and starts again afterwards.
    ///
    /// - Parameters:
    ///   - urls: the URLs, in the order in which the loads start.
    ///   - variant: the variant to make from each resource. Defaults to `nil`: the whole resource.
    /// - Returns: the receipts, with which you can cancel resources that are no longer needed.
    @discardableResult
    public func prefetch(
        _ urls: some Sequence<URL>,
        variant: ResourceVariant<Resource>? = nil
    ) -> [ResourceReceipt<Resource>] {
        prefetch(urls, variant) { .resource($0) }
    }

    /// Fetches the responses for resources that may be needed later into the host's cache on disk. Nothing is decoded,
    /// and nothing is kept in memory, neither resources nor responses of the ``/EasyNetwork/NetworkCache``.
    ///
    /// These loads give way as the loads of ``prefetch(_:variant:)`` do. A response that the cache already holds and
    /// can use is not fetched again. The request's ``/EasyNetwork/CachePolicy`` decides whether a response is stored.
    /// If it stores nothing on disk, the receipt ends with ``/EasyNetwork/NetworkError/Code/invalidRequest``, and
    /// nothing is sent. If someone requests the resource while its response arrives, the load also makes the resource.
    ///
    /// With ``/EasyNetwork/CachePolicy/http``, a response with `no-store` is not stored, and a stale one is revalidated.
    /// To use the resources without a network, pass a `request` with `CachePolicy(.cacheElseNetwork)` to the loader.
    ///
    /// ```swift
    /// func fetchAhead(_ pages: [URL], _ loader: ResourceLoader<Data>) async throws {
    ///     for receipt in loader.prefetchToDisk(pages) { try await receipt.value }
    /// }
    /// ```
    ///
    /// - Parameter urls: the URLs, in the order in which the loads start.
    /// - Returns: the receipts, which end when the response has been passed to the cache.
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

    /// Returns a resource in memory, and marks it as used. Returns `nil` if it is not in memory, or too old.
    ///
    /// - Parameters:
    ///   - url: the URL of the resource.
    ///   - variant: the variant that was made from it. Defaults to `nil`: the whole resource.
    public func cachedResource(for url: URL, variant: ResourceVariant<Resource>? = nil) -> Resource? {
        let (name, now) = (key(of: url, variant).memory, now)
        return state.withLock { $0.find(name, at: now)?.resource }
    }

    /// Removes a resource, its variants and its failure from memory. The response in the host's cache stays, and loads
    /// continue.
    public func remove(_ url: URL) {
        let name = key(of: url, nil).resource
        let removed = state.withLock { $0.forget(name) }
        withExtendedLifetime(removed) {}
    }

    /// Removes all resources and failures from memory. The responses in the host's cache stay, and loads continue.
    public func removeAll() {
        let removed = state.withLock { $0.forgetAll() }
        withExtendedLifetime(removed) {}
    }

    // MARK: - Receipts

    /// Returns the key of a URL. The key changes with the user, so that the next user who signs in doesn't get the
    /// resources of another.
    private func key(of url: URL, _ variant: ResourceVariant<Resource>?) -> ResourceKey {
        let key = ResourceKey(makeKey(url), version: service.configuration.userVersion(for: url) ?? 0)
        return variant.map { key.variant($0.key) } ?? key
    }

    private func wish(
        _ url: URL,
        _ variant: ResourceVariant<Resource>?,
        ignoresCache: Bool = false
    ) -> ResourceLoad<Resource>.LoadRequest {
        ResourceLoad.LoadRequest(key: key(of: url, variant), url: url, variant: variant, ignoresCache: ignoresCache)
    }

    private var now: TimeInterval { isTimeNeeded ? service.configuration.settings.clock.now : 0 }

    private func enter(
        _ member: ResourceMember<Resource>,
        _ rank: ResourceOrder.Rank,
        _ wish: ResourceLoad<Resource>.LoadRequest
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

    /// Gives a load the highest rank of its receipts, and starts the loads that can start.
    private func adapt(_ key: String) {
        var told: ResourceOrder.Rank?
        // The loop repeats if the rank has changed since. Otherwise, the slower of two threads would decide.
        while let load = state.withLock({ $0.passOn(key) }), let operation = load.operation, load.rank != told {
            told = load.rank
            listen(to: operation, for: load)
            operation.queuePriority = load.rank.priority
        }
        // The end of the stopped prefetch starts the next load.
        if maximumLoadCount == 1 { state.withLock { $0.stopPrefetch(for: key) }?.cancel() }
        startNext()
    }

    /// Makes the job of a load report what its receipts want to know.
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

    /// Starts loads and decodings while there are places for them.
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
                let error = NetworkError.invalidRequest(
                    "prefetchToDisk needs a cache policy that stores on disk, but the request's policy does not"
                )
                // `conclude(_:)` would start the next load within this call, and recurse.
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

    /// Makes the resource from a response when the load may decode.
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
        // A call whose response has arrived continues although it was cancelled.
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
    /// - Returns: false if the load was cancelled before.
    private func mayDecode(_ key: String, _ number: Int) async -> Bool {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isWanted = state.withLock { state in
                    state.awaitTurn(key, number) { continuation.resume(returning: $0) }
                }
                guard isWanted else { return continuation.resume(returning: false) }
                // The cancellation handler may have run before the turn existed.
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
