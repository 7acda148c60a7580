import Dispatch
import Foundation

/// Sends requests to one host and returns validated answers.
///
/// ```swift
/// let service = EasyNetworkService(HostConfiguration.shared)
/// let response = try await service.send(PingRequest())
/// ```
///
/// Every request ends exactly once, with an answer whose status is accepted or with a ``NetworkError``. All members may
/// be used from any thread. No user code is called on the transport's threads.
public final class EasyNetworkService: Sendable {
    private struct State {
        /// The error of all later requests; nil while requests are accepted.
        var refusal: NetworkError?
        var calls: [ObjectIdentifier: Call] = [:]
        /// The running operation that makes the calls; nil for a service without an operation.
        var operation: (any CallOwner)?
        /// The calls that wait, and need no slot.
        var waiting: Set<ObjectIdentifier> = []
        /// Whether the operation has given its slot back, and may be without it.
        var mayLackSlot = false
        /// How the last call of the operation ended; nil before that.
        var lastEnd: Result<Void, NetworkError>?
        /// Whether a call of the operation has failed, and since then nobody was told of an end.
        var hasUnheardFailure = false
        /// The number of calls by ``request(_:success:failure:)`` whose closures have not returned.
        var pendingCallbackCount = 0
        /// Runs when all calls are over and their closures have returned.
        var idle: (@Sendable () -> Void)?
        /// The queue for the closures of calls that the operation makes after its end.
        var callbackQueue: DispatchQueue?
    }

    /// The host that requests go to.
    public let configuration: HostConfiguration

    /// The service that this one is part of: its cancellation cancels this one too.
    let parent: EasyNetworkService?

    /// The listeners of the queue whose operation needs the refresh that the calls are part of; nil for other services.
    private let broadcast: EventBroadcast?

    private let state = Locked(State())

    /// Creates a service for a host.
    public init(_ configuration: HostConfiguration) {
        self.configuration = configuration
        broadcast = nil
        parent = nil
    }

    /// Creates a service for a refresh.
    init(_ configuration: HostConfiguration, heardBy broadcast: EventBroadcast?) {
        self.configuration = configuration
        self.broadcast = broadcast
        parent = nil
    }

    /// A separate service for one operation, so that cancelling the operation cancels no other calls.
    init(partOf parent: EasyNetworkService) {
        configuration = parent.configuration
        broadcast = parent.broadcast
        self.parent = parent
    }

    /// Sends a request and passes the JSON value of the answer to a closure.
    ///
    /// Exactly one of the two closures is called, once, on the host's ``HostSettings/callbackQueue``, or on the
    /// operation's ``ServiceOperation/callbackQueue`` for the service of a ``ServiceOperation``. Such a service calls
    /// neither closure when the operation was cancelled and ``ServiceOperation/silencesCancellation`` is true, nor
    /// after ``ResponseDecision/stop``, which ends the operation. A call that fails and has no `failure` ends the
    /// operation with its error when no other call of it is under way.
    ///
    /// - Parameters:
    ///   - request: the request.
    ///   - success: gets the body as `JSONSerialization` reads it, nil when the body is empty. Default nil.
    ///   - failure: gets the error; a body that is not JSON is ``NetworkError/Code/cannotParseResponse``. Default nil.
    public func request(
        _ request: some BaseAPIRequest,
        success: (@Sendable (Any?) -> Void)? = nil,
        failure: (@Sendable (NetworkError) -> Void)? = nil
    ) {
        let caller = caller
        let callbackQueue = caller?.operation.deliveryQueue ?? lastCallbackQueue ?? configuration.deliveryQueue
        self.request(request, caller, hearsSuccess: success != nil, hearsFailure: failure != nil) { result, keep in
            WorkQueue.call(on: callbackQueue) {
                // Not before, so that a finish() in the closure finds this end.
                caller?.service.noteEnd(of: result.failure)
                WorkQueue.userCode {
                    switch result {
                    case .success(let json): success?(json.value)
                    case .failure(let error): failure?(error)
                    }
                }
                keep?()
                caller?.callbackIsDone()
            }
        }
    }

