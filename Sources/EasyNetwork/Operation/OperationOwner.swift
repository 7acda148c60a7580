/// The owner of operations, for example a screen. When the owner is deallocated, its operations are cancelled, or
/// continue without callbacks.
///
/// ```swift
/// final class ProfileViewController: UIViewController {
///     private let owner = OperationOwner()
///
///     func load() {
///         let operation = RequestOperation(ProfileRequest())
///         operation.owner = owner
///         operation.success = { [weak self] profile in self?.show(profile) }
///         NetworkQueue.shared.addOperation(operation)
///     }
/// }
/// ```
///
/// The operations end on the thread on which the owner is deallocated. The owner keeps no operation alive, and no
/// operation keeps the owner alive.
public final class OperationOwner: Sendable {
    private let detaches: Bool
    let registrations = Locked<[ObjectIdentifier: Weak<OwnerRegistration>]>([:])

    /// Creates an owner without operations.
    ///
    /// - Parameter detaches: whether the operations continue without their owner. With `false`, they are cancelled with
    ///   it: ``ItemOperation/failure`` gets ``NetworkError/Code/cancelled``. With `true`, they continue, but their
    ///   `success` and `failure` closures, and the delegate of a batch or a chain, are released without being called.
    ///   Tasks that await a value get it. The `then` closures of a chain's steps are kept, as are the closures of
    ///   children, which have their own owners. Defaults to `false`.
    public init(detaches: Bool = false) {
        self.detaches = detaches
    }

    deinit {
        let operations = registrations.withLock { $0 }.values.compactMap { $0.object?.operation }
        guard !detaches else { return operations.forEach { $0.detach() } }
        // Cancel all operations of a queue in one step. Otherwise, an operation that depends on another would fail with
        // that operation's cancellation.
        let queues = operations.compactMap { $0.scheduling?.queue }.map { (ObjectIdentifier($0), $0) }
        for queue in Dictionary(queues, uniquingKeysWith: { one, _ in one }).values { queue.cancel(operations) }
        // Cancel the operations on no queue. Skip those cancelled above, because a subclass may count its
        // cancellations.
        WorkQueue.userCode { for operation in operations where !operation.isCancelled { operation.cancel() } }
    }
}

extension NetworkOperation {
    /// The owner, which determines what happens to the operation when the owner is deallocated. Held weakly. Defaults
    /// to `nil`: the queue holds the operation until it is done, and its callbacks are called. It is `nil` again when
    /// the operation has finished or the owner was deallocated.
    ///
    /// It can be set at any time before the end. The latest owner counts.
    public final var owner: OperationOwner? {
        get { option { $0.ownerRegistration }?.owner }
        set {
            guard !isFinished else { return }
            setOption(\.ownerRegistration, newValue.map { OwnerRegistration(self, $0) })
        }
    }
}

/// The registration of an operation with its owner. Releasing it ends the registration.
final class OwnerRegistration: @unchecked Sendable {
    // Sendable because nothing is written after `init`.
    fileprivate private(set) weak var owner: OperationOwner?
    fileprivate private(set) weak var operation: NetworkOperation?

    init(_ operation: NetworkOperation, _ owner: OperationOwner) {
        self.operation = operation
        self.owner = owner
        owner.registrations.withLock { $0[ObjectIdentifier(self)] = Weak(object: self) }
    }

    deinit {
        owner?.registrations.withLock { _ = $0.removeValue(forKey: ObjectIdentifier(self)) }
    }
}
