import Foundation

/// The expected shape of JSON: its keys, and the kinds of its values.
///
/// ```swift
/// let shape: JSONShape = [
///     "id": .integer,
///     "name": .string.orNull,
///     "email": .string.optional,
///     "state": .oneOf("active", "closed"),
///     "tags": .array(of: .string),
///     "owner": ["id": .integer],
/// ]
/// ```
///
/// A dictionary literal is an object with these keys; a literal of a string, number or Bool is exactly that value. Other keys
/// are allowed. Kinds are told apart strictly, as by the mappers: a Bool is no number, and an
/// integer has no fraction and fits into 64 bits.
///
/// A request or a host sets ``ResponseValidation/jsonShape``.
public struct JSONShape: Hashable, Sendable {
    private indirect enum Rule: Hashable, Sendable {
        case any, null, boolean, integer, number, string
        case text(String)
        case constant(JSONNumber)
        case array(JSONShape)
        case object([String: JSONShape])
        case oneOf([JSONShape])
    }

    private let rule: Rule

    /// Whether the key of the value may be missing.
    private var isOptional = false

    private init(_ rule: Rule) {
        self.rule = rule
    }

    /// Any value, null included.
    public static let any = JSONShape(.any)
    public static let null = JSONShape(.null)
    public static let boolean = JSONShape(.boolean)
    public static let string = JSONShape(.string)

    /// A number without fraction that fits into 64 bits, signed or not, such as 3 and 3.0.
    public static let integer = JSONShape(.integer)

    /// Any number.
    public static let number = JSONShape(.number)

    /// An array with elements of this shape. It may be empty. Default ``any``.
    public static func array(of element: JSONShape = .any) -> JSONShape { JSONShape(.array(element)) }

    /// An object with these keys; those whose shape is ``optional`` may be missing. Default any object.
    public static func object(_ properties: [String: JSONShape] = [:]) -> JSONShape {
        JSONShape(.object(properties))
    }

    /// Any of several shapes or values: `.oneOf(.string, .integer)`, `.oneOf("on", "off")`.
    public static func oneOf(_ shapes: JSONShape...) -> JSONShape { JSONShape(.oneOf(shapes)) }

    /// The raw values of an enum: `.values(of: State.self)`.
    public static func values<Value: CaseIterable & RawRepresentable>(of type: Value.Type) -> JSONShape
    where Value.RawValue == String {
        JSONShape(.oneOf(Value.allCases.map { JSONShape(stringLiteral: $0.rawValue) }))
    }

    /// This shape, or null.
    public var orNull: JSONShape {
        var shape = JSONShape.oneOf(self, .null)
        shape.isOptional = isOptional
        return shape
    }

    /// This shape, whose key may be missing if it is the value of one.
    public var optional: JSONShape {
        var shape = self
        shape.isOptional = true
        return shape
    }
}

extension JSONShape: ExpressibleByDictionaryLiteral, ExpressibleByStringLiteral, ExpressibleByIntegerLiteral,
    ExpressibleByFloatLiteral, ExpressibleByBooleanLiteral
{
    /// An object with these keys. The last value of a repeated key counts.
    public init(dictionaryLiteral elements: (String, JSONShape)...) {
        self = .object(Dictionary(elements, uniquingKeysWith: { $1 }))
    }

    public init(stringLiteral value: String) { self.init(.text(value)) }
    public init(integerLiteral value: Int64) { self.init(.constant(.integer(value))) }
    public init(floatLiteral value: Double) { self.init(.constant(.double(value))) }
    public init(booleanLiteral value: Bool) { self.init(.constant(.boolean(value))) }
}

// MARK: - Checking

extension JSONShape {
    /// The difference between JSON and its shape.
    public struct Mismatch: Error, Hashable, Sendable, LocalizedError, CustomStringConvertible {
        /// The place, from `$`, the whole (RFC 9535, section 2.7): `$.users[3].name`.
        public private(set) var path = "$"
        /// The expectation of the shape: `String`, `"on" or "off"`.
        public let expected: String
        /// The kind of the value at the place: `null`, `Int`; `nothing` for a missing key.
        public let found: String

        /// The number of steps in the path.
        fileprivate private(set) var depth = 0

        fileprivate init(expected: String, found: String) {
            self.expected = expected
            self.found = found
        }

        fileprivate func inside(_ step: String) -> Mismatch {
            var mismatch = self
            mismatch.path = "$" + step + path.dropFirst()
            mismatch.depth += 1
            return mismatch
        }

        public var description: String { "\(path): expected \(expected) but found \(found)" }

        public var errorDescription: String? { description + "." }
    }

