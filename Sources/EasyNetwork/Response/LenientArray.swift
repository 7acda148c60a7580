import Foundation

/// An array that leaves out the elements that cannot be decoded, and reports them.
///
/// ```swift
/// struct Page: Decodable { let users: LenientArray<User> }
///
/// let users = try response.decode(LenientArray<User>.self)
/// for failure in users.failures { print(failure.index, failure.error.localizedDescription) }
/// ```
public struct LenientArray<Element: Decodable>: Decodable {
    /// The decoded elements, in order.
    public private(set) var items: [Element] = []

    /// The index of each element that was left out, and the reason, in order: a ``NetworkError`` that names the place, with
    /// the `DecodingError` as its `underlying`.
    public private(set) var failures: [(index: Int, error: any Error)] = []

    /// - Throws: `DecodingError` if there is no array.
    public init(from decoder: any Decoder) throws {
        var container = try decoder.unkeyedContainer()
        while !container.isAtEnd {
            let index = container.currentIndex
            switch try container.decode(Attempt<Element>.self).result {
            case .success(let item): items.append(item)
            case .failure(let error): failures.append((index, NetworkError.mapping(error)))
            }
        }
    }
}

extension LenientArray: Sendable where Element: Sendable {}

/// A value or its failure. Decoding it never throws, since a container does not move on after an error.
private struct Attempt<Value: Decodable>: Decodable {
    let result: Result<Value, any Error>

    init(from decoder: any Decoder) {
        // Through a container, whose strategies for dates, data and URLs `Value(from:)` does not apply.
        result = Result { try decoder.singleValueContainer().decode(Value.self) }
    }
}
