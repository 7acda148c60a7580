import Foundation

/// The operation's own settings for repeats of other operations.
struct RepeatSetting {
    /// The policy; `nil` for the request's.
    let policy: RepeatPolicy?
    /// The key; `nil` for the request's.
    let key: String?
    /// Whether the request has a key.
    let requestHasKey: Bool
    /// Whether the operation was created for the refresh of a credential.
    let isPartOfRefresh: Bool

    /// - Parameter options: the options of the operation; `nil` if none was set.
    init(_ options: OperationOptions?) {
        (policy, key) = (options?.repeatPolicy, options?.repeatKey)
        requestHasKey = options?.requestHasKey ?? false
        isPartOfRefresh = options?.refreshedSessions.isEmpty == false
    }

    /// Whether the operation can be a repeat of others, or they of it.
    var isRepeat: Bool { key != nil || requestHasKey || policy.map { $0 != .allow } ?? false }

    /// Returns the policy and the key of the operation, with its request's as defaults.
    func over(_ options: RequestOptions) -> (policy: RepeatPolicy, key: String?) {
        (policy ?? options.repeatPolicy, key ?? options.repeatKey)
    }
}

/// The handling of repeated operations by a queue. See ``RepeatPolicy``.
extension ServiceOperation {
    /// The policy for the operation if an equal one waits or runs in its ``NetworkQueue``. Defaults to the request's
    /// ``RequestOptions/repeatPolicy``.
    ///
    /// Operations that make their own calls are equal only by their ``repeatKey``, because their messages are not known
    /// in advance. For them, ``RepeatPolicy/join`` has the meaning of ``RepeatPolicy/allow``.
    ///
    /// ```swift
    /// func begin(_ signIn: ServiceOperation) {
    ///     signIn.repeatPolicy = .ignoreNewer   // a second tap is refused while the first is under way
    ///     signIn.repeatKey = "sign in"
    ///     NetworkQueue.shared.addOperation(signIn)
    /// }
    /// ```
    ///
    /// Set it before the operation is added to a queue; a later change is ignored. If the request is made when the
    /// operation starts (see ``ItemOperation/then(_:)``), the policy takes effect then, and this property does not show
    /// the request's policy.
    public final var repeatPolicy: RepeatPolicy {
        get { option({ $0.repeatPolicy }) ?? .allow }
        set { if scheduling == nil { setOption(\.repeatPolicy, newValue) } }
    }

    /// The key that makes operations equal, instead of the message they send. Defaults to `nil`: the request's
    /// ``RequestOptions/repeatKey``. Set it before the operation is added to a queue; a later change is ignored.
    public final var repeatKey: String? {
        get { option({ $0.repeatKey }) }
        set { if scheduling == nil { setOption(\.repeatKey, newValue) } }
    }

    /// Reports to the queue what an operation that makes its own calls repeats.
    final func applyRepeatPolicy(_ key: String) {
        if !hasOutcome { _ = scheduling?.queue.operation(self, repeats: .named(key), policy: repeatPolicy) }
    }
}

extension ItemOperation {
    /// Reports to the queue what the operation repeats, which can end this operation or cancel the others.
    ///
    /// - Returns: whether the operation can continue. If not, it has been ended.
    final func applyRepeatPolicy() -> Bool {
        guard let queue = scheduling?.queue, !hasOutcome, case .request(let source) = state.withLock({ $0.source })
        else {
            return true
        }
        let (policy, name) = option { RepeatSetting($0) }.over(source.options)
        if let name { return queue.operation(self, repeats: .named(name), policy: policy) }
        // No request is equal to one that cannot be built, or whose own code can change its messages.
        guard policy != .allow, !source.options.changesMessages,
            let snapshot = try? WorkQueue.userCode({ try source.read(for: callGroup.host) })
        else { return true }
        // The operation sends the message that is compared here, unless it has ended.
        state.discard { state in
            state.source.flatMap { _ in exchange(&state.source, with: .request(CallRequest(snapshot))) }
        }
        return queue.operation(self, repeats: RepeatKey(snapshot), policy: policy)
    }
}
