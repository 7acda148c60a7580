import Dispatch
import Foundation

/// A job that ends with an item, or with a ``NetworkError``: a ``RequestOperation`` or a ``DownloadOperation``.
///
/// ```swift
/// func show<Item>(_ operation: ItemOperation<Item>) {
///     operation.success = { item in print(item) }
///     operation.failure = { error in print(error.localizedDescription) }
/// }
/// ```
///
/// Or, in a task: `let item = try await operation.value`. The closures run before dependents start, and are
/// released after that.
open class ItemOperation<Item: Sendable>: ServiceOperation, @unchecked Sendable {
    // Sendable because everything that changes is in `state`, behind its lock; subclasses answer for their own.
    let state: Locked<ItemOperationState>

    /// Whether its request has a ``RequestOptions/repeatKey``; false while that is not made.
    private let requestHasKey: Bool

    /// The traits of this kind of job, written in initializers only.
    final var ownTraits = JobTraits()

    /// - Parameter service: nil means ``HostConfiguration/shared``.
    package init(_ request: any BaseAPIRequest, _ options: RequestOptions, of service: EasyNetworkService?) {
        state = Locked(ItemOperationState(source: .request(CallRequest(request, options))))
        requestHasKey = options.repeatKey != nil
        if let service { super.init(service: service) } else { super.init() }
        if options.priority != .normal { queuePriority = options.priority }
        if options.repeatPolicy != .allow { repeatPolicy = options.repeatPolicy }
    }

    /// An operation whose request is made when its dependencies are over and before it waits for its turn; on a plain
    /// `OperationQueue`, when it starts.
    init(service: EasyNetworkService, makeRequest: @escaping @Sendable () throws -> any BaseAPIRequest) {
        state = Locked(ItemOperationState(source: .maker(makeRequest)))
        requestHasKey = false
        super.init(service: service)
        ownTraits.needsPreparing = true
    }

    // MARK: - Callbacks

    /// Told of the end, on the callback queue, before the closures; not kept alive. Default nil.
    public final var delegate: (any RequestOperationDelegate)? {
        get { state.withLock { $0.delegate } }
        set { state.withLock { $0.delegate = newValue } }
    }

    /// Called once with the result before all other callbacks of the end, on a background queue and not on the callback
    /// queue: for work that would hold that up. It does not get the cache's item, whose ``RequestOperation/cached`` has
    /// returned before. Set it before the operation is added to a queue. Default nil.
    public final var preprocess: (@Sendable (Result<Item, NetworkError>) -> Void)? {
        get { Self.closure(state.withLock { $0.closures.preprocess }) }
        set { state.setClosure(isRemoved: newValue == nil) { $0.preprocess = Self.erased(newValue) } }
    }

    /// Called once with the result on the callback queue, after ``preprocess`` and before the delegate and the
    /// closures. Set it before the operation is added to a queue. Default nil.
    public final var willDeliver: (@Sendable (Result<Item, NetworkError>) -> Void)? {
        get { Self.closure(state.withLock { $0.closures.willDeliver }) }
        set { state.setClosure(isRemoved: newValue == nil) { $0.willDeliver = Self.erased(newValue) } }
    }

    /// Called once with the item. Set it before the operation is added to a queue. Default nil.
    public final var success: (@Sendable (Item) -> Void)? {
        get { state.withLock { $0.closures.success } }
        set { state.setClosure(isRemoved: newValue == nil) { $0.success = Self.erased(newValue) } }
    }

    /// Called once with the error; also when the operation was cancelled or a dependency failed. Set it before the
    /// operation is added to a queue. Default nil.
    public final var failure: (@Sendable (NetworkError) -> Void)? {
        get { state.withLock { $0.closures.failure } }
        set { state.setClosure(isRemoved: newValue == nil) { $0.failure = newValue } }
    }

    /// Sets closures that run on the main actor, for user interfaces, whatever the callback queue is.
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
    /// Each is called once, after the closure of the same name that runs on the callback queue and before dependents
    /// start, and is released on the main thread. The main queue must be running: an app's does. Set them before the
    /// operation is added to a queue. A second call replaces those that it names.
    ///
    /// - Parameters:
    ///   - success: gets the item, after ``success``; nil to leave it as it is.
    ///   - failure: gets the error, after ``failure``. Default nil.
    ///   - cached: gets the cache's item, after ``RequestOperation/cached``. Default nil.
    public final func onMain(
        success: (@MainActor (Item) -> Void)?,
        failure: (@MainActor (NetworkError) -> Void)? = nil,
        cached: (@MainActor (Item) -> Void)? = nil
    ) {
        var erased: (@MainActor (any Sendable, NetworkResponse?) -> Void)?
        if let success { erased = { item, _ in success(Self.typed(item)) } }
        setOnMain(erased, failure, cached)
    }

