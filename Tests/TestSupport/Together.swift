import Foundation

@testable import EasyNetwork

/// Runs `body` for each number below `count`, with a limited number at a time.
///
/// - Returns: The results in the order of the numbers.
func together<Value: Sendable>(
    _ count: Int,
    atOnce limit: Int = .max,
    _ body: @escaping @Sendable (Int) async throws -> Value
) async rethrows -> [Value] {
    try await withThrowingTaskGroup(of: (Int, Value).self) { group in
        var values: [Int: Value] = [:]
        var next = 0
        func add() {
            guard next < count else { return }
            let number = next
            next += 1
            group.addTask { (number, try await body(number)) }
        }
        for _ in 0..<min(limit, count) { add() }
        while let (number, value) = try await group.next() {
            values[number] = value
            add()
        }
        return (0..<count).compactMap { values[$0] }
    }
}
