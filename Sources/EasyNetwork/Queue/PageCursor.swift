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
/// The cursor loads one page at a time. After a failure the same page may be loaded again. A page that is being loaded keeps the
/// cursor alive. All members may be used from any thread.
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
    ///   - first: the request for the first page.
    ///   - service: gives the host. Default: ``HostConfiguration/shared`` as it is now.
    ///   - queue: runs each page as a job. Default: ``NetworkQueue/shared`` as it is now.
    ///   - callbackQueue: the queue of the closures. Default nil: the queue's, or else the host's callback queue.
    ///   - next: makes the request for the next page, from the request and the item of a page; nil when that was the last.
    ///     Called once for a page, on the callback queue before its closure, or in the task that reads ``pages``. An error
    ///     that it throws fails the page.
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

    // MARK: - Position

    /// Whether a page is being loaded.
    public var isLoading: Bool { state.withLock { $0.walk.isLoading } }
    /// Whether the page that arrived last is the first. False before one has arrived.
    public var isFirstPage: Bool { state.withLock { $0.walk.isFirstPage } }
    /// Whether the page that arrived last is the last of the list. False before one has arrived.
    public var isLastPage: Bool { state.withLock { $0.walk.isLastPage } }
    /// The number of pages that have arrived since the last start from the first page, including it.
    public var pageCount: Int { state.withLock { $0.walk.pageCount } }

    // MARK: - Loading

    /// Loads the first page again.
    ///
    /// A page that is being loaded is cancelled, and its `failure` called with ``NetworkError/Code/cancelled``. The cursor
    /// moves when the first page has arrived: if that fails, ``loadNext(success:failure:)`` continues from the old
    /// position.
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
    ///   - success: called with the item, once, on the callback queue. By then the cursor has moved, and the next page may
    ///     be loaded.
    ///   - failure: called with the error, once, on the callback queue. The same page may be loaded again.
    /// - Returns: whether loading began; false, and no closure is called, while a page is being loaded and after the last
    ///   page.
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
    /// keeps its position, and may be used again at once.
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
        // A silenced cancellation, for instance, calls no closure.
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

    /// The job of a page, already cancelled when the page is no longer current.
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

    /// Ends the load of a page that has no result. The cursor keeps its position.
    private func fail(_ load: Load) {
        let operation = state.withLock { state in state.walk.failed(load) ? state.operation.take() : nil }
        withExtendedLifetime(operation) {}
    }

    /// Moves the cursor, unless the page is no longer current.
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
        // Released outside the lock, the previous next request too.
        withExtendedLifetime((operation, before)) {}
        guard counts else { return cancelled }
        return following.flatMap { _ in result }
    }

    private func following(_ request: Request, _ item: Request.Item) -> Result<Request?, NetworkError> {
        Result { try next(request, item) }.mapError { .thrown($0, otherwise: .invalidRequest) }
    }
}

extension PageCursor {
    /// The pages from the first to the last, each loaded when the iterator reaches it.
    ///
    /// ```swift
    /// for try await list in cursor.pages { show(list) }
    /// ```
    ///
    /// Iterating moves the cursor: it starts over, and a page that is being loaded is cancelled. Cancelling the task
    /// cancels the page that is being loaded. The sequence throws the error of a page and ends;
    /// ``loadNext(success:failure:)`` may load the same page again.
    ///
    /// A cursor has one position. When other code starts it over, the sequence throws ``NetworkError/Code/cancelled``; while
    /// other code is loading a page, it throws ``NetworkError/Code/refused``.
    public var pages: Pages { Pages(cursor: self) }

    /// See ``pages``.
    public struct Pages: AsyncSequence, Sendable {
        public typealias Element = Request.Item

        fileprivate let cursor: PageCursor

        public func makeAsyncIterator() -> Iterator {
            Iterator(cursor: cursor)
        }

        public struct Iterator: AsyncIteratorProtocol {
            fileprivate let cursor: PageCursor
            private var round: UInt64?
            private var isOver = false

            fileprivate init(cursor: PageCursor) {
                self.cursor = cursor
            }

            /// - Throws: the ``NetworkError`` of the page.
            public mutating func next() async throws -> Request.Item? {
                guard !isOver else { return nil }
                // Unless a page arrives.
                isOver = true
                guard !Task.isCancelled else { throw NetworkError(code: .cancelled) }
                let load: Load
                switch round.map(cursor.beginNext) ?? .load(cursor.beginFirst()) {
                case .load(let begun): load = begun
                case .end: return nil
                case .busy:
                    throw NetworkError(code: .refused, message: "another page of this cursor is being loaded")
                case .startedOver:
                    throw NetworkError(code: .cancelled, message: "the cursor was started over")
                }
                round = load.round
                let item = try await cursor.item(of: load)
                isOver = false
                return item
            }
        }
    }
}

/// The position of a ``PageCursor``, as a value.
struct PageWalk<Request: Sendable>: Sendable {
    /// A page that is being loaded.
    struct Load: Sendable {
        let request: Request
        /// The start from the first page that it belongs to.
        let round: UInt64
        fileprivate let number: UInt64
        fileprivate let isFirst: Bool
    }

    /// The answer to a request for the next page.
    enum Start {
        case load(Load)
        /// A page is being loaded.
        case busy
        /// The last page has arrived.
        case end
        /// The cursor was started over since.
        case startedOver
    }

    private let first: Request
    /// The request after the page that arrived last; nil after the last page.
    private var next: Request?
    private var lastNumber: UInt64 = 0
    private var loading: UInt64?

    /// The number of pages that have arrived since the first one, including it.
    private(set) var pageCount = 0
    private var round: UInt64 = 0

    init(first: Request) {
        self.first = first
    }

    var isLoading: Bool { loading != nil }
    var isFirstPage: Bool { pageCount == 1 }
    var isLastPage: Bool { pageCount > 0 && next == nil }

    /// Starts over. The page that is being loaded is no longer current and is to be cancelled.
    mutating func beginFirst() -> Load {
        round += 1
        return begin(first, isFirst: true)
    }

    /// Begins with the page after the one that arrived last; with the first if none has.
    ///
    /// - Parameter round: the expected start from the first page; nil, the default, for any.
    mutating func beginNext(in round: UInt64? = nil) -> Start {
        if let round, round != self.round { return .startedOver }
        if isLoading { return .busy }
        guard pageCount > 0 else { return .load(beginFirst()) }
        return next.map { .load(begin($0, isFirst: false)) } ?? .end
    }

    /// Whether the page is still being loaded.
    func isCurrent(_ load: Load) -> Bool {
        loading == load.number
    }

    /// Makes the page that is being loaded no longer current.
    mutating func cancel() {
        loading = nil
    }

    /// Notes that a page has arrived.
    ///
    /// - Parameter next: the request after it; nil when it is the last.
    /// - Returns: false when the page is no longer current, because it was cancelled or the cursor was started over.
    mutating func arrived(_ load: Load, next: Request?) -> Bool {
        guard isCurrent(load) else { return false }
        loading = nil
        pageCount = load.isFirst ? 1 : pageCount + 1
        self.next = next
        return true
    }

    /// Notes that a page has failed. The position does not change.
    ///
    /// - Returns: false when the page is no longer current.
    mutating func failed(_ load: Load) -> Bool {
        guard isCurrent(load) else { return false }
        loading = nil
        return true
    }

    private mutating func begin(_ request: Request, isFirst: Bool) -> Load {
        lastNumber += 1
        loading = lastNumber
        return Load(request: request, round: round, number: lastNumber, isFirst: isFirst)
    }
}
