import Foundation

/// A condition that must hold before an operation does its work, such as a session, the network or a permission.
///
/// ```swift
/// extension OperationCondition {
///     static func signedIn(_ session: SessionStore) -> OperationCondition {
///         // All waiting operations share one sign-in.
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
/// Conditions are evaluated one after the other, before ``NetworkOperation/execute()``, when the operation's
/// dependencies have ended and its turn has come. Meanwhile, the operation takes no slot of its ``NetworkQueue``. When
/// all conditions hold, it requests a slot again. On a plain `OperationQueue`, the operation keeps its slot.
public struct OperationCondition: Sendable {
    /// The name of the condition in messages.
    public let name: String
    /// Runs the prerequisites unless they are skipped, and throws if the condition does not hold.
    let evaluate: @Sendable (NetworkOperation, _ skipsPrerequisites: Bool) async throws -> Void
}

extension OperationCondition {
    /// Creates a condition.
    ///
    /// - Parameters:
    ///   - name: the name of the condition in messages.
    ///   - prerequisite: returns a job that must end before `holds` is called, for example a sign-in, or `nil` if there
    ///     is none. Called once for each operation, on a background thread. Defaults to `nil`. The job is added to the
    ///     operation's ``NetworkQueue``, otherwise to ``NetworkQueue/shared``, unless it is already on a `NetworkQueue`
    ///     or has started. It must not be on an `OperationQueue`. Several operations can get the same job. `holds`
    ///     decides whether its outcome is sufficient. The job continues if the operation is cancelled.
    ///   - holds: called once for each operation, in a task. `false` ends the operation with
    ///     ``NetworkError/Code/refused``. If it throws a ``NetworkError``, that is the operation's error. A
    ///     `CancellationError` becomes ``NetworkError/Code/cancelled``. Any other error becomes the
    ///     ``NetworkError/underlying`` error of ``NetworkError/Code/refused``. The closure can wait without a deadline,
    ///     but must not block its thread. If the operation ends earlier, the task is cancelled and its result has no
    ///     effect.
    public init(
        _ name: String,
        prerequisite: (@Sendable (NetworkOperation) -> Operation?)? = nil,
        holds: @escaping @Sendable (NetworkOperation) async throws -> Bool
    ) {
        self.init(name: name) { operation, skipsPrerequisites in
            if !skipsPrerequisites, let job = prerequisite?(operation)?.asNetworkOperation {
                try await operation.waitForPrerequisite(job)
                try Task.checkCancellation()
            }
            guard try await holds(operation) else {
                throw NetworkError(code: .refused, message: "the condition '\(name)' does not hold")
            }
        }
    }

    /// Returns a condition that holds while the network is reachable, or its status is unknown. A reachable network
    /// does not mean that the server responds: the condition only avoids attempts that cannot succeed.
    ///
    /// - Parameters:
    ///   - reachability: the source of the status. Defaults to the system. A host on this machine needs no such
    ///     condition.
    ///   - waits: whether an operation waits for the network, without a slot. With `false`, it ends at once with
    ///     ``NetworkError/Code/refused``. Defaults to `false`.
    public static func reachable(
        _ reachability: NetworkReachability = .system,
        waits: Bool = false
    ) -> OperationCondition {
        OperationCondition(WaitReason.networkCondition) { _ in
            if waits {
                await reachability.wait()
                try Task.checkCancellation()
            } else if reachability.status == .unreachable {
                throw NetworkError(code: .refused, message: "the network is not reachable")
            }
            return true
        }
    }

    // MARK: - Combinations

    /// Returns a condition that holds if all of these hold, or if there are none. It fails with the error of the first
    /// one that does not hold. They are evaluated in order, each after its own prerequisite.
    public static func all(_ parts: OperationCondition...) -> OperationCondition {
        OperationCondition(name: list(parts, "and")) { operation, skipsPrerequisites in
            for part in parts { try await part.evaluate(operation, skipsPrerequisites) }
        }
    }

    /// Returns a condition that holds if one of these holds. They are evaluated in order, each after its own
    /// prerequisite, until one holds. If none holds, the operation ends with ``NetworkError/Code/refused``, and the
    /// error of the first one is its ``NetworkError/underlying`` error.
    public static func any(_ parts: OperationCondition...) -> OperationCondition {
        let name = list(parts, "or")
        return OperationCondition(name: name) { operation, skipsPrerequisites in
            var reasons: [any Error] = []
            for part in parts {
                guard let reason = try await part.obstacle(operation, skipsPrerequisites) else { return }
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

    /// Returns a condition that holds if this one does not. Its prerequisite runs too.
    public static func not(_ part: OperationCondition) -> OperationCondition {
        OperationCondition(name: "not " + part.name) { operation, skipsPrerequisites in
            guard try await part.obstacle(operation, skipsPrerequisites) != nil else {
                throw NetworkError(code: .refused, message: "the condition '\(part.name)' holds")
            }
        }
    }

    /// The same condition without its prerequisites.
    public var withoutPrerequisites: OperationCondition {
        OperationCondition(name: name) { operation, _ in try await evaluate(operation, true) }
    }

    /// The former name of ``withoutPrerequisites``.
    @available(*, deprecated, renamed: "withoutPrerequisites")
    public var silent: OperationCondition { withoutPrerequisites }

    /// Returns the reason why the condition does not hold; `nil` if it holds. Rethrows a cancellation.
    private func obstacle(_ operation: NetworkOperation, _ skipsPrerequisites: Bool) async throws -> (any Error)? {
        do {
            try await evaluate(operation, skipsPrerequisites)
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
    /// queue. A condition that is added after the start is ignored.
    ///
    /// Work in an override of `start()` instead of ``execute()`` does not wait for conditions. Calls that it makes
    /// through a ``ServiceOperation/service`` do.
    public final func addCondition(_ condition: OperationCondition) {
        changeOptions { options, phase in
            guard phase == .waiting else { return }
            options.conditions.append(condition)
        }
    }

    /// The conditions of the operation. Defaults to an empty array; empty again once the operation has started.
    public final var conditions: [OperationCondition] {
        option { $0.conditions }
    }

    /// Runs `work` when every condition holds and the operation has a slot again. Ends the operation if one does not
    /// hold. Called when the operation has been started.
    final func hold(until conditions: [OperationCondition], then work: @escaping @Sendable () -> Void) {
        guard !conditions.isEmpty else { return work() }
        releaseSlot()
        let task = WorkQueue.task {
            do {
                for condition in conditions {
                    try Task.checkCancellation()
                    self.pendingCondition = condition.name
                    try await JobContext.$evaluatedOperation.withValue(ObjectIdentifier(self)) {
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
        // Cancel the task if the operation is cancelled, or finished by other code.
        whenFinished { task.cancel() }
    }

    /// The name of the condition that is being evaluated; `nil` if there is none.
    final var pendingCondition: String? {
        get { option { $0.pendingCondition } }
        set { setOption(\.pendingCondition, newValue) }
    }

    /// Adds a prerequisite, and returns when it has finished or the task is cancelled.
    fileprivate final func waitForPrerequisite(_ prerequisite: NetworkOperation) async throws {
        let queue = scheduling?.queue
        // Note the prerequisite before the search, so that of two operations that wait for each other, the second one
        // finds the cycle.
        setOption(\.pendingPrerequisite, prerequisite)
        defer { setOption(\.pendingPrerequisite, nil) }
        prerequisite.noteWaiter { $0.add(self) }
        // The prerequisite can be a job of this queue already, after a barrier that waits for this operation.
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