    /// - Parameter deliver: called when one of the closures is to be called, with what stores the answer afterwards.
    private func request(
        _ request: some BaseAPIRequest,
        _ caller: Caller?,
        hearsSuccess: Bool,
        hearsFailure: Bool,
        _ deliver: @escaping @Sendable (Result<JSONValue, NetworkError>, _ keep: (@Sendable () -> Void)?) -> Void
    ) {
        caller?.service.callbackIsPending()
        begin(
            request,
            order: .standard,
            map: { JSONValue(value: $0.body.isEmpty ? nil : try $0.json()) }
        ) { _, result, keep in
            let error = result.failure
            if let error, caller?.isSilent(after: error) ?? self.isSilenced(error) {
                caller?.callbackIsDone()
                return
            }
            guard error == nil ? hearsSuccess : hearsFailure else {
                keep?()
                caller?.service.noteEnd(of: error, isHeard: false)
                caller?.callbackIsDone()
                return
            }
            // The closure above made it.
            deliver(result.map { $0 as? JSONValue ?? JSONValue(value: nil) }, keep)
        }
    }

    /// ``request(_:success:failure:)`` for a handler that takes an `NSError`, as `failure: handleFailure`.
    ///
    /// A closure that does not name the type of its parameter gets a ``NetworkError``.
    ///
    /// - Parameters:
    ///   - request: the request.
    ///   - success: gets the body as `JSONSerialization` reads it, nil when the body is empty. Default nil.
    ///   - failure: gets the error in ``NetworkError/errorDomain``, with the number of its ``NetworkError/code``.
    // Without the attribute, a closure with an untyped parameter would fit both.
    @_disfavoredOverload
    public func request(
        _ request: some BaseAPIRequest,
        success: (@Sendable (Any?) -> Void)? = nil,
        failure: (@Sendable (NSError) -> Void)?
    ) {
        guard let failure else { return self.request(request, success: success) }
        self.request(request, success: success) { (error: NetworkError) in failure(error.bridged) }
    }

    /// `request(_:success:failure:)` with closures that run on the main actor, whatever the callback queue is: those of
    /// an operation for a user interface. The main queue must be running: an app's does.
    ///
    /// ```swift
    /// final class SignOut: ServiceOperation, @unchecked Sendable {
    ///     // Sendable because it is set before the operation is added to a queue.
    ///     var done: (@MainActor () -> Void)?
    ///
    ///     override func execute() {
    ///         service.requestOnMain(SignOutRequest(), success: handleSuccess, failure: { self.finish($0) })
    ///     }
    ///
    ///     @MainActor private func handleSuccess(_ response: Any?) {
    ///         done?()
    ///         finish()
    ///     }
    /// }
    /// ```
    ///
    /// - Parameters:
    ///   - request: the request.
    ///   - success: gets the body as `JSONSerialization` reads it, nil when the body is empty; nil for none.
    ///   - failure: gets the error; a body that is not JSON is ``NetworkError/Code/cannotParseResponse``. Default nil.
    public func requestOnMain(
        _ request: some BaseAPIRequest,
        success: (@MainActor (Any?) -> Void)?,
        failure: (@MainActor (NetworkError) -> Void)? = nil
    ) {
        let caller = caller
        self.request(request, caller, hearsSuccess: success != nil, hearsFailure: failure != nil) { result, keep in
            WorkQueue.callOnMain(
                {
                    caller?.service.noteEnd(of: result.failure)
                    switch result {
                    case .success(let json): success?(json.value)
                    case .failure(let error): failure?(error)
                    }
                },
                then: {
                    keep?()
                    caller?.callbackIsDone()
                }
            )
        }
    }

    /// `requestOnMain(_:success:failure:)` for a handler that takes an `NSError`.
    ///
    /// - Parameters:
    ///   - request: the request.
    ///   - success: gets the body as `JSONSerialization` reads it, nil when the body is empty; nil for none.
    ///   - failure: gets the error in ``NetworkError/errorDomain``, with the number of its ``NetworkError/code``.
    // See the other one.
    @_disfavoredOverload
    public func requestOnMain(
        _ request: some BaseAPIRequest,
        success: (@MainActor (Any?) -> Void)?,
        failure: (@MainActor (NSError) -> Void)?
    ) {
        guard let failure else { return requestOnMain(request, success: success) }
        requestOnMain(request, success: success) { (error: NetworkError) in failure(error.bridged) }
    }

    /// Sendable because one closure makes the value and the next reads it, without other references.
    private struct JSONValue: @unchecked Sendable {
        let value: Any?
    }

    /// Sends a request and returns the answer.
    ///
    /// Cancelling the task cancels the request.
    ///
    /// - Parameters:
    ///   - request: the request.
    ///   - ignoringCache: see ``RequestOperation/ignoresCache``. Default false.
    /// - Throws: ``NetworkError/Code/invalidRequest`` for a request that cannot be sent, an error of the transport,
    ///   ``NetworkError/Code/unacceptableStatus``, ``NetworkError/Code/unauthorized``, or
    ///   ``NetworkError/Code/cancelled``.
    public func send(
        _ request: some BaseAPIRequest,
        ignoringCache: Bool = false
    ) async throws(NetworkError) -> NetworkResponse {
        try await perform(request, ignoringCache) { $0 }
    }

