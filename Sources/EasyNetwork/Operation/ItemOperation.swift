import Dispatch
import Foundation

/// A job that ends with an item or a ``NetworkError``: a ``RequestOperation`` or a ``DownloadOperation``.
///
/// ```swift
/// func show<Item>(_ operation: ItemOperation<Item>) {
///     operation.success = { item in print(item) }
///     operation.failure = { error in print(error.localizedDescription) }
/// }
/// ```
///
/// In a task, write `let item = try await operation.value`. The closures run before dependents start, and are then
/// released.
open class ItemOperation<Item: Sendable>: ServiceOperation, @unchecked Sendable {
    // Sendable because all mutable state is in `state`, under its lock. Subclasses are responsible for their own state.
    let state: Locked<ItemOperationState>

    /// - Parameter service: the service; `nil` for ``HostConfiguration/shared``.
    package init(_ request: any BaseAPIRequest, _ options: RequestOptions, of service: EasyNetworkService?) {
        state = Locked(ItemOperationState(source: .request(CallRequest(request, options))))
        if let service { super.init(service: service) } else { super.init() }
        if options.priority != .normal { queuePriority = options.priority }
        if options.repeatKey != nil { setOption(\.requestHasKey, true) }
        if options.repeatPolicy != .allow { repeatPolicy = options.repeatPolicy }
    }

    /// Creates an operation whose request is made when its dependencies have ended, before it waits for its turn. On a
    /// plain `OperationQueue`, the request is made when the operation starts.
    init(service: EasyNetworkService, makeRequest: @escaping @Sendable () throws -> any BaseAPIRequest) {
        state = Locked(ItemOperationState(source: .maker(makeRequest)))
        super.init(service: service)
        traits.needsPreparing = true
    }

    // MARK: - Callbacks

    /// The delegate, which is notified of the end on the callback queue, before the closures. Held weakly. Defaults to
    /// `nil`.
    public final var delegate: (any RequestOperationDelegate)? {
        get { state.withLock { $0.delegate } }
        set { state.withLock { $0.delegate = newValue } }
    }

    /// A closure that is called once with the result before all other callbacks of the end. It runs on a background
    /// queue instead of the callback queue, for work that would block the callback queue. It does not get the cache's
    /// item; ``RequestOperation/cached`` has returned before. Set it before the operation is added to a queue. Defaults
    /// to `nil`.
    public final var preprocess: (@Sendable (Result<Item, NetworkError>) -> Void)? {
        get { Self.closure(state.withLock { $0.closures.preprocess }) }
        set { state.setClosure(isRemoved: newValue == nil) { $0.preprocess = Self.erased(newValue) } }
    }

    /// A closure that is called once with the result on the callback queue, after ``preprocess`` and before the
    /// delegate and the other closures. Set it before the operation is added to a queue. Defaults to `nil`.
    public final var willDeliver: (@Sendable (Result<Item, NetworkError>) -> Void)? {
        get { Self.closure(state.withLock { $0.closures.willDeliver }) }
        set { state.setClosure(isRemoved: newValue == nil) { $0.willDeliver = Self.erased(newValue) } }
    }

    /// A closure that is called once with the item. Set it before the operation is added to a queue. Defaults to `nil`.
    public final var success: (@Sendable (Item) -> Void)? {
        get { state.withLock { $0.closures.success } }
        set { state.setClosure(isRemoved: newValue == nil) { $0.success = Self.erased(newValue) } }
    }

    /// A closure that is called once with the error, even if the operation was cancelled or a dependency failed. Set it
    /// before the operation is added to a queue. Defaults to `nil`.
    public final var failure: (@Sendable (NetworkError) -> Void)? {
        get { state.withLock { $0.closures.failure } }
        set { state.setClosure(isRemoved: newValue == nil) { $0.failure = newValue } }
    }

