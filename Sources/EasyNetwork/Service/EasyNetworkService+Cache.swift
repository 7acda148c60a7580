import Foundation

extension EasyNetworkService {
    /// Sends a request and returns its responses: the cached one, if the policy is
    /// ``CachePolicy/Reading/cacheThenNetwork`` and the cache has a valid response, and then the final one.
    ///
    /// ```swift
    /// for try await response in service.responses(to: news) { show(try response.decode(News.self)) }
    /// ```
    ///
    /// This call sends the request. Ending the iteration cancels it. There are at most two responses, and a slow reader
    /// gets both.
    ///
    /// - Throws: From the iteration, the ``NetworkError`` that ``send(_:ignoringCache:)`` throws.
    public func responses(to request: some BaseAPIRequest) -> AsyncThrowingStream<NetworkResponse, any Error> {
        AsyncThrowingStream { continuation in
            // The call gets its own group, which is cancelled with the iteration.
            let group = CallGroup(partOf: group)
            let job = group.job
            var call = CallRequest(request)
            call.cached = { continuation.yield(CallGroup.typed($0)) }
            Call(call, in: group) { _, result, keep in
                keep?()
                job?.group.noteEnd(of: result.failure)
                continuation.yield(with: result.map(CallGroup.typed).mapError { $0 as any Error })
                continuation.finish()
            }.start()
            continuation.onTermination = { _ in group.cancel() }
        }
    }

    /// Returns the cached response to a request, if it is valid under the request's policy. The request is not sent. A
    /// stored response is found even with ``CachePolicy/Reading/network``, because the caller requests it explicitly.
    ///
    /// - Throws: ``NetworkError/Code/notCached``, with ``NetworkError/cacheMiss``;
    ///   ``NetworkError/Code/invalidRequest``.
    public func cachedResponse(for request: some BaseAPIRequest) async throws(NetworkError) -> NetworkResponse {
        // The lookup encodes the request and reads the response. It must not run on the caller's executor, which can be
        // the main actor.
        try await WorkQueue.task { await self.storedResponse(for: request) }.value.get()
    }

    private func storedResponse(for request: some BaseAPIRequest) async -> Result<NetworkResponse, NetworkError> {
        do throws(NetworkError) {
            let snapshot = try RequestSnapshot(request, request.options, for: configuration)
            guard let cache = snapshot.cache(.standard) else { return .failure(NetworkError(.absent)) }
            switch await snapshot.look(cache, for: snapshot.message, key: cache.key(for: snapshot.message)) {
            case .answer(let response, _), .answerAndSend(let response): return .success(response)
            case .send(let miss, _): return .failure(NetworkError(miss))
            case .refuse(let miss): return .failure(NetworkError(miss, cache.policy.reading))
            }
        } catch {
            return .failure(error)
        }
    }

    /// Stores a response made by the program as if it had just arrived, under the request's policy.
    /// ``CachePolicy/isStorable`` is not called, because the program has decided.
    ///
    /// - Throws: ``NetworkError/Code/invalidRequest`` if the request's policy stores no responses or finds no key, if
    ///   the status is 206, or if the rules of ``CachePolicy/http`` forbid storing this response.
    public func store(_ response: NetworkResponse, for request: some BaseAPIRequest) throws(NetworkError) {
        let snapshot = try RequestSnapshot(request, request.options, for: configuration)
        let date = configuration.settings.clock.date
        guard let cache = snapshot.cache(.standard),
            let deposit = snapshot.deposit(snapshot.message, in: cache, key: cache.key(for: snapshot.message)),
            case (let entry, .storable)? = deposit.lookup.entry(response, deposit, at: date)
        else {
            throw .invalidRequest("the request's policy does not store this response")
        }
        deposit.lookup.cache.store(entry, in: deposit.lookup.policy.storage)
    }

    /// Removes the cached responses to a request. A response that is currently being received is not stored.
    ///
    /// - Throws: ``NetworkError/Code/invalidRequest`` if the request cannot be built.
    public func removeCachedResponse(for request: some BaseAPIRequest) throws(NetworkError) {
        let snapshot = try RequestSnapshot(request, request.options, for: configuration)
        if let cache = snapshot.cache(.standard), let key = cache.key(for: snapshot.message) {
            cache.cache.invalidate(key)
        }
    }
}
