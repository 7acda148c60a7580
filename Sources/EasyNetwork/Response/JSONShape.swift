import Foundation

/// The expected shape of JSON: its keys, and the kinds of its values.
///
/// ```swift
/// let shape: JSONShape = [
///     "id": .integer,
///     "name": .string.orNull,
///     "email": .string.optional,
///     "state": .oneOf(["active", "closed"]),
///     "tags": .array(of: .string),
///     "owner": ["id": .integer],
/// ]
/// ```
///
/// A dictionary literal is an object with these keys, and a string literal is exactly that string. Other keys are
/// allowed. The body of a response must not repeat a key of the shape, because readers differ in which value they use
/// (RFC 8259, section 4). Kinds are distinguished as strictly as by the mappers: a Bool is not a number, and an integer has no
/// fraction and fits into 64 bits.
///
/// To check the responses of a request or a host, set ``ResponseValidation/jsonShape``.
public indirect enum JSONShape: Hashable, Sendable {
    /// Any value, including null.
    case any
    /// The value null.
    case null
    /// The value true or false.
    case boolean
    /// A number without a fraction that fits into 64 bits, signed or unsigned, such as 3 and 3.0.
    case integer
    /// Any number.
    case number
    /// Any string.
    case string
    /// Exactly this string.
    case text(String)
    /// An array with elements of this shape. It can be empty. The elements default to ``any``.
    case array(of: JSONShape = .any)
    /// An object with these keys. Defaults to any object.
    case object([String: JSONShape] = [:])
    /// Any of several shapes: `.oneOf([.string, .integer])`.
    case oneOf([JSONShape])
    /// A shape whose key can be missing, see ``optional``.
    case missing(or: JSONShape)

    /// This shape, or null.
    public var orNull: JSONShape {
        if case .missing(let shape) = self { return .missing(or: shape.orNull) }
        return .oneOf([self, .null])
    }

    /// This shape; if it is the value of a key, the key can be missing.
    public var optional: JSONShape { .missing(or: self) }
}

extension JSONShape: ExpressibleByDictionaryLiteral, ExpressibleByStringLiteral {
    /// Creates an object with these keys. If a key is repeated, its last value counts.
    public init(dictionaryLiteral elements: (String, JSONShape)...) {
        self = .object(Dictionary(elements, uniquingKeysWith: { $1 }))
    }

    public init(stringLiteral value: String) { self = .text(value) }
}

extension JSONShape: CustomStringConvertible {
    /// The shape as text: `{"id": Int, "name": String or null, "tags"?: [String]}`.
    public var description: String {
        switch self {
        case .array(let element): return "[\(element)]"
        case .object(let properties):
            let parts = properties.sorted { $0.key < $1.key }.map { key, shape in
                if case .missing(let shape) = shape { return "\"\(key.quotable)\"?: \(shape)" }
                return "\"\(key.quotable)\": \(shape)"
            }
            return "{\(parts.joined(separator: ", "))}"
        case .oneOf(let shapes): return shapes.map(\.description).joined(separator: " or ")
        case .missing(let shape): return "\(shape)?"
        case .any, .null, .boolean, .integer, .number, .string, .text: return words
        }
    }
}

// MARK: - Checking

extension JSONShape {
    /// Returns the first difference between JSON and this shape: `$.users[3].name: expected String but found null`. The
    /// place begins with `$`, the whole document (RFC 9535, section 2.7).
    ///
    /// - Parameter json: a value as ``NetworkResponse/json()`` returns it.
    /// - Returns: the first difference, with keys in alphabetical order, or `nil` if there is none.
    public func mismatch(in json: Any) -> String? {
        difference(in: JSONNode(json)).map { steps, expected, found in
            "$\(steps.reversed().joined()): expected \(expected) but found \(found)"
        }
    }

    /// The steps to a place, beginning with the last one, and the difference at that place.
    private typealias Difference = (steps: [String], expected: String, found: String)

