import Foundation

// By the rules of HTTP, for a cache of one user.
extension CacheUse {
    func judgeByHTTP(_ entry: CacheEntry, _ message: TransportRequest, _ date: Date) -> Verdict {
        let stored = StoredResponse(entry.header)
        func send(_ miss: CacheMiss, _ conditions: HTTPHeaders) -> Verdict {
            .send(miss, CacheCandidate(entry, stored, conditions: conditions, message))
        }
        func answer(isRefreshed: Bool) -> Verdict {
            let response = NetworkResponse(entry, headers: stored.headers(at: date))
            return .answer(CachedAnswer(response: response, isRefreshed: isRefreshed))
        }
        let isFresh = stored.freshness.isFresh(at: date)
        switch HTTPReuse(of: stored, for: message.method, message.headers, at: date) {
        case .fresh where order == .refresh, .stale where order == .refresh:
            return send(.expired, stored.conditionalHeaders)
        case .fresh: return answer(isRefreshed: false)
        case .stale(let conditions): return answer(isRefreshed: conditions != nil)
        case .revalidate(let conditions): return send(isFresh ? .mustAsk : .expired, conditions)
        case .unusable(.onlyIfCached): return .refuse(.expired)
        case .unusable(.noValidator): return send(isFresh ? .mustAsk : .expired, HTTPHeaders())
        case .unusable(.vary): return .send(.varies, nil)
        case .unusable(.method), .unusable(.condition), .unusable(.noStore): return .send(.mustAsk, nil)
        }
    }

    /// An answer that is kept instead of an error, where the server or the request allows it (RFC 5861, section 4).
    func standIn(_ candidate: CacheCandidate, for error: NetworkError, at date: Date) -> NetworkResponse? {
        guard let failure = HTTPReuse.Failure(error),
            HTTPReuse.standsIn(candidate.stored, for: failure, of: .get, candidate.request, at: date)
        else { return nil }
        return NetworkResponse(candidate.entry, headers: candidate.stored.headers(at: date))
    }

    /// Why an answer is not stored.
    struct Refusal: Error {
        /// Whether it tells of this request alone, and nothing of what is stored.
        let isAboutRequest: Bool
    }

    func storedByHTTP(
        _ response: NetworkResponse,
        _ deposit: CacheDeposit,
        at date: Date
    ) -> Result<StoredResponse, Refusal> {
        let control = CacheControl(response: response.headers)
        // Without a partition, answers to the host's credential are stored only if they are the same for all (RFC 9111,
        // section 3.5).
        guard !deposit.isCredentialAdded || partition != nil || control.isPublic else {
            return .failure(Refusal(isAboutRequest: false))
        }
        let request = deposit.request(varyingIn: response.headers.listMembers("Vary"))
        // Cookies count, absent ones too, unless the partition says whose they are.
        let credentials = request.credentials.filter { !$0.isCookie }.map(\.name)
        let stored = StoredResponse(
            request: request,
            nominating: credentials + (partition == nil ? ["Cookie"] : []),
            status: response.statusCode,
            response: response.headers,
            control: control,
            requestDate: deposit.requestedAt,
            responseDate: date
        )
        let method = deposit.message.method
        if let obstacle = HTTPStorability.obstacle(to: stored, control, method: method, request: request) {
            let ofRequest: [HTTPStorability.Obstacle] = [.method, .partial, .condition, .requestNoStore]
            return .failure(Refusal(isAboutRequest: ofRequest.contains(obstacle)))
        }
        return .success(stored)
    }
}

extension CacheDeposit {
    /// The fields of the request as the next one for the same answer has them: without the cache's conditions, and without
    /// what the host's authentication put in, which is not known when the cache is asked. Where answers vary by that, it
    /// stays, and none is found.
    fileprivate func request(varyingIn names: [String]) -> HTTPHeaders {
        var request = candidate?.unconditioned(message.headers) ?? message.headers
        guard isCredentialAdded else { return request }
        for field in request.credentials where !field.isCookie {
            guard !names.contains(where: { $0.isEqualIgnoringASCIICase(to: field.name) }) else { continue }
            request[field.name] = asked[field.name]
        }
        return request
    }

    /// Updates the stored answer to a GET by one to a HEAD, or removes it if they do not fit (RFC 9111, section 4.3.5).
    func update(by response: NetworkResponse, at date: Date) {
        guard response.statusCode == 200, let key = use.key(for: message) else { return }
        use.cache.load(key, isPromoting: false) { found in
            guard let entry = try? found.get() else { return }
            let stored = StoredResponse(entry.header)
            let request = self.request(varyingIn: response.headers.listMembers("Vary"))
            guard stored.nominated.match(request) else { return }
            let length = response.headers["Content-Length"]
            guard length == nil || length == stored.headers["Content-Length"],
                let fresh = stored.freshened(
                    by: response.headers,
                    request: request,
                    requestDate: requestedAt,
                    responseDate: date
                )
            else { return use.cache.remove(key) }
            var get = self
            get.message.method = .get
            get.keep(NetworkResponse(entry, headers: fresh.headers(at: date), source: .revalidated), at: date)
        }
    }
}

/// An entry that the server may confirm, or that may stand in for an error.
struct CacheCandidate: Sendable {
    let entry: CacheEntry
    let stored: StoredResponse
    /// The fields that ask the server whether it is still right; none when it cannot be confirmed.
    let conditions: HTTPHeaders
    private let url: URL
    /// The fields of the request, without these.
    let request: HTTPHeaders

    init(_ entry: CacheEntry, _ stored: StoredResponse, conditions: HTTPHeaders, _ message: TransportRequest) {
        self.entry = entry
        self.stored = stored
        self.conditions = conditions
        url = message.url
        request = message.headers
    }

    /// Whether it was found for such a message, and not for another that an attempt made of it.
    func isFor(_ message: TransportRequest) -> Bool {
        message.url == url && message.method == .get && stored.nominated.match(request.merging(message.headers))
    }

    func conditioned(_ message: TransportRequest) -> TransportRequest {
        var message = message
        for field in conditions { message.headers[field.name] = field.value }
        return message
    }

    func unconditioned(_ message: TransportRequest) -> TransportRequest {
        var message = message
        message.headers = unconditioned(message.headers)
        return message
    }

    func unconditioned(_ headers: HTTPHeaders) -> HTTPHeaders {
        var headers = headers
        for field in conditions { headers.remove(field.name) }
        return headers
    }

    /// The entry, as an answer that was just confirmed.
    ///
    /// - Returns: nil when the answer is no 304, or speaks of something else than the entry.
    func confirmed(by response: NetworkResponse, at date: Date) -> NetworkResponse? {
        guard response.statusCode == 304, !conditions.isEmpty,
            let fresh = stored.freshened(by: response.headers, request: request, requestDate: date, responseDate: date)
        else { return nil }
        var confirmed = NetworkResponse(entry, headers: fresh.headers(at: date), source: .revalidated)
        confirmed.metrics = response.metrics
        return confirmed
    }
}