    /// Sets closures that run on the main actor, for user interfaces, whichever queue the callback queue is.
    ///
    /// ```swift
    /// @MainActor final class Screen {
    ///     var title = ""
    ///
    ///     func load() {
    ///         let profile = RequestOperation(GetProfile())
    ///         profile.onMain(success: { self.title = $0.name }, failure: { self.title = $0.localizedDescription })
    ///         NetworkQueue.shared.addOperation(profile)
    ///     }
    /// }
    /// ```
    ///
    /// Each closure is called once, after the closure of the same name that runs on the callback queue and before
    /// dependents start. It is released on the main thread. The main queue must be running, as it is in an app. Set
    /// the closures before the operation is added to a queue. A second call replaces only the closures that it passes.
    ///
    /// - Parameters:
    ///   - success: gets the item, after ``success``. `nil` keeps the current closure.
    ///   - failure: gets the error, after ``failure``. Defaults to `nil`, which keeps the current closure.
    ///   - cached: gets the cache's item, after ``RequestOperation/cached``. Defaults to `nil`, which keeps the current
    ///     closure.
    public final func onMain(
        success: (@MainActor (Item) -> Void)?,
        failure: (@MainActor (NetworkError) -> Void)? = nil,
        cached: (@MainActor (Item) -> Void)? = nil
    ) {
        var erased: (@MainActor (any Sendable, NetworkResponse?) -> Void)?
        if let success { erased = { item, _ in success(CallGroup.typed(item)) } }
        setOnMain(erased, failure, cached)
    }

    final func setOnMain(
        _ success: (@MainActor (any Sendable, NetworkResponse?) -> Void)?,
        _ failure: (@MainActor (NetworkError) -> Void)?,
        _ typedCached: (@MainActor (Item) -> Void)?
    ) {
        var cached: (@MainActor (any Sendable) -> Void)?
        if let typedCached { cached = { typedCached(CallGroup.typed($0)) } }
        state.setClosure(isRemoved: false) { closures in
            var onMain = closures.onMain?.value ?? ItemOperationState.ClosuresOnMain()
            if let success { onMain.success = success }
            if let failure { onMain.failure = failure }
            if let cached { onMain.cached = cached }
            closures.onMain = Shared(onMain)
        }
    }

    /// Returns the closure with its parameter type erased, as the state stores it.
    static func erased(_ closure: (@Sendable (Item) -> Void)?) -> (@Sendable (any Sendable) -> Void)? {
        guard let closure else { return nil }
        // The operation's call created all items of the state.
        return { closure(CallGroup.typed($0)) }
    }

    private typealias Results<Value> = @Sendable (Result<Value, NetworkError>) -> Void

    private static func erased(_ closure: Results<Item>?) -> Results<any Sendable>? {
        guard let closure else { return nil }
        return { closure($0.map { CallGroup.typed($0) }) }
    }

    private static func closure(_ erased: Results<any Sendable>?) -> Results<Item>? {
        guard let erased else { return nil }
        return { erased($0.map { $0 }) }
    }

    /// The host that the request is sent to. It comes from the first of these that is set: the request's
    /// ``RequestOptions/customURLRequest``, its own URL, its ``RequestOptions/baseURL``, the CDN, or the service. Later
    /// changes of the URL by a filter or an interceptor are not taken into account. Until the request is made, it is
    /// the service's host; `nil` if the service has no base URL.
    open override var host: String? {
        let made = state.withLock { state -> (request: any BaseAPIRequest, options: RequestOptions)? in
            guard case .request(let source) = state.source else { return nil }
            return (source.request, source.options)
        }
        guard let (request, options) = made else { return super.host }
        if let custom = options.customURLRequest { return custom.url?.hostAndPort }
        if let own = URLParts.hostAndPort(of: request.api) { return own }
        let base = options.baseURL ?? (options.useCDN ? callGroup.host.settings.cdnURL : nil)
        return base?.hostAndPort ?? super.host
    }

    /// The message that was sent last; before that, the request without the changes of filters and interceptors.
    override var requestText: String? {
        let (source, call) = state.withLock { ($0.source, $0.call) }
        if let sent = call?.history.last?.request { return sent.description }
        guard case .request(let source) = source else { return nil }
        return source.request.summary(source.options, for: callGroup.host)
    }

    // MARK: - The outcome

    /// The item or the error; `nil` until the operation has ended. Available before the closures are called.
    public final var result: Result<Item, NetworkError>? {
        guard hasOutcome else { return nil }
        if let error { return .failure(error) }
        return state.withLock { $0.item }.map { .success(CallGroup.typed($0)) }
    }

