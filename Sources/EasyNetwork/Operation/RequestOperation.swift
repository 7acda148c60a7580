import Dispatch
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
/// Or, in a task: `let profile = try await operation.value`. The closures run before dependents start, and are
/// released after that. The answer is decoded and mapped on a background queue.
open class RequestOperation<Request: APIRequest>: ServiceOperation, @unchecked Sendable {
    // Sendable because everything that changes is in `state`, behind its lock; subclasses answer for their own.
    private struct State {
        /// Taken when it is sent.
        var source: Source?
        var closures = EndClosures<@Sendable (Request.Item) -> Void, @Sendable (NetworkError) -> Void>()
        var callbackQueue: DispatchQueue?
        var item: Request.Item?
        var waiters = ValueWaiters<CheckedContinuation<Void, Never>>()
    }

    private enum Source {
        case request(Request)
        /// Called at the start.
        case maker(@Sendable () throws -> Request)
    }

    private let state: Locked<State>

    /// An operation for ``HostConfiguration/shared`` as it is now.
    public init(_ request: Request) {
        state = Locked(State(source: .request(request)))
        super.init()
        adoptOptions(of: request)
    }

    /// - Parameter service: gives the host, and cancels this operation's call when it is cancelled itself.
    public init(_ request: Request, service: EasyNetworkService) {
        state = Locked(State(source: .request(request)))
        super.init(service: service)
        adoptOptions(of: request)
    }

    /// An operation whose request is made when it starts.
    init(service: EasyNetworkService, makeRequest: @escaping @Sendable () throws -> Request) {
        state = Locked(State(source: .maker(makeRequest)))
        super.init(service: service)
    }

    private func adoptOptions(of request: Request) {
        queuePriority = request.priority
        let policy = request.repeatPolicy
        if policy != .allow { repeatPolicy = policy }
    }

    // MARK: - Callbacks

    /// Called once with the item. Set it before the operation is added to a queue. Default nil.
    public final var success: (@Sendable (Request.Item) -> Void)? {
        get { state.withLock { $0.closures.success } }
        set { withExtendedLifetime(state.withLock { $0.closures.setSuccess(newValue) }) {} }
    }

    /// Called once with the error; also when the operation was cancelled or a dependency failed. Set it before the
    /// operation is added to a queue. Default nil.
    public final var failure: (@Sendable (NetworkError) -> Void)? {
        get { state.withLock { $0.closures.failure } }
        set { withExtendedLifetime(state.withLock { $0.closures.setFailure(newValue) }) {} }
    }

    /// Where the closures are called. Default nil: the ``NetworkQueue``'s, or else the host's callback queue.
    public final var callbackQueue: DispatchQueue? {
        get { state.withLock { $0.callbackQueue } }
        set { state.exchange(\.callbackQueue, newValue) }
    }

    /// The host of the request's own address, if it has one, else that of the service. Nil for a request that is made
    /// only at the start and for a host that has no base URL.
    open override var host: String? {
        guard case .request(let request) = state.withLock({ $0.source }) else { return super.host }
        let api = request.api
        // Without a scheme it is a path, as for the one who builds the message; most are, and need no parsing.
        let address = URLBuilder.scheme(of: api) == nil ? nil : URL(string: api)
        return address?.hostAndPort ?? request.baseURL?.hostAndPort ?? super.host
    }

    // MARK: - The outcome

    /// The item or the error; nil while the operation goes on. Known before the closures are called.
    public final var result: Result<Request.Item, NetworkError>? {
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
            // What has finished has a result, see missingResultError().
            guard let result else { throw NetworkError(code: .cancelled) }
            return try result.get()
        }
    }

    /// How many tasks await ``value``.
    final var waiterCount: Int { state.withLock { $0.waiters.count } }

    private func resumeWaiters() {
        for waiter in state.withLock({ $0.waiters.finish() }) { waiter.resume() }
    }

    /// A next operation whose request is made from this one's item.
    ///
    /// It depends on this one: if this one fails, it ends with ``NetworkError/Code/dependencyFailed`` and sends
    /// nothing. Add both to a queue.
    ///
    /// - Parameter next: called once, on a thread of the queue, when the next operation starts. What it throws is the
    ///   next operation's error.
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
        let parent = service.parent ?? EasyNetworkService(service.configuration)
        let operation = RequestOperation<Next>(service: parent, makeRequest: makeRequest)
        operation.addDependency(self)
        return operation
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
        guard let source = state.withLock({ $0.source.take() }) else { return }
        let request: Request
        do {
            request = try Self.request(from: source)
        } catch {
            return finish(.thrown(error, otherwise: .invalidRequest))
        }
        guard noticeRepeats(of: request) else { return }
        let completion: @Sendable (Result<Request.Item, NetworkError>) -> Void = { result in
            switch result {
            case .success(let item):
                self.state.withLock { $0.item = item }
                self.finish()
            case .failure(let error):
                self.finish(error)
            }
        }
        guard let scheduler = scheduling?.scheduler, let message = sharedMessage(for: request) else {
            return _ = service.start(request, map: request.item, completion: completion)
        }
        // One that learned only now that it joins was given a slot.
        releaseSlot()
        setOption(\.isSharing, true)
        service.share(map: request.item) { receive in
            scheduler.operation(self, shares: message, receive: receive)
        } leave: { [weak self] in
            if let self { scheduler.operationDidStopSharing(self) }
        } completion: { result in
            completion(result)
        }
    }

    private static func request(from source: Source) throws -> Request {
        switch source {
        case .request(let request): request
        case .maker(let make): try make()
        }
    }

    /// One that joins only waits for the one that carries the message.
    override var occupiesSlot: Bool { option(\.repeatPolicy) != .join }

    open override var queuePriority: QueuePriority {
        get { super.queuePriority }
        set {
            super.queuePriority = newValue
            if option(\.isSharing) { scheduling?.scheduler.operationDidChangePriorityOfShare(self) }
        }
    }

    override func wasAdded() {
        guard case .request(let request) = state.withLock({ $0.source }) else { return }
        _ = noticeRepeats(of: request)
    }

    override func missingResultError() -> NetworkError? {
        state.withLock { $0.item == nil } ? Self.noItem : nil
    }

    private static var noItem: NetworkError {
        NetworkError(code: .invalidRequest, message: "the operation was finished by hand, without an item")
    }

    override var deliveryQueue: DispatchQueue { callbackQueue ?? super.deliveryQueue }

    override func detach() {
        withExtendedLifetime(state.withLock { $0.closures.take() }) {}
    }

    override func deliver(_ done: @escaping @Sendable () -> Void) {
        // Whatever is let go of here is let go of outside the lock.
        _ = state.withLock { $0.source.take() }
        let result = result
        let isAwaited = state.withLock { state -> Bool in
            state.closures.close()
            return switch result {
            case .success: state.closures.success != nil
            case .failure: state.closures.failure != nil
            case nil: false
            }
        }
        guard isAwaited else {
            detach()
            return done()
        }
        deliveryQueue.async {
            // Taken only now: they may have been let go of meanwhile.
            let (success, failure) = self.state.withLock { $0.closures.take() }
            switch result {
            case .success(let item): success?(item)
            case .failure(let error): failure?(error)
            case nil: break
            }
            done()
        }
    }
}
