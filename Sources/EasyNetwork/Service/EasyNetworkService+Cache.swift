import Foundation

extension EasyNetworkService {
    /// Sends a request and brings its answers: that of the cache, when its policy is
    /// ``CachePolicy/Reading/cacheThenNetwork`` and there is a valid one, and then the last one.
    ///
    /// ```swift
    /// for try await response in service.responses(to: news) { show(try response.decode(News.self)) }
    /// ```
    ///
    /// It is sent when this is called. To stop iterating cancels it.
    ///
    /// - Throws: while it is iterated, what ``send(_:ignoringCache:)`` throws; a ``NetworkError``.
    public func responses(to request: some BaseAPIRequest) -> AsyncThrowingStream<NetworkResponse, any Error> {
        AsyncThrowingStream { continuation in
            // Of its own, as an answer of the cache that cannot be used is followed by another landing.
            let service = EasyNetworkService(partOf: self)
            service.start(request, cached: { continuation.yield($0) }, map: { $0 }) { result in
                continuation.yield(with: result.mapError { $0 as any Error })
                continuation.finish()
            }
            continuation.onTermination = { _ in service.cancel() }
        }
    }

    /// The answer that the cache has for a request, if it is valid by its policy; nothing is sent.
    ///
    /// - Throws: ``NetworkError/Code/notCached``, with ``NetworkError/cacheMiss``; ``NetworkError/Code/invalidRequest``.
    public func cachedResponse(for request: some BaseAPIRequest) async throws(NetworkError) -> NetworkResponse {
        let (site, message) = try cacheSite(for: request)
        let key = site.cache?.key(for: message)
        let verdict = await withCheckedContinuation { continuation in
            site.look(message, key: key) { continuation.resume(returning: $0) }
        }
        switch verdict {
        case .answer(let answer), .answerAndSend(let answer): return answer.response
        case .send(let miss, _): throw NetworkError(miss)
        case .refuse(let miss): throw NetworkError(miss, site.cache?.policy.reading)
        }
    }

    /// Stores an answer as if it had come now, whether or not the policy would; for one that has been made by hand.
    ///
    /// - Throws: ``NetworkError/Code/invalidRequest`` when the request's policy stores nothing, finds no key, or does not
    ///   allow to store this answer.
    public func store(_ response: NetworkResponse, for request: some BaseAPIRequest) throws(NetworkError) {
        let (site, message) = try cacheSite(for: request)
        let date = configuration.settings.clock.date
        guard let deposit = site.deposit(message, key: site.cache?.key(for: message), nil),
            case .store(let entry) = deposit.use.keeping(response, deposit, at: date)
        else {
            throw NetworkError(code: .invalidRequest, message: "the policy of the request does not store this answer")
        }
        deposit.use.cache.store(entry, in: deposit.use.policy.storage)
    }

    /// Removes what the cache has for a request. An answer to it that is under way is not stored.
    ///
    /// - Throws: ``NetworkError/Code/invalidRequest`` when the request cannot be built.
    public func removeCachedResponse(for request: some BaseAPIRequest) throws(NetworkError) {
        let (site, message) = try cacheSite(for: request)
        if let cache = site.cache, let key = cache.key(for: message) { cache.cache.invalidate(key) }
    }

    private func cacheSite<Request: BaseAPIRequest>(
        for request: Request
    ) throws(NetworkError) -> (site: LandingSite, message: TransportRequest) {
        let message = try RequestBuilder.build(request, for: configuration)
        return (try LandingSite(configuration, request, message, caller: nil), message)
    }

    // MARK: - After a landing

    /// Does what a landing left to do for the cache.
    func perform<Item>(
        _ end: LandingEnd,
        _ request: some BaseAPIRequest,
        _ map: @escaping @Sendable (NetworkResponse) throws -> Item,
        _ isMapped: @escaping @Sendable (NetworkResponse) -> Bool
    ) {
        switch end.errand {
        case .store(let deposit):
            guard let answer = end.acceptedAnswer, let response = try? end.result.get(), isMapped(response) else {
                return
            }
            deposit.keep(answer, at: configuration.settings.clock.date)
        case .answered(let use, let key, isRefreshed: true):
            guard use.cache.beginRefresh(key) else { return }
            // It outlives the operation, and the service that is cancelled with it.
            EasyNetworkService(configuration).begin(request, false, .refresh, nil, nil, map, isMapped) { _, _ in
                use.cache.endRefresh(key)
            }
        case .answered, nil: return
        }
    }

    /// Forgets the answers that a request of an unsafe method may have made wrong (RFC 9111, section 4.4).
    func forgetStored(after result: Result<NetworkResponse, NetworkError>) {
        let (history, headers) =
            switch result {
            case .success(let response): (response.history, response.headers)
            case .failure(let error): (error.history, error.headers)
            }
        let (cache, partition) = (configuration.settings.cache, configuration.settings.cachePartition)
        for (index, attempt) in history.enumerated() {
            let urls = HTTPInvalidation.urls(
                method: NetworkService.Method(rawValue: attempt.request.method),
                target: attempt.request.url,
                status: attempt.statusCode ?? 0,
                response: index == history.count - 1 ? headers : HTTPHeaders()
            )
            for url in urls { cache.invalidate(CacheKey.http(url, partition: partition)) }
        }
    }
}

extension LandingEnd {
    /// The entry that is to be forgotten, and the request to be sent without it, when its answer came to nothing: it could
    /// not be mapped, or an interceptor does not take it any more.
    func unusableEntry(after error: NetworkError) -> (cache: NetworkCache, key: String)? {
        guard ![.cancelled, .timedOut, .notCached].contains(error.code) else { return nil }
        switch errand {
        case .answered(let use, let key, _): return (use.cache, key)
        case .store(let deposit):
            guard let response = try? result.get(), response.source == .cache || response.source == .revalidated,
                let candidate = deposit.candidate
            else { return nil }
            return (deposit.use.cache, candidate.entry.header.key)
        case nil: return nil
        }
    }
}
