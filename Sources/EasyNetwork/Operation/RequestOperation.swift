import Dispatch
import Foundation

/// The state of a ``RequestOperation``, behind its lock. It is not generic: reading a generic type's layout at run time
/// costs each request some 30,000 instructions.
struct RequestOperationState {
    enum Source {
        case request(any APIRequest)
        /// Called at the start.
        case maker(@Sendable () throws -> any APIRequest)
    }

    typealias Item = any Sendable
    typealias ResultCallback = @Sendable (Result<Item, NetworkError>) -> Void

    /// Taken when it is sent.
    var source: Source?
    var closures = Callbacks<@Sendable (Item) -> Void, @Sendable (NetworkError) -> Void>()
    var preprocess: ResultCallback?
    var willDeliver: ResultCallback?
    weak var delegate: (any RequestOperationDelegate)?
    /// Whether the priority was given to the operation itself, so that its request's does not count.
    var hasOwnPriority = false
    var item: Item?
    var early = EarlyItem()
    var waiters = ValueWaiters<CheckedContinuation<Void, Never>>()
    /// The request under way.
    var call: Call?
}

/// A job that carries one ``APIRequest`` to one outcome: its item, or a ``NetworkError``.
///
/// ```swift
/// let operation = RequestOperation(ProfileRequest(user: 7))
/// operation.success = { profile in print(profile.name) }
/// operation.failure = { error in print(error.localizedDescription) }
/// NetworkQueue.shared.addOperation(operation)
/// ```
///
/// Or, in a task: `let profile = try await operation.value`. The closures run before dependents start, and are
/// released after that. The answer is decoded and mapped on a background queue.
open class RequestOperation<Request: APIRequest>: ServiceOperation, @unchecked Sendable {
    // Sendable because everything that changes is in `state`, behind its lock; subclasses answer for their own.
    let state: Locked<RequestOperationState>

    /// Whether the request is made at the start.
    private let makesRequest: Bool

    /// An operation for ``HostConfiguration/shared`` as it is now.
    public init(_ request: Request) {
        state = Locked(RequestOperationState(source: .request(request)))
        makesRequest = false
        super.init()
        adoptOptions(of: request)
    }

    /// - Parameter service: gives the host, and cancels this operation's call when it is cancelled itself.
    public init(_ request: Request, service: EasyNetworkService) {
        state = Locked(RequestOperationState(source: .request(request)))
        makesRequest = false
        super.init(service: service)
        adoptOptions(of: request)
    }

    /// An operation whose request is made when it starts.
    init(service: EasyNetworkService, makeRequest: @escaping @Sendable () throws -> Request) {
        state = Locked(RequestOperationState(source: .maker(makeRequest)))
        makesRequest = true
        super.init(service: service)
    }

    private func adoptOptions(of request: Request) {
        let priority = request.priority
        if priority != .normal { queuePriority = priority }
        let policy = request.repeatPolicy
        if policy != .allow { repeatPolicy = policy }
    }

    // MARK: - Callbacks

    /// Told of the end, on the callback queue, before the closures; not kept alive. Default nil.
    public final var delegate: (any RequestOperationDelegate)? {
        get { state.withLock { $0.delegate } }
        set { state.withLock { $0.delegate = newValue } }
    }

    /// Called once with the result before all other callbacks, on a background queue and not on the callback queue: for
    /// work that would hold that up. Set it before the operation is added to a queue. Default nil.
    public final var preprocess: (@Sendable (Result<Request.Item, NetworkError>) -> Void)? {
        get { Self.typedCallback(state.withLock { $0.preprocess }) }
        set { replace(newValue.map(Self.erasedCallback)) { state, closure in swap(&state.preprocess, &closure) } }
    }

    /// Called once with the result on the callback queue, after ``preprocess`` and before the delegate and the closures.
    /// Set it before the operation is added to a queue. Default nil.
    public final var willDeliver: (@Sendable (Result<Request.Item, NetworkError>) -> Void)? {
        get { Self.typedCallback(state.withLock { $0.willDeliver }) }
        set { replace(newValue.map(Self.erasedCallback)) { state, closure in swap(&state.willDeliver, &closure) } }
    }

    /// Called at most once, before ``success``, with the cache's item, when the network's will follow: the policy is
    /// ``CachePolicy/Reading/cacheThenNetwork``. Not once the operation is cancelled. Set it before the operation is added to
    /// a queue. Default nil.
    public final var cached: (@Sendable (Request.Item) -> Void)? {
        get { Self.typed(state.withLock { $0.early.closure }) }
        set { replace(newValue.map(Self.erased)) { $1 = $0.early.set($1) } }
    }

