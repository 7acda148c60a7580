extension NetworkQueue {
    /// Runs several requests as jobs and returns their items, in the order of the requests.
    ///
    /// ```swift
    /// let users = try await NetworkQueue.shared.perform(ids.map { GetUser(id: $0) })
    /// ```
    ///
    /// The first failure cancels the others. Cancelling the task cancels all. The same values may be performed again. For
    /// many requests, or results one by one, see ``results(of:maxConcurrentOperationCount:service:)``.
    ///
    /// - Parameters:
    ///   - maxConcurrentOperationCount: the number of requests that run at once; below 1, the default, as many as the
    ///     queue allows.
    ///   - service: gives the host; nil, the default, means ``HostConfiguration/shared``.
    /// - Throws: the error of the request that failed first; its message names that request.
    public func perform<Request: APIRequest>(
        _ requests: some Sequence<Request>,
        maxConcurrentOperationCount: Int = -1,
        service: EasyNetworkService? = nil
    ) async throws(NetworkError) -> [Request.Item] {
        let operations = requests.map { RequestOperation($0, of: service) }
        let batch = BatchOperation(operations, maxConcurrentOperationCount: maxConcurrentOperationCount)
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                addOperation(batch)
                batch.whenFinished { continuation.resume() }
            }
        } onCancel: {
            batch.cancel()
        }
        if let error = batch.error { throw error }
        var items: [Request.Item] = []
        items.reserveCapacity(operations.count)
        for operation in operations {
            // Each has a result, because the batch has succeeded.
            if let result = operation.result { items.append(try result.get()) }
        }
        return items
    }
}

extension RequestOperation {
    /// - Parameter service: nil means ``HostConfiguration/shared``.
    convenience init(_ request: Request, of service: EasyNetworkService?) {
        if let service { self.init(request, service: service) } else { self.init(request) }
    }
}

extension NetworkQueue {
    /// Runs requests as jobs and returns their results as they arrive.
    ///
    /// ```swift
    /// for await (index, result) in NetworkQueue.shared.results(of: ids.lazy.map { GetUser(id: $0) }) {
    ///     print(index, result)
    /// }
    /// ```
    ///
    /// No request starts before the first call of `next()`. A request is taken from the sequence when there is room for it, on
    /// the task that calls `next()`: running operations and results that have not been fetched never exceed
    /// `maxConcurrentOperationCount` together, so a lazy sequence of a million requests needs the memory of a few.
    ///
    /// A failure is a result like others. Leaving the loop or cancelling its task cancels the running operations; a
    /// cancelled task gets no more results.
    ///
    /// - Parameters:
    ///   - maxConcurrentOperationCount: default ``defaultMaxConcurrentOperationCount``; less than 1 counts as 1. The
    ///     queue's own limit holds as well.
    ///   - service: gives the host; nil, the default, means ``HostConfiguration/shared``.
    public func results<Requests: Sequence>(
        of requests: Requests,
        maxConcurrentOperationCount: Int = NetworkQueue.defaultMaxConcurrentOperationCount,
        service: EasyNetworkService? = nil
    ) -> Results<Requests> where Requests.Element: APIRequest {
        Results(queue: self, requests: requests, room: max(1, maxConcurrentOperationCount), service: service)
    }

    /// The results of many requests, in the order in which they arrive. A second iteration runs the requests again, if the
    /// sequence of requests can be iterated again.
    public struct Results<Requests: Sequence>: AsyncSequence where Requests.Element: APIRequest {
        public typealias Item = Requests.Element.Item
        /// The index of the request in the sequence, and its result.
        public typealias Element = (index: Int, result: Result<Item, NetworkError>)

        let queue: NetworkQueue
        let requests: Requests
        let room: Int
        let service: EasyNetworkService?

        public func makeAsyncIterator() -> AsyncIterator {
            AsyncIterator(
                requests: requests.makeIterator(),
                window: ResultWindow(queue: queue, room: room),
                service: service
            )
        }

        public struct AsyncIterator: AsyncIteratorProtocol {
            var requests: Requests.Iterator
            let window: ResultWindow<Requests.Element>
            let service: EasyNetworkService?
            private var nextIndex = 0
            private var isExhausted = false

            init(requests: Requests.Iterator, window: ResultWindow<Requests.Element>, service: EasyNetworkService?) {
                self.requests = requests
                self.window = window
                self.service = service
            }

            /// - Returns: nil when every result has been returned, or the task is cancelled.
            public mutating func next() async -> Element? {
                while !isExhausted, !Task.isCancelled, window.hasRoom {
                    guard let request = requests.next() else {
                        isExhausted = true
                        break
                    }
                    window.run(RequestOperation(request, of: service), at: nextIndex)
                    nextIndex += 1
                }
                return await window.next()
            }
        }
    }
}

extension NetworkQueue.Results: Sendable where Requests: Sendable {}

/// The running operations of one iteration, and the results that have not been fetched. Its deinitialization cancels the
/// operations.
final class ResultWindow<Request: APIRequest>: Sendable {
    typealias Element = (index: Int, result: Result<Request.Item, NetworkError>)

    private struct State {
        var running: [Int: RequestOperation<Request>] = [:]
        var results = ResultBuffer<Element>()
        var waiter: CheckedContinuation<Void, Never>?
        var isCancelled = false
    }

    private let queue: NetworkQueue
    private let room: Int
    private let state = Locked(State())

    init(queue: NetworkQueue, room: Int) {
        self.queue = queue
        self.room = room
    }

    deinit {
        cancel()
    }

    var hasRoom: Bool {
        state.withLock { !$0.isCancelled && $0.running.count + $0.results.count < room }
    }

    func run(_ operation: RequestOperation<Request>, at index: Int) {
        state.withLock { $0.running[index] = operation }
        queue.addOperation(operation)
        operation.whenFinished { [weak self] in self?.collect(index) }
        // The task may have been cancelled just before.
        if state.withLock({ $0.isCancelled }) { operation.cancel() }
    }

    /// - Returns: the next result, when there is one; nil when nothing runs any more or the task is cancelled.
    func next() async -> Element? {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let mustWait = state.withLock { state in
                    guard !state.isCancelled, state.results.count == 0, !state.running.isEmpty else { return false }
                    state.waiter = continuation
                    return true
                }
                if !mustWait { continuation.resume() }
            }
        } onCancel: {
            cancel()
        }
        return state.withLock { $0.isCancelled ? nil : $0.results.popFirst() }
    }

    private func collect(_ index: Int) {
        let (operation, waiter) = state.withLock { state in
            let operation = state.running.removeValue(forKey: index)
            if let result = operation?.result { state.results.append((index, result)) }
            return (operation, state.waiter.take())
        }
        waiter?.resume()
        withExtendedLifetime(operation) {}
    }

    private func cancel() {
        let (operations, results, waiter) = state.withLock { state in
            state.isCancelled = true
            defer {
                state.running = [:]
                state.results = ResultBuffer()
            }
            return (state.running, state.results, state.waiter.take())
        }
        waiter?.resume()
        for operation in operations.values { operation.cancel() }
        // Released outside the lock.
        withExtendedLifetime(results) {}
    }
}

/// A first-in first-out buffer with constant cost.
private struct ResultBuffer<Element> {
    private var incoming: [Element] = []
    /// In reverse order.
    private var outgoing: [Element] = []

    var count: Int { incoming.count + outgoing.count }

    mutating func append(_ element: Element) {
        incoming.append(element)
    }

    mutating func popFirst() -> Element? {
        if outgoing.isEmpty { outgoing = incoming.take().reversed() }
        return outgoing.popLast()
    }
}
