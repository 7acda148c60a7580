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
/// The cursor loads one page at a time. After a failure the same page may be loaded again. A page that is being loaded
/// keeps the cursor alive. All members may be used from any thread.
public final class PageCursor<Request: APIRequest>: Sendable {
    /// A page that is being loaded.
    private typealias Load = (request: Request, number: Int)

    private struct State {
        /// The number of pages that have arrived since the first one, including it.
        var pageCount = 0
        /// The request after the page that arrived last; nil after the last page.
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
    ///   - service: gives the host. Default: ``HostConfiguration/shared`` as it is now.
    ///   - queue: runs each page as a job. Default: ``NetworkQueue/shared`` as it is now.
    ///   - callbackQueue: the queue of the closures. Default nil: the queue's, or else the host's callback queue.
    ///   - next: makes the request for the next page, from the request and the item of a page; nil when that was the
    ///     last. Called once for a page, on the callback queue before its closure, or in the task that reads ``pages``.
    ///     An error that it throws fails the page.
    public init(
        first: Request,
        service: EasyNetworkService = EasyNetworkService(HostConfiguration.shared),
        queue: NetworkQueue = .shared,
        callbackQueue: DispatchQueue? = nil,
        next: @escaping @Sendable (Request, Request.Item) throws -> Request?
    ) {
        self.first = first
        self.service = service
        self.queue = queue
        self.callbackQueue = callbackQueue
        self.next = next
    }

    // MARK: - Position

    /// Whether a page is being loaded.
    public var isLoading: Bool { state.withLock { $0.loading != nil } }
    /// Whether the page that arrived last is the first. False before one has arrived.
    public var isFirstPage: Bool { state.withLock { $0.pageCount == 1 } }
    /// Whether the page that arrived last is the last of the list. False before one has arrived.
    public var isLastPage: Bool { state.withLock { $0.pageCount > 0 && $0.next == nil } }
    /// The number of pages that have arrived since the last start from the first page, including it.
    public var pageCount: Int { state.withLock { $0.pageCount } }

    // MARK: - Loading

    /// Loads the first page again.
    ///
    /// A page that is being loaded is cancelled, and its `failure` called with ``NetworkError/Code/cancelled``. The
    /// cursor moves when the first page has arrived: if that fails, ``loadNext(success:failure:)`` continues from the
    /// old position.
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
    ///     may be loaded.
    ///   - failure: called with the error, once, on the callback queue. The same page may be loaded again.
    /// - Returns: whether loading began; false, and no closure is called, while a page is being loaded and after the
    ///   last page.
    @discardableResult
    public func loadNext(
        success: (@Sendable (Request.Item) -> Void)? = nil,
        failure: (@Sendable (NetworkError) -> Void)? = nil
    ) -> Bool {
        guard let load = try? beginNext() else { return false }
        run(load, success, failure)
        return true
    }

    /// Cancels the page that is being loaded: its `failure` is called with ``NetworkError/Code/cancelled``. The cursor
    /// keeps its position, and may be used again at once.
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

    /// - Parameter round: the start from the first page that is to be the last one; nil, the default, for any.
    /// - Returns: nil after the last page.
    /// - Throws: an error while a page is being loaded, and when the cursor was started over.
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

    /// The job of a page, already cancelled when the page is no longer current.
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
    /// The pages from the first to the last, each loaded when the iteration reaches it.
    ///
    /// ```swift
    /// for try await list in cursor.pages { show(list) }
    /// ```
    ///
    /// Iterating moves the cursor: it starts over, and a page that is being loaded is cancelled. Cancelling the task
    /// cancels the page that is being loaded. The sequence throws the ``NetworkError`` of a page and ends;
    /// ``loadNext(success:failure:)`` may load the same page again. It can be iterated once.
    ///
    /// A cursor has one position. When other code starts it over, the sequence throws ``NetworkError/Code/cancelled``;
    /// while other code is loading a page, it throws ``NetworkError/Code/refused``.
    public var pages: StreamedSequence<Request.Item> {
        StreamedSequence {
            // The state is the number of the start that the sequence has made.
            StreamedSequence.reading(Int?.none) { round in
                // Not the end: the pages so far are not all.
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
        let result: Result<Request.Item, NetworkError>
        do {
            result = .success(try await operation.value)
        } catch {
            result = .failure(error)
        }
        return try settle(load, result).get()
    }
}
