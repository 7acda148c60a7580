import Foundation

/// A job that carries one ``APIRequest`` to one outcome: its item, or a ``NetworkError``.
///
/// ```swift
/// let operation = RequestOperation(ProfileRequest(user: 7))
/// operation.success = { profile in print(profile.name) }
/// operation.failure = { error in print(error.localizedDescription) }
/// NetworkQueue.shared.addOperation(operation)
/// ```
///
/// Or, in a task: `let profile = try await operation.value`. The closures and the outcome are those of an
/// ``ItemOperation``. The answer is decoded and mapped on a background queue.
open class RequestOperation<Request: APIRequest>: ItemOperation<Request.Item>, @unchecked Sendable {
    // Sendable because everything that changes is in `state`, behind its lock; subclasses answer for their own.

    /// An operation for ``HostConfiguration/shared`` as it is now.
    public init(_ request: Request) {
        super.init(request, request.options, of: nil)
        noteTraits()
    }

    /// An operation for the host of a service.
    ///
    /// - Parameters:
    ///   - request: the request, which is sent when the operation runs.
    ///   - service: gives the host, and cancels this operation's call when it is cancelled itself.
    public init(_ request: Request, service: EasyNetworkService) {
        super.init(request, request.options, of: service)
        noteTraits()
    }

    /// An operation with other options than those of its request.
    package init(_ request: Request, _ options: RequestOptions, of service: EasyNetworkService) {
        super.init(request, options, of: service)
        noteTraits()
    }

    /// An operation whose request is made from other items: see ``ItemOperation/then(_:)``.
    init(service: EasyNetworkService, makeRequest: @escaping @Sendable () throws -> Request) {
        super.init(service: service) { try makeRequest() }
        noteTraits()
    }

    private func noteTraits() {
        ownTraits.startRunsUserCode = type(of: self) != RequestOperation<Request>.self
    }

    // MARK: - The response

    /// Called once with the item and the ``ItemOperation/response``, on the callback queue, after
    /// ``ItemOperation/success``. Set it before the operation is added to a queue. Default nil.
    ///
    /// ```swift
    /// let users = RequestOperation(GetUsers())
    /// users.successWithResponse = { list, response in
    ///     print(list.count, response.headers["X-RateLimit-Remaining"] ?? "")
    /// }
    /// NetworkQueue.shared.addOperation(users)
    /// ```
    public final var successWithResponse: (@Sendable (Request.Item, NetworkResponse) -> Void)? {
        get { state.withLock { $0.closures.successWithResponse } }
        set {
            var erased: (@Sendable (any Sendable, NetworkResponse) -> Void)?
            if let newValue { erased = { newValue(Self.typed($0), $1) } }
            state.setClosure(isRemoved: newValue == nil) { $0.successWithResponse = erased }
        }
    }

    /// Sets closures that run on the main actor, as `onMain(success:failure:cached:)`, with the
    /// ``ItemOperation/response`` beside the item.
    ///
    /// - Parameters:
    ///   - successWithResponse: gets the item and the response; it takes the place of the success closure on the main
    ///     actor.
    ///   - failure: gets the error. Default nil.
    ///   - cached: gets the cache's item. Default nil.
    public final func onMain(
        successWithResponse: @escaping @MainActor (Request.Item, NetworkResponse) -> Void,
        failure: (@MainActor (NetworkError) -> Void)? = nil,
        cached: (@MainActor (Request.Item) -> Void)? = nil
    ) {
        setOnMain({ successWithResponse(Self.typed($0), $1 ?? NetworkResponse()) }, failure, cached)
    }

    /// The item and the ``ItemOperation/response``, when the operation has finished and its closures have run. It waits
    /// as ``ItemOperation/value`` does.
    ///
    /// ```swift
    /// let users = RequestOperation(GetUsers())
    /// NetworkQueue.shared.addOperation(users)
    /// let (list, response) = try await users.valueWithResponse
    /// print(list.count, response.headers["Link"] ?? "the only page")
    /// ```
    ///
    /// - Throws: the operation's error.
    public final var valueWithResponse: (item: Request.Item, response: NetworkResponse) {
        get async throws(NetworkError) { (try await value, responseOfItem) }
    }

    /// Whether the ``ItemOperation/response`` keeps its body, which then stays in memory as long as the operation. Set
    /// it before the operation is added to a queue. Default false.
    public final var keepsResponseBody: Bool {
        get { option { $0.keepsResponseBody } }
        set { setOption(\.keepsResponseBody, newValue) }
    }

    // MARK: - The cache

    /// Called at most once with the cache's item, before all callbacks of the end, when the network's will follow: the
    /// policy is ``CachePolicy/Reading/cacheThenNetwork``. Not once the operation is cancelled. Set it before the
    /// operation is added to a queue. Default nil.
    public final var cached: (@Sendable (Request.Item) -> Void)? {
        get { state.withLock { $0.closures.cached } }
        set { state.setClosure(isRemoved: newValue == nil) { $0.cached = Self.erased(newValue) } }
    }

    /// The item of the cache when the network's was to follow; nil when there was none. It stays when that has come.
    public final var cachedItem: Request.Item? {
        state.withLock { $0.cachedItem }.map(Self.typed)
    }

