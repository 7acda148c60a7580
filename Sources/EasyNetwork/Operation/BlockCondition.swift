/// A condition that is a closure.
///
/// ```swift
/// operation.addCondition(BlockCondition("enough room") { _ in freeBytes > 50_000_000 })
/// ```
public struct BlockCondition: OperationCondition {
    public let name: String
    private let holds: @Sendable (NetworkOperation) async throws -> Bool

    /// - Parameters:
    ///   - name: what messages call the condition.
    ///   - holds: called once for each operation, in a task. False makes the operation end with
    ///     ``NetworkError/Code/refused``; what it throws counts as in ``OperationCondition/evaluate(for:)``.
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
