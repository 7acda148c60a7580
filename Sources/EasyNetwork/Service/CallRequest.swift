import Foundation

/// A request for a call: the message, the use of the cache, and the handling of the response.
struct CallRequest: Sendable {
    /// The request as the user made it.
    let request: any BaseAPIRequest
    var options: RequestOptions
    /// The request as it was read; nil if the call must read it.
    let snapshot: RequestSnapshot?
    /// Whether notifications are posted for the call.
    var isAnnounced = true
    /// Whether events are posted for the call. False for a call that only represents a wait between two other calls.
    var isTold = true
    /// Whether an `Idempotency-Key` makes the request safe to repeat. False for a key that the user did not set, because
    /// the server might not know such keys.
    var isSafeByKey = true
    /// How the call uses the cache.
    var order = CacheLookup.Order.standard
    /// How an accepted body is consumed; nil to collect it. With a consumer, the response has no body, and the cache is
    /// not used.
    var consumer: BodyConsumer?
    /// Returns what each message waits for, without the slot, before it is sent. Nil, or a closure that returns nil,
    /// means that messages do not wait.
    var pause: (@Sendable () -> Promise<Void>?)?
    /// Called at most once before the completion, on ``WorkQueue``, with the item from the cache that the network's
    /// item will follow.
    var cached: (@Sendable (any Sendable) -> Void)?
    /// Gets the response from another call; nil to send the request.
    var sharedResponse: (@Sendable () async -> Call.Conclusion)?
    /// Whether the cache can store an accepted response. Nil means always.
    var mayStore: (@Sendable (NetworkResponse) -> Bool)?
    /// Whether the completion gets the response with its body.
    var keepsBody = true
    /// Makes the item instead of ``map``, while the job does not hold its slot. Then ``map`` is used only for responses
    /// that refresh the cache. Nil for most calls.
    var makeItem: (@Sendable (NetworkResponse) async throws -> any Sendable)?
    /// Makes the item of an accepted response, on ``WorkQueue``. It gets ``request`` as well.
    var map: @Sendable (any BaseAPIRequest, NetworkResponse) throws -> any Sendable = { $1 }

    init(_ request: any BaseAPIRequest, _ options: RequestOptions? = nil) {
        (self.request, self.options, snapshot) = (request, options ?? request.options, nil)
    }

    init(_ snapshot: RequestSnapshot) {
        (request, options, self.snapshot) = (snapshot.request, snapshot.options, snapshot)
    }

    /// Reads the request, unless it was read before.
    func read(for host: HostConfiguration) throws(NetworkError) -> RequestSnapshot {
        if let snapshot { return snapshot }
        return try RequestSnapshot(request, options, for: host)
    }

    /// Passes the item of a response from the cache to ``cached``. An unreadable item is skipped, because the network's
    /// item will follow.
    func show(_ response: NetworkResponse) {
        if let cached, case .success(let item) = item(of: response) { cached(item) }
    }

    func item(of response: NetworkResponse) -> Result<any Sendable, NetworkError> {
        response.item { try map(request, $0) }
    }

    /// Returns the same request, to be sent again to refresh the stored response that the call got.
    func refresh(_ snapshot: RequestSnapshot?) -> CallRequest {
        var other = snapshot.map { CallRequest($0) } ?? CallRequest(request, options)
        (other.isAnnounced, other.order, other.mayStore, other.map) = (false, .refresh, mayStore, map)
        // The refresh can outlive the job, to which `map` can belong.
        if let typed = request as? any APIRequest { other.map = { try typed.item(from: $1) } }
        return other
    }
}
