extension NetworkQueue {
    /// Runs several requests as jobs and returns their items, in the order of the requests.
    ///
    /// ```swift
    /// let users = try await NetworkQueue.shared.perform(ids.map { GetUser(id: $0) })
    /// ```
    ///
    /// The first failure cancels the others. Cancelling the task cancels all. Nothing is used up: the same values may
    /// be performed again. For many requests, or results one by one, see
    /// ``results(of:maxConcurrentOperationCount:service:)``.
    ///
    /// - Parameters:
    ///   - maxConcurrentOperationCount: how many of them run at once; below 1, the default, as many as the queue lets.
    ///   - service: gives the host; nil, the default, means ``HostConfiguration/shared``.
    /// - Throws: the error of the request that failed first; its message tells which one it was.
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
            // Each has a result, as the batch has ended well; else its own error would be thrown.
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
