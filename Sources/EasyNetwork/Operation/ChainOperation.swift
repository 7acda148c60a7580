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
/// A step that fails, or is cancelled, ends the chain: its ``NetworkOperation/error`` is that of the step, with a message
/// that names it; see ``GroupOperation/decisiveFailure``. The steps behind it do not run and end with
/// ``NetworkError/Code/dependencyFailed``. `cancel()` is final: the remaining steps are cancelled, and later ones
/// refused. An empty chain succeeds.
///
/// To build the next request from an item without a chain, see ``ItemOperation/then(_:)``. See ``GroupOperation``
/// for queues, cancellation, progress and lifetime.
open class ChainOperation: GroupOperation, @unchecked Sendable {
    // Sendable because nothing changes here; subclasses answer for their own state.

    /// Creates a chain.
    ///
    /// - Parameter operations: the first steps; default none.
    public init(_ operations: [NetworkOperation] = []) {
        super.init(inTurn: true, endsAtFirstFailure: true, maxConcurrentOperationCount: 1)
        for operation in operations { addOperation(operation) }
    }

    /// Adds a step at the end, also while the chain runs.
    ///
    /// - Parameters:
    ///   - operation: the step.
    ///   - then: called once on the callback queue when the step has succeeded, after its own closures and before the
    ///     next step. It may add steps, or cancel the chain. Released when the step has finished.
    /// - Returns: false when the chain has ended. The step ends then with ``NetworkError/Code/refused`` and does not
    ///   run, unless it is on a queue already.
    @discardableResult
    public final func addOperation<Step: NetworkOperation>(
        _ operation: Step,
        then: (@Sendable (ChainOperation, Step) -> Void)? = nil
    ) -> Bool {
        guard let then else { return append(operation) }
        return append(operation) { [weak self] done in
            if let self { then(self, operation) }
            done()
        }
    }

    /// ``addOperation(_:then:)`` with a closure that runs on the main actor, for user interfaces, whatever the callback
    /// queue is. The main queue must be running: an app's does.
    ///
    /// ```swift
    /// let chain = ChainOperation()
    /// chain.addOperation(signIn, thenOnMain: { _, _ in spinner.hide() })
    /// ```
    ///
    /// - Parameters:
    ///   - operation: the step.
    ///   - then: called once on the main actor when the step has succeeded, after its own closures and before the next
    ///     step. It may add steps, or cancel the chain. Released when the step has finished.
    /// - Returns: false when the chain has ended. The step ends then with ``NetworkError/Code/refused`` and does not
    ///   run, unless it is on a queue already.
    // Without the attribute, a closure without its label would fit both.
    @_disfavoredOverload
    @discardableResult
    public final func addOperation<Step: NetworkOperation>(
        _ operation: Step,
        thenOnMain then: @escaping @MainActor (ChainOperation, Step) -> Void
    ) -> Bool {
        append(operation) { [weak self] done in
            // Weak until then: the group may be gone.
            WorkQueue.callOnMain(
                { [weak self] in
                    if let self, !self.hasOutcome { then(self, operation) }
                },
                then: done
            )
        }
    }
}