    /// The response from which the item was created, if the operation has succeeded. It has the status, headers,
    /// source, trailers, metrics, history, and the values that interceptors attached (``NetworkResponse/userInfo``).
    /// `nil` before the end, after a failure (see ``NetworkOperation/error``), and for a download whose file already
    /// existed. Available before the closures are called.
    ///
    /// ```swift
    /// let users = RequestOperation(GetUsers())
    /// NetworkQueue.shared.addOperation(users)
    /// let list = try await users.value
    /// let next = users.response?.headers["Link"]
    /// ```
    ///
    /// Its body is empty, because it would otherwise stay in memory as long as the operation. To keep it, see
    /// ``RequestOperation/keepsResponseBody``. For a download, it is the response to the last message.
    public final var response: NetworkResponse? {
        guard hasOutcome, error == nil else { return nil }
        return state.withLock { $0.response }
    }

    /// The item, available when the operation has finished and its closures have run. Several tasks can wait for it.
    ///
    /// Reading it does not start the operation: add the operation to a queue before or after. If it is on no queue
    /// after a second, a warning is written to standard error, once for each operation.
    ///
    /// A task that is cancelled while it waits continues at once, with the item if it exists, otherwise with
    /// ``NetworkError/Code/cancelled``. This cancels the operation only if no other task waits.
    ///
    /// - Throws: the operation's error.
    public final var value: Item {
        get async throws(NetworkError) {
            countWaitingTask()
            return try await valueAsCounted()
        }
    }

    /// Returns the value. See ``NetworkOperation/waitAsCounted(_:)``.
    final func valueAsCounted(_ begin: () -> Void = {}) async throws(NetworkError) -> Item {
        await waitAsCounted(begin)
        return try knownResult.get()
    }

    /// The result of an operation that has finished, or whose task no longer waits.
    final var knownResult: Result<Item, NetworkError> { result ?? .failure(NetworkError(code: .cancelled)) }

    /// Creates an operation whose request is made from this operation's item.
    ///
    /// The new operation depends on this one. If this one fails, the new operation ends with
    /// ``NetworkError/Code/dependencyFailed`` and sends nothing. Add both to a queue.
    ///
    /// - Parameter next: called once, on a thread of the queue, when this operation has succeeded and before the new
    ///   one waits for its turn. The new operation waits with the priority and the host of its request. If `next`
    ///   throws, the error is the new operation's error.
    public final func then<Next: APIRequest>(
        _ next: @escaping @Sendable (Item) throws -> Next
    ) -> RequestOperation<Next> {
        let item = itemOfDependency
        return nextOperation { try next(item()) }
    }

    /// Creates an operation for the same host that depends on this one.
    final func nextOperation<Next: APIRequest>(
        _ makeRequest: @escaping @Sendable () throws -> Next
    ) -> RequestOperation<Next> {
        let operation = RequestOperation<Next>(service: nextService, makeRequest: makeRequest)
        operation.addDependency(self)
        return operation
    }

    /// The service of an operation that follows this one. It is cancelled with this operation's service, but not with
    /// this operation.
    final var nextService: EasyNetworkService {
        EasyNetworkService(callGroup.parent ?? CallGroup(callGroup.host))
    }

    /// Reads this operation's item in an operation that depends on it.
    final var itemOfDependency: @Sendable () throws -> Item {
        { [weak self] in
            // The dependency keeps this operation alive, unless the user has removed the dependency.
            guard let item = try self?.result?.get() else { throw Self.noItem }
            return item
        }
    }

    // MARK: - Progress

    /// The progress of the current message in bytes: the bytes of its body that were handed to the system, plus the
    /// received bytes of the response's body after content decoding.
    ///
    /// It is indeterminate until the lengths of both bodies are known. It remains so if the response is compressed or
    /// sent in chunks. It starts again with each message: a retry, a redirect, another credential. When the operation
    /// succeeds, it finishes before the callbacks; after a failure, it keeps its last value. Cancelling it cancels the
    /// operation. Pausing it has no effect. It changes on background threads, at most ten times a second.
    ///
    /// ```swift
    /// let operation = RequestOperation(GetCatalogue())
    /// NetworkQueue.shared.addOperation(operation)
    /// progressView.observedProgress = operation.progress
    /// ```
    ///
    /// It can be read at any time. If it is never read, nothing is counted. A response from the cache has no bytes, nor
    /// does a response that another operation fetches (``RepeatPolicy/join``). In the progress of a batch or a chain, a
    /// request counts when it has finished.
    ///
    /// - An ``UploadOperation`` counts only its body, whose length is known before the response arrives.
    /// - A ``DownloadOperation`` counts the bytes of its file, including the bytes that an earlier operation fetched.
    ///   Pausing and resuming the progress pauses and resumes the operation. ``DownloadOperation/pause()`` and
    ///   ``DownloadOperation/resume()`` do not change its `isPaused`.
    public final var progress: Progress { meter.progress }

