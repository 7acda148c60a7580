import Foundation

// The rules of RFC 9111, for a private cache.
extension CacheLookup {
    func judgeByHTTP(_ entry: CacheEntry, _ message: TransportRequest, _ date: Date) -> Verdict {
        let stored = StoredResponse(entry.header)
        let part = stored.part(for: message.headers, bodyCount: entry.body.count)
        // Send a request for a part unchanged: a 304 would contain no part.
        let candidate = part == nil ? StoredCandidate(entry, stored, message) : nil
        let reuse = stored.reuse(for: message.method, message.headers, isPart: part != nil, at: date)
        switch reuse {
        case .fresh, .stale, .staleWhileRevalidate:
            guard order != .refresh else { return .send(.expired, candidate) }
            return .answer(response(entry, stored, part, date), isRefreshed: reuse == .staleWhileRevalidate)
        case .revalidate: return refusal(stored.isFresh(at: date) ? .mustAsk : .expired, message, candidate)
        case .varies: return refusal(.varies, message)
        case .unusable: return refusal(.mustAsk, message)
        }
    }

    /// Returns a stored response, or a 206 with a part of it.
    private func response(
        _ entry: CacheEntry,
        _ stored: StoredResponse,
        _ part: ContentRange?,
        _ date: Date
    ) -> NetworkResponse {
        var (entry, headers) = (entry, stored.headers(at: date))
        if let range = part?.range, let start = stored.contents(entry.body.count)?.range?.lowerBound {
            entry.header.statusCode = 206
            entry.body = entry.body.subdata(in: Int(range.lowerBound - start)..<Int(range.upperBound - start))
            headers["Content-Range"] = part?.fieldValue
            headers["Content-Length"] = String(range.count)
            // These fields are the digests of the whole body.
            for name in ["Content-Digest", "Content-MD5"] { headers.remove(name) }
        }
        return NetworkResponse(entry, headers: headers)
    }

    /// Returns the stored response that replaces an error, if the server or the request allows it (RFC 5861, section
    /// 4).
    func staleResponse(_ candidate: StoredCandidate, for error: NetworkError, at date: Date) -> NetworkResponse? {
        guard candidate.stored.isUsable(onError: error, of: candidate.request, at: date) else { return nil }
        return NetworkResponse(candidate.entry, headers: candidate.stored.headers(at: date))
    }

    /// Returns the response as it is stored, and whether storing it is allowed.
    func storedByHTTP(
        _ entry: NetworkCache.Entry,
        bodyCount: Int,
        _ deposit: CacheDeposit
    ) -> (NetworkCache.Entry, HTTPStorability) {
        let request = deposit.request(varyingIn: entry.headers.listMembers("Vary"))
        // Without a partition, the response depends on cookies, even on absent ones.
        let credentials = request.credentials.filter { !$0.isCookie }.map(\.name)
        let names = credentials + (partition == nil ? ["Cookie"] : [])
        let stored = StoredResponse(arrived: entry, request: request, nominating: names)
        // A credential that the host added limits the response to a partition, unless the response is public (section
        // 3.5).
        let isShared = !deposit.isCredentialAdded || partition != nil || stored.cacheControl.isPublic
        var storability =
            isShared ? stored.storability(method: deposit.message.method, request: request) : .notStorable
        // A part does not make the whole response out of date.
        if entry.statusCode == 206, storability == .notStorable || stored.contents(bodyCount) == nil {
            storability = .unrelated
        }
        return (stored.entry, storability)
    }
}

extension CacheDeposit {
    /// Returns the fields of the request as in a lookup: without the conditions of the cache, and without the host's
    /// credentials, which a lookup doesn't know yet. If the response varies by a credential, the credential stays, and
    /// no lookup matches.
    fileprivate func request(varyingIn names: [String]) -> HTTPHeaders {
        var request = (candidate?.unconditioned(message) ?? message).headers
        guard isCredentialAdded else { return request }
        for field in request.credentials where !field.isCookie {
            guard !names.contains(where: { $0.isEqualIgnoringASCIICase(to: field.name) }) else { continue }
            request[field.name] = asked[field.name]
        }
        return request
    }

    /// Updates the stored response to a GET after a HEAD, or removes it if the two differ (RFC 9111, section 4.3.5).
    func update(by response: NetworkResponse, at date: Date) {
        // `Range` has no meaning in a HEAD request.
        guard response.statusCode == 200, message.headers["Range"] == nil, let key = lookup.key(for: message) else {
            return
        }
        let request = request(varyingIn: response.headers.listMembers("Vary"))
        lookup.cache.load(key, for: request, isPromoting: false) { found in
            guard let entry = try? found.get() else { return }
            let stored = StoredResponse(entry.header)
            guard stored.nominated.match(request) else { return }
            let length = response.headers.contentLength
            guard length == nil || length == stored.headers.contentLength,
                let fresh = stored.freshened(
                    by: response.headers,
                    request: request,
                    requestDate: requestedAt,
                    responseDate: date
                )
            else { return lookup.cache.remove(key) }
            var get = self
            get.message.method = .get
            get.keep(NetworkResponse(entry, headers: fresh.headers(at: date), source: .revalidated), at: date)
        }
    }
}

/// An entry that the server can validate, or that can replace an error. It is a class, because few calls have a
/// candidate, and all calls reserve memory for one.
final class StoredCandidate: Sendable {
    let entry: CacheEntry
    let stored: StoredResponse
    /// The fields of the validation request; empty without a validator.
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

    /// Returns whether the entry is for a message, which an interceptor can have changed.
    func isFor(_ message: TransportRequest) -> Bool {
        message.url == url && message.method == .get && stored.nominated.match(request.merging(message.headers))
    }

    func conditioned(_ message: TransportRequest) -> TransportRequest {
        var message = message
        for field in conditions { message.headers[field.name] = field.raw }
        return message
    }

    func unconditioned(_ message: TransportRequest) -> TransportRequest {
        var message = message
        for field in conditions { message.headers.remove(field.name) }
        return message
    }

    /// Returns the stored response after a 304, or nil for other statuses, and for a 304 with another validator.
    func confirmed(by response: NetworkResponse, at date: Date) -> NetworkResponse? {
        guard response.statusCode == 304, !conditions.isEmpty,
            let fresh = stored.freshened(by: response.headers, request: request, requestDate: date, responseDate: date)
        else { return nil }
        var confirmed = NetworkResponse(entry, headers: fresh.headers(at: date), source: .revalidated)
        confirmed.metrics = response.metrics
        return confirmed
    }
}
