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
    private let registrations = Locked<[ObjectIdentifier: Weak<OwnerRegistration>]>([:])

    public init() {}

    deinit {
        for registration in registrations.withLock({ $0 }).values {
            guard let registration = registration.object, let operation = registration.operation else { continue }
            if registration.cancels { operation.cancel() } else { operation.detach() }
        }
    }

    /// The number of operations that are registered and have not finished.
    var operationCount: Int { registrations.withLock { $0.count } }

    fileprivate func add(_ registration: OwnerRegistration) {
        registrations.withLock { $0[ObjectIdentifier(registration)] = Weak(object: registration) }
    }

    fileprivate func remove(_ registration: ObjectIdentifier) {
        registrations.withLock { _ = $0.removeValue(forKey: registration) }
    }
}

/// The fate of an operation when its owner is deallocated.
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
    /// The fate of the operation when its owner is deallocated. Default ``ReleasePolicy/held``, also when the operation
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
final class OwnerRegistration: @unchecked Sendable {
    // Sendable because nothing is written after `init`.
    fileprivate private(set) weak var owner: OperationOwner?
    fileprivate private(set) weak var operation: NetworkOperation?
    fileprivate let cancels: Bool

    init(_ operation: NetworkOperation, _ owner: OperationOwner, cancels: Bool) {
        self.operation = operation
        self.owner = owner
        self.cancels = cancels
        owner.add(self)
    }

    deinit {
        owner?.remove(ObjectIdentifier(self))
    }
}