    final func setOnMain(
        _ success: (@MainActor (any Sendable, NetworkResponse?) -> Void)?,
        _ failure: (@MainActor (NetworkError) -> Void)?,
        _ typedCached: (@MainActor (Item) -> Void)?
    ) {
        var cached: (@MainActor (any Sendable) -> Void)?
        if let typedCached { cached = { typedCached(Self.typed($0)) } }
        state.setClosure(isRemoved: false) { closures in
            let old = closures.onMain
            closures.onMain = ItemOperationState.ClosuresOnMain(
                success: success ?? old?.success,
                failure: failure ?? old?.failure,
                cached: cached ?? old?.cached
            )
        }
    }

    /// The closure for the items of the state.
    static func erased(_ closure: (@Sendable (Item) -> Void)?) -> (@Sendable (any Sendable) -> Void)? {
        guard let closure else { return nil }
        return { closure(typed($0)) }
    }

    private typealias Results<Value> = @Sendable (Result<Value, NetworkError>) -> Void

    private static func erased(_ closure: Results<Item>?) -> Results<any Sendable>? {
        guard let closure else { return nil }
        return { closure($0.map(typed)) }
    }

    private static func closure(_ erased: Results<any Sendable>?) -> Results<Item>? {
        guard let erased else { return nil }
        return { erased($0.map { $0 }) }
    }

    /// An item of the state, all of which were made by the operation's call.
    static func typed(_ item: any Sendable) -> Item { CallGroup.typed(item) }

    /// The host that the request goes to: that of its ``RequestOptions/customURLRequest``, of its own address, of its
    /// ``RequestOptions/baseURL``, of the CDN, or of the service, in this order. Changes of the address by a filter or
    /// an interceptor are not foreseen. That of the service until the request is made; nil if that has no base URL.
    open override var host: String? {
        guard case .request(let source) = state.withLock({ $0.source }) else { return super.host }
        let options = source.options
        if let custom = options.customURLRequest { return custom.url?.hostAndPort }
        let cdn = options.useCDN ? callGroup.host.settings.cdnURL : nil
        return URLParts.hostAndPort(of: source.request.api) ?? (options.baseURL ?? cdn)?.hostAndPort ?? super.host
    }

    /// The message that was sent last, else the request as it is before filters and interceptors.
    override var requestText: String? {
        let (source, call) = state.withLock { ($0.source, $0.call) }
        if let sent = call?.history.last?.request { return sent.description }
        guard case .request(let source) = source else { return nil }
        return source.request.summary(source.options, for: callGroup.host)
    }

    // MARK: - The outcome

    /// The item or the error; nil while the operation goes on. Known before the closures are called.
    public final var result: Result<Item, NetworkError>? {
        guard hasOutcome else { return nil }
        if let error { return .failure(error) }
        return state.withLock { $0.item }.map { .success(Self.typed($0)) }
    }

    /// The response that the item was made of, when the operation has succeeded: status, headers, source, trailers,
    /// metrics, history, and the values that interceptors attached (``NetworkResponse/userInfo``). Nil before; after a
    /// failure, where ``NetworkOperation/error`` has what came; and for a download that found its file in place. Known
    /// before the closures are called.
    ///
    /// ```swift
    /// let users = RequestOperation(GetUsers())
    /// NetworkQueue.shared.addOperation(users)
    /// let list = try await users.value
    /// let next = users.response?.headers["Link"]
    /// ```
    ///
    /// Its body is empty, as it would stay in memory as long as the operation; see
    /// ``RequestOperation/keepsResponseBody``. Of a download it is the response to its last message.
    public final var response: NetworkResponse? {
        guard hasOutcome, error == nil else { return nil }
        return state.withLock { $0.response }
    }

    /// The item, when the operation has finished and its closures have run. Several tasks may wait for it.
    ///
    /// Add the operation to a queue first, or later: nothing here starts it. If it is on no queue after a second, a line
    /// on standard error says so, once for each operation.
    ///
    /// A task that is cancelled while it waits continues at once: with the item if it exists, otherwise with
    /// ``NetworkError/Code/cancelled``. The operation is cancelled with it only if no other task waits.
    ///
    /// - Throws: the operation's error.
    public final var value: Item {
        get async throws(NetworkError) {
            countWaitingTask()
            return try await valueAsCounted()
        }
    }

