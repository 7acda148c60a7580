import Foundation

/// Why JSON could not be mapped into a struct.
public enum ResponseMapperError: Error {
    /// The JSON is of another form than the mapper reads: no object, no array.
    case invalid
    /// Something that is needed is not there; the mapper did not say what.
    case missingAttribute
    /// There is no value for the key.
    case missing(key: String)
    /// The value of the key is of another type.
    case mismatch(key: String, expected: String, found: String)
    /// An element of an array could not be mapped; indices begin at 0.
    indirect case element(index: Int, underlying: any Error)
}

extension ResponseMapperError: LocalizedError {
    /// One sentence that names the key and the index.
    public var errorDescription: String? {
        phrase.prefix(1).uppercased() + phrase.dropFirst() + "."
    }

    /// The same as part of a longer sentence.
    var phrase: String {
        switch self {
        case .invalid: "the JSON is not of the expected form"
        case .missingAttribute: "an attribute is missing"
        case .missing(let key): "no value for key \"\(key)\""
        case .mismatch(let key, let expected, let found): "key \"\(key)\": expected \(expected) but found \(found)"
        case .element(let index, let underlying): "element \(index): \(Self.phrase(of: underlying))"
        }
    }

    private static func phrase(of error: any Error) -> String {
        switch error {
        case let error as ResponseMapperError: error.phrase
        case let error as NetworkError: error.message ?? error.description.withoutFullStop
        default: error.wording
        }
    }
}

extension ResponseMapperError: Equatable {
    /// Errors underneath are equal when they describe themselves alike.
    public static func == (left: ResponseMapperError, right: ResponseMapperError) -> Bool {
        switch (left, right) {
        case (.invalid, .invalid), (.missingAttribute, .missingAttribute): true
        case (.missing(let left), .missing(let right)): left == right
        case (
            .mismatch(let leftKey, let leftExpected, let leftFound),
            .mismatch(let rightKey, let rightExpected, let rightFound)
        ):
            (leftKey, leftExpected, leftFound) == (rightKey, rightExpected, rightFound)
        case (.element(let leftIndex, let leftError), .element(let rightIndex, let rightError)):
            leftIndex == rightIndex && String(reflecting: leftError) == String(reflecting: rightError)
        default: false
        }
    }
}
