/// What a call sends, and what becomes of its answer.
struct CallPlan: Sendable {
    /// - Parameters:
    ///   - response: the answer, if there is one, even when it could not be mapped.
    ///   - keep: stores the answer in the cache, to be called when the user's callbacks have returned; nil when there is
    ///     nothing to store.
    typealias Completion =
        @Sendable (
            _ response: NetworkResponse?, _ result: Result<any Sendable, NetworkError>, _ keep: (@Sendable () -> Void)?
        ) -> Void

    /// Read when the call begins.
    var source: RequestSource
    /// Whether notifications are posted for the call.
    var isAnnounced = true
    /// How the cache is asked.
    var order = CacheLookup.Order.standard
    /// How an accepted body is used; then the answer has no body, and the cache is not asked. Nil to collect it.
    var consumer: BodyConsumer?
    /// Called at most once before the completion, on ``WorkQueue``, with the item from the cache that is followed by the
    /// network's.
    var cached: (@Sendable (any Sendable) -> Void)?
    /// Gets the answer from another call; nil to send the request.
    var sharedAnswer: (@Sendable () async -> CallAttempts.Answer)?
    /// Whether the cache may store an accepted answer; nil when it may.
    var mayStore: (@Sendable (NetworkResponse) -> Bool)?
    /// Whether the completion gets the answer with its body.
    var keepsBody = true
    /// Makes the item in place of ``map``, without the slot of the job; that then only serves for answers that refresh
    /// the cache. Nil for most calls.
    var makeItem: (@Sendable (NetworkResponse) async throws -> any Sendable)?
    /// Makes the item of an accepted answer, on ``WorkQueue``.
    var map: @Sendable (NetworkResponse) throws -> any Sendable

    /// Makes and hands over the item of the cache's answer; nil when nothing wants it.
    var show: (@Sendable (NetworkResponse) -> Void)? {
        guard let cached else { return nil }
        return { [map] response in
            // An unreadable item is skipped; the network's will follow.
            if case .success(let item) = response.item(map) { cached(item) }
        }
    }

    /// Sends the request once more, to refresh the stored answer that the call got.
    var refresh: CallPlan {
        CallPlan(source: source, isAnnounced: false, order: .refresh, mayStore: mayStore, map: map)
    }
}
