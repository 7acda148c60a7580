import Foundation

/// A job that sends one ``APIRequest`` and ends with its item or a ``NetworkError``.
///
/// ```swift
/// let operation = RequestOperation(ProfileRequest(user: 7))
/// operation.success = { profile in print(profile.name) }
/// operation.failure = { error in print(error.localizedDescription) }
/// NetworkQueue.shared.addOperation(operation)
/// ```
///
/// In a task, write `let profile = try await operation.value`. The closures and the outcome are those of
/// ``ItemOperation``. The response is decoded and mapped on a background queue.
open class RequestOperation<Request: APIRequest>: ItemOperation<Request.Item>, @unchecked Sendable {
    // Sendable because all mutable state is in `state`, under its lock. Subclasses are responsible for their own state.

    /// Creates an operation for the current ``HostConfiguration/shared``.
    public init(_ request: Request) {
        super.init(request, request.options, of: nil)
        noteTraits()
    }

    /// Creates an operation for the host of a service.
    ///
    /// - Parameters:
    ///   - request: the request to send when the operation runs.
    ///   - service: the service, which determines the host. Cancelling it cancels this operation's call.
    public init(_ request: Request, service: EasyNetworkService) {
        super.init(request, request.options, of: service)
        noteTraits()
    }

    /// - Parameters:
    ///   - options: the options to use instead of the request's. Defaults to `nil`: the request's.
    ///   - service: the service; `nil` for ``HostConfiguration/shared``.
    package init(_ request: Request, _ options: RequestOptions? = nil, of service: EasyNetworkService?) {
        super.init(request, options ?? request.options, of: service)
        noteTraits()
    }

    /// Creates an operation whose request is made from other items. See ``ItemOperation/then(_:)``.
    init(service: EasyNetworkService, makeRequest: @escaping @Sendable () throws -> Request) {
        super.init(service: service) { try makeRequest() }
        noteTraits()
    }

    private func noteTraits() {
        traits.startRunsUserCode = type(of: self) != RequestOperation<Request>.self
    }

    // MARK: - The response

