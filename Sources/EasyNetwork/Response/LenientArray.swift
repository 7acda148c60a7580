import Foundation

/// An array whose elements are decoded one by one; those that cannot be are left out and reported.
///
/// ```swift
/// struct Page: Decodable { let users: LenientArray<User> }
///
/// let users = try response.decodeLeniently([User].self)
/// for failure in users.failures { print(failure.index, failure.error.localizedDescription) }
/// ```
public struct LenientArray<Element: Decodable>: Decodable {
    /// The elements that could be decoded, in order.
    public internal(set) var items: [Element] = []

    /// The index of each element that was left out, and why, in order: a ``NetworkError`` that names the place, with
    /// the `DecodingError` underneath. From ``NetworkResponse/decodeLeniently(_:)`` it tells what was found there, too,
    /// and has status, headers and body of the answer.
    public internal(set) var failures: [(index: Int, error: any Error)] = []

    /// - Throws: `DecodingError` when there is no array.
    public init(from decoder: any Decoder) throws {
        var container = try decoder.unkeyedContainer()
        while !container.isAtEnd {
            let index = container.currentIndex
            switch try container.decode(Attempt<Element>.self).result {
            case .success(let item): items.append(item)
            case .failure(let error): failures.append((index, Self.error(for: error)))
            }
        }
    }

    private static func error(for cause: any Error) -> NetworkError {
        let message: String
        switch cause {
        case let cause as DecodingError: message = DecodingFailure.message(for: cause, in: nil)
        case let cause as ResponseMapperError: message = cause.phrase
        default: return .thrown(cause, otherwise: .cannotParseResponse)
        }
        return NetworkError(code: .cannotParseResponse, message: message, underlying: cause)
    }
}

extension LenientArray: Sendable where Element: Sendable {}

/// Decoding that never fails, since a container stays where it is after a failure.
private struct Attempt<Value: Decodable>: Decodable {
    let result: Result<Value, any Error>

    init(from decoder: any Decoder) {
        // By way of a container: for dates, data and URLs decoders have strategies that `Value(from:)` knows nothing of.
        result = Result { try decoder.singleValueContainer().decode(Value.self) }
    }
}

extension NetworkResponse {
    /// The body as an array, without the elements that cannot be decoded.
    ///
    /// Reads with ``decoder``, as ``decode(_:)`` does.
    ///
    /// - Throws: ``NetworkError/Code/cannotParseResponse`` when the body holds no array.
    public func decodeLeniently<Element: Decodable>(
        _ type: [Element].Type
    ) throws(NetworkError) -> LenientArray<Element> {
        var array = try decode(LenientArray<Element>.self)
        guard !array.failures.isEmpty else { return array }
        // Read once for all of them.
        let json = try? json()
        array.failures = array.failures.map { failure in
            guard let cause = (failure.error as? NetworkError)?.underlying as? DecodingError else {
                return (failure.index, mappingError(failure.error))
            }
            let message = DecodingFailure.message(for: cause, in: json)
            return (failure.index, self.error(.cannotParseResponse, message: message, underlying: cause))
        }
        return array
    }
}