    /// Whether the operation goes past the cache this once: nothing is read from there, whatever the request's policy
    /// says, and nothing stored is confirmed. The answer is stored as the policy says. Default false.
    ///
    /// ```swift
    /// let reload = RequestOperation(GetNews())
    /// reload.ignoresCache = true
    /// NetworkQueue.shared.addOperation(reload)
    /// ```
    ///
    /// Set it before the operation is added to a queue. It joins only operations that ignore the cache as well
    /// (``RepeatPolicy/join``).
    public final var ignoresCache: Bool {
        get { option({ $0.ignoresCache }) }
        set { setOption(\.ignoresCache, newValue) }
    }

    // MARK: - The work

    /// Sends the request. A subclass that makes other calls of its ``ServiceOperation/service`` calls `super` before
    /// them, or in their closures: until the request is sent, the failure of a call that no closure hears ends the
    /// operation.
    open override func execute() {
        guard var call = takeRequest() else { return }
        // Every initializer takes a `Request`: the cast holds. `as?` would look up the type of the optional at run time.
        // swift-format-ignore: NeverForceUnwrap
        let request = call.request as! Request
        let (own, ignoresCache, keepsBody) = option { (RepeatSetting($0), $0.ignoresCache, $0.keepsResponseBody) }
        call.sharedResponse = sharedResponse(to: call, own)
        call.isAnnounced = call.sharedResponse == nil
        if ignoresCache { call.order = .ignore }
        call.cached = deliverCached
        call.keepsBody = keepsBody
        call.map = { try request.item(from: $0) }
        send(call)
    }

    /// Hands over the cache's item; what follows waits until that is done.
    private func deliverCached(_ item: any Sendable) {
        let hasDelegate = delegate != nil
        let delivery = state.withLock { state -> Promise<Void>? in
            guard !state.isClosed else { return nil }
            state.cachedItem = item
            let isAwaited = state.closures.cached != nil || state.closures.onMain?.cached != nil
            if isAwaited || hasDelegate { state.cachedDelivery = Promise<Void>() }
            return state.cachedDelivery
        }
        guard let delivery else { return }
        deliveryQueue.add {
            // Taken only now: it may have been released before.
            let (closure, isAwaitedOnMain) = self.state.withLock { state in
                (state.closures.cached.take(), state.closures.onMain?.cached != nil)
            }
            if !self.isCancelled {
                self.delegate?.requestOperationDidLoadFromCache(self)
                closure?(item)
            }
            guard isAwaitedOnMain else { return delivery.set() }
            WorkQueue.callOnMain(
                {
                    let closures = self.state.withLock { $0.closures.onMain }
                    if !self.isCancelled { closures?.cached?(item) }
                },
                then: delivery.set
            )
        }
    }

    // MARK: - Sharing

    /// An operation that joins only waits for the carrier of the message.
    override func repeatRole(_ own: RepeatSetting) -> (joinsAnother: Bool, workWhenAdded: (() -> Void)?) {
        var role = super.repeatRole(own)
        // The policy of a request which is made later is known only then.
        guard own.policy == .join || ownTraits.needsPreparing else { return role }
        if case .request(let source)? = state.withLock({ $0.source }) {
            role.joinsAnother = joins(source, own)
        } else {
            role.joinsAnother = own.policy == .join
        }
        return role
    }

    /// Whether ``RepeatPolicy/join`` may let others have the answer. Must not change.
    var mayShareAnswer: Bool { true }

    /// - Returns: a closure that gets the response to a message of several operations; nil when this one sends its
    ///   request itself.
    private func sharedResponse(
        to request: CallRequest,
        _ own: RepeatSetting
    ) -> (@Sendable () async -> Call.Conclusion)? {
        guard joins(request, own), let message = sharedMessage(for: request), let queue = scheduling?.queue else {
            return nil
        }
        // It has a slot if it joins only by what was set since it was added.
        releaseSlot()
        return { await queue.response(to: message, for: self) }
    }

    /// Whether the operation does not send its request itself.
    private func joins(_ source: CallRequest, _ own: RepeatSetting) -> Bool {
        let options = source.options
        let (policy, key) = own.over(options)
        // A request of a refresh would wait for those that wait for the refresh.
        guard policy == .join, mayShareAnswer, !own.isPartOfRefresh, key != nil || !options.changesMessages else {
            return false
        }
        // Each has its item of the cache, and the message may be sent once the others have ended.
        let cache = options.cache ?? callGroup.host.settings.cachePolicy(for: source.request.method)
        return cache.reading != .cacheThenNetwork || ignoresCache
    }

    /// - Returns: nil when the operation sends its request itself.
    final func sharedMessage(for source: CallRequest) -> SharedMessage? {
        let own = option { RepeatSetting($0) }
        guard joins(source, own), let request = source.request as? Request,
            let snapshot = try? WorkQueue.userCode({ try source.read(for: callGroup.host) })
        else { return nil }
        return SharedMessage(
            key: SharingKey(
                name: own.over(source.options).key,
                snapshot,
                itemType: Request.Item.self,
                ignoresCache: ignoresCache,
                // A group that the operation is a part of holds its categories already.
                categories: mutualExclusionCategories.subtracting(option({ $0.heldCategories }))
            ),
            snapshot: snapshot,
            host: host ?? snapshot.message.url.hostAndPort,
            checkItem: { _ = try request.item(from: $0) }
        )
    }
}