    /// Called once with the item. Set it before the operation is added to a queue. Default nil.
    public final var success: (@Sendable (Request.Item) -> Void)? {
        get { Self.typed(state.withLock { $0.closures.success }) }
        set { replace(newValue.map(Self.erased)) { $1 = $0.closures.setSuccess($1) } }
    }

    /// Called once with the error; also when the operation was cancelled or a dependency failed. Set it before the
    /// operation is added to a queue. Default nil.
    public final var failure: (@Sendable (NetworkError) -> Void)? {
        get { state.withLock { $0.closures.failure } }
        set { replace(newValue) { $1 = $0.closures.setFailure($1) } }
    }

    /// Puts a closure into the state; what is not kept is released outside the lock.
    private func replace<Closure>(_ closure: Closure, _ change: (inout RequestOperationState, inout Closure) -> Void) {
        var closure = closure
        state.withLock { change(&$0, &closure) }
    }

    // Each item in the state was made by this request: the cast holds.
    // swift-format-ignore: NeverForceUnwrap
    static func typedItem(_ item: any Sendable) -> Request.Item { item as! Request.Item }

    private static func erased(
        _ closure: @escaping @Sendable (Request.Item) -> Void
    ) -> @Sendable (any Sendable) -> Void {
        { item in closure(typedItem(item)) }
    }

    private static func erasedCallback(
        _ closure: @escaping @Sendable (Result<Request.Item, NetworkError>) -> Void
    ) -> RequestOperationState.ResultCallback {
        { result in closure(result.map { typedItem($0) }) }
    }

    private static func typed(_ closure: (@Sendable (any Sendable) -> Void)?) -> (@Sendable (Request.Item) -> Void)? {
        guard let closure else { return nil }
        return { item in closure(item) }
    }

    private static func typedCallback(
        _ closure: RequestOperationState.ResultCallback?
    ) -> (@Sendable (Result<Request.Item, NetworkError>) -> Void)? {
        guard let closure else { return nil }
        return { result in closure(result.map { item in item as any Sendable }) }
    }

    /// The host that the request goes to: that of its ``BaseAPIRequest/customURLRequest``, of its own address, of its
    /// ``BaseAPIRequest/baseURL``, of the CDN, or of the service, in this order. Changes of the address by a filter or an
    /// interceptor are not foreseen. That of the service until the request is made; nil if that has no base URL.
    open override var host: String? {
        guard case .request(let request) = state.withLock({ $0.source }) else { return super.host }
        if let custom = request.customURLRequest { return custom.url?.hostAndPort }
        let cdn = request.useCDN ? service.configuration.settings.cdnURL : nil
        return URLParts.hostAndPort(of: request.api) ?? (request.baseURL ?? cdn)?.hostAndPort ?? super.host
    }

    // MARK: - The outcome

    /// The item or the error; nil while the operation goes on. Known before the closures are called.
    public final var result: Result<Request.Item, NetworkError>? {
        guard hasOutcome else { return nil }
        if let error { return .failure(error) }
        return state.withLock { $0.item }.map { .success(Self.typedItem($0)) }
    }

    /// ``result`` without its type.
    private var erasedResult: Result<any Sendable, NetworkError>? {
        guard hasOutcome else { return nil }
        if let error { return .failure(error) }
        return state.withLock { $0.item }.map(Result.success)
    }

    /// The item, when the operation has finished and its closures have run. Several tasks may wait for it.
    ///
    /// Add the operation to a queue first, or later: nothing here starts it. A task that is cancelled while it waits
    /// goes on at once: with the item if that is there, else with ``NetworkError/Code/cancelled``. The operation is
    /// cancelled with it only if no other task waits.
    ///
    /// - Throws: the operation's error.
    public final var value: Request.Item {
        get async throws(NetworkError) {
            let (number, mustWatch) = state.withLock { $0.waiters.enter() }
            if mustWatch { whenFinished { [weak self] in self?.resumeWaiters() } }
            await withTaskCancellationHandler {
                await withCheckedContinuation { continuation in
                    let waits = state.withLock { $0.waiters.wait(number, continuation) }
                    if !waits { continuation.resume() }
                }
            } onCancel: {
                let (continuation, wasLast) = state.withLock { $0.waiters.leave(number) }
                if wasLast { cancel() }
                // Not only when it has finished: one that is on no queue never does.
                continuation?.resume()
            }
            // A finished operation has a result, see missingResultError().
            guard let result else { throw NetworkError(code: .cancelled) }
            return try result.get()
        }
    }

