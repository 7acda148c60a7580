import Foundation

/// A condition that must hold before an operation does its work: a session, the network, a permission.
///
/// ```swift
/// extension OperationCondition {
///     static func signedIn(_ session: SessionStore) -> OperationCondition {
///         // A single sign-in for all that wait.
///         OperationCondition("signed in") { _ in
///             session.isValid ? nil : session.signInOperation
///         } holds: { _ in
///             session.isValid
///         }
///     }
/// }
///
/// operation.addCondition(.all(.reachable(), .any(.signedIn(store), .guestAllowed)))
/// ```
///
/// Conditions are evaluated one after the other when the dependencies of the operation are over and its turn has come,
/// before ``NetworkOperation/execute()``. During that time the operation takes no slot of its ``NetworkQueue``; when
/// all hold, it asks for one again. On a plain `OperationQueue` they hold it too.
public struct OperationCondition: Sendable {
    /// The name of the condition in messages.
    public let name: String
    /// Runs the prerequisites unless it is silent, and throws when the condition does not hold.
    let evaluate: @Sendable (NetworkOperation, _ isSilent: Bool) async throws -> Void

    private init(
        name: String,
        evaluate: @escaping @Sendable (NetworkOperation, _ isSilent: Bool) async throws -> Void
    ) {
        self.name = name
        self.evaluate = evaluate
    }

    /// Creates a condition.
    ///
    /// - Parameters:
    ///   - name: the name of the condition in messages.
    ///   - prerequisite: a job that must be over before `holds` is called, for instance a sign-in; nil, the default,
    ///     for none. It is added to the operation's ``NetworkQueue``, or else to ``NetworkQueue/shared``, unless a
    ///     `NetworkQueue` has it already or it has been started; it must not be on an `OperationQueue`. Several
    ///     operations may be given the same job. `holds` decides whether its outcome is good enough. It goes on when
    ///     the operation is cancelled. Called once for each operation, on a background thread.
    ///   - holds: called once for each operation, in a task. False ends the operation with
    ///     ``NetworkError/Code/refused``. A ``NetworkError`` that it throws becomes the operation's own, a
    ///     `CancellationError` becomes ``NetworkError/Code/cancelled``, and any other error the
    ///     ``NetworkError/underlying`` one of ``NetworkError/Code/refused``. It may wait without a deadline, but must
    ///     not block its thread. When the operation ends before, the task is cancelled and its result has no effect.
    public init(
        _ name: String,
        prerequisite: (@Sendable (NetworkOperation) -> Operation?)? = nil,
        holds: @escaping @Sendable (NetworkOperation) async throws -> Bool
    ) {
        self.init(name: name) { operation, isSilent in
            if !isSilent, let job = prerequisite?(operation)?.asNetworkOperation {
                try await operation.waitForPrerequisite(job)
                try Task.checkCancellation()
            }
            guard try await holds(operation) else {
                throw NetworkError(code: .refused, message: "the condition '\(name)' does not hold")
            }
        }
    }

    /// Holds while the network is reachable, or its status is unknown. A reachable network does not mean that the
    /// server answers: the condition only saves attempts that cannot succeed.
    ///
    /// - Parameters:
    ///   - reachability: the source of the status. Default: the system. A host on this machine needs none.
    ///   - waits: whether an operation waits for the network, without a slot; false, the default, ends it at once with
    ///     ``NetworkError/Code/refused``.
    public static func reachable(
        _ reachability: NetworkReachability = .system,
        waits: Bool = false
    ) -> OperationCondition {
        OperationCondition(WaitReason.networkCondition) { _ in
            if waits {
                await reachability.wait()
                try Task.checkCancellation()
                return true
            }
            guard reachability.status != .unreachable else {
                throw NetworkError(code: .refused, message: "the network is not reachable")
            }
            return true
        }
    }

    // MARK: - Combinations

    /// Holds when all of these hold, also when there are none; fails with the error of the first one that does not.
    /// They are evaluated in order, each after its own prerequisite.
    public static func all(_ parts: OperationCondition...) -> OperationCondition {
        OperationCondition(name: list(parts, "and")) { operation, isSilent in
            for part in parts { try await part.evaluate(operation, isSilent) }
        }
    }