    /// The value, see ``NetworkOperation/waitAsCounted(_:)``.
    final func valueAsCounted(_ begin: () -> Void = {}) async throws(NetworkError) -> Item {
        await waitAsCounted(begin)
        // A finished operation has a result, see missingResultError(recovering:).
        guard let result else { throw NetworkError(code: .cancelled) }
        return try result.get()
    }

    /// A next operation whose request is made from this one's item.
    ///
    /// It depends on this one: if this one fails, it ends with ``NetworkError/Code/dependencyFailed`` and sends
    /// nothing. Add both to a queue.
    ///
    /// - Parameter next: called once, on a thread of the queue, when this operation has succeeded and before the next
    ///   one waits for its turn, which it does with the priority and under the host of its request. An error that it
    ///   throws is the next operation's error.
    public final func then<Next: APIRequest>(
        _ next: @escaping @Sendable (Item) throws -> Next
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
        EasyNetworkService(callGroup.parent ?? CallGroup(callGroup.host))
    }

    /// Reads the item in an operation that depends on this one.
    final var itemOfDependency: @Sendable () throws -> Item {
        { [weak self] in
            // The dependency keeps this operation alive; it is gone only if the user took that back.
            guard let item = try self?.result?.get() else { throw Self.noItem }
            return item
        }
    }

    // MARK: - Progress

    /// The bytes of the current message: those of its body that have been handed to the system, and those of the
    /// answer's body that have come, without content codings.
    ///
    /// It is indeterminate until the lengths of both bodies are known, and stays so when the answer is compressed or
    /// comes in chunks. It begins again with each message: a retry, a redirect, another credential. It is finished when
    /// the operation has succeeded, before its callbacks; after a failure it stays where it was. Cancelling it cancels
    /// the operation; pausing it does nothing. It changes on background threads, at most ten times a second.
    ///
    /// ```swift
    /// let operation = RequestOperation(GetCatalogue())
    /// NetworkQueue.shared.addOperation(operation)
    /// progressView.observedProgress = operation.progress
    /// ```
    ///
    /// Read it at any time; a request whose progress is never read counts nothing. An answer from the cache has no
    /// bytes, and neither has one that another operation fetches (``RepeatPolicy/join``). In the progress of a batch or
    /// a chain a request counts when it has finished.
    ///
    /// - An ``UploadOperation`` counts its body only, whose length is known before the answer.
    /// - A ``DownloadOperation`` counts the bytes of its file, with those of an earlier operation. Pausing and resuming
    ///   the progress does so with the operation; ``DownloadOperation/pause()`` and ``DownloadOperation/resume()``
    ///   leave its `isPaused` as it is.
    public final var progress: Progress { meter.progress }

    /// Publishes ``progress``.
    package final var meter: TransferMeter {
        if let meter = state.withLock({ $0.meter }) { return meter }
        let made = makeMeter()
        made.whenCancelled { [weak self] in self?.cancel() }
        made.whenPublished { [weak self] count in
            self?.tell(.progress(completed: count.completedBytes, total: count.totalBytes))
        }
        let (meter, call) = state.withLock { state in
            let meter = state.meter ?? made
            state.meter = meter
            return (meter, state.call)
        }
        if let call { watch(call, with: meter) }
        // It may have ended by now.
        if hasOutcome { meter.finish(success: error == nil) }
        return meter
    }

    func makeMeter() -> TransferMeter {
        TransferMeter(kind: .downloading, clock: callGroup.host.settings.clock)
    }

    private func watch(_ call: Call, with meter: TransferMeter) {
        // Weak, as the transport's thread may be the last to release this.
        call.watch { [weak self] counts, total in self?.note(counts, total, in: meter) }
    }

    /// Called on the transport's thread.
    func note(_ counts: BodyStream.Counts, _ total: Int64?, in meter: TransferMeter) {
        meter.set(completed: Int64(counts.sent + counts.received), total: total)
    }

    /// The received part of the answer under way; nil before its head, and after its end.
    package final var answerSoFar: (head: TransportHead, body: Data)? {
        guard let answer = state.withLock({ $0.call })?.unreadResponse, let head = answer.head else { return nil }
        return (head, answer.body)
    }

    // MARK: - The work

