import Dispatch

/// Loads a list page by page.
///
/// ```swift
/// let cursor = PageCursor(first: ListRequest(page: 1)) { request, list in
///     list.hasMore ? ListRequest(page: request.page + 1) : nil
/// }
/// cursor.loadFirst(success: { list in show(list) }, failure: { error in show(error) })
/// cursor.loadNext(success: { list in append(list) }, failure: { error in show(error) })
/// ```
///
/// In a task, write `for try await list in cursor.pages { … }`.
///
/// The cursor loads one page at a time. After a failure, the same page can be loaded again. A page that is being loaded
/// keeps the cursor alive. All members can be used from any thread.
public final class PageCursor<Request: APIRequest>: Sendable {
    /// A page that is being loaded.
    private typealias Load = (request: Request, number: Int)

    private struct State {
        /// The number of pages that have arrived since the first one, including it.
        var pageCount = 0
        /// The request after the page that arrived last; `nil` after the last page.
        var next: Request?
        var lastNumber = 0
        /// The number of the last start from the first page.
        var round = 0
        /// The number of the page that is being loaded.
        var loading: Int?
        var operation: RequestOperation<Request>?

        mutating func begin(_ request: Request, isFirst: Bool) -> Load {
            lastNumber += 1
            if isFirst { round = lastNumber }
            loading = lastNumber
            return (request, lastNumber)
        }
    }

    private let first: Request
    private let service: EasyNetworkService
    private let queue: NetworkQueue
    private let callbackQueue: DispatchQueue?
    private let next: @Sendable (Request, Request.Item) throws -> Request?
    private let state = Locked(State())

    /// Creates a cursor that has loaded no page.
    ///
    /// - Parameters:
    ///   - first: the request for the first page.
    ///   - queue: the queue that runs each page as a job. Defaults to the current ``NetworkQueue/shared``.
    ///   - service: the service, which determines the host. Defaults to a service of the current
    ///     ``HostConfiguration/shared``.
    ///   - callbackQueue: the queue of the closures. Defaults to `nil`: the callback queue of `queue`, otherwise the
    ///     host's.
    ///   - next: creates the request for the next page from the request and the item of a page; `nil` after the last
    ///     page. Called once for each page, on the callback queue before the page's closure, or in the task that reads
    ///     ``pages``. If it throws, the page fails with that error.
    public init(
        first: Request,
        queue: NetworkQueue = .shared,
        service: EasyNetworkService = EasyNetworkService(HostConfiguration.shared),
        callbackQueue: DispatchQueue? = nil,
        next: @escaping @Sendable (Request, Request.Item) throws -> Request?
    ) {
        self.first = first
        self.service = service
        self.queue = queue
        self.callbackQueue = callbackQueue
        self.next = next
    }

    /// Creates a cursor with the labels in their old order.
    // Neither `service` nor `queue` has a default here, so a call that names only one of them is not ambiguous.
    @available(*, deprecated, renamed: "init(first:queue:service:callbackQueue:next:)")
    public convenience init(
        first: Request,
        service: EasyNetworkService,
        queue: NetworkQueue,
        callbackQueue: DispatchQueue? = nil,
        next: @escaping @Sendable (Request, Request.Item) throws -> Request?
    ) {
        self.init(first: first, queue: queue, service: service, callbackQueue: callbackQueue, next: next)
    }

    // MARK: - Position

    /// Whether a page is being loaded.
    public var isLoading: Bool { state.withLock { $0.loading != nil } }
    /// Whether the page that arrived last is the first one; `false` before a page has arrived.
    public var isFirstPage: Bool { state.withLock { $0.pageCount == 1 } }
    /// Whether the page that arrived last is the last of the list; `false` before a page has arrived.
    public var isLastPage: Bool { state.withLock { $0.pageCount > 0 && $0.next == nil } }
    /// The number of pages that have arrived since the last start from the first page, including the first page.
    public var pageCount: Int { state.withLock { $0.pageCount } }

    // MARK: - Loading

    /// Loads the first page again.
    ///
    /// A page that is being loaded is cancelled, and its `failure` is called with ``NetworkError/Code/cancelled``. The
    /// cursor moves when the first page has arrived. If that page fails, ``loadNext(success:failure:)`` continues from
    /// the old position.
    ///
    /// - Parameters:
    ///   - success: called once with the item, on the callback queue. Defaults to `nil`.
    ///   - failure: called once with the error, on the callback queue. Defaults to `nil`.
    public func loadFirst(
        success: (@Sendable (Request.Item) -> Void)? = nil,
        failure: (@Sendable (NetworkError) -> Void)? = nil
    ) {
        run(beginFirst(), success, failure)
    }

