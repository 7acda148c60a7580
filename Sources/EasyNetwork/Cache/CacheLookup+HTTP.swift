import Foundation

// The rules of RFC 9111, for a private cache.
extension CacheLookup {
    func judgeByHTTP(_ entry: CacheEntry, _ message: TransportRequest, _ date: Date) -> Verdict {
        let stored = StoredResponse(entry.header)
        let reuse = stored.reuse(for: message.method, message.headers, at: date)
        switch reuse {
        case .fresh, .stale, .staleWhileRevalidate:
            guard order != .refresh else { return .send(.expired, StoredCandidate(entry, stored, message)) }
            let response = NetworkResponse(entry, headers: stored.headers(at: date))
            return .answer(response, isRefreshed: reuse == .staleWhileRevalidate)
        case .revalidate:
            let miss = stored.isFresh(at: date) ? CacheMiss.mustAsk : .expired
            return .send(miss, StoredCandidate(entry, stored, message))
        case .onlyIfCached: return .refuse(.expired)
        case .varies: return .send(.varies, nil)
        case .unusable: return .send(.mustAsk, nil)
        }
    }

    /// The stored response that replaces an error, if the server or the request allows it (RFC 5861, section 4).
    func standIn(_ candidate: StoredCandidate, for error: NetworkError, at date: Date) -> NetworkResponse? {
        guard candidate.stored.standsIn(for: error, of: candidate.request, at: date) else { return nil }
        return NetworkResponse(candidate.entry, headers: candidate.stored.headers(at: date))
    }

    /// The response as it is stored, and whether it may be.
    func storedByHTTP(
        _ response: NetworkResponse,
        _ deposit: CacheDeposit,
        at date: Date
    ) -> (StoredResponse, HTTPStorability) {
        let control = CacheControl(response: response.headers)
        let request = deposit.request(varyingIn: response.headers.listMembers("Vary"))
        // Without a partition the response depends on cookies, also on absent ones.
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
        // The credential that the host added is for a partition, or for a public response (section 3.5).
        guard !deposit.isCredentialAdded || partition != nil || control.isPublic else { return (stored, .notStorable) }
        return (stored, stored.storability(control, method: deposit.message.method, request: request))
    }
}

extension CacheDeposit {
    /// The fields of the request as in a lookup: without the conditions of the cache, and without the credentials of
    /// the host, which are not known then. If the response varies by a credential, it stays, and no lookup matches.
    fileprivate func request(varyingIn names: [String]) -> HTTPHeaders {
        var request = candidate?.unconditioned(message.headers) ?? message.headers
        guard isCredentialAdded else { return request }
        for field in request.credentials where !field.isCookie {
            guard !names.contains(where: { $0.isEqualIgnoringASCIICase(to: field.name) }) else { continue }
            request[field.name] = asked[field.name]
        }
        return request
    }

    /// Updates the stored response to a GET after a HEAD, or removes it if they differ (RFC 9111, section 4.3.5).
    func update(by response: NetworkResponse, at date: Date) {
        guard response.statusCode == 200, let key = use.key(for: message) else { return }
        let request = request(varyingIn: response.headers.listMembers("Vary"))
        use.cache.load(key, for: request, isPromoting: false) { found in
            guard let entry = try? found.get() else { return }
            let stored = StoredResponse(entry.header)
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

/// An entry that the server may validate, or that may replace an error.
struct StoredCandidate: Sendable {
    let entry: CacheEntry
    let stored: StoredResponse
    /// The fields of the validation request; none without a validator.
    let conditions: HTTPHeaders
    private let url: URL
    /// The fields of the request, without the conditions.
    let request: HTTPHeaders

    init(_ entry: CacheEntry, _ stored: StoredResponse, _ message: TransportRequest) {
        self.entry = entry
        self.stored = stored
        conditions = stored.conditionalHeaders
        url = message.url
        request = message.headers
    }

    /// Whether the entry is for a message, which an interceptor may have changed.
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

    /// The stored response after a 304; nil for other statuses, and for a 304 with another validator.
    func confirmed(by response: NetworkResponse, at date: Date) -> NetworkResponse? {
        guard response.statusCode == 304, !conditions.isEmpty,
            let fresh = stored.freshened(by: response.headers, request: request, requestDate: date, responseDate: date)
        else { return nil }
        var confirmed = NetworkResponse(entry, headers: fresh.headers(at: date), source: .revalidated)
        confirmed.metrics = response.metrics
        return confirmed
    }
}
