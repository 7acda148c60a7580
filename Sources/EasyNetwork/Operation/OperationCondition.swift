import Foundation

/// A condition that must hold before an operation does its work: a session, the network, a permission.
///
/// ```swift
/// struct SignedIn: OperationCondition {
///     let session: SessionStore
///
///     func prerequisite(for operation: NetworkOperation) -> Operation? {
///         session.isValid ? nil : session.signInOperation   // one for all that wait
///     }
///
///     func evaluate(for operation: NetworkOperation) async throws {
///         guard session.isValid else { throw NetworkError(code: .unauthorized) }
///     }
/// }
///
/// operation.addCondition(SignedIn(session: store))
/// ```
///
/// Conditions are evaluated one after the other when the dependencies of the operation are over and its turn has come,
/// before ``NetworkOperation/execute()``. During that time the operation takes no slot of its ``NetworkQueue``; when all
/// hold, it asks for one again. On a plain `OperationQueue` they hold it too.
public protocol OperationCondition: Sendable {
    /// The name of the condition in messages. Default: the name of its type.
    var name: String { get }

    /// A job that must be over before ``evaluate(for:)``, for instance a sign-in; nil, the default, for none.
    ///
    /// It is added to the operation's ``NetworkQueue``, or else to ``NetworkQueue/shared``, unless a `NetworkQueue` has
    /// it already or it has been started; it must not be on an `OperationQueue`. Several operations may be given the same
    /// job. ``evaluate(for:)`` decides whether its outcome is good enough. It goes on when the operation is cancelled.
    ///
    /// Called once for each operation, on a background thread.
    func prerequisite(for operation: NetworkOperation) -> Operation?

    /// Returns when the condition holds, and throws when it does not.
    ///
    /// It may wait without a deadline, but must not block its thread. When the operation ends before, the task is cancelled
    /// and its result has no effect.
    ///
    /// - Throws: the reason why the operation must not run. A ``NetworkError`` becomes the operation's own, a
    ///   `CancellationError` becomes ``NetworkError/Code/cancelled``, and any other error the
    ///   ``NetworkError/underlying`` one of ``NetworkError/Code/refused``.
    func evaluate(for operation: NetworkOperation) async throws
}

extension OperationCondition {
    public var name: String { String(describing: Self.self) }

    public func prerequisite(for operation: NetworkOperation) -> Operation? { nil }
}

extension NetworkOperation {
    /// Makes the operation wait until `condition` holds, and fail if it does not.
    ///
    /// Conditions are evaluated in the order in which they were added. Add them before the operation is added to a queue; a
    /// condition that is added after its start is ignored.
    ///
    /// An operation that overrides `start()` and does its work there, and not in ``execute()``, does not wait.
    public final func addCondition(_ condition: some OperationCondition) {
        changeOptions { options, phase in
            guard phase == .waiting else { return }
            options.conditions.append(condition)
        }
    }

    /// The conditions of the operation. Default none; empty once it has started.
    public final var conditions: [any OperationCondition] {
        option { $0.conditions }
    }
}

extension NetworkOperation {
    /// Runs `work` when every condition holds and the operation has a slot again; ends the operation when one does not
    /// hold. Called when the operation has been started.
    final func hold(until conditions: [any OperationCondition], then work: @escaping @Sendable () -> Void) {
        releaseSlot()
        let task = Task {
            do {
                for condition in conditions { try await self.wait(for: condition) }
                self.pendingCondition = nil
                self.reclaimSlot(work)
            } catch {
                let name = self.pendingCondition ?? ""
                self.pendingCondition = nil
                self.finish(.thrown(error, otherwise: .refused, prefix: "the condition '\(name)' does not hold: "))
            }
        }
        // Cancelled, or finished manually.
        whenFinished { task.cancel() }
    }

    /// The name of the condition that holds the operation; nil when none does.
    final var pendingCondition: String? {
        get { option { $0.pendingCondition } }
        set { setOption(newValue) { swap(&$0.pendingCondition, &$1) } }
    }

    private func wait(for condition: any OperationCondition) async throws {
        try Task.checkCancellation()
        pendingCondition = condition.name
        try await ConditionContext.$operation.withValue(ObjectIdentifier(self)) {
            try await condition.satisfy(for: self)
        }
    }
}

extension NetworkOperation {
    /// Whether the current task evaluates a condition of the operation: calls made there do not wait for the conditions.
    final var isEvaluatingCondition: Bool { ConditionContext.operation == ObjectIdentifier(self) }
}

/// The operation whose condition the current task evaluates.
private enum ConditionContext {
    @TaskLocal static var operation: ObjectIdentifier?
}

extension OperationCondition {
    /// Runs the prerequisite, then evaluates the condition.
    func satisfy(for operation: NetworkOperation) async throws {
        if let prerequisite = prerequisite(for: operation) {
            try await finish(of: prerequisite, for: operation)
            try Task.checkCancellation()
        }
        try await evaluate(for: operation)
    }

    /// Adds the prerequisite and returns when it has finished, or when the task is cancelled.
    private func finish(of prerequisite: Operation, for operation: NetworkOperation) async throws {
        let own = operation.scheduling?.queue
        // Noted before the search: of two operations that wait for each other, the second one sees it.
        operation.setOption(prerequisite) { swap(&$0.pendingPrerequisite, &$1) }
        defer { operation.setOption(nil) { swap(&$0.pendingPrerequisite, &$1) } }
        NetworkQueue.addWaiter(operation, for: prerequisite)
        // If it is a job already.
        own?.passBarriers(prerequisite)
        if let cycle = DependencyCycleFinder.cycle(of: operation, for: prerequisite) {
            throw NetworkError.cycle(cycle)
        }
        let over = OneShot()
        FinishWatcher.watch(prerequisite) { over.end() }
        (own ?? .shared).addPrerequisite(prerequisite)
        await over.wait()
    }
}