    /// Changes the options of the request as it is given; has no effect on one that is made later.
    final func changeRequestOptions(_ change: (inout RequestOptions) -> Void) {
        guard case .request(var request) = state.withLock({ $0.source }), request.snapshot == nil else { return }
        change(&request.options)
        let old = state.withLock { exchange(&$0.source, with: .request(request)) }
        withExtendedLifetime(old) {}
    }

    override final var traits: JobTraits { ownTraits }

    /// Makes the request, and takes over its priority unless the operation was given its own.
    override func prepare() {
        guard case .maker(let make) = state.withLock({ $0.source }) else { return }
        do {
            let request = CallRequest(try WorkQueue.userCode(make))
            let (isWanted, _) = state.withLock { state -> (Bool, ItemOperationState.Source?) in
                // It may have ended by now.
                guard state.source != nil else { return (false, nil) }
                return (!state.hasOwnPriority, exchange(&state.source, with: .request(request)))
            }
            let priority = request.options.priority
            if isWanted, priority != .normal { queuePriority = priority }
        } catch {
            finish(.thrown(error, otherwise: .invalidRequest))
        }
    }

    /// The request that is to be sent now; nil when there is none, or none any more: then it has ended.
    final func takeRequest() -> CallRequest? {
        // A plain queue does not prepare its operations.
        if ownTraits.needsPreparing {
            prepare()
            // Other repeats were noticed when they were added.
            guard applyRepeatPolicy() else { return nil }
        }
        guard case .request(let source)? = state.withLock({ $0.source.take() }) else { return nil }
        return source
    }

    /// Sends the operation's request, and ends with the item that is made of its answer.
    ///
    /// - Parameters:
    ///   - ignoresCache: as ``RequestOperation/ignoresCache``.
    ///   - makeItem: makes the item when the slot has been given back. It is not called for the answer that refreshes a
    ///     stale one in the cache; that one is stored as it is, and sent for again if nothing can be made of it.
    package final func sendRequest(
        ignoresCache: Bool,
        makeItem: @escaping @Sendable (NetworkResponse) async throws -> Item
    ) {
        guard var request = takeRequest() else { return }
        if ignoresCache { request.order = .ignore }
        (request.keepsBody, request.makeItem) = (false, makeItem)
        send(request)
    }

    /// Makes the operation's call, and ends with the item of its answer.
    final func send(_ request: CallRequest) {
        callGroup.begin(request, created: noteCall) { response, result, keep in
            switch result {
            case .success(let item):
                let isTooLate = self.state.withLock { state in
                    state.item = item
                    state.response = response
                    if !state.isClosed { state.keep = keep }
                    return state.isClosed
                }
                // It was finished by hand, or detached.
                if isTooLate { keep?() }
                self.end(nil, inPlace: true)
            case .failure(let error): self.end(error, inPlace: true)
            }
        }
    }

    /// Keeps the call, which is cancelled when the operation fails.
    final func noteCall(_ call: Call) {
        let (meter, isClosed) = state.withLock { state in
            state.call = call
            return (state.meter, state.isClosed)
        }
        if let meter { watch(call, with: meter) }
        // It may have been finished manually by now, and its end delivered.
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

    override func repeatRole(_ own: RepeatSetting) -> (joinsAnother: Bool, workWhenAdded: (() -> Void)?) {
        // The policy of a request that is made later is read then.
        (false, own.isRepeat || requestHasKey ? { _ = self.applyRepeatPolicy() } : nil)
    }

    override func missingResultError(recovering: Bool) -> NetworkError? {
        state.withLock { $0.item == nil } ? Self.noItem : nil
    }

    private static var noItem: NetworkError {
        NetworkError(code: .invalidRequest, message: "the operation was finished by hand, without an item")
    }

    override func detach() {
        let released = state.withLock { state in
            state.isClosed = true
            state.delegate = nil
            return exchange(&state.closures, with: ItemOperationState.Closures())
        }
        withExtendedLifetime(released) {}
    }

    /// Whether it ends with the item of its request, whatever its other calls do. Before that, a closure of theirs that
    /// is not called may have been the one to send the request.
    private var hasSentRequest: Bool { state.withLock { $0.source == nil } }

    override func endsSilently(after error: NetworkError) -> Bool {
        guard hasSentRequest else { return super.endsSilently(after: error) }
        return error.isSilent || error.code == .cancelled && silencesCancellation
    }

    override func failedUnheard(_ error: NetworkError) {
        if !hasSentRequest { super.failedUnheard(error) }
    }

    override func callBack(_ error: NetworkError?, inPlace: Bool, _ done: @escaping @Sendable () -> Void) {
        tellEnd(error, inPlace: inPlace, done)
    }
}