    /// Holds when one of these holds. They are evaluated in order, each after its own prerequisite, until one does. If
    /// none does, the operation ends with ``NetworkError/Code/refused`` and the error of the first one as
    /// ``NetworkError/underlying``.
    public static func any(_ parts: OperationCondition...) -> OperationCondition {
        let name = list(parts, "or")
        return OperationCondition(name: name) { operation, isSilent in
            var reasons: [any Error] = []
            for part in parts {
                guard let reason = try await part.obstacle(operation, isSilent) else { return }
                reasons.append(reason)
            }
            let ending = reasons.isEmpty ? "" : ": " + reasons.map(\.wording).joined(separator: "; ")
            throw NetworkError(
                code: .refused,
                message: "none of the conditions '\(name)' holds\(ending)",
                underlying: reasons.first
            )
        }
    }

    /// Holds when this one does not. Its prerequisite runs too.
    public static func not(_ part: OperationCondition) -> OperationCondition {
        OperationCondition(name: "not " + part.name) { operation, isSilent in
            guard try await part.obstacle(operation, isSilent) != nil else {
                throw NetworkError(code: .refused, message: "the condition '\(part.name)' holds")
            }
        }
    }

    /// The same condition without its prerequisites.
    public var silent: OperationCondition {
        OperationCondition(name: name) { operation, _ in try await evaluate(operation, true) }
    }

    /// The reason why it does not hold, nil when it does. Cancellation is thrown on.
    private func obstacle(_ operation: NetworkOperation, _ isSilent: Bool) async throws -> (any Error)? {
        do {
            try await evaluate(operation, isSilent)
            return nil
        } catch let error as CancellationError {
            throw error
        } catch {
            try Task.checkCancellation()
            return error
        }
    }

    private static func list(_ parts: [OperationCondition], _ word: String) -> String {
        "(" + parts.map(\.name).joined(separator: " \(word) ") + ")"
    }
}

extension NetworkOperation {
    /// Makes the operation wait until `condition` holds, and fail if it does not.
    ///
    /// Conditions are evaluated in the order in which they were added. Add them before the operation is added to a
    /// queue; a condition that is added after its start is ignored.
    ///
    /// Work that an override of `start()` does, and not ``execute()``, does not wait. Calls that it makes by a
    /// ``ServiceOperation/service`` do.
    public final func addCondition(_ condition: OperationCondition) {
        changeOptions { options, phase in
            guard phase == .waiting else { return }
            options.conditions.append(condition)
        }
    }

    /// The conditions of the operation. Default none; empty once it has started.
    public final var conditions: [OperationCondition] {
        option { $0.conditions }
    }

    /// Runs `work` when every condition holds and the operation has a slot again; ends the operation when one does not
    /// hold. Called when the operation has been started.
    final func hold(until conditions: [OperationCondition], then work: @escaping @Sendable () -> Void) {
        releaseSlot()
        let task = WorkQueue.task {
            do {
                for condition in conditions {
                    try Task.checkCancellation()
                    self.pendingCondition = condition.name
                    try await ConditionContext.$operation.withValue(ObjectIdentifier(self)) {
                        try await condition.evaluate(self, false)
                    }
                }
                self.pendingCondition = nil
                self.reclaimSlot(after: conditions.last.map { .condition($0.name) }, if: { true }) {
                    if !self.hasOutcome { work() }
                }
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
        set { setOption(\.pendingCondition, newValue) }
    }

    /// Whether the current task evaluates a condition of the operation: calls made there do not wait for the
    /// conditions.
    final var isEvaluatingCondition: Bool { ConditionContext.operation == ObjectIdentifier(self) }

    /// Adds a prerequisite and returns when it has finished, or when the task is cancelled.
    fileprivate final func waitForPrerequisite(_ prerequisite: NetworkOperation) async throws {
        let queue = scheduling?.queue
        // Noted before the search: of two operations that wait for each other, the second one sees it.
        setOption(\.pendingPrerequisite, prerequisite)
        defer { setOption(\.pendingPrerequisite, nil) }
        prerequisite.core.withLock { $0.waiters.add(self) }
        // If it is a job already.
        queue?.passBarriers(prerequisite)
        if let cycle = DependencyCycleFinder.cycle(of: self, for: prerequisite) {
            throw NetworkError.cycle(cycle)
        }
        let over = Promise<Void>()
        prerequisite.whenFinished { over.set() }
        if let trace { prerequisite.setTraceOrigin(trace.context) }
        (queue ?? .shared).add(prerequisite, passesBarriers: true)
        await over.wait()
    }
}

/// The operation whose condition the current task evaluates.
private enum ConditionContext {
    @TaskLocal static var operation: ObjectIdentifier?
}