    /// Sends a request and returns its item.
    ///
    /// Cancelling the task cancels the request.
    ///
    /// - Parameters:
    ///   - request: the request.
    ///   - ignoringCache: see ``RequestOperation/ignoresCache``. Default false.
    /// - Throws: the errors of ``send(_:ignoringCache:)``, and the error of making the item, as a ``NetworkError``.
    public func perform<Request: APIRequest>(
        _ request: Request,
        ignoringCache: Bool = false
    ) async throws(NetworkError) -> Request.Item {
        try await perform(request, ignoringCache, map: request.item)
    }

    private func perform<Item: Sendable>(
        _ request: some BaseAPIRequest,
        _ ignoringCache: Bool,
        map: @escaping @Sendable (NetworkResponse) throws -> Item
    ) async throws(NetworkError) -> Item {
        guard !Task.isCancelled else { throw NetworkError(code: .cancelled) }
        let caller = caller
        let result = await result(of: request, order: ignoringCache ? .ignore : .standard, map: map)
        caller?.service.noteEnd(of: result.failure)
        return try result.get()
    }

    /// Sends a request and waits for its end. Cancelling the task cancels the call. The parameters are those of
    /// ``start(_:order:use:cached:map:completion:)``.
    func result<Item: Sendable>(
        of request: some BaseAPIRequest,
        order: CacheLookup.Order = .standard,
        using use: BodyUse? = nil,
        map: @escaping @Sendable (NetworkResponse) throws -> Item
    ) async -> Result<Item, NetworkError> {
        // A separate service, so that all calls for this request are cancelled with the task.
        let service = EasyNetworkService(partOf: self)
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                service.start(request, order: order, use: use, map: map) { continuation.resume(returning: $0) }
            }
        } onCancel: {
            service.cancel()
        }
    }

    /// Cancels all calls, and refuses later ones with ``NetworkError/Code/cancelled``.
    public func cancel() {
        refuse(NetworkError(code: .cancelled))
    }

    /// Ends all calls, and all later ones, with this error; the first error stays.
    func refuse(_ error: NetworkError) {
        let (calls, refusal) = state.withLock { state in
            let refusal = state.refusal ?? error
            state.refusal = refusal
            return (Array(state.calls.values), refusal)
        }
        for call in calls { call.fail(refusal) }
    }

    /// Sends a request.
    ///
    /// - Parameters:
    ///   - order: how the cache is asked. Default ``CacheLookup/Order/standard``.
    ///   - use: how an accepted body is used; then the answer has no body, and the cache is not asked. Default nil.
    ///   - cached: called at most once before the completion, on ``WorkQueue``, with the item from the cache that is
    ///     followed by the network's.
    ///   - map: makes the item from an accepted answer, on ``WorkQueue``.
    ///   - completion: called exactly once, on ``WorkQueue``.
    func start<Item: Sendable>(
        _ request: some BaseAPIRequest,
        order: CacheLookup.Order = .standard,
        use: BodyUse? = nil,
        cached: (@Sendable (Item) -> Void)? = nil,
        map: @escaping @Sendable (NetworkResponse) throws -> Item,
        completion: @escaping @Sendable (Result<Item, NetworkError>) -> Void
    ) {
        // Each item was made by `map`: the cast holds.
        // swift-format-ignore: NeverForceUnwrap
        @Sendable func typed(_ item: any Sendable) -> Item { item as! Item }
        var erasedCached: (@Sendable (any Sendable) -> Void)?
        if let cached { erasedCached = { item in cached(typed(item)) } }
        begin(
            request,
            order: order,
            use: use,
            cached: erasedCached,
            map: { response in try map(response) },
            completion: { _, result, keep in
                keep?()
                completion(result.map(typed))
            }
        )
    }

    /// Sends a request for an item of any type. It is not generic, as reading a type's layout at run time costs each
    /// request.
    ///
    /// - Parameters:
    ///   - isAnnounced: whether notifications are posted for the call. Default true.
    ///   - sharedAnswer: gets the answer from another call, instead of sending the request. Default nil.
    ///   - created: gets the call before it begins.
    ///   - completion: gets the answer too, if there is one, even when it could not be mapped; and a closure that
    ///     stores it in the cache, to be called when the user's callbacks have returned, nil when there is nothing to
    ///     store.
    func begin(
        _ request: any BaseAPIRequest,
        isAnnounced: Bool = true,
        order: CacheLookup.Order,
        use: BodyUse? = nil,
        cached: (@Sendable (any Sendable) -> Void)? = nil,
        sharedAnswer: (@Sendable () async -> CallAttempts.Answer)? = nil,
        map: @escaping @Sendable (NetworkResponse) throws -> any Sendable,
        created: (Call) -> Void = { _ in },
        completion:
            @escaping @Sendable (
                NetworkResponse?, Result<any Sendable, NetworkError>, _ keep: (@Sendable () -> Void)?
            ) -> Void
    ) {
        if isAnnounced { tellOfStart(request) }
        let end = {
            @Sendable
            (
                call: Call,
                response: NetworkResponse?,
                result: Result<any Sendable, NetworkError>,
                keep: (@Sendable () -> Void)?
            ) in
            self.tell(.callEnded(result.failure), of: call)
            if isAnnounced { self.tellOfEnd(request, response, result.failure) }
            completion(response, result, keep)
        }
        let call = Call { call, error in
            self.forget(call)
            self.forgetStored(after: .failure(error))
            end(call, nil, .failure(error), nil)
        }
        let (refusal, caller, mayLackSlot) = remember(call)
        tell(.callStarted, of: call)
        created(call)
        if let refusal { return call.fail(refusal) }
        let begin = { (beginning: OneShot?) in
            call.begin {
                if let beginning { await beginning.wait() }
                if mayLackSlot { await caller?.waitForSlot(call) }
                guard !Task.isCancelled else { return }
                var order = order
                var cached = cached.map { cached in
                    { @Sendable (response: NetworkResponse) in
                        // An unreadable item is skipped; the network's will follow.
                        if case .success(let item) = response.item(map) { cached(item) }
                    }
                }
                var answer: CallAttempts.Answer
                var item: Result<any Sendable, NetworkError>
                repeat {
                    if let sharedAnswer {
                        answer = await sharedAnswer()
                    } else {
                        answer = await self.answer(to: request, call, caller, order, use, cached)
                    }
                    item = answer.result.flatMap { $0.item(map) }
                    // When a stored answer can no longer be read, the request is sent.
                    (order, cached) = (.pass(.unreadable), nil)
                } while !Task.isCancelled && self.removeUnusable(answer, after: item.failure)
                guard call.end() else { return }
                self.forget(call)
                self.forgetStored(after: answer.result)
                var keep: (@Sendable () -> Void)?
                if case .success = item, answer.errand != nil {
                    keep = { [answer] in self.keep(answer, request, map) }
                }
                WorkQueue.finish { [answer, item, keep] in end(call, try? answer.result.get(), item, keep) }
            }
        }
        if let operation = caller?.operation { operation.beginCall(begin) } else { begin(nil) }
    }

    private func tell(_ kind: @autoclosure () -> NetworkEvent.Kind, of call: Call) {
        guard configuration.broadcast.isHeard else { return }
        configuration.tell(kind(), of: call, caller?.operation)
    }

    private func answer(
        to request: some BaseAPIRequest,
        _ call: Call,
        _ caller: Caller?,
        _ order: CacheLookup.Order,
        _ use: BodyUse?,
        _ cached: (@Sendable (NetworkResponse) -> Void)?
    ) async -> CallAttempts.Answer {
        do throws(NetworkError) {
            let message = try RequestBuilder.build(request, for: configuration)
            let context = try CallContext(
                configuration,
                request,
                message,
                caller: caller,
                heardBy: broadcast,
                order: order,
                use: use,
                cached: cached
            )
            configuration.payForRetries()
            if let timeout = context.timeout { call.setDeadline(timeout, context.clock) }
            var attempts = CallAttempts(message, context, of: call)
            return await attempts.answer()
        } catch {
            return CallAttempts.Answer(result: .failure(error))
        }
    }

    // MARK: - Under way

    /// - Returns: the error, when this service or one that it is part of has been cancelled; else the operation that
    ///   makes the call, and whether it may be without its slot.
    func remember(_ call: Call) -> (refusal: NetworkError?, caller: Caller?, mayLackSlot: Bool) {
        let (refusal, operation, mayLackSlot) = state.withLock { state in
            if state.refusal == nil { state.calls[ObjectIdentifier(call)] = call }
            return (state.refusal, state.operation, state.mayLackSlot)
        }
        if let refusal { return (refusal, nil, false) }
        let above = parent?.remember(call)
        guard let operation else { return above ?? (nil, nil, false) }
        return (above?.refusal, Caller(operation, self), mayLackSlot)
    }

    func forget(_ call: Call) {
        let waits = state.withLock { state in
            state.calls[ObjectIdentifier(call)] = nil
            if !state.waiting.isEmpty { state.waiting.remove(ObjectIdentifier(call)) }
            return state.waiting.isEmpty ? nil : state.operation
        }
        // The last active call has begun to wait or has ended.
        waits?.releaseSlot { self.allCallsWait() }
        parent?.forget(call)
    }

    // MARK: - The calls of an operation

    /// - Parameter operation: the started operation that makes the calls from now on.
    func setOperation(_ operation: any CallOwner) {
        state.withLock { $0.operation = operation }
    }

    /// The operation finishes.
    ///
    /// - Parameter callbackQueue: for the closures of calls that it makes afterwards.
    func removeOperation(callbackQueue: DispatchQueue?) {
        // Released outside the lock.
        let old = state.withLock { state in
            state.callbackQueue = callbackQueue
            return state.operation.take()
        }
        withExtendedLifetime(old) {}
    }

    /// The queue of the closures when the operation has finished.
    var lastCallbackQueue: DispatchQueue? { state.withLock { $0.callbackQueue } }

    func callbackIsPending() {
        state.withLock { $0.pendingCallbackCount += 1 }
    }

    /// The closures of a call have returned, or are not called.
    ///
    /// - Returns: whether the last call of the operation is over, and nobody heard that one of them failed.
    func callbackIsDone() -> Bool {
        let (idle, isUnheard) = state.withLock { state in
            state.pendingCallbackCount -= 1
            guard state.pendingCallbackCount == 0 else { return ((@Sendable () -> Void)?.none, false) }
            return (state.idle.take(), state.hasUnheardFailure && state.calls.isEmpty)
        }
        idle?()
        return isUnheard
    }

    /// Runs an action when the closures of all calls have returned, if all calls are refused and so end at once; else
    /// at once.
    func whenRefusedCallsAreDone(_ action: @escaping @Sendable () -> Void) {
        let isIdle = state.withLock { state in
            guard state.refusal != nil, state.pendingCallbackCount > 0 else { return true }
            state.idle = action
            return false
        }
        if isIdle { action() }
    }

    /// The operation that makes the calls of this service, or of the one it is part of.
    var caller: Caller? {
        guard let operation = state.withLock({ $0.operation }) else { return parent?.caller }
        return Caller(operation, self)
    }

    /// Whether the error comes from the service's own operation, whose closures are not called.
    private func isSilenced(_ error: NetworkError) -> Bool {
        error.isSilent && (state.withLock { $0.refusal?.isSilent } ?? parent?.isSilenced(error) ?? false)
    }

    func noteWaiting(_ call: Call) {
        state.withLock { state in
            let id = ObjectIdentifier(call)
            if state.calls[id] != nil { state.waiting.insert(id) }
        }
    }

    func noteGoingOn(_ call: Call) {
        state.withLock { _ = $0.waiting.remove(ObjectIdentifier(call)) }
    }

    /// Whether no call is at work, so that the slot is given back. Asked under the queue's lock.
    func allCallsWait() -> Bool {
        state.withLock { state in
            guard !state.waiting.isEmpty, state.waiting.count == state.calls.count else { return false }
            state.mayLackSlot = true
            return true
        }
    }

    /// A call of the operation has ended.
    ///
    /// - Parameters:
    ///   - error: nil for success.
    ///   - isHeard: whether a closure or a task is told. Default true.
    func noteEnd(of error: NetworkError?, isHeard: Bool = true) {
        // The previous error is released outside the lock.
        let old = state.withLock { state -> Result<Void, NetworkError>? in
            if isHeard { state.hasUnheardFailure = false } else if error != nil { state.hasUnheardFailure = true }
            // Other calls may have been cancelled because of how the first one ended.
            if error?.code == .cancelled, state.lastEnd != nil { return nil }
            defer { state.lastEnd = error.map { .failure($0) } ?? .success(()) }
            return state.lastEnd
        }
        withExtendedLifetime(old) {}
    }

    /// Why the last call of the operation failed; nil when it did not.
    var failureOfLastCall: NetworkError? {
        state.withLock { $0.lastEnd }?.failure
    }
}

extension Result {
    var failure: Failure? {
        guard case .failure(let error) = self else { return nil }
        return error
    }
}
