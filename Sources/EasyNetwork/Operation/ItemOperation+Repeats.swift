import Foundation

/// The handling of repeated operations by a queue, see ``RepeatPolicy``.
extension ItemOperation {
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
    final func noticeRepeats(of request: any BaseAPIRequest) -> Bool {
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

    final func message(for request: any BaseAPIRequest) -> TransportRequest? {
        try? WorkQueue.userCode { try RequestBuilder.build(sendable(request), for: service.configuration) }
    }
}