    /// How many tasks await ``value``.
    final var waiterCount: Int { state.withLock { $0.waiters.count } }

    final func resumeWaiters() {
        for waiter in state.withLock({ $0.waiters.finish() }) { waiter.resume() }
    }

    /// A next operation whose request is made from this one's item.
    ///
    /// It depends on this one: if this one fails, it ends with ``NetworkError/Code/dependencyFailed`` and sends
    /// nothing. Add both to a queue.
    ///
    /// - Parameter next: called once, on a thread of the queue, when this operation has succeeded and before the next one
    ///   waits for its turn, which it does with the priority and under the host of its request. An error that it throws is the next
    ///   operation's error.
    public final func then<Next: APIRequest>(
        _ next: @escaping @Sendable (Request.Item) throws -> Next
    ) -> RequestOperation<Next> {
        let item = itemOfDependency
        return nextOperation { try next(item()) }
    }

    /// An operation for the same host that depends on this one.
    final func nextOperation<Next: APIRequest>(
        _ makeRequest: @escaping @Sendable () throws -> Next
    ) -> RequestOperation<Next> {
        let operation = RequestOperation<Next>(service: nextService, makeRequest: makeRequest)
        operation.addDependency(self)
        return operation
    }

    /// The service of an operation that follows: it is cancelled with that of this one, and not with this one.
    final var nextService: EasyNetworkService {
        service.parent ?? EasyNetworkService(service.configuration)
    }

    /// Reads the item in an operation that depends on this one.
    final var itemOfDependency: @Sendable () throws -> Request.Item {
        { [weak self] in
            // The dependency keeps this operation alive; it is gone only if the user took that back.
            guard let item = try self?.result?.get() else { throw Self.noItem }
            return item
        }
    }

    // MARK: - The work

    open override func execute() {
        guard let request = takeRequest() else { return }
        let completion: @Sendable (Result<any Sendable, NetworkError>) -> Void = { result in
            switch result {
            case .success(let item):
                self.state.withLock { $0.item = item }
                self.end(nil)
            case .failure(let error): self.finish(error)
            }
        }
        let map = { @Sendable (response: NetworkResponse) throws -> any Sendable in try request.item(from: response) }
        guard let scheduler = scheduling?.queue, let message = sharedMessage(for: request) else {
            let call = service.begin(
                sendable(request),
                order: ignoresCache ? .ignore : .standard,
                cached: deliverEarly,
                map: map
            ) { completion($1) }
            state.withLock { $0.call = call }
            // It may have ended meanwhile.
            if hasOutcome { cancelIfFailed(state.withLock { $0.call.take() }) }
            return
        }
        // An operation that learned only now that it joins has a slot.
        releaseSlot()
        setOption(true) { swap(&$0.isSharing, &$1) }
        service.share(map: map) { receive in
            scheduler.operation(self, shares: message, receive: receive)
        } leave: { [weak self] in
            if let self { scheduler.operationDidStopSharing(self) }
        } completion: {
            completion($0)
        }
    }

    override func stop() {
        // At once: what is fetched for this one alone is not sent any more when the cancel has returned.
        if option({ $0.isSharing }) { scheduling?.queue.operationDidStopSharing(self) }
        super.stop()
    }

    /// The request to send: this one, or a wrapper around it. The answer is mapped by the request itself.
    func sendable(_ request: Request) -> any BaseAPIRequest { request }

    /// Whether ``RepeatPolicy/join`` may let others have the answer. Must not change.
    var mayShareAnswer: Bool { true }

    override var isPreparedFirst: Bool { makesRequest }

    override var startRunsUserCode: Bool { type(of: self) != RequestOperation<Request>.self }

    /// Makes the request, and takes over its priority unless the operation was given its own.
    override func prepare() {
        guard let source = state.withLock({ $0.source.take() }) else { return }
        do {
            let request = try Self.request(from: source)
            state.withLock { $0.source = .request(request) }
            // It may have ended meanwhile.
            if hasOutcome { return withExtendedLifetime(state.withLock { $0.source.take() }) {} }
            let priority = request.priority
            if priority != .normal, !state.withLock({ $0.hasOwnPriority }) { queuePriority = priority }
        } catch {
            finish(.thrown(error, otherwise: .invalidRequest))
        }
    }