    /// The meter that publishes ``progress``.
    package final var meter: TransferMeter {
        if let meter = state.withLock({ $0.meter }) { return meter }
        let made = makeMeter()
        made.progress.cancellationHandler = { [weak self] in self?.cancel() }
        made.whenPublished { [weak self] count in
            self?.tell(.progress(completed: count.completedBytes, total: count.totalBytes))
        }
        let (meter, call) = state.withLock { state in
            let meter = state.meter ?? made
            state.meter = meter
            return (meter, state.call)
        }
        if let call { watch(call, with: meter) }
        // The operation may have ended in the meantime.
        if hasOutcome { meter.finish(success: error == nil) }
        return meter
    }

    func makeMeter() -> TransferMeter {
        TransferMeter(kind: .downloading, clock: clock)
    }

    private func watch(_ call: Call, with meter: TransferMeter) {
        // The reference is weak because the transport's thread may be the last to release the meter's closure.
        call.watch { [weak self] counts, total in self?.note(counts, total, in: meter) }
    }

    /// Notes the number of transferred bytes. Called on the transport's thread.
    func note(_ counts: BodyStream.Counts, _ total: Int64?, in meter: TransferMeter) {
        meter.set(completed: Int64(counts.sent + counts.received), total: total)
    }

    /// The received part of the current response; `nil` before its head has arrived, and after its end.
    package final var answerSoFar: (head: TransportHead, body: Data)? {
        guard let answer = state.withLock({ $0.call })?.unreadResponse, let head = answer.head else { return nil }
        return (head, answer.body)
    }

    // MARK: - The work

    /// Changes the options of the request. Has no effect on a request that is made later.
    final func changeRequestOptions(_ change: (inout RequestOptions) -> Void) {
        guard case .request(var request) = state.withLock({ $0.source }), request.snapshot == nil else { return }
        change(&request.options)
        state.discard { exchange(&$0.source, with: .request(request)) }
    }

    /// Makes the request, and uses its priority unless the operation was given a priority itself.
    override func prepare() {
        guard case .maker(let make) = state.withLock({ $0.source }) else { return }
        do {
            let request = CallRequest(try WorkQueue.userCode(make))
            let (isWanted, _) = state.withLock { state -> (Bool, ItemOperationState.Source?) in
                // The operation may have ended in the meantime.
                guard state.source != nil else { return (false, nil) }
                return (!state.hasOwnPriority, exchange(&state.source, with: .request(request)))
            }
            let priority = request.options.priority
            if isWanted, priority != .normal { queuePriority = priority }
        } catch {
            finish(.thrown(error, otherwise: .invalidRequest))
        }
    }

    /// Returns the request to send now. If it is `nil`, the operation has ended.
    final func takeRequest() -> CallRequest? {
        // A plain queue does not prepare its operations, so prepare this one here.
        if traits.needsPreparing {
            prepare()
            // The repeat policy of other operations was applied when they were added.
            guard applyRepeatPolicy() else { return nil }
        }
        guard case .request(let source)? = state.withLock({ $0.source.take() }) else { return nil }
        return source
    }

    /// Sends the operation's request, and ends with the item that is created from the response.
    ///
    /// - Parameters:
    ///   - ignoresCache: see ``RequestOperation/ignoresCache``.
    ///   - makeItem: creates the item after the slot was given up. It is not called for the response that refreshes a
    ///     stale response in the cache. That response is stored unchecked, and requested again if no item can be
    ///     created from it.
    package final func sendRequest(
        ignoresCache: Bool,
        makeItem: @escaping @Sendable (NetworkResponse) async throws -> Item
    ) {
        guard var request = takeRequest() else { return }
        if ignoresCache { request.order = .ignore }
        (request.keepsBody, request.makeItem) = (false, makeItem)
        send(request)
    }

    /// Makes the operation's call, and ends with the item of its response.
    final func send(_ request: consuming CallRequest) {
        Call(consume request, in: callGroup) { response, result, keep in
            switch result {
            case .success(let item):
                let isTooLate = self.state.withLock { state in
                    state.item = item
                    state.response = response
                    if !state.isClosed { state.keep = keep }
                    return state.isClosed
                }
                // The operation was finished by other code, or was detached.
                if isTooLate { keep?() }
                self.end(nil, inPlace: true)
            case .failure(let error): self.end(error, inPlace: true)
            }
        }.start(noteCall)
    }

