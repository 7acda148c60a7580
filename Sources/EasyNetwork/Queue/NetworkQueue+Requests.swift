extension NetworkQueue {
    /// Runs several requests as jobs and returns their items, in the order of the requests.
    ///
    /// ```swift
    /// let users = try await NetworkQueue.shared.perform(ids.map { GetUser(id: $0) })
    /// ```
    ///
    /// The first failure cancels the others. Cancelling the task cancels all of them. If the task is already cancelled,
    /// nothing is sent. The same values can be run again. For many requests, or for results one by one, see
    /// ``results(of:maxConcurrentOperationCount:service:)``.
    ///
    /// - Parameters:
    ///   - requests: the requests, in the order of their items.
    ///   - maxConcurrentOperationCount: the number of requests that run at once. A number below 1 means as many as the
    ///     queue allows. Defaults to `-1`.
    ///   - service: the service, which determines the host. Defaults to `nil`: ``HostConfiguration/shared``.
    /// - Throws: the error of the request that failed first. Its message names that request.
    public func perform<Request: APIRequest>(
        _ requests: some Sequence<Request>,
        maxConcurrentOperationCount: Int = -1,
        service: EasyNetworkService? = nil
    ) async throws(NetworkError) -> [Request.Item] {
        guard !Task.isCancelled else { throw NetworkError(code: .cancelled) }
        let operations = requests.map { RequestOperation($0, of: service) }
        let batch = BatchOperation(operations, maxConcurrentOperationCount: maxConcurrentOperationCount)
        addOperation(batch)
        try await batch.finished()
        // Each operation has a result, because the batch has succeeded.
        return try operations.map { (operation) throws(NetworkError) in try operation.knownResult.get() }
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
    /// No request starts before the first call of `next()`. A request is taken from the sequence when there is room for
    /// it, in the task that calls `next()`. The number of running operations and unread results together never exceeds
    /// `maxConcurrentOperationCount`. A lazy sequence of a million requests therefore needs the memory of a few.
    ///
    /// A failure is a result like any other. Leaving the loop or cancelling its task cancels the running operations. A
    /// cancelled task gets no more results.
    ///
    /// - Parameters:
    ///   - requests: the requests, in the order in which they start.
    ///   - maxConcurrentOperationCount: the number of requests that run at once. A number below 1 means as many as the
    ///     queue currently allows, or ``defaultMaxConcurrentOperationCount`` for a queue without a limit. The queue's
    ///     own limit applies as well. Defaults to `-1`.
    ///   - service: the service, which determines the host. Defaults to `nil`: ``HostConfiguration/shared``.
    public func results<Requests: Sequence>(
        of requests: Requests,
        maxConcurrentOperationCount: Int = -1,
        service: EasyNetworkService? = nil
    ) -> Results<Requests> where Requests.Element: APIRequest {
        let limits = [
            maxConcurrentOperationCount, self.maxConcurrentOperationCount, Self.defaultMaxConcurrentOperationCount,
        ]
        return Results(queue: self, requests: requests, room: limits.first { $0 > 0 } ?? 1, service: service)
    }

    /// The results of many requests, in the order in which they arrive. A second iteration runs the requests again, if
    /// the sequence of requests can be iterated again.
    ///
    /// ```swift
    /// for await (index, result) in queue.results(of: requests) { print(index, result) }
    /// ```
    public struct Results<Requests: Sequence>: AsyncSequence, AsyncIteratorProtocol
    where Requests.Element: APIRequest {
        /// The index of the request in the sequence, and its result.
        public typealias Element = (index: Int, result: Result<Requests.Element.Item, NetworkError>)

        /// The same results, in which each success contains the response with its body in addition to the item.
        ///
        /// ```swift
        /// for await (index, result) in queue.results(of: requests).withResponses {
        ///     if case .success(let (item, response)) = result { print(index, item, response.statusCode) }
        /// }
        /// ```
        public var withResponses: WithResponses { WithResponses(results: self) }

        fileprivate let queue: NetworkQueue
        fileprivate let requests: Requests
        fileprivate let room: Int
        fileprivate let service: EasyNetworkService?
        /// The requests that have not started; `nil` before the first call of `next()`.
        fileprivate var rest: Requests.Iterator?
        fileprivate var window: Window?
        fileprivate var isExhausted = false
        /// The number of requests that were started and whose results have not been returned.
        fileprivate var pendingCount = 0
        fileprivate var nextIndex = 0

        public func makeAsyncIterator() -> Results {
            Results(queue: queue, requests: requests, room: room, service: service)
        }

        /// Waits for the next result, and starts requests for which there is room.
        ///
        /// - Returns: `nil` when every result has been returned, or the task is cancelled.
        public mutating func next() async -> Element? {
            await nextOperation(keepingBody: false).map { ($0.index, $0.operation.knownResult) }
        }

        /// - Returns: the next operation that has finished.
        fileprivate mutating func nextOperation(keepingBody: Bool) async -> Window.Element? {
            let window = window ?? Window()
            if rest == nil { rest = requests.makeIterator() }
            self.window = window
            while !isExhausted, !Task.isCancelled, pendingCount < room {
                guard let request = rest?.next() else {
                    isExhausted = true
                    break
                }
                let operation = RequestOperation(request, of: service)
                operation.keepsResponseBody = keepingBody
                operation.owner = window.owner.withLock { $0 }
                queue.addOperation(operation)
                let (index, continuation) = (nextIndex, window.continuation)
                operation.whenFinished { continuation.yield((index, operation)) }
                // The task may have been cancelled just before.
                if window.owner.withLock({ $0 == nil }) { operation.cancel() }
                nextIndex += 1
                pendingCount += 1
            }
            var results = window.results.makeAsyncIterator()
            guard pendingCount > 0, let element = await results.next(), !Task.isCancelled else { return nil }
            pendingCount -= 1
            return element
        }

        /// The results that have arrived, and the owner of the running operations. Releasing the owner cancels them.
        /// That happens when the iterator is released, or the task that waits for a result is cancelled.
        fileprivate struct Window {
            typealias Element = (index: Int, operation: RequestOperation<Requests.Element>)

            let results: AsyncStream<Element>
            let continuation: AsyncStream<Element>.Continuation
            let owner = Locked<OperationOwner?>(OperationOwner())

            init() {
                // The stream holds at most `room` results, because the next operation starts when one of them has been
                // returned.
                (results, continuation) = AsyncStream.makeStream()
                continuation.onTermination = { [owner] _ in owner.exchange(nil) }
            }
        }
    }
}

extension NetworkQueue.Results {
    /// The results of ``NetworkQueue/Results/withResponses``.
    ///
    /// ```swift
    /// for await (index, result) in queue.results(of: requests).withResponses {
    ///     if case .success(let (_, response)) = result { print(index, response.headers) }
    /// }
    /// ```
    public struct WithResponses: AsyncSequence, AsyncIteratorProtocol {
        /// The index of the request in the sequence; its item and its response.
        public typealias Element = (
            index: Int, result: Result<(item: Requests.Element.Item, response: NetworkResponse), NetworkError>
        )

        fileprivate var results: NetworkQueue.Results<Requests>

        public func makeAsyncIterator() -> WithResponses {
            WithResponses(results: results.makeAsyncIterator())
        }

        /// Waits for the next result, as ``NetworkQueue/Results/next()`` does.
        public mutating func next() async -> Element? {
            guard let (index, operation) = await results.nextOperation(keepingBody: true) else { return nil }
            return (index, operation.knownResult.map { ($0, operation.responseOfItem) })
        }
    }
}

extension NetworkQueue.Results.WithResponses: Sendable where Requests: Sendable, Requests.Iterator: Sendable {}
extension NetworkQueue.Results: Sendable where Requests: Sendable, Requests.Iterator: Sendable {}
