/// Whoever wants the outcome of operations: hold it in a screen, and when the screen goes, its operations end or go on
/// unheard.
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
/// What an operation's ``NetworkOperation/releasePolicy`` says happens when the owner is deallocated, on the thread on
/// which it is. The owner keeps no operation alive, and is kept alive by none.
public final class OperationOwner: Sendable {
    let ties = OwnerTies()

    public init() {}

    deinit {
        ties.ownerIsGone()
    }
}

/// What becomes of an operation when its owner goes.
public enum ReleasePolicy: Sendable {
    /// Its queue holds it until it is done, and its callbacks are called. The default.
    case held
    /// It is cancelled when the owner goes; ``RequestOperation/failure`` gets ``NetworkError/Code/cancelled``.
    case cancelled(with: OperationOwner)
    /// It goes on when the owner has gone, but its `success` and `failure`, and the delegate of a batch or a chain, are
    /// let go of without having been called. Tasks that await its value get it. What belongs to the work is kept: the
    /// `then` of a chain's steps, and the closures of the children, which have policies of their own.
    case detached(from: OperationOwner)
}

extension NetworkOperation {
    /// What becomes of the operation when its owner goes. Default ``ReleasePolicy/held``, also when the operation has
    /// finished or the owner has gone.
    ///
    /// Set it at any time before the end; the latest counts. It does not keep the owner alive. An operation without
    /// closures of its own is not changed by ``ReleasePolicy/detached(from:)``.
    public final var releasePolicy: ReleasePolicy {
        get {
            guard let tie = option(\.ownerTie), let owner = tie.owner else { return .held }
            return tie.isCancelled ? .cancelled(with: owner) : .detached(from: owner)
        }
        set {
            guard !isFinished else { return }
            switch newValue {
            case .held: setOption(\.ownerTie, nil)
            case .cancelled(let owner): setOption(\.ownerTie, OwnerTie(self, owner, isCancelled: true))
            case .detached(let owner): setOption(\.ownerTie, OwnerTie(self, owner, isCancelled: false))
            }
        }
    }
}
