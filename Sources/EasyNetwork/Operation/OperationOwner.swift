/// The owner of operations, for instance a screen: when it is deallocated, its operations end or go on without callbacks.
///
/// ```swift
/// final class ProfileViewController: UIViewController {
///     private let owner = OperationOwner()
///
///     func load() {
///         let operation = RequestOperation(ProfileRequest())
///         operation.releasePolicy = .cancelled(with: owner)
///         operation.success = { [weak self] profile in self?.show(profile) }
///         NetworkQueue.shared.addOperation(operation)
///     }
/// }
/// ```
///
/// The ``NetworkOperation/releasePolicy`` of an operation says what happens when the owner is deallocated, on the thread
/// on which it is. The owner keeps no operation alive, and no operation keeps the owner alive.
public final class OperationOwner: Sendable {
    let operations = OwnedOperations()

    public init() {}

    deinit {
        operations.ownerIsGone()
    }
}

/// What happens to an operation when its owner is deallocated.
public enum ReleasePolicy: Sendable {
    /// The queue holds the operation until it is done, and its callbacks are called. The default.
    case held
    /// The operation is cancelled with the owner; ``RequestOperation/failure`` gets ``NetworkError/Code/cancelled``.
    case cancelled(with: OperationOwner)
    /// The operation goes on without the owner, but its `success` and `failure`, and the delegate of a batch or a chain,
    /// are released without having been called. Tasks that await its value get it. The `then` closures of a chain's steps
    /// and the closures of the children, which have policies of their own, are kept.
    case detached(from: OperationOwner)
}

extension NetworkOperation {
    /// What happens to the operation when its owner is deallocated. Default ``ReleasePolicy/held``, also when the operation
    /// has finished or the owner is gone.
    ///
    /// Set it at any time before the end; the latest value counts. It does not keep the owner alive. An operation without
    /// closures of its own is not changed by ``ReleasePolicy/detached(from:)``.
    public final var releasePolicy: ReleasePolicy {
        get {
            guard let registration = option({ $0.ownerRegistration }), let owner = registration.owner else {
                return .held
            }
            return registration.cancels ? .cancelled(with: owner) : .detached(from: owner)
        }
        set {
            guard !isFinished else { return }
            let registration: OwnerRegistration? =
                switch newValue {
                case .held: nil
                case .cancelled(let owner): OwnerRegistration(self, owner, cancels: true)
                case .detached(let owner): OwnerRegistration(self, owner, cancels: false)
                }
            setOption(registration) { swap(&$0.ownerRegistration, &$1) }
        }
    }
}

/// The registration of an operation with its owner. It ends when it is released.
final class OwnerRegistration: Sendable {
    let cancels: Bool
    // Not the owner, which it must not keep alive.
    private let operations: OwnedOperations

    init(_ operation: NetworkOperation, _ owner: OperationOwner, cancels: Bool) {
        self.cancels = cancels
        operations = owner.operations
        operations.add(ObjectIdentifier(self), .init(operation: operation, cancels: cancels), owner)
    }

    deinit {
        operations.remove(ObjectIdentifier(self))
    }

    var owner: OperationOwner? { operations.owner }
}

/// The operations of one owner.
final class OwnedOperations: Sendable {
    struct Member {
        weak var operation: NetworkOperation?
        let cancels: Bool
    }

    private struct State {
        weak var owner: OperationOwner?
        /// Nil when the owner is gone.
        var members: [ObjectIdentifier: Member]? = [:]
    }

    private let state = Locked(State())

    /// The number of operations that are registered and have not finished.
    var count: Int { state.withLock { $0.members?.count ?? 0 } }

    var owner: OperationOwner? { state.withLock { $0.owner } }

    func add(_ registration: ObjectIdentifier, _ member: Member, _ owner: OperationOwner) {
        state.withLock { state in
            state.owner = owner
            state.members?[registration] = member
        }
    }

    func remove(_ registration: ObjectIdentifier) {
        state.withLock { _ = $0.members?.removeValue(forKey: registration) }
    }

    func ownerIsGone() {
        let members = state.withLock { state in
            defer { state.members = nil }
            return state.members ?? [:]
        }
        for member in members.values {
            guard let operation = member.operation else { continue }
            if member.cancels { operation.cancel() } else { operation.detach() }
        }
    }
}
