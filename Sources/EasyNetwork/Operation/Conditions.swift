/// A condition that is a closure.
///
/// ```swift
/// operation.addCondition(BlockCondition("enough room") { _ in freeBytes > 50_000_000 })
/// ```
public struct BlockCondition: OperationCondition {
    public let name: String
    private let holds: @Sendable (NetworkOperation) async throws -> Bool

    /// - Parameters:
    ///   - name: the name of the condition in messages.
    ///   - holds: called once for each operation, in a task. False ends the operation with
    ///     ``NetworkError/Code/refused``; its errors count as in ``OperationCondition/evaluate(for:)``.
    public init(_ name: String, holds: @escaping @Sendable (NetworkOperation) async throws -> Bool) {
        self.name = name
        self.holds = holds
    }

    public func evaluate(for operation: NetworkOperation) async throws {
        guard try await holds(operation) else {
            throw NetworkError(code: .refused, message: "the condition '\(name)' does not hold")
        }
    }
}

/// A condition that holds while the network is reachable, or its status is unknown.
///
/// ```swift
/// operation.addCondition(ReachabilityCondition(waits: true))
/// ```
///
/// A reachable network does not mean that the server answers: the condition only saves attempts that cannot succeed.
public struct ReachabilityCondition: OperationCondition {
    public let name = "network reachable"
    private let reachability: any NetworkReachability
    private let waits: Bool

    /// - Parameters:
    ///   - reachability: the source of the status. Default: the system, whose status is unknown on Linux.
    ///   - waits: whether an operation waits for the network, without a slot; false, the default, ends it at once with
    ///     ``NetworkError/Code/refused``.
    public init(_ reachability: any NetworkReachability = SystemReachability.shared, waits: Bool = false) {
        self.reachability = reachability
        self.waits = waits
    }

    public func evaluate(for operation: NetworkOperation) async throws {
        if waits {
            for await status in reachability.statuses where status != .unreachable { return }
            throw CancellationError()
        } else if reachability.status == .unreachable {
            throw NetworkError(code: .refused, message: "the network is not reachable")
        }
    }
}

/// A condition made of others. Write it as `.all(a, b)`, `.any(a, b)`, `a.or(b)`, `.not(a)` or `a.silent`.
///
/// ```swift
/// operation.addCondition(.all(ReachabilityCondition(), SignedIn(session: store).or(GuestAllowed())))
/// ```
///
/// Its parts are evaluated in order, each after its own prerequisite, until the result is known.
public struct CombinedCondition: OperationCondition {
    private enum Kind {
        case all([any OperationCondition])
        case any([any OperationCondition])
        case not(any OperationCondition)
        case silent(any OperationCondition)
    }

    private let kind: Kind

    /// Holds when all hold, also when there are none; fails with the error of the first one that does not.
    static func all(_ conditions: [any OperationCondition]) -> CombinedCondition {
        CombinedCondition(kind: .all(conditions))
    }

    /// Holds when one holds.
    static func any(_ conditions: [any OperationCondition]) -> CombinedCondition {
        CombinedCondition(kind: .any(conditions))
    }

    static func not(_ condition: any OperationCondition) -> CombinedCondition {
        CombinedCondition(kind: .not(condition))
    }

    static func silent(_ condition: any OperationCondition) -> CombinedCondition {
        guard let combined = condition as? CombinedCondition else { return CombinedCondition(kind: .silent(condition)) }
        switch combined.kind {
        case .all(let parts): return .all(parts.map(Self.silent))
        case .any(let parts): return .any(parts.map(Self.silent))
        case .not(let part): return .not(Self.silent(part))
        case .silent: return combined
        }
    }

    public var name: String {
        switch kind {
        case .all(let parts): Self.list(parts, "and")
        case .any(let parts): Self.list(parts, "or")
        case .not(let part): "not " + part.name
        case .silent(let part): part.name
        }
    }

    public func evaluate(for operation: NetworkOperation) async throws {
        switch kind {
        case .all(let parts):
            for part in parts { try await part.satisfy(for: operation) }
        case .any(let parts):
            var reasons: [any Error] = []
            for part in parts {
                guard let reason = try await Self.obstacle(part, operation) else { return }
                reasons.append(reason)
            }
            let wordings = reasons.map(\.wording).joined(separator: "; ")
            let ending = wordings.isEmpty ? "" : ": " + wordings
            throw refusal("none of the conditions '\(name)' holds\(ending)", reasons.first)
        case .not(let part):
            guard try await Self.obstacle(part, operation) != nil else {
                throw refusal("the condition '\(part.name)' holds", nil)
            }
        case .silent(let part):
            try await part.evaluate(for: operation)
        }
    }

    /// The reason why a part does not hold, nil when it does. Cancellation is thrown on.
    private static func obstacle(
        _ part: any OperationCondition,
        _ operation: NetworkOperation
    ) async throws -> (any Error)? {
        do {
            try await part.satisfy(for: operation)
            return nil
        } catch let error as CancellationError {
            throw error
        } catch {
            try Task.checkCancellation()
            return error
        }
    }

    private func refusal(_ message: String, _ reason: (any Error)?) -> NetworkError {
        NetworkError(code: .refused, message: message, underlying: reason)
    }

    private static func list(_ parts: [any OperationCondition], _ word: String) -> String {
        "(" + parts.map(\.name).joined(separator: " \(word) ") + ")"
    }
}

extension OperationCondition where Self == CombinedCondition {
    /// Holds when all of these hold; fails with the error of the first one that does not.
    public static func all(_ conditions: any OperationCondition...) -> CombinedCondition {
        CombinedCondition.all(conditions)
    }

    /// Holds when one of these holds. If none does, the operation ends with ``NetworkError/Code/refused`` and the error of
    /// the first one as ``NetworkError/underlying``.
    public static func any(_ conditions: any OperationCondition...) -> CombinedCondition {
        CombinedCondition.any(conditions)
    }

    /// Holds when this one does not. Its prerequisite runs too.
    public static func not(_ condition: any OperationCondition) -> CombinedCondition {
        CombinedCondition.not(condition)
    }
}

extension OperationCondition {
    /// Holds when this one or the other one holds.
    public func or(_ other: some OperationCondition) -> CombinedCondition {
        CombinedCondition.any([self, other])
    }

    /// The same condition without its prerequisite.
    public var silent: CombinedCondition {
        CombinedCondition.silent(self)
    }
}
