import Dispatch

/// Loads a list page after page.
///
/// ```swift
/// let cursor = PageCursor(first: ListRequest(page: 1)) { request, list in
///     list.hasMore ? ListRequest(page: request.page + 1) : nil
/// }
/// cursor.loadFirst(success: { list in show(list) }, failure: { error in show(error) })
/// cursor.loadNext(success: { list in append(list) }, failure: { error in show(error) })
/// ```
///
/// Or, in a task: `for try await list in cursor.pages { … }`.
///
/// One page is loaded at a time. A page that failed may be asked for again. A page that is being loaded keeps the
/// cursor alive; nothing else does. All members may be used from any thread.
public final class PageCursor<Request: APIRequest>: Sendable {
    typealias Load = PageWalk<Request>.Load

    private struct State {
        var walk: PageWalk<Request>
        var operation: RequestOperation<Request>?
    }

    private let service: EasyNetworkService
    private let queue: NetworkQueue
    private let callbackQueue: DispatchQueue?
    private let next: @Sendable (Request, Request.Item) throws -> Request?
    private let state: Locked<State>

    /// - Parameters:
    ///   - first: asks for the first page.
    ///   - service: what the pages are loaded with. Default: ``HostConfiguration/shared`` as it is now.
    ///   - queue: where each page is a job. Default: ``NetworkQueue/shared`` as it is now.
    ///   - callbackQueue: where closures are called. Default nil: the queue's, or else the host's callback queue.
    ///   - next: makes the request for the page after one, from its request and its item; nil when that was the last.
    ///     Called once for a page, on the callback queue before its closure, or in the task that reads ``pages``. What
    ///     it throws fails the page.
    public init(
        first: Request,
        service: EasyNetworkService = EasyNetworkService(HostConfiguration.shared),
        queue: NetworkQueue = .shared,
        callbackQueue: DispatchQueue? = nil,
        next: @escaping @Sendable (Request, Request.Item) throws -> Request?
    ) {
        self.service = service
        self.queue = queue
        self.callbackQueue = callbackQueue
        self.next = next
        state = Locked(State(walk: PageWalk(first: first)))
    }

    // MARK: - Where it is

    /// Whether a page is being loaded.
    public var isLoading: Bool { state.withLock { $0.walk.isLoading } }
    /// Whether the page that arrived last is the first. False before one has arrived.
    public var isFirstPage: Bool { state.withLock { $0.walk.isFirstPage } }
    /// Whether the page that arrived last is the last there is. False before one has arrived.
    public var isLastPage: Bool { state.withLock { $0.walk.isLastPage } }
    /// How many pages have arrived since the last start from the first, that one included.
    public var pageCount: Int { state.withLock { $0.walk.pageCount } }

    // MARK: - Loading

    /// Loads the first page, whatever has been loaded.
    ///
    /// A page that is being loaded is cancelled, and its `failure` called with ``NetworkError/Code/cancelled``. Until
    /// the first page has arrived, the cursor stays where it is: when it fails, ``loadNext(success:failure:)`` goes on
    /// from there.
    ///
    /// - Parameters:
    ///   - success: called with the item, once, on the callback queue.
    ///   - failure: called with the error, once, on the callback queue.
    public func loadFirst(
        success: (@Sendable (Request.Item) -> Void)? = nil,
        failure: (@Sendable (NetworkError) -> Void)? = nil
    ) {
        run(beginFirst(), success, failure)
    }

    /// Loads the page after the one that arrived last; the first if none has.
    ///
    /// - Parameters:
    ///   - success: called with the item, once, on the callback queue. By then the cursor has moved, and the next page
    ///     may be asked for.
    ///   - failure: called with the error, once, on the callback queue. The same page may be asked for again.
    /// - Returns: whether it was begun; false, and no closure is called, while a page is being loaded and after the
    ///   last.
    @discardableResult
    public func loadNext(
        success: (@Sendable (Request.Item) -> Void)? = nil,
        failure: (@Sendable (NetworkError) -> Void)? = nil
    ) -> Bool {
        guard case .load(let load) = beginNext() else { return false }
        run(load, success, failure)
        return true
    }

    /// Cancels the page that is being loaded: its `failure` is called with ``NetworkError/Code/cancelled``. The cursor
    /// stays where it is, and may be used again at once.
    public func cancel() {
        let operation = state.withLock { state in
            state.walk.cancel()
            return state.operation.take()
        }
        operation?.cancel()
    }

    private func run(
        _ load: Load,
        _ success: (@Sendable (Request.Item) -> Void)?,
        _ failure: (@Sendable (NetworkError) -> Void)?
    ) {
        let operation = operation(for: load)
        let deliver: @Sendable (Result<Request.Item, NetworkError>) -> Void = { result in
            switch self.settle(load, result) {
            case .success(let item): success?(item)
            case .failure(let error): failure?(error)
            }
        }
        operation.callbackQueue = callbackQueue
        operation.success = { deliver(.success($0)) }
        operation.failure = { deliver(.failure($0)) }
        // Some ends are told to no closure, such as a cancel that is silenced.
        operation.whenFinished { self.fail(load) }
        queue.addOperation(operation)
    }

    // MARK: - One page

    func beginFirst() -> Load {
        let (load, replaced) = state.withLock { state in (state.walk.beginFirst(), state.operation.take()) }
        replaced?.cancel()
        return load
    }

    func beginNext(in round: UInt64? = nil) -> PageWalk<Request>.Start {
        state.withLock { $0.walk.beginNext(in: round) }
    }

    /// Loads a page that was begun, and moves the cursor.
    func item(of load: Load) async throws(NetworkError) -> Request.Item {
        let operation = operation(for: load)
        queue.addOperation(operation)
        let result: Result<Request.Item, NetworkError>
        do {
            result = .success(try await operation.value)
        } catch {
            result = .failure(error)
        }
        return try settle(load, result).get()
    }

    /// The job of a page, already cancelled when the page counts no more.
    private func operation(for load: Load) -> RequestOperation<Request> {
        let operation = RequestOperation(load.request, service: service)
        let isCurrent = state.withLock { state in
            let isCurrent = state.walk.isCurrent(load)
            if isCurrent { state.operation = operation }
            return isCurrent
        }
        if !isCurrent { operation.cancel() }
        return operation
    }

    /// The page has not come, if nobody has said otherwise. The cursor stays where it is.
    private func fail(_ load: Load) {
        let operation = state.withLock { state in state.walk.failed(load) ? state.operation.take() : nil }
        withExtendedLifetime(operation) {}
    }

    /// Moves the cursor, unless the page counts no more.
    private func settle(
        _ load: Load,
        _ result: Result<Request.Item, NetworkError>
    ) -> Result<Request.Item, NetworkError> {
        let cancelled = Result<Request.Item, NetworkError>.failure(NetworkError(code: .cancelled))
        guard state.withLock({ $0.walk.isCurrent(load) }) else { return cancelled }
        let following = result.flatMap { self.following(load.request, $0) }
        let (counts, operation, before) = state.withLock { state in
            let before = state.walk
            let counts =
                switch following {
                case .success(let next): state.walk.arrived(load, next: next)
                case .failure: state.walk.failed(load)
                }
            return (counts, counts ? state.operation.take() : nil, before)
        }
        // Let go of outside the lock, the request that was the next one until now too.
        withExtendedLifetime((operation, before)) {}
        guard counts else { return cancelled }
        return following.flatMap { _ in result }
    }

    private func following(_ request: Request, _ item: Request.Item) -> Result<Request?, NetworkError> {
        Result { try next(request, item) }.mapError { .thrown($0, otherwise: .invalidRequest) }
    }
}
