/// Operations that run one after the other and end as one. Each can be created from the result of the one before.
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
/// A step that fails or is cancelled ends the chain. The chain's ``NetworkOperation/error`` is the step's error, with a
/// message that names the step; see ``GroupOperation/decisiveFailure``. The steps after it do not run, and end with
/// ``NetworkError/Code/dependencyFailed``. `cancel()` is final: the remaining steps are cancelled, and later ones are
/// refused. An empty chain succeeds.
///
/// To create the next request from an item without a chain, see ``ItemOperation/then(_:)``. For queues, cancellation,
/// progress and lifetime, see ``GroupOperation``.
open class ChainOperation: GroupOperation, @unchecked Sendable {
    // Sendable because the class has no mutable state. Subclasses are responsible for their own state.

    /// Creates a chain.
    ///
    /// - Parameter operations: the first steps. Defaults to an empty array.
    public init(_ operations: [NetworkOperation] = []) {
        super.init(inTurn: true, endsAtFirstFailure: true, maxConcurrentOperationCount: 1)
        for operation in operations { addOperation(operation) }
    }

    /// Adds a step at the end, even while the chain runs.
    ///
    /// - Parameters:
    ///   - operation: the step.
    ///   - then: called once on the callback queue when the step has succeeded, after its own closures and before the
    ///     next step. It can add steps, or cancel the chain. It is released when the step has finished. Defaults to
    ///     `nil`.
    /// - Returns: `false` if the chain has ended. The step then ends with ``NetworkError/Code/refused`` and does not
    ///   run, unless it is already on a queue.
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

    /// Adds a step as ``addOperation(_:then:)`` does, with a closure that runs on the main actor, for user interfaces,
    /// whichever queue the callback queue is. The main queue must be running, as it is in an app.
    ///
    /// ```swift
    /// let chain = ChainOperation()
    /// chain.addOperation(signIn, thenOnMain: { _, _ in spinner.hide() })
    /// ```
    ///
    /// - Parameters:
    ///   - operation: the step.
    ///   - then: called once on the main actor when the step has succeeded, after its own closures and before the next
    ///     step. It can add steps, or cancel the chain. It is released when the step has finished.
    /// - Returns: `false` if the chain has ended. The step then ends with ``NetworkError/Code/refused`` and does not
    ///   run, unless it is already on a queue.
    // Without the attribute, a trailing closure without a label would match both methods.
    @_disfavoredOverload
    @discardableResult
    public final func addOperation<Step: NetworkOperation>(
        _ operation: Step,
        thenOnMain then: @escaping @MainActor (ChainOperation, Step) -> Void
    ) -> Bool {
        append(operation) { [weak self] done in
            // The reference is weak because the group may be deallocated before the closure runs.
            WorkQueue.callOnMain(
                { [weak self] in
                    if let self, !self.hasOutcome { then(self, operation) }
                },
                then: done
            )
        }
    }
}
