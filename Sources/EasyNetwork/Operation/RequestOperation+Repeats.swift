import Foundation

/// The handling of repeated operations by a queue, see ``RepeatPolicy``.
extension RequestOperation {
    /// The policy for the operation while an equal one waits or runs in its ``NetworkQueue``. Default: the
    /// request's ``BaseAPIRequest/repeatPolicy``.
    ///
    /// Set it before the operation is added to a queue; later it is ignored. For an operation whose request is made
    /// when it starts, see ``then(_:)``, the policy acts then; that of its request is not told here.
    public final var repeatPolicy: RepeatPolicy {
        get { option({ $0.repeatPolicy }) ?? .allow }
        set { if scheduling == nil { setOption(newValue) { swap(&$0.repeatPolicy, &$1) } } }
    }

    /// The key that makes operations equal, instead of the message they send. Default nil: the request's
    /// ``BaseAPIRequest/repeatKey``. Set it before the operation is added to a queue; later it is ignored.
    public final var repeatKey: String? {
        get { option({ $0.repeatKey }) }
        set { if scheduling == nil { setOption(newValue) { swap(&$0.repeatKey, &$1) } } }
    }

    /// Tells the queue what the operation repeats.
    ///
    /// - Returns: whether it may go on; if not, it has been ended.
    final func noticeRepeats(of request: Request) -> Bool {
        let (scheduler, ownPolicy, ownName) = core.withLock { state in
            let queue = state.lifecycle.outcome == nil ? state.scheduling?.queue : nil
            return (queue, state.options?.repeatPolicy, state.options?.repeatKey)
        }
        let policy = ownPolicy ?? request.repeatPolicy
        let name = ownName ?? request.repeatKey
        guard let scheduler, policy != .allow || name != nil else { return true }
        // A request that cannot be built is no repeat; it fails when it is sent.
        guard
            let key = name.map(RepeatKey.named)
                ?? message(for: request).map({ .message($0, of: request, service.configuration) })
        else { return true }
        return scheduler.operation(self, repeats: key, policy: policy)
    }

    /// - Returns: a closure that gets the answer to a message of several operations; nil when this one sends its request
    ///   itself.
    final func sharedAnswer(to request: Request) -> (@Sendable () async -> CallAttempts.Outcome)? {
        guard let queue = scheduling?.queue, let message = sharedMessage(for: request) else { return nil }
        // An operation that learned only now that it joins has a slot.
        releaseSlot()
        return { await queue.answer(to: message, for: self) }
    }

    /// - Returns: nil when the operation sends its request itself.
    final func sharedMessage(for request: Request) -> SharedMessage? {
        let policy = option({ $0.repeatPolicy }) ?? request.repeatPolicy
        // A request of a refresh would wait for those that wait for the refresh.
        guard policy == .join, mayShareAnswer, option({ $0.refreshedSessions }).isEmpty else { return nil }
        // Each has its item of the cache, and the message may be sent once the others have ended.
        let cache = request.cache ?? service.configuration.settings.cachePolicy(for: request.method)
        guard cache.reading != .cacheThenNetwork || ignoresCache, let message = message(for: request) else {
            return nil
        }
        let name = option({ $0.repeatKey }) ?? request.repeatKey
        return SharedMessage(
            key: SharingKey(
                name: name,
                message: message,
                request: request,
                host: service.configuration,
                ignoresCache: ignoresCache,
                // A group that the operation is a part of holds its categories already.
                categories: mutualExclusionCategories.subtracting(option({ $0.heldCategories }))
            ),
            request: request,
            configuration: service.configuration,
            host: host ?? message.url.hostAndPort
        )
    }

    private func message(for request: Request) -> TransportRequest? {
        try? WorkQueue.userCode { try RequestBuilder.build(sendable(request), for: service.configuration) }
    }
}