    /// - Parameter json: a value as `JSONSerialization` returns it.
    /// - Returns: the first mismatch, with keys in alphabetical order; nil if there is none.
    public func mismatch(in json: Any) -> Mismatch? {
        switch rule {
        case .array(let element):
            guard let array = json as? [Any] else { break }
            for (index, value) in array.enumerated() {
                if let mismatch = element.mismatch(in: value) { return mismatch.inside("[\(index)]") }
            }
            return nil
        case .object(let properties):
            guard let object = json as? [String: Any] else { break }
            return Self.mismatch(in: object, properties)
        case .oneOf(let shapes):
            var mismatches: [Mismatch] = []
            for shape in shapes {
                guard let mismatch = shape.mismatch(in: json) else { return nil }
                mismatches.append(mismatch)
            }
            // The alternative that matches furthest is most likely the intended one.
            if let deepest = mismatches.max(by: { $0.depth < $1.depth }), deepest.depth > 0 { return deepest }
        default:
            if accepts(json) { return nil }
        }
        return Mismatch(expected: words, found: isConstant ? Self.text(of: json) : jsonKind(of: json))
    }

    private static func mismatch(in object: [String: Any], _ properties: [String: JSONShape]) -> Mismatch? {
        var mismatches: [String: Mismatch] = [:]
        for (key, shape) in properties {
            if let value = object[key] {
                mismatches[key] = shape.mismatch(in: value)
            } else if !shape.isOptional {
                mismatches[key] = Mismatch(expected: shape.words, found: "nothing")
            }
        }
        return mismatches.min { $0.key < $1.key }.map { $0.value.inside(step($0.key)) }
    }

    /// `.name`, or `['odd name']` for a key that is no name (RFC 9535, section 2.5.1).
    private static func step(_ key: String) -> String {
        let isName =
            !key.isEmpty && key.count <= 80 && key.first?.isNumber == false
            && key.unicodeScalars.allSatisfy { $0 == "_" || $0.properties.isAlphabetic || ("0"..."9").contains($0) }
        return isName ? ".\(key)" : "['\(key.quotable)']"
    }

    private func accepts(_ json: Any) -> Bool {
        switch rule {
        case .null: json is NSNull
        case .boolean: readJSON(json, as: Bool.self) != nil
        case .integer: readJSON(json, as: Int64.self) != nil || readJSON(json, as: UInt64.self) != nil
        case .number: JSONNumber(json).map { $0.kind != "Bool" } ?? false
        case .string: json is String
        case .text(let text): json as? String == text
        case .constant(.integer(let number)): readJSON(json, as: Int64.self) == number
        case .constant(.double(let number)): readJSON(json, as: Double.self) == number
        case .constant(let constant): JSONNumber(json) == constant
        case .any, .array, .object, .oneOf: true
        }
    }

    /// The shape for messages: `Int, String or null`.
    private var words: String {
        var words: [String] = []
        for word in alternatives where !words.contains(word) && words.count <= 20 {
            words.append(words.count == 20 ? "…" : word)
        }
        guard let last = words.popLast() else { return "nothing" }
        return words.isEmpty ? last : words.joined(separator: ", ") + " or " + last
    }

    private var alternatives: [String] {
        switch rule {
        case .any: ["a value"]
        case .null: ["null"]
        case .boolean: ["Bool"]
        case .integer: ["Int"]
        case .number: ["number"]
        case .string: ["String"]
        case .text(let text): [Self.text(of: text)]
        case .constant(let constant): [constant.text]
        case .array: ["array"]
        case .object: ["object"]
        case .oneOf(let shapes): shapes.flatMap(\.alternatives)
        }
    }

    /// Whether it is a value, or one of several shapes with a value among them.
    private var isConstant: Bool {
        switch rule {
        case .text, .constant: true
        case .oneOf(let shapes): shapes.contains(where: \.isConstant)
        default: false
        }
    }

    /// The value itself if it is short, else its kind.
    private static func text(of json: Any) -> String {
        if let text = json as? String { return "\"\(text.quotable)\"" }
        return JSONNumber(json)?.text ?? jsonKind(of: json)
    }
}

extension NetworkResponse {
    /// The body as JSON of this shape.
    ///
    /// - Throws: ``NetworkError/Code/cannotParseResponse`` if the body is no JSON, and if it has another shape: then the
    ///   message names the place, `$.users[3].name: expected String but found null`, and `underlying` is the
    ///   ``JSONShape/Mismatch``.
    public func json(_ shape: JSONShape) throws(NetworkError) -> Any {
        let json = try json()
        guard let mismatch = shape.mismatch(in: json) else { return json }
        throw error(.cannotParseResponse, message: mismatch.description, underlying: mismatch)
    }
}