    /// Loads the page after the one that arrived last, or the first page if none has arrived.
    ///
    /// - Parameters:
    ///   - success: called once with the item, on the callback queue. The cursor has moved by then, and the next page
    ///     can be loaded. Defaults to `nil`.
    ///   - failure: called once with the error, on the callback queue. The same page can be loaded again. Defaults to
    ///     `nil`.
    /// - Returns: whether loading began. It is `false`, and no closure is called, while a page is being loaded and
    ///   after the last page.
    @discardableResult
    public func loadNext(
        success: (@Sendable (Request.Item) -> Void)? = nil,
        failure: (@Sendable (NetworkError) -> Void)? = nil
    ) -> Bool {
        guard let load = try? beginNext() else { return false }
        run(load, success, failure)
        return true
    }

    /// Cancels the page that is being loaded. Its `failure` is called with ``NetworkError/Code/cancelled``. The cursor
    /// keeps its position, and can be used again at once.
    public func cancel() {
        let operation = state.withLock { state in
            state.loading = nil
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
        operation.callbackQueue = callbackQueue
        operation.willDeliver = { result in
            switch self.settle(load, result) {
            case .success(let item): success?(item)
            case .failure(let error): failure?(error)
            }
        }
        // Settle here too, because a silenced cancellation, for example, calls no closure.
        operation.whenFinished { _ = self.settle(load, .failure(NetworkError(code: .cancelled))) }
        queue.addOperation(operation)
    }

    // MARK: - One page

    /// Starts over. The page that is being loaded is no longer current, and is cancelled.
    private func beginFirst() -> Load {
        let (load, replaced) = state.withLock { ($0.begin(first, isFirst: true), $0.operation.take()) }
        replaced?.cancel()
        return load
    }

    /// Begins to load the next page.
    ///
    /// - Parameter round: the required start from the first page, which must be the last one. Defaults to `nil`: any
    ///   start.
    /// - Returns: `nil` after the last page.
    /// - Throws: an error while a page is being loaded, and if the cursor was started over.
    private func beginNext(in round: Int? = nil) throws -> Load? {
        try state.withLock { state in
            if let round, round != state.round {
                throw NetworkError(code: .cancelled, message: "the cursor was started over")
            }
            guard state.loading == nil else {
                throw NetworkError(code: .refused, message: "another page of this cursor is being loaded")
            }
            guard state.pageCount > 0 else { return state.begin(first, isFirst: true) }
            return state.next.map { state.begin($0, isFirst: false) }
        }
    }

    /// Returns the job of a page, already cancelled if the page is no longer current.
    private func operation(for load: Load) -> RequestOperation<Request> {
        let operation = RequestOperation(load.request, service: service)
        let isCurrent = state.withLock { state in
            let isCurrent = state.loading == load.number
            if isCurrent { state.operation = operation }
            return isCurrent
        }
        if !isCurrent { operation.cancel() }
        return operation
    }

    /// Moves the cursor, unless the page is no longer current, or has failed.
    private func settle(
        _ load: Load,
        _ result: Result<Request.Item, NetworkError>
    ) -> Result<Request.Item, NetworkError> {
        let cancelled = Result<Request.Item, NetworkError>.failure(NetworkError(code: .cancelled))
        guard state.withLock({ $0.loading == load.number }) else { return cancelled }
        let following = result.flatMap { item in
            Result { try next(load.request, item) }.mapError { NetworkError.thrown($0, otherwise: .invalidRequest) }
        }
        let before = state.withLock { state -> State? in
            guard state.loading == load.number else { return nil }
            let before = state
            (state.loading, state.operation) = (nil, nil)
            if case .success(let next) = following {
                state.pageCount = load.number == state.round ? 1 : state.pageCount + 1
                state.next = next
            }
            return before
        }
        // The operation and the previous next request are released outside the lock.
        return before == nil ? cancelled : following.flatMap { _ in result }
    }
}

extension PageCursor {
    /// The pages from the first to the last. Each is loaded when the iteration reaches it.
    ///
    /// ```swift
    /// for try await list in cursor.pages { show(list) }
    /// ```
    ///
    /// Iterating moves the cursor: it starts over, and a page that is being loaded is cancelled. Cancelling the task
    /// cancels the page that is being loaded. If a page fails, the sequence throws its ``NetworkError`` and ends.
    /// ``loadNext(success:failure:)`` can then load the same page again. The sequence can be iterated once.
    ///
    /// A cursor has one position. If other code starts it over, the sequence throws ``NetworkError/Code/cancelled``.
    /// While other code is loading a page, it throws ``NetworkError/Code/refused``.
    public var pages: StreamedSequence<Request.Item> {
        StreamedSequence {
            // The state is the number of the start that this sequence has made.
            StreamedSequence.reading(Int?.none) { round in
                // Throw instead of ending, because the pages so far are not all pages.
                guard !Task.isCancelled else { throw NetworkError(code: .cancelled) }
                guard let load = try round.map(self.beginNext) ?? self.beginFirst() else { return nil }
                round = round ?? load.number
                return try await self.item(of: load)
            }
        }
    }

    private func item(of load: Load) async throws -> Request.Item {
        let operation = operation(for: load)
        queue.addOperation(operation)
        operation.countWaitingTask()
        await operation.waitAsCounted()
        return try settle(load, operation.knownResult).get()
    }
}
