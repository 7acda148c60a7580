/// What JSON has to look like: which keys, which kinds of values.
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
/// A dictionary literal is an object with these keys, a literal of a string, number or Bool exactly that value. Keys that a
/// shape does not name are let pass, unless it is ``closed``. Kinds are told apart strictly, as by the mappers: a Bool is
/// no number, and an integer has no fraction and fits into 64 bits.
///
/// A request or a host asks for a shape with ``ResponseValidation/jsonShape``. It is a value; checking needs no lock.
public struct JSONShape: Hashable, Sendable {
    /// How deep shapes may be nested. A deeper one accepts nothing, and checking it says so.
    public static let maximumDepth = 128

    indirect enum Rule: Hashable, Sendable {
        case any
        case null
        case boolean
        case integer
        case number
        case string
        case constant(Constant)
        case array(JSONShape)
        case object([Property], isClosed: Bool)
        case oneOf([JSONShape])
        case tooDeep
    }

    enum Constant: Hashable, Sendable {
        case string(String)
        case integer(Int64)
        case double(Double)
        case boolean(Bool)
    }

    struct Property: Hashable, Sendable {
        let key: String
        let shape: JSONShape
    }

    let rule: Rule
    private let depth: Int

    /// Whether the key may be missing where this is the value of one.
    private(set) var isOptional = false

    private init(_ rule: Rule, above parts: [JSONShape] = []) {
        let depth = 1 + (parts.lazy.map(\.depth).max() ?? 0)
        // What is deeper is let go, so that neither checking nor comparing nor freeing a shape can overflow the stack.
        self.rule = depth > Self.maximumDepth ? .tooDeep : rule
        self.depth = min(depth, Self.maximumDepth + 1)
    }

    /// Anything, null included.
    public static let any = JSONShape(.any)
    public static let null = JSONShape(.null)
    public static let boolean = JSONShape(.boolean)
    public static let string = JSONShape(.string)

    /// A number without fraction that fits into 64 bits, signed or not. 3.0 is one.
    public static let integer = JSONShape(.integer)

    /// Any number.
    public static let number = JSONShape(.number)

    /// An array, empty or not, with elements of this shape. Default ``any``.
    public static func array(of element: JSONShape = .any) -> JSONShape {
        JSONShape(.array(element), above: [element])
    }

    /// An object with these keys; those whose shape is ``optional`` may be missing. Default any object.
    public static func object(_ properties: [String: JSONShape] = [:]) -> JSONShape {
        object(properties, isClosed: false)
    }

    private static func object(_ properties: [String: JSONShape], isClosed: Bool) -> JSONShape {
        let sorted = properties.map { Property(key: $0.key, shape: $0.value) }.sorted { $0.key < $1.key }
        return JSONShape(.object(sorted, isClosed: isClosed), above: sorted.map(\.shape))
    }

    /// One of several shapes, or of several values: `.oneOf(.string, .integer)`, `.oneOf("on", "off")`. Of none is nothing.
    public static func oneOf(_ shapes: JSONShape...) -> JSONShape {
        oneOf(shapes)
    }

    /// As ``oneOf(_:)-(JSONShape...)``.
    public static func oneOf(_ shapes: [JSONShape]) -> JSONShape {
        JSONShape(.oneOf(shapes), above: shapes)
    }

    /// Exactly this text.
    public static func exactly(_ value: String) -> JSONShape { JSONShape(.constant(.string(value))) }

    /// Exactly this number.
    public static func exactly(_ value: Int64) -> JSONShape { JSONShape(.constant(.integer(value))) }

    /// Exactly this number.
    public static func exactly(_ value: Double) -> JSONShape { JSONShape(.constant(.double(value))) }

    /// Exactly this Bool.
    public static func exactly(_ value: Bool) -> JSONShape { JSONShape(.constant(.boolean(value))) }

    /// The raw values of an enum: `.values(of: State.self)`.
    public static func values<Value: CaseIterable & RawRepresentable>(of type: Value.Type) -> JSONShape
    where Value.RawValue == String {
        oneOf(Value.allCases.map { exactly($0.rawValue) })
    }

    /// This shape, or null.
    public var orNull: JSONShape {
        var shape = JSONShape.oneOf([self, .null])
        shape.isOptional = isOptional
        return shape
    }

    /// This shape, and as the value of a key it may be missing. Anywhere else the same as without.
    public var optional: JSONShape {
        var shape = self
        shape.isOptional = true
        return shape
    }

    /// This object without any key that it does not name. What is no object stays as it is.
    public var closed: JSONShape {
        guard case .object(let properties, _) = rule else { return self }
        var shape = JSONShape(.object(properties, isClosed: true), above: properties.map(\.shape))
        shape.isOptional = isOptional
        return shape
    }
}

extension JSONShape: ExpressibleByDictionaryLiteral {
    /// An object with these keys. Of a key that is written twice the last counts.
    public init(dictionaryLiteral elements: (String, JSONShape)...) {
        self = .object(Dictionary(elements, uniquingKeysWith: { $1 }))
    }
}

extension JSONShape: ExpressibleByStringLiteral {
    public init(stringLiteral value: String) {
        self = .exactly(value)
    }
}

extension JSONShape: ExpressibleByIntegerLiteral {
    public init(integerLiteral value: Int64) {
        self = .exactly(value)
    }
}

extension JSONShape: ExpressibleByFloatLiteral {
    public init(floatLiteral value: Double) {
        self = .exactly(value)
    }
}

extension JSONShape: ExpressibleByBooleanLiteral {
    public init(booleanLiteral value: Bool) {
        self = .exactly(value)
    }
}
