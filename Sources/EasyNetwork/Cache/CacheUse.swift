import Foundation

/// How one request uses the cache: its policy, and what that makes of an entry. Touches nothing.
final class CacheUse: Sendable {
    /// How the cache is asked.
    enum Order: Hashable, Sendable {
        /// As the policy says.
        case standard
        /// Not at all: its entry was of no use.
        case pass(CacheMiss)
        /// Not at all, by the caller's wish: the network is asked, whatever the policy says.
        case ignore
        /// An entry is not used before the server has confirmed it.
        case refresh
    }

    /// What comes of asking.
    enum Verdict: Sendable {
        case answer(CachedAnswer)
        /// The answer is handed over, and the network is asked all the same.
        case answerAndSend(CachedAnswer)
        case send(CacheMiss, CacheCandidate?)
        case refuse(CacheMiss)
    }

    let policy: CachePolicy
    let cache: NetworkCache
    let order: Order
    let partition: String?

    /// - Returns: nil when the cache has nothing to do with the request.
    init?(_ policy: CachePolicy, _ cache: NetworkCache, partition: String?, order: Order) {
        guard policy.isActive else { return nil }
        self.policy = policy
        self.order = order
        self.cache = cache
        self.partition = partition
    }

    /// Asks the cache for the entry.
    ///
    /// - Parameter completion: called once: at once unless the disk has to be asked, else on ``WorkQueue``.
    func find(_ key: String?, _ completion: @escaping @Sendable (Result<CacheEntry, CacheMiss>) -> Void) {
        guard let key else { return completion(.failure(.noKey)) }
        switch order {
        case .pass(let miss): return completion(.failure(miss))
        case .ignore: return completion(.failure(.ignored))
        case .standard, .refresh: break
        }
        let isPromoting = policy.storage.contains(.memory)
        cache.load(key, isPromoting: isPromoting) { completion($0.mapError(\.miss)) }
    }

    /// - Returns: nil when no key can be made.
    func key(for message: TransportRequest) -> String? {
        CacheKey.key(for: message, policy, partition: partition)
    }

    /// Whether the cache is to be asked.
    var isRead: Bool { policy.reading != .network }

    /// - Parameter accept: makes of an answer what is handed on; nil when it is not accepted as answers are now.
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
            guard case .answer(var answer) = verdict else { return verdict }
            guard let accepted = accept(answer.response) else { return refusal(.unreadable, message) }
            answer.response = accepted
            return policy.reading == .cacheThenNetwork ? .answerAndSend(answer) : .answer(answer)
        }
    }

    private func refusal(_ miss: CacheMiss, _ message: TransportRequest) -> Verdict {
        let isAskedAlone =
            switch policy.reading {
            case _ where order == .ignore: false
            case .cacheOnly: true
            case .http: CacheControl(request: message.headers).onlyIfCached
            case .network, .cacheThenNetwork, .cacheElseNetwork: false
            }
        return isAskedAlone ? .refuse(miss) : .send(miss, nil)
    }

    // MARK: - By the policy

    private func judgeByPolicy(_ entry: CacheEntry, _ message: TransportRequest, _ date: Date) -> Verdict {
        if let miss = miss(entry.header, date) { return refusal(miss, message) }
        return .answer(CachedAnswer(response: NetworkResponse(entry, headers: entry.header.headers)))
    }

    /// Why the entry is not valid.
    private func miss(_ header: CacheHeader, _ date: Date) -> CacheMiss? {
        if let maximumAge = policy.maximumAge {
            let age = date.timeIntervalSince(header.receivedAt)
            // One from the future was written before the clock was set back: nobody knows how old it is.
            guard age >= 0, age <= maximumAge else { return .expired }
        }
        if header.attributes[Attribute.version] != String(policy.version) { return .version }
        if header.attributes[Attribute.sensitiveData] != sensitiveDigest { return .sensitiveData }
        // One that nobody asks for does not count.
        if policy.appVersion != nil, header.attributes[Attribute.appVersion] != policy.appVersion { return .appVersion }
        return nil
    }

    private enum Attribute {
        static let version = "version"
        static let sensitiveData = "sensitiveData"
        static let appVersion = "appVersion"
    }

    /// What an entry is stored with.
    private var attributes: [String: String] {
        var attributes = [Attribute.version: String(policy.version)]
        attributes[Attribute.sensitiveData] = sensitiveDigest
        attributes[Attribute.appVersion] = policy.appVersion ?? CachePolicy.currentAppVersion
        return attributes
    }

    private var sensitiveDigest: String? {
        policy.sensitiveData.map { SHA256.digest(of: Data($0.utf8)).hexadecimal }
    }

    /// What becomes of the cache after an answer.
    enum Keeping {
        case store(CacheEntry)
        /// It may not be stored, and what is stored is out of date.
        case remove(key: String)
        /// It has nothing to do with what is stored.
        case leave
    }

    func keeping(_ response: NetworkResponse, _ deposit: CacheDeposit, at date: Date) -> Keeping {
        // A message that a redirect led to is another one for HTTP, and the same for a policy.
        guard let key = policy.reading == .http ? self.key(for: deposit.message) : deposit.key else { return .leave }
        var header = CacheHeader(
            key: key,
            method: deposit.message.method.rawValue,
            url: (response.url ?? deposit.message.url).withoutUser,
            statusCode: response.statusCode,
            headers: response.headers,
            requestedAt: deposit.requestedAt,
            receivedAt: date
        )
        if policy.reading == .http {
            switch storedByHTTP(response, deposit, at: date) {
            case .success(let stored): stored.write(to: &header)
            case .failure(let refusal): return refusal.isAboutRequest ? .leave : .remove(key: key)
            }
        } else {
            // A part is not the whole.
            guard response.statusCode != 206 else { return .leave }
            header.attributes = attributes
        }
        // Nobody is given it again, and it is secret.
        header.headers.remove("Set-Cookie")
        return .store(CacheEntry(header: header, body: response.body))
    }
}

