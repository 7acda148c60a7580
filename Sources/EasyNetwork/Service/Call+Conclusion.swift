import Foundation

extension Call {
    /// How the attempts of a call ended.
    struct Conclusion: Sendable {
        private(set) var result: Result<NetworkResponse, NetworkError>
        /// The cache's work after the item has been made.
        var pendingStore: PendingStore?
        /// The last accepted response from the network, which the cache can store, whatever interceptors return
        /// instead.
        var acceptedResponse: NetworkResponse?

        private static let taken = Result<NetworkResponse, NetworkError>.failure(NetworkError(code: .cancelled))

        /// Moves the response out of the conclusion; nil for an error.
        mutating func takeResponse() -> NetworkResponse? {
            acceptedResponse = nil
            return try? exchange(&result, with: Self.taken).get()
        }

        /// Removes a stored response that could not be mapped, or that an interceptor now refuses.
        ///
        /// - Returns: Whether there was one, so that the request must be sent without it.
        func removeUnusable(after error: NetworkError?) -> Bool {
            guard let error, ![.cancelled, .timedOut, .notCached].contains(error.code) else { return false }
            switch pendingStore {
            case .answered(let lookup, let key, _): lookup.cache.remove(key)
            case .store(let deposit):
                guard let response = try? result.get(), response.source == .cache || response.source == .revalidated,
                    let candidate = deposit.candidate
                else { return false }
                deposit.lookup.cache.remove(candidate.entry.header.key)
            case .shared, nil: return false
            }
            return true
        }
    }

    /// Stores the response, or refreshes the stored response that was returned.
    func keep(_ conclusion: Conclusion, _ snapshot: RequestSnapshot?) {
        switch conclusion.pendingStore {
        case .store(let deposit):
            guard let accepted = conclusion.acceptedResponse, let response = try? conclusion.result.get(),
                request.mayStore?(response) != false
            else { return }
            deposit.keep(accepted, at: host.settings.clock.date)
        case .answered(let lookup, let key, isRefreshed: true):
            guard lookup.cache.beginRefresh(key) else { return }
            // The refresh outlives the job.
            Call(request.refresh(snapshot), in: CallGroup(host)) { _, _, keep in
                keep?()
                lookup.cache.endRefresh(key)
            }.start()
        case .shared(let keep): keep()
        case .answered, nil: return
        }
    }
}

extension HostConfiguration {
    /// Invalidates the stored responses that a request with an unsafe method may have made outdated (RFC 9111, section
    /// 4.4).
    func invalidateStored(after result: Result<NetworkResponse, NetworkError>) {
        let (history, headers) =
            switch result {
            case .success(let response): (response.history, response.headers)
            case .failure(let error): (error.history, error.headers)
            }
        for (index, attempt) in history.enumerated() where !HTTPHeaders.safeMethods.contains(attempt.request.method) {
            let urls = (index == history.count - 1 ? headers : HTTPHeaders()).invalidatedURLs(
                method: NetworkService.Method(rawValue: attempt.request.method),
                target: attempt.request.url,
                status: attempt.statusCode ?? 0
            )
            for url in urls { settings.cache.invalidate(CacheKey.http(url, partition: settings.cachePartition)) }
        }
    }
}
