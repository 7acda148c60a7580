extension NetworkQueue {
    /// Runs requests as jobs and brings their results as they land.
    ///
    /// ```swift
    /// for await (index, result) in NetworkQueue.shared.results(of: ids.lazy.map { GetUser(id: $0) }) {
    ///     print(index, result)
    /// }
    /// ```
    ///
    /// Nothing happens before the first result is asked for. A request is taken from the sequence when there is room
    /// for it, on the task that asks for a result: of operations that run and results that have not been fetched there
    /// are never more than `maxConcurrentOperationCount`, so a lazy sequence of a million requests needs the memory of
    /// a few.
    ///
    /// A failure is a result like others. When the loop is left, or its task cancelled, what still runs is cancelled; a
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

    /// The results of many requests, in the order in which they land. To iterate over it again runs them again, if the
    /// sequence of requests can be gone through again.
    public struct Results<Requests: Sequence>: AsyncSequence where Requests.Element: APIRequest {
        public typealias Item = Requests.Element.Item
        /// The place of the request in the sequence, and what became of it.
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
