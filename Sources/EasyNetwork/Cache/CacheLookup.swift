import Foundation

/// The use of the cache by one request, according to its policy.
final class CacheLookup: Sendable {
    /// The use of the entry.
    enum Order: Hashable, Sendable {
        /// Uses the entry according to the policy.
        case standard
        /// Does not use the entry, because of this miss. After ``CacheMiss/ignored``, the request is sent even if the
        /// policy allows only the cache.
        case pass(CacheMiss)
        /// Uses the entry only after validation.
        case refresh

        /// Does not use the entry, because the caller requires the network.
        static let ignore = Order.pass(.ignored)
    }

    /// The result of a lookup.
    enum Verdict: Sendable {
        /// Deliver the stored response. If it is stale, it must be validated in the background.
        case answer(NetworkResponse, isRefreshed: Bool)
        /// Deliver the stored response, and send the request as well.
        case answerAndSend(NetworkResponse)
        case send(CacheMiss, StoredCandidate?)
        case refuse(CacheMiss)
    }

    let policy: CachePolicy
    let cache: NetworkCache
    let order: Order
    let partition: String?

    /// - Parameter policy: a policy that uses the cache.
    init(_ policy: CachePolicy, _ cache: NetworkCache, partition: String?, order: Order) {
        self.policy = policy
        self.order = order
        self.cache = cache
        self.partition = partition
    }

    /// Loads the entry.
    ///
    /// - Parameter completion: called before this method returns if the disk is not read, otherwise on ``WorkQueue``.
    func find(
        _ key: String?,
        for message: TransportRequest,
        _ completion: @escaping @Sendable (Result<CacheEntry, CacheMiss>) -> Void
    ) {
        guard let key else { return completion(.failure(.noKey)) }
        if case .pass(let miss) = order { return completion(.failure(miss)) }
        cache.load(key, for: message.headers, isPromoting: policy.storesInMemory, completion: completion)
    }

    /// - Returns: nil for a request without a key; see ``CachePolicy``.
    func key(for message: TransportRequest) -> String? {
        CacheKey.key(for: message, policy, partition: partition)
    }

    /// Whether the policy reads the cache.
    var isRead: Bool { policy.reading != .network }

    /// Decides what to do after a lookup.
    ///
    /// - Parameter accept: validates and completes a stored response. Returns nil if the response is not acceptable.
    func judge(
        _ found: Result<CacheEntry, CacheMiss>,
        for message: TransportRequest,
        at date: Date,
        accept: (NetworkResponse) -> NetworkResponse?
    ) -> Verdict {
        switch found {
        case .failure(let miss):
            return refusal(miss, message)
        case .success(let entry):
            let verdict =
                policy.reading == .http ? judgeByHTTP(entry, message, date) : judgeByPolicy(entry, message, date)
            guard case .answer(let response, let isRefreshed) = verdict else { return verdict }
            guard let accepted = accept(response) else { return refusal(.unreadable, message) }
            if policy.reading == .cacheThenNetwork { return .answerAndSend(accepted) }
            return .answer(accepted, isRefreshed: isRefreshed)
        }
    }

    /// Sends the request, unless the policy or the request allows only the cache.
    func refusal(_ miss: CacheMiss, _ message: TransportRequest, _ candidate: StoredCandidate? = nil) -> Verdict {
        let allowsOnlyCache =
            policy.reading == .cacheOnly
            || policy.reading == .http && CacheControl(request: message.headers).onlyIfCached
        return allowsOnlyCache && order != .ignore ? .refuse(miss) : .send(miss, candidate)
    }

    // MARK: - Explicit policies

    private func judgeByPolicy(_ entry: CacheEntry, _ message: TransportRequest, _ date: Date) -> Verdict {
        let (header, attributes) = (entry.header, entry.header.attributes)
        if let maximumAge = policy.maximumAge {
            let age = date.timeIntervalSince(header.receivedAt)
            // If the clock has been set back, the age is unknown.
            guard age >= 0, age <= maximumAge else { return refusal(.expired, message) }
        }
        guard attributes[Self.version] == String(policy.version) else { return refusal(.version, message) }
        guard attributes[Self.sensitiveData] == sensitiveDigest else { return refusal(.sensitiveData, message) }
        // Compare the app's version only if the policy names one.
        guard policy.appVersion == nil || attributes[Self.appVersion] == policy.appVersion
        else { return refusal(.appVersion, message) }
        return .answer(NetworkResponse(entry, headers: header.headers), isRefreshed: false)
    }

