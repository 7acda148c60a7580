import Foundation

/// How an operation repeats others, by its own settings.
struct RepeatSetting {
    /// Nil: the request's.
    let policy: RepeatPolicy?
    /// Nil: the request's.
    let key: String?
    /// Whether the operation was made for the refresh of a credential.
    let isPartOfRefresh: Bool

    init(_ options: OperationOptions) {
        (policy, key, isPartOfRefresh) = (options.repeatPolicy, options.repeatKey, !options.refreshedSessions.isEmpty)
    }

    /// Whether the operation is a repeat for others, or they for it.
    var isRepeat: Bool { key != nil || policy.map { $0 != .allow } ?? false }

    /// The policy and the key of the operation, laid over those of its request.
    func over(_ options: RequestOptions) -> (policy: RepeatPolicy, key: String?) {
        (policy ?? options.repeatPolicy, key ?? options.repeatKey)
    }
}

/// The handling of repeated operations by a queue, see ``RepeatPolicy``.
extension ServiceOperation {
    /// The policy for the operation while an equal one waits or runs in its ``NetworkQueue``. Default: the
    /// request's ``RequestOptions/repeatPolicy``.
    ///
    /// Operations that make their own calls are equal by their ``repeatKey`` only, since their messages are not known
    /// before; for them ``RepeatPolicy/join`` means ``RepeatPolicy/allow``.
    ///
    /// ```swift
    /// func begin(_ signIn: ServiceOperation) {
    ///     signIn.repeatPolicy = .ignoreNewer   // a second tap is refused while the first is under way
    ///     signIn.repeatKey = "sign in"
    ///     NetworkQueue.shared.addOperation(signIn)
    /// }
    /// ```
    ///
    /// Set it before the operation is added to a queue; later it is ignored. For an operation whose request is made
    /// when it starts, see ``ItemOperation/then(_:)``, the policy acts then; that of its request is not told here.
    public final var repeatPolicy: RepeatPolicy {
        get { option({ $0.repeatPolicy }) ?? .allow }
        set { if scheduling == nil { setOption(\.repeatPolicy, newValue) } }
    }

    /// The key that makes operations equal, instead of the message they send. Default nil: the request's
    /// ``RequestOptions/repeatKey``. Set it before the operation is added to a queue; later it is ignored.
    public final var repeatKey: String? {
        get { option({ $0.repeatKey }) }
        set { if scheduling == nil { setOption(\.repeatKey, newValue) } }
    }

    /// Tells the queue what an operation that makes its own calls repeats.
    final func applyRepeatPolicy(_ key: String) {
        if !hasOutcome { _ = scheduling?.queue.operation(self, repeats: .named(key), policy: repeatPolicy) }
    }
}

extension ItemOperation {
    /// Tells the queue what the operation repeats, which may end this one, or cancel the others.
    ///
    /// - Returns: whether it may go on; if not, it has been ended.
    final func applyRepeatPolicy() -> Bool {
        guard let queue = scheduling?.queue, !hasOutcome, case .request(let source) = state.withLock({ $0.source })
        else {
            return true
        }
        let (policy, name) = option { RepeatSetting($0) }.over(source.options)
        guard policy != .allow || name != nil, let key = RepeatKey(name, source.options, snapshot: { fixSnapshot() })
        else { return true }
        return queue.operation(self, repeats: key, policy: policy)
    }

    /// Reads the request, which is sent as it is read here; nil for one that cannot be sent, or is sent already.
    final func fixSnapshot() -> RequestSnapshot? {
        guard case .request(let source) = state.withLock({ $0.source }) else { return nil }
        let host = callGroup.host
        guard let snapshot = try? WorkQueue.userCode({ try source.read(for: host) }) else { return nil }
        let old = state.withLock { state in
            state.source.flatMap { _ in exchange(&state.source, with: .request(CallRequest(snapshot))) }
        }
        withExtendedLifetime(old) {}
        return snapshot
    }
}