    /// - Parameter json: nil for a missing key.
    private func difference(in json: JSONNode?) -> Difference? {
        guard let json else {
            if case .missing = self { return nil }
            return ([], words, "nothing")
        }
        switch self {
        case .missing(let shape): return shape.difference(in: json)
        case .array(let element):
            guard let elements = json.elements else { break }
            for (index, value) in elements.enumerated() {
                if let difference = element.difference(in: value) { return Self.step("[\(index)]", difference) }
            }
            return nil
        case .object(let properties):
            guard json.isObject else { break }
            let differences = properties.compactMap { key, shape -> (key: String, difference: Difference)? in
                if json.repeats(key) { return (key, ([], "one value", "several")) }
                return shape.difference(in: json.member(key)).map { (key, $0) }
            }
            return differences.min { $0.key < $1.key }.map { Self.step(Self.name($0.key), $0.difference) }
        case .oneOf(let shapes):
            var differences: [Difference] = []
            for shape in shapes {
                guard let difference = shape.difference(in: json) else { return nil }
                differences.append(difference)
            }
            // The alternative that matches furthest is most likely the intended one.
            if let furthest = differences.max(by: { $0.steps.count < $1.steps.count }), !furthest.steps.isEmpty {
                return furthest
            }
        case .any: return nil
        case .null: if json.isNull { return nil }
        case .boolean: if json.read(as: Bool.self) != nil { return nil }
        case .integer: if json.read(as: Int64.self) != nil || json.read(as: UInt64.self) != nil { return nil }
        case .number: if ["Int", "Double", "Decimal"].contains(json.kind) { return nil }
        case .string: if json.string != nil { return nil }
        case .text(let text): if json.string == text { return nil }
        }
        return ([], words, found(json))
    }

    private static func step(_ step: String, _ difference: Difference) -> Difference {
        (difference.steps + [step], difference.expected, difference.found)
    }

    /// Returns `.name`, or `['odd name']` for a key that is not a name (RFC 9535, section 2.5.1).
    private static func name(_ key: String) -> String {
        let isName =
            !key.isEmpty && key.count <= 80 && key.first?.isNumber == false
            && key.unicodeScalars.allSatisfy { $0 == "_" || $0.properties.isAlphabetic || ("0"..."9").contains($0) }
        return isName ? ".\(key)" : "['\(key.quotable)']"
    }

    /// The shape in error messages: `Int, String or null`.
    private var words: String {
        var words = alternatives.reduce(into: [String]()) { if !$0.contains($1) { $0.append($1) } }
        guard let last = words.popLast() else { return "nothing" }
        return words.isEmpty ? last : words.joined(separator: ", ") + " or " + last
    }

    private var alternatives: [String] {
        switch self {
        case .any: ["a value"]
        case .null: ["null"]
        case .boolean: ["Bool"]
        case .integer: ["Int"]
        case .number: ["number"]
        case .string: ["String"]
        case .text(let text): ["\"\(text.quotable)\""]
        case .array: ["array"]
        case .object: ["object"]
        case .oneOf(let shapes): shapes.flatMap(\.alternatives)
        case .missing(let shape): shape.alternatives
        }
    }

    /// Returns the kind of the value, or a string itself if the shape is a string.
    private func found(_ json: JSONNode) -> String {
        guard let text = json.string, alternatives.contains(where: { $0.hasPrefix("\"") }) else { return json.kind }
        return "\"\(text.quotable)\""
    }
}

extension NetworkResponse {
    /// Returns the body as JSON of this shape.
    ///
    /// - Throws: ``NetworkError/Code/cannotParseResponse`` if the body is not JSON or has another shape. For another
    ///   shape, the message names the place: `$.users[3].name: expected String but found null`.
    public func json(_ shape: JSONShape) throws(NetworkError) -> Any {
        let json = try jsonNode()
        guard let mismatch = shape.mismatch(in: json) else { return json.tree }
        throw error(.cannotParseResponse, message: mismatch)
    }
}