    private static let version = "version"
    private static let sensitiveData = "sensitiveData"
    private static let appVersion = "appVersion"

    /// The attributes of a new entry.
    private var attributes: [String: String] {
        var attributes = [Self.version: String(policy.version)]
        attributes[Self.sensitiveData] = sensitiveDigest
        attributes[Self.appVersion] = policy.appVersion ?? CachePolicy.currentAppVersion
        return attributes
    }

    private var sensitiveDigest: String? {
        policy.sensitiveData.map { SHA256.digest(of: Data($0.utf8)).hexadecimal }
    }

    /// Returns the entry of a response, and whether it can be stored; nil for a request without a key.
    func entry(
        _ response: NetworkResponse,
        _ deposit: CacheDeposit,
        at date: Date
    ) -> (entry: CacheEntry, storability: HTTPStorability)? {
        // After a redirect, HTTP uses the new URL, and an explicit policy the original one.
        guard let key = policy.reading == .http ? self.key(for: deposit.message) : deposit.key else { return nil }
        var header = NetworkCache.Entry(
            key: key,
            method: deposit.message.method.rawValue,
            url: (response.url ?? deposit.message.url).withoutUser,
            statusCode: response.statusCode,
            headers: response.headers,
            requestedAt: deposit.requestedAt,
            receivedAt: date
        )
        let storability: HTTPStorability
        if policy.reading == .http {
            (header, storability) = storedByHTTP(header, bodyCount: response.body.count, deposit)
        } else {
            header.attributes = attributes
            // A part of a response is not stored.
            storability = response.statusCode == 206 ? .unrelated : .storable
        }
        // The field is secret and not used again.
        header.headers.remove("Set-Cookie")
        return (CacheEntry(header: header, body: response.body), storability)
    }
}

/// The information for storing the response to a message.
struct CacheDeposit: Sendable {
    let lookup: CacheLookup
    /// The key of the request before redirects.
    let key: String?
    /// The message as it was sent.
    var message: TransportRequest
    let candidate: StoredCandidate?
    /// The fields of the message without the credentials of the host.
    let asked: HTTPHeaders
    /// Whether the host could have added credentials.
    let isCredentialAdded: Bool
    let requestedAt: Date
    /// The generation of the cache at the time of the request, so that removed entries do not return.
    let generation: Int

    /// Stores an accepted response, after its item has been made.
    func keep(_ response: NetworkResponse, at date: Date) {
        guard response.source != .cache else { return }
        if lookup.policy.reading == .http, message.method == .head { return update(by: response, at: date) }
        guard let (entry, storability) = lookup.entry(response, self, at: date) else { return }
        switch storability {
        case .storable where lookup.policy.isStorable?(response) ?? true:
            lookup.cache.store(entry, in: lookup.policy.storage, askedIn: generation)
        // By the rules of HTTP, a newer whole response makes the entry out of date.
        case .storable where lookup.policy.reading == .http && entry.header.statusCode != 206, .notStorable:
            lookup.cache.remove(entry.header.key)
        case .storable, .unrelated: return
        }
    }
}

/// The work for the cache after the end of a call. It is indirect, because few calls have any, and all calls reserve
/// memory for it.
indirect enum PendingStore: Sendable {
    case store(CacheDeposit)
    /// A stored response was used. Remove it if it was not usable, and refresh it if it is stale.
    case answered(CacheLookup, key: String, isRefreshed: Bool)
    /// The response came from another call. The closure does the cache work for all of them, once.
    case shared(@Sendable () -> Void)
}

extension NetworkError {
    /// Creates the error of a request that must not be sent, and whose response is not cached.
    ///
    /// - Parameter reading: the reading of the policy. With ``CachePolicy/Reading/http``, the error has the status 504
    ///   (RFC 9111, section 5.2.1.7).
    init(_ miss: CacheMiss, _ reading: CachePolicy.Reading? = nil) {
        self.init(code: .notCached, message: "the response is not cached: \(miss)")
        if reading == .http { statusCode = 504 }
        cacheMiss = miss
    }
}

extension NetworkResponse {
    init(_ entry: CacheEntry, headers: HTTPHeaders, source: Source = .cache) {
        self.init(
            statusCode: entry.header.statusCode,
            headers: headers,
            body: entry.body,
            source: source,
            url: entry.header.url
        )
    }
}