    /// A closure that is called once with the item and the ``ItemOperation/response``, on the callback queue, after
    /// ``ItemOperation/success``. Set it before the operation is added to a queue. Defaults to `nil`.
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
            if let newValue { erased = { newValue(CallGroup.typed($0), $1) } }
            state.setClosure(isRemoved: newValue == nil) { $0.successWithResponse = erased }
        }
    }

    /// Sets closures that run on the main actor. In contrast to `onMain(success:failure:cached:)`, the success closure
    /// also gets the ``ItemOperation/response``.
    ///
    /// - Parameters:
    ///   - successWithResponse: gets the item and the response. It replaces the success closure on the main actor.
    ///   - failure: gets the error. Defaults to `nil`, which keeps the current closure.
    ///   - cached: gets the cache's item. Defaults to `nil`, which keeps the current closure.
    public final func onMain(
        successWithResponse: @escaping @MainActor (Request.Item, NetworkResponse) -> Void,
        failure: (@MainActor (NetworkError) -> Void)? = nil,
        cached: (@MainActor (Request.Item) -> Void)? = nil
    ) {
        setOnMain({ successWithResponse(CallGroup.typed($0), $1 ?? NetworkResponse()) }, failure, cached)
    }

    /// The item and the ``ItemOperation/response``, available when the operation has finished and its closures have
    /// run. Tasks wait for it as for ``ItemOperation/value``.
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
    /// it before the operation is added to a queue. Defaults to `false`.
    public final var keepsResponseBody: Bool {
        get { option { $0.keepsResponseBody } }
        set { setOption(\.keepsResponseBody, newValue) }
    }

    // MARK: - The cache

    /// A closure that is called at most once with the cache's item, if the network's item follows
    /// (``CachePolicy/Reading/cacheThenNetwork``). It runs on the callback queue, before all callbacks of the end, and
    /// is not called once the operation is cancelled. Set it before the operation is added to a queue. Defaults to
    /// `nil`.
    public final var cached: (@Sendable (Request.Item) -> Void)? {
        get { state.withLock { $0.closures.cached } }
        set { state.setClosure(isRemoved: newValue == nil) { $0.cached = Self.erased(newValue) } }
    }

    /// The cache's item, if the network's item was to follow; otherwise `nil`. It remains available after the network's
    /// item has arrived.
    public final var cachedItem: Request.Item? {
        state.withLock { $0.cachedItem }.map { CallGroup.typed($0) }
    }

    /// Whether this operation ignores the cache. It then reads nothing from the cache, whatever the request's policy
    /// is, and doesn't revalidate a stored response. The response is stored as the policy requires. Defaults to
    /// `false`.
    ///
    /// ```swift
    /// let reload = RequestOperation(GetNews())
    /// reload.ignoresCache = true
    /// NetworkQueue.shared.addOperation(reload)
    /// ```
    ///
    /// Set it before the operation is added to a queue. With ``RepeatPolicy/join``, the operation joins only operations
    /// that ignore the cache as well.
    public final var ignoresCache: Bool {
        get { option({ $0.ignoresCache }) }
        set { setOption(\.ignoresCache, newValue) }
    }

    // MARK: - The work

    /// Sends the request. A subclass that makes other calls of its ``ServiceOperation/service`` must call `super`
    /// before them, or in their closures. Until the request is sent, the failure of a call without a closure for it
    /// ends the operation.
    open override func execute() {
        guard let call = takeRequest() else { return }
        perform(consume call)
    }

    /// Sends the request that ``ItemOperation/takeRequest()`` has returned.
    final func perform(_ call: consuming CallRequest) {
        let own = optionsIfSet { options in
            (undo: options.undo, ignoresCache: options.ignoresCache, keepsBody: options.keepsResponseBody)
        }
        if let undo = own?.undo, !begin(undo, typed(call.request), &call) { return }
        // A request that is made late can have options for repeats of its own.
        if own != nil || traits.needsPreparing { call.sharedResponse = sharedResponse(to: call) }
        call.isAnnounced = call.sharedResponse == nil
        if own?.ignoresCache == true { call.order = .ignore }
        call.cached = deliverCached
        call.keepsBody = own?.keepsBody == true
        call.map = { try self.typed($0).item(from: $1) }
        send(consume call)
    }

    final func typed(_ request: any BaseAPIRequest) -> Request {
        // Every initializer takes a `Request`, so the cast succeeds. `as?` would look up the optional's type at run
        // time.
        // swift-format-ignore: NeverForceUnwrap
        request as! Request
    }

    /// Delivers the cache's item. The callbacks of the end wait until it is delivered.
    private func deliverCached(_ item: any Sendable) {
        let hasDelegate = delegate != nil
        let delivery = state.withLock { state -> Promise<Void>? in
            guard !state.isClosed else { return nil }
            state.cachedItem = item
            let isAwaited = state.closures.cached != nil || state.closures.onMain?.value.cached != nil
            if isAwaited || hasDelegate { state.cachedDelivery = Promise<Void>() }
            return state.cachedDelivery
        }
        guard let delivery else { return }
        deliveryQueue.add {
            // Take the closure only now, because it may have been released since.
            let (closure, isAwaitedOnMain) = self.state.withLock { state in
                (state.closures.cached.take(), state.closures.onMain?.value.cached != nil)
            }
            if !self.isCancelled {
                self.delegate?.requestOperationDidLoadFromCache(self)
                closure?(item)
            }
            guard isAwaitedOnMain else { return delivery.set() }
            WorkQueue.callOnMain(
                {
                    let closures = self.state.withLock { $0.closures.onMain?.value }
                    if !self.isCancelled { closures?.cached?(item) }
                },
                then: delivery.set
            )
        }
    }

    override var stepOutcome: StepOutcome<any Sendable>? {
        guard let undo = option({ $0.undo }), hasOutcome else { return nil }
        if error != nil { return undo.outcomeOfFailure }
        return state.withLock { $0.item }.map { .succeeded($0) }
    }

    // MARK: - Sharing

    /// Returns the role of the operation. An operation that joins another only waits for the carrier of the message.
    override func repeatRole(_ own: RepeatSetting) -> RepeatRole {
        var role = super.repeatRole(own)
        // An operation has its request's policy, unless the request is made later.
        guard own.policy == .join || traits.needsPreparing else { return role }
        if case .request(let source)? = state.withLock({ $0.source }) {
            role.joinsAnother = joins(source, own)
        } else {
            role.joinsAnother = own.policy == .join
        }
        return role
    }

    /// Whether ``RepeatPolicy/join`` can share the response with other operations. Must not change.
    var mayShareAnswer: Bool { true }

    /// - Returns: a closure that gets the response to a message of several operations; `nil` if this operation sends
    ///   its request itself.
    private func sharedResponse(to request: CallRequest) -> (@Sendable () async -> Call.Conclusion)? {
        guard let message = sharedMessage(for: request), let queue = scheduling?.queue else { return nil }
        // The operation has a slot if it joins only because of options that were set after it was added.
        releaseSlot()
        return { await queue.response(to: message, for: self) }
    }

    /// Returns whether another operation sends the request for this one.
    private func joins(_ source: CallRequest, _ own: RepeatSetting) -> Bool {
        let options = source.options
        let (policy, key) = own.over(options)
        // A request of a refresh would wait for requests that wait for the refresh.
        guard policy == .join, mayShareAnswer, option({ $0.undo }) == nil, !own.isPartOfRefresh,
            key != nil || !options.changesMessages
        else { return false }
        // Each operation has its own cached item, and the message can be sent after the others have ended.
        let cache = options.cache ?? callGroup.host.settings.cachePolicy(for: source.request.method)
        return cache.reading != .cacheThenNetwork || ignoresCache
    }

    /// - Returns: the message to share; `nil` if the operation sends its request itself.
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
                // A group that contains the operation already holds its own categories.
                categories: mutualExclusionCategories.subtracting(option({ $0.heldCategories }))
            ),
            snapshot: snapshot,
            host: host ?? snapshot.message.url.hostAndPort,
            checkItem: { _ = try request.item(from: $0) }
        )
    }
}
