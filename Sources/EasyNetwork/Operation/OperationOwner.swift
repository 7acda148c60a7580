/// The owner of operations, for instance a screen: when it is deallocated, its operations are cancelled, or go on
/// without callbacks.
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
    /// - Parameter detaches: false, the default, cancels the operations with the owner: ``ItemOperation/failure`` gets
    ///   ``NetworkError/Code/cancelled``. True lets them go on, but their `success` and `failure`, and the delegate of
    ///   a batch or a chain, are released without having been called. Tasks that await a value get it. The `then`
    ///   closures of a chain's steps and the closures of the children, which have owners of their own, are kept.
    public init(detaches: Bool = false) {
        self.detaches = detaches
    }

    deinit {
        let operations = registrations.withLock { $0 }.values.compactMap { $0.object?.operation }
        guard !detaches else { return operations.forEach { $0.detach() } }
        // Those of a queue in one step: one that waits for another would end with the failure of that.
        let queues = operations.compactMap { $0.scheduling?.queue }.map { (ObjectIdentifier($0), $0) }
        for queue in Dictionary(queues, uniquingKeysWith: { one, _ in one }).values { queue.cancel(operations) }
        // Those on no queue; a subclass may count how often it is cancelled.
        WorkQueue.userCode { for operation in operations where !operation.isCancelled { operation.cancel() } }
    }

    fileprivate func add(_ registration: OwnerRegistration) {
        registrations.withLock { $0[ObjectIdentifier(registration)] = Weak(object: registration) }
    }

    fileprivate func remove(_ registration: ObjectIdentifier) {
        registrations.withLock { _ = $0.removeValue(forKey: registration) }
    }
}

extension NetworkOperation {
    /// The owner, which decides what becomes of the operation when it is deallocated. It is not kept alive. Default
    /// nil, also when the operation has finished or the owner is gone: the queue holds the operation until it is done,
    /// and its callbacks are called.
    ///
    /// Set it at any time before the end; the latest owner counts.
    public final var owner: OperationOwner? {
        get { option { $0.ownerRegistration }?.owner }
        set {
            guard !isFinished else { return }
            setOption(\.ownerRegistration, newValue.map { OwnerRegistration(self, $0) })
        }
    }
}

/// The registration of an operation with its owner. It ends when it is released.
final class OwnerRegistration: @unchecked Sendable {
    // Sendable because nothing is written after `init`.
    fileprivate private(set) weak var owner: OperationOwner?
    fileprivate private(set) weak var operation: NetworkOperation?

    init(_ operation: NetworkOperation, _ owner: OperationOwner) {
        self.operation = operation
        self.owner = owner
        owner.add(self)
    }

    deinit {
        owner?.remove(ObjectIdentifier(self))
    }
}
