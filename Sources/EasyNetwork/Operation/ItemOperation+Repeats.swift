import Foundation

/// The handling of repeated operations by a queue, see ``RepeatPolicy``.
extension ItemOperation {
    /// The policy for the operation while an equal one waits or runs in its ``NetworkQueue``. Default: the
    /// request's ``RequestOptions/repeatPolicy``.
    ///
    /// Set it before the operation is added to a queue; later it is ignored. For an operation whose request is made
    /// when it starts, see ``then(_:)``, the policy acts then; that of its request is not told here.
    public final var repeatPolicy: RepeatPolicy {
        get { option({ $0.repeatPolicy }) ?? .allow }
        set { if scheduling == nil { setOption(newValue) { swap(&$0.repeatPolicy, &$1) } } }
    }

    /// The key that makes operations equal, instead of the message they send. Default nil: the request's
    /// ``RequestOptions/repeatKey``. Set it before the operation is added to a queue; later it is ignored.
    public final var repeatKey: String? {
        get { option({ $0.repeatKey }) }
        set { if scheduling == nil { setOption(newValue) { swap(&$0.repeatKey, &$1) } } }
    }

    /// Whether the operation is a repeat for others, or they for it.
    final func mayRepeat(_ request: any BaseAPIRequest) -> Bool {
        let (policy, key) = option { ($0.repeatPolicy, $0.repeatKey) }
        let options = request.options
        return (policy ?? options.repeatPolicy) != .allow || (key ?? options.repeatKey) != nil
    }

    /// Tells the queue what the operation repeats.
    ///
    /// - Returns: whether it may go on; if not, it has been ended.
    final func noticeRepeats(of request: any BaseAPIRequest) -> Bool {
        guard let queue = scheduling?.queue, !hasOutcome, mayRepeat(request) else { return true }
        let (policy, name) = option { ($0.repeatPolicy, $0.repeatKey) }
        let options = request.options
        let key = RepeatKey(name ?? options.repeatKey, request, service.configuration) { message(for: request) }
        guard let key else { return true }
        return queue.operation(self, repeats: key, policy: policy ?? options.repeatPolicy)
    }

    final func message(for request: any BaseAPIRequest) -> TransportRequest? {
        try? WorkQueue.userCode { try RequestBuilder.build(sendable(request), for: service.configuration) }
    }
}