    /// The request that is to be sent now; nil when there is none, or none any more. Then the operation ends.
    final func takeRequest() -> Request? {
        guard let source = state.withLock({ $0.source.take() }) else { return nil }
        do {
            let request = try Self.request(from: source)
            return noticeRepeats(of: request) ? request : nil
        } catch {
            finish(.thrown(error, otherwise: .invalidRequest))
            return nil
        }
    }

    private static func request(from source: RequestOperationState.Source) throws -> Request {
        let request =
            switch source {
            case .request(let request): request
            case .maker(let make): try WorkQueue.userCode(make)
            }
        // Each source makes a request of this type: the cast holds.
        // swift-format-ignore: NeverForceUnwrap
        return request as! Request
    }

    final func finish(with item: Request.Item) {
        state.withLock { $0.item = item }
        end(nil)
    }

    /// An operation that joins only waits for the carrier of the message.
    override var occupiesSlot: Bool { option({ $0.repeatPolicy }) != .join }

    open override var queuePriority: QueuePriority {
        get { super.queuePriority }
        set {
            state.withLock { $0.hasOwnPriority = true }
            super.queuePriority = newValue
            if option({ $0.isSharing }) { scheduling?.queue.operationDidChangePriorityOfShare(self) }
        }
    }

    override func wasAdded() {
        guard case .request(let source) = state.withLock({ $0.source }), let request = source as? Request else {
            return
        }
        _ = noticeRepeats(of: request)
    }

    override func missingResultError() -> NetworkError? {
        state.withLock { $0.item == nil } ? Self.noItem : nil
    }

    private static var noItem: NetworkError {
        NetworkError(code: .invalidRequest, message: "the operation was finished by hand, without an item")
    }

    override func detach() {
        let released = state.withLock { state in
            state.delegate = nil
            return (state.closures.take(), state.preprocess.take(), state.willDeliver.take(), state.early.close())
        }
        withExtendedLifetime(released) {}
    }

    override func deliver(_ done: @escaping @Sendable () -> Void) {
        // Everything taken here is released outside the lock.
        let (_, call, early) = state.withLock { ($0.source.take(), $0.call.take(), $0.early.end()) }
        cancelIfFailed(call)
        guard let early else { return deliverResult(done) }
        early.begin { self.deliverResult(done) }
    }

    /// Cancels the call if the operation was finished manually.
    private func cancelIfFailed(_ call: Call?) {
        if error != nil { call?.cancel() }
    }

    private func deliverResult(_ done: @escaping @Sendable () -> Void) {
        let error = error
        // Asked before, as it is behind the lock, too.
        let isSilent = error.map { $0.isSilent || $0.code == .cancelled && silencesCancellation } ?? false
        // No closure is taken in from now on. The delegate comes along, as we may be the last to hold it.
        var (isAwaited, hasCallbacks) = (false, false)
        let delegate = state.withLock { state in
            state.closures.close()
            let delegate = state.delegate
            let (hasSuccess, hasFailure) = (state.closures.success != nil, state.closures.failure != nil)
            let hasOthers = delegate != nil || state.preprocess != nil || state.willDeliver != nil
            isAwaited = hasOthers || (error == nil ? hasSuccess : hasFailure)
            hasCallbacks = hasOthers || hasSuccess || hasFailure || state.early.closure != nil
            return delegate
        }
        withExtendedLifetime(delegate) {}
        guard isAwaited, !isSilent, let result = erasedResult else {
            if hasCallbacks { detach() }
            return done()
        }
        guard let preprocess = state.withLock({ $0.preprocess.take() }) else { return hand(over: result, done) }
        WorkQueue.shared.async {
            preprocess(result)
            self.hand(over: result, done)
        }
    }

    private func hand(over result: Result<any Sendable, NetworkError>, _ done: @escaping @Sendable () -> Void) {
        WorkQueue.call(on: deliveryQueue) {
            // Taken only now: they may have been released before.
            let (closures, willDeliver, cached) = self.state.withLock {
                ($0.closures.take(), $0.willDeliver.take(), $0.early.close())
            }
            WorkQueue.userCode {
                withExtendedLifetime(cached) {}
                willDeliver?(result)
                switch result {
                case .success(let item):
                    self.delegate?.requestOperationDidSucceed(self)
                    closures.success?(item)
                case .failure(let error):
                    self.delegate?.requestOperation(self, didFailWith: error)
                    closures.failure?(error)
                }
            }
            done()
        }
    }
}
