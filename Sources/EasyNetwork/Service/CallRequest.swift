import Foundation

/// A request as a call makes it: what is sent, how the cache is used, and what becomes of the response.
struct CallRequest: Sendable {
    /// As its user made it.
    let request: any BaseAPIRequest
    var options: RequestOptions
    /// The request as it was read; nil if the call is to read it.
    let snapshot: RequestSnapshot?
    /// Whether notifications are posted for the call.
    var isAnnounced = true
    /// Whether events tell of the call; not of one that only stands for a wait between two others.
    var isTold = true
    /// How the cache is asked.
    var order = CacheLookup.Order.standard
    /// How an accepted body is used; then the response has no body, and the cache is not asked. Nil to collect it.
    var consumer: BodyConsumer?
    /// What each message waits for, without the slot, before it is sent; nil, or a closure that returns nil, for nothing.
    var pause: (@Sendable () -> Promise<Void>?)?
    /// Called at most once before the completion, on ``WorkQueue``, with the item from the cache that is followed by the
    /// network's.
    var cached: (@Sendable (any Sendable) -> Void)?
    /// Gets the response from another call; nil to send the request.
    var sharedResponse: (@Sendable () async -> Call.Conclusion)?
    /// Whether the cache may store an accepted response; nil when it may.
    var mayStore: (@Sendable (NetworkResponse) -> Bool)?
    /// Whether the completion gets the response with its body.
    var keepsBody = true
    /// Makes the item instead of ``map``, without the slot of the job; that then only serves for responses that refresh
    /// the cache. Nil for most calls.
    var makeItem: (@Sendable (NetworkResponse) async throws -> any Sendable)?
    /// Makes the item of an accepted response, on ``WorkQueue``.
    var map: @Sendable (NetworkResponse) throws -> any Sendable = { $0 }

    init(_ request: any BaseAPIRequest) {
        self.init(request, request.options)
    }

    init(_ request: any BaseAPIRequest, _ options: RequestOptions) {
        (self.request, self.options, snapshot) = (request, options, nil)
    }

    init(_ snapshot: RequestSnapshot) {
        (request, options, self.snapshot) = (snapshot.request, snapshot.options, snapshot)
    }

    /// Reads the request, unless it was read before.
    func read(for host: HostConfiguration) throws(NetworkError) -> RequestSnapshot {
        if let snapshot { return snapshot }
        return try RequestSnapshot(request, options, for: host)
    }

    /// Makes the item of a response from the cache and hands it to ``cached``; nil when nothing wants it.
    var show: (@Sendable (NetworkResponse) -> Void)? {
        guard let cached else { return nil }
        return { [map] response in
            // An unreadable item is skipped; the network's will follow.
            if case .success(let item) = response.item(map) { cached(item) }
        }
    }

    /// The same request, sent once more to refresh the stored response that the call got.
    func refresh(_ snapshot: RequestSnapshot?) -> CallRequest {
        var other = snapshot.map { CallRequest($0) } ?? CallRequest(request, options)
        (other.isAnnounced, other.order, other.mayStore, other.map) = (false, .refresh, mayStore, map)
        return other
    }
}
