import Foundation

extension EasyNetworkService {
    /// Sends a request and returns its answers: that of the cache, if the policy is
    /// ``CachePolicy/Reading/cacheThenNetwork`` and there is a valid one, then the last one.
    ///
    /// ```swift
    /// for try await response in service.responses(to: news) { show(try response.decode(News.self)) }
    /// ```
    ///
    /// The request is sent by this call. Ending the iteration cancels it. There are at most two answers, and a slow
    /// reader gets both.
    ///
    /// - Throws: from the iteration, the ``NetworkError`` that ``send(_:ignoringCache:)`` throws.
    public func responses(to request: some BaseAPIRequest) -> AsyncThrowingStream<NetworkResponse, any Error> {
        AsyncThrowingStream { continuation in
            // A group of its own, which is cancelled with the iteration.
            let group = CallGroup(partOf: group)
            let caller = group.caller
            var call = CallRequest(request)
            call.cached = { continuation.yield(CallGroup.typed($0)) }
            group.start(call, map: { $0 }) { result in
                caller?.callGroup.noteEnd(of: result.failure)
                continuation.yield(with: result.mapError { $0 as any Error })
                continuation.finish()
            }
            continuation.onTermination = { _ in group.cancel() }
        }
    }

    /// The answer that the cache has for a request, if it is valid by the request's policy; the request is not sent.
    /// With ``CachePolicy/Reading/network`` it is found, too, as the program asks for it.
    ///
    /// - Throws: ``NetworkError/Code/notCached``, with ``NetworkError/cacheMiss``;
    ///   ``NetworkError/Code/invalidRequest``.
    public func cachedResponse(for request: some BaseAPIRequest) async throws(NetworkError) -> NetworkResponse {
        // Not on the caller's executor, which may be the main actor: it encodes the request and reads the answer.
        try await WorkQueue.task { await self.lookUp(request) }.value.get()
    }

    private func lookUp(_ request: some BaseAPIRequest) async -> Result<NetworkResponse, NetworkError> {
        do throws(NetworkError) {
            return .success(try await storedResponse(for: request))
        } catch {
            return .failure(error)
        }
    }

    private func storedResponse(for request: some BaseAPIRequest) async throws(NetworkError) -> NetworkResponse {
        let snapshot = try RequestSnapshot(request, request.options, for: configuration)
        guard let cache = snapshot.cache(.standard) else { throw NetworkError(.absent) }
        switch await snapshot.look(cache, for: snapshot.message, key: cache.key(for: snapshot.message)) {
        case .answer(let response, _), .answerAndSend(let response): return response
        case .send(let miss, _): throw NetworkError(miss)
        case .refuse(let miss): throw NetworkError(miss, cache.policy.reading)
        }
    }

    /// Stores an answer made by the program as if it had come now, by the policy of the request.
    /// ``CachePolicy/isStorable`` is not asked: the program has decided.
    ///
    /// - Throws: ``NetworkError/Code/invalidRequest`` when the request's policy stores no answers or finds no key, for
    ///   a 206, and when the rules of ``CachePolicy/http`` forbid to store this answer.
    public func store(_ response: NetworkResponse, for request: some BaseAPIRequest) throws(NetworkError) {
        let snapshot = try RequestSnapshot(request, request.options, for: configuration)
        let date = configuration.settings.clock.date
        guard let cache = snapshot.cache(.standard),
            let deposit = snapshot.deposit(
                snapshot.message,
                in: cache,
                key: cache.key(for: snapshot.message),
                isCredentialAdded: snapshot.credentialState?.isExempt == false
            ),
            case .store(let entry) = deposit.lookup.keeping(response, deposit, at: date)
        else {
            throw NetworkError(code: .invalidRequest, message: "the request's policy does not store this response")
        }
        deposit.lookup.cache.store(entry, in: deposit.lookup.policy.storage)
    }

    /// Removes the cached answers to a request. An answer that is under way is not stored.
    ///
    /// - Throws: ``NetworkError/Code/invalidRequest`` when the request cannot be built.
    public func removeCachedResponse(for request: some BaseAPIRequest) throws(NetworkError) {
        let snapshot = try RequestSnapshot(request, request.options, for: configuration)
        if let cache = snapshot.cache(.standard), let key = cache.key(for: snapshot.message) {
            cache.cache.invalidate(key)
        }
    }
}
