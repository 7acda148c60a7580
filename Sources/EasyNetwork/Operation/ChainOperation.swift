/// Operations that run one after the other and end as one, each possibly made from the result of the one before.
///
/// ```swift
/// let chain = ChainOperation()
/// chain.addOperation(RequestOperation(SignIn(name: "ada"))) { chain, signIn in
///     guard let token = try? signIn.result?.get().token else { return }
///     chain.addOperation(RequestOperation(GetProfile(token: token)))
/// }
/// NetworkQueue.shared.addOperation(chain)
/// ```
///
/// A step that fails, or is cancelled, ends the chain: its ``NetworkOperation/error`` has the code, the status and the other
/// properties of the step's error, a message that names the step, and the step's error as ``NetworkError/underlying``; see
/// ``GroupOperation/decisiveFailure``. The steps behind it do not run and end with
/// ``NetworkError/Code/dependencyFailed``. `cancel()` is final: the remaining steps are cancelled, and later ones refused.
/// An empty chain succeeds.
///
/// To build the next request from an item without a chain, see ``RequestOperation/then(_:)``. See ``GroupOperation``
/// for queues, cancellation, progress and lifetime.
open class ChainOperation: GroupOperation, @unchecked Sendable {
    // Sendable because nothing changes here; subclasses answer for their own state.

    /// - Parameter operations: the first steps; default none.
    public init(_ operations: [NetworkOperation] = []) {
        super.init(order: .inTurn, endsAtFirstFailure: true, maxConcurrentOperationCount: 1)
        for operation in operations { addOperation(operation) }
    }

    /// Adds a step at the end, also while the chain runs.
    ///
    /// - Parameter then: called once on the callback queue when the step has succeeded, after its own closures and
    ///   before the next step. It may add steps, or cancel the chain. Released when the step has finished.
    /// - Returns: false when the chain has ended. The step ends then with ``NetworkError/Code/refused`` and does not
    ///   run, unless it is on a queue already.
    @discardableResult
    public final func addOperation<R: APIRequest>(
        _ operation: RequestOperation<R>,
        then: (@Sendable (ChainOperation, RequestOperation<R>) -> Void)? = nil
    ) -> Bool {
        addStep(operation, then: then)
    }

    /// Adds a step of any kind at the end, also while the chain runs.
    ///
    /// - Parameter then: called once on the callback queue when the step has succeeded, before the next step. It may
    ///   add steps, or cancel the chain. Released when the step has finished.
    /// - Returns: false when the chain has ended. The step ends then with ``NetworkError/Code/refused`` and does not
    ///   run, unless it is on a queue already.
    @discardableResult
    public final func addOperation(
        _ operation: NetworkOperation,
        then: (@Sendable (ChainOperation, NetworkOperation) -> Void)? = nil
    ) -> Bool {
        addStep(operation, then: then)
    }

    private func addStep<Step: NetworkOperation>(
        _ step: Step,
        then: (@Sendable (ChainOperation, Step) -> Void)?
    ) -> Bool {
        guard let then else { return append(step) }
        return append(step) { [weak self] in
            if let self { then(self, step) }
        }
    }

    // MARK: - Callbacks

    /// Called once when every step has succeeded, after the delegate. Set it before the chain is added to a queue.
    /// Default nil.
    public final var success: (@Sendable (ChainOperation) -> Void)? {
        get { anySuccess }
        set {
            guard let newValue else { return anySuccess = nil }
            anySuccess = { group in if let chain = group as? ChainOperation { newValue(chain) } }
        }
    }

    /// Called once when the chain has failed or was cancelled, after the delegate. Set it before the chain is added to
    /// a queue. Default nil.
    public final var failure: (@Sendable (ChainOperation, NetworkError) -> Void)? {
        get { anyFailure }
        set {
            guard let newValue else { return anyFailure = nil }
            anyFailure = { group, error in if let chain = group as? ChainOperation { newValue(chain, error) } }
        }
    }

    /// The delegate, which is told of each step and of the end. Not kept alive. Default nil.
    public final var delegate: (any ChainOperationDelegate)? {
        get { anyDelegate as? any ChainOperationDelegate }
        set { anyDelegate = newValue }
    }

    override func tellDelegate(of child: NetworkOperation, at index: Int) {
        delegate?.chainOperation(self, didFinish: child, at: index)
    }

    override func tellDelegateOfEnd(_ error: NetworkError?) {
        if let error {
            delegate?.chainOperation(self, didFailWith: error)
        } else {
            delegate?.chainOperationDidSucceed(self)
        }
    }
}

/// The delegate of a chain, told of each step, and of the end, before the closures. Called on the chain's callback queue,
/// one call at a time. Every method does nothing by default.
public protocol ChainOperationDelegate: AnyObject, Sendable {
    /// A step has finished, with success or failure; its own callbacks have run, and its `then` runs next.
    func chainOperation(_ chain: ChainOperation, didFinish operation: NetworkOperation, at index: Int)
    /// Every step has succeeded.
    func chainOperationDidSucceed(_ chain: ChainOperation)
    /// The chain has failed or was cancelled.
    func chainOperation(_ chain: ChainOperation, didFailWith error: NetworkError)
}

extension ChainOperationDelegate {
    public func chainOperation(_ chain: ChainOperation, didFinish operation: NetworkOperation, at index: Int) {}
    public func chainOperationDidSucceed(_ chain: ChainOperation) {}
    public func chainOperation(_ chain: ChainOperation, didFailWith error: NetworkError) {}
}