/// What the cache answers with.
struct CachedAnswer: Sendable {
    var response: NetworkResponse
    /// Whether the entry is to be confirmed afterwards, though the answer is given: it is stale.
    var isRefreshed = false
}

/// What is to be stored once the answer to a message is there.
struct CacheDeposit: Sendable {
    let use: CacheUse
    /// Of the attempt, before it was redirected.
    let key: String?
    /// As it was sent.
    var message: TransportRequest
    let candidate: CacheCandidate?
    /// The fields of the message before the host's authentication altered them.
    let asked: HTTPHeaders
    /// Whether the host's authentication may have put credentials in.
    let isCredentialAdded: Bool
    let requestedAt: Date
    /// That of the cache when it was sent: what was removed since is not to come back.
    let generation: Int

    /// Stores an answer that was accepted, and whose item has been made.
    func keep(_ response: NetworkResponse, at date: Date) {
        guard response.source != .cache else { return }
        if use.policy.reading == .http, message.method == .head { return update(by: response, at: date) }
        switch use.keeping(response, self, at: date) {
        case .store(let entry) where use.policy.isStorable?(response) ?? true:
            use.cache.store(entry, in: use.policy.storage, askedIn: generation)
        // By HTTP's rules the stored answer is out of date, since a newer one has come.
        case .store(let entry) where use.policy.reading == .http: use.cache.remove(entry.header.key)
        case .remove(let key): use.cache.remove(key)
        case .store, .leave: return
        }
    }
}

/// What is left to do for the cache when a landing has ended.
enum CacheErrand: Sendable {
    case store(CacheDeposit)
    /// The cache answered. An answer that is of no use is to be forgotten, and a stale one to be refreshed.
    case answered(CacheUse, key: String, isRefreshed: Bool)
}

extension NetworkError {
    /// The error of a request that was to be answered by the cache alone.
    ///
    /// - Parameter reading: that of ``CachePolicy/Reading/http`` says what a cache answers then (RFC 9111, section 5.2.1.7).
    init(_ miss: CacheMiss, _ reading: CachePolicy.Reading? = nil) {
        self.init(code: .notCached, message: "why the cache did not answer: \(miss)")
        if reading == .http { statusCode = 504 }
        cacheMiss = miss
    }
}

extension CacheFailure {
    /// The same for those who asked.
    fileprivate var miss: CacheMiss {
        switch self {
        case .absent: .absent
        case .expired: .expired
        case .damaged, .foreign, .otherVersion: .damaged
        case .tooLarge, .unencodable, .system, .busy, .noDisk: .unreadable
        }
    }
}

extension NetworkResponse {
    /// An answer that is kept.
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