    /// Keeps the call, to cancel it if the operation fails.
    final func noteCall(_ call: Call) {
        let (meter, isClosed) = state.withLock { state in
            state.call = call
            return (state.meter, state.isClosed)
        }
        if let meter { watch(call, with: meter) }
        // The operation may have been finished by other code in the meantime, and its end delivered.
        guard isClosed, hasOutcome else { return }
        let late = state.withLock { $0.call.take() }
        if error != nil { late?.cancel() }
    }

    final func finish(with item: Item) {
        state.withLock { $0.item = item }
        end(nil)
    }

    open override var queuePriority: QueuePriority {
        get { super.queuePriority }
        set {
            state.withLock { $0.hasOwnPriority = true }
            super.queuePriority = newValue
        }
    }

    override func repeatRole(_ own: RepeatSetting) -> RepeatRole {
        // If the request is made later, its policy isn't known yet.
        (false, own.isRepeat ? { _ = self.applyRepeatPolicy() } : nil)
    }

    override func missingResultError(ignoringFailures: Bool) -> NetworkError? {
        state.withLock { $0.item == nil } ? Self.noItem : nil
    }

    private static var noItem: NetworkError { .invalidRequest("the operation was finished without an item") }

    override func detach() {
        state.discard { state in
            state.isClosed = true
            state.delegate = nil
            return exchange(&state.closures, with: ItemOperationState.Closures())
        }
    }

    /// Whether the operation ends with the item of its request, whatever the result of its other calls is. Before the
    /// request is sent, a closure of another call that is not called might have been the one to send it.
    private var hasSentRequest: Bool { state.withLock { $0.source == nil } }

    override func endsSilently(after error: NetworkError) -> Bool {
        guard hasSentRequest else { return super.endsSilently(after: error) }
        return error.isSilent || error.code == .cancelled && silencesCancellation
    }

    override func handleUnreportedError(_ error: NetworkError) {
        if !hasSentRequest { super.handleUnreportedError(error) }
    }

    /// Calls back, after the last progress and the cache's item, and then stores the response.
    override func callBack(
        _ error: NetworkError?,
        on queue: DispatchQueue?,
        inPlace: Bool,
        _ done: @escaping @Sendable () -> Void
    ) {
        // Read the setting before taking the lock, because it is under another lock of the operation.
        let isSilent = error.map { $0.isSilent || $0.code == .cancelled && silencesCancellation } ?? false
        // Release everything taken here outside the lock, including the delegate, because this may be its last
        // reference.
        let (_, _, _, call, result, waits, keep) = state.withLock { state in
            state.isClosed = true
            let delegate = state.delegate
            let hasHandlers = !isSilent && (delegate != nil || state.closures.handle(error))
            return (
                state.source.take(), delegate, hasHandlers ? nil : state.takeUnreported(), state.call.take(),
                hasHandlers ? error.map(Result.failure) ?? state.item.map(Result.success) : nil,
                (meter: state.meter, cached: state.cachedDelivery, preprocess: state.closures.preprocess.take()),
                // For a hidden job, the jobs that share its response store it.
                traits.isHidden ? nil : state.keep.take()
            )
        }
        // The user's code may have finished the operation.
        if error != nil {
            // The history is complete only when the call begins no other message.
            call?.cancel()
            option({ $0.undo })?.noteFailure(call?.history ?? [])
        }
        // `map` and `??` would wrap the closure.
        var done = done
        if let keep {
            // Store the response after the callbacks, so that one that crashes the app there is not found again. Storing
            // can decode, so don't do it on the user's queue.
            done = { [done] in
                WorkQueue.run {
                    keep()
                    done()
                }
            }
        }
        guard waits.meter != nil || waits.cached != nil || waits.preprocess != nil else {
            return hand(over: result, on: queue ?? callGroup.host.deliveryQueue, inPlace: inPlace, done)
        }
        WorkQueue.task { [done] in
            await waits.meter?.finish(success: error == nil).wait()
            await waits.cached?.wait()
            if let result { waits.preprocess?(result) }
            self.hand(over: result, on: self.deliveryQueue, inPlace: false, done)
        }
    }
}
