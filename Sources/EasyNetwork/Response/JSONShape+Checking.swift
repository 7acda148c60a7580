import Foundation

extension JSONShape {
    /// Where and how JSON is of another shape.
    public struct Mismatch: Error, Hashable, Sendable {
        /// The place, from `$`, the whole (RFC 9535, section 2.7): `$.users[3].name`.
        public let path: String
        /// What the shape wants there: `String`, `"on" or "off"`.
        public let expected: String
        /// The kind of what is there: `null`, `Int`; `nothing` for a missing key.
        public let found: String
    }

    /// - Parameter json: as `JSONSerialization` reads it, or built by hand in the same way.
    /// - Returns: the first place where the JSON is wrong, keys in alphabetical order; nil when nowhere.
    public func mismatch(in json: Any) -> Mismatch? {
        guard let failure = failure(json) else { return nil }
        return Mismatch(
            path: JSONStep.path(failure.steps.reversed()),
            expected: failure.expectation,
            found: failure.found
        )
    }

    private func failure(_ value: Any) -> Failure? {
        switch rule {
        case .any: nil
        case .null: value is NSNull ? nil : Failure("null", value)
        case .boolean: Bool.read(value) == nil ? Failure("Bool", value) : nil
        case .integer: JSONShape.isInteger(value) ? nil : Failure("Int", value)
        case .number: JSONShape.isNumber(value) ? nil : Failure("number", value)
        case .string: value is String ? nil : Failure("String", value)
        case .constant(let constant): constant.isEqual(to: value) ? nil : Failure(constant, value)
        case .array(let element): Self.failure(value, element)
        case .object(let properties, let isClosed): Self.failure(value, properties, isClosed)
        case .oneOf(let shapes): Self.failure(value, shapes)
        case .tooDeep: Failure(["a shape of at most \(Self.maximumDepth) levels"], found: "a deeper one")
        }
    }

    private static func failure(_ value: Any, _ element: JSONShape) -> Failure? {
        guard let array = value as? [Any] else { return Failure("array", value) }
        for (index, value) in array.enumerated() {
            if let failure = element.failure(value) { return failure.inside(.index(index)) }
        }
        return nil
    }

    private static func failure(_ value: Any, _ properties: [Property], _ isClosed: Bool) -> Failure? {
        guard let object = value as? [String: Any] else { return Failure("object", value) }
        for property in properties {
            if let value = object[property.key] {
                if let failure = property.shape.failure(value) { return failure.inside(.key(property.key)) }
            } else if !property.shape.isOptional {
                return Failure(property.shape.expectations, found: "nothing").inside(.key(property.key))
            }
        }
        guard isClosed, let key = object.keys.filter({ key in !properties.contains { $0.key == key } }).min(),
            let value = object[key]
        else { return nil }
        return Failure("nothing", value).inside(.key(key))
    }

    /// The failure that came furthest is the one that the sender most likely meant to avoid.
    private static func failure(_ value: Any, _ shapes: [JSONShape]) -> Failure? {
        var deepest: Failure?
        for shape in shapes {
            guard let failure = shape.failure(value) else { return nil }
            if failure.steps.count > deepest?.steps.count ?? 0 { deepest = failure }
        }
        if let deepest { return deepest }
        let expectations = shapes.flatMap(\.expectations)
        let constant = shapes.contains { if case .constant = $0.rule { true } else { false } }
        return Failure(expectations, found: constant ? Constant.text(of: value) : JSONKind.name(of: value))
    }

    private var expectations: [String] {
        switch rule {
        case .any: ["a value"]
        case .null: ["null"]
        case .boolean: ["Bool"]
        case .integer: ["Int"]
        case .number: ["number"]
        case .string: ["String"]
        case .constant(let constant): [constant.text]
        case .array: ["array"]
        case .object: ["object"]
        case .oneOf(let shapes): shapes.flatMap(\.expectations)
        case .tooDeep: ["a shape of at most \(Self.maximumDepth) levels"]
        }
    }

    private static func isInteger(_ value: Any) -> Bool {
        Int64.read(value) != nil || UInt64.read(value) != nil
    }

    private static func isNumber(_ value: Any) -> Bool {
        switch JSONNumber(value) {
        case .boolean, nil: false
        default: true
        }
    }
}

/// A mismatch on its way up; the steps are gathered from the inside.
private struct Failure {
    private let expectations: [String]
    let found: String
    private(set) var steps: [JSONStep] = []

    init(_ expectations: [String], found: String) {
        self.expectations = expectations
        self.found = found
    }

    init(_ expected: String, _ value: Any) {
        self.init([expected], found: JSONKind.name(of: value))
    }

    init(_ constant: JSONShape.Constant, _ value: Any) {
        self.init([constant.text], found: JSONShape.Constant.text(of: value))
    }

    func inside(_ step: JSONStep) -> Failure {
        var failure = self
        failure.steps.append(step)
        return failure
    }

    /// `Int, String or null`; each once.
    var expectation: String {
        var unique: [String] = []
        for text in expectations.prefix(20) where !unique.contains(text) { unique.append(text) }
        if expectations.count > 20 { unique.append("…") }
        guard let last = unique.last else { return "nothing" }
        return unique.count == 1 ? last : unique.dropLast().joined(separator: ", ") + " or " + last
    }
}

/// One step into JSON.
enum JSONStep {
    case key(String)
    case index(Int)

    /// `$.users[3].name`.
    static func path(_ steps: some Sequence<JSONStep>) -> String {
        steps.reduce(into: "$") { $0 += $1.text }
    }

    /// `[3]`, `.name`, or `['odd name']` for what is no name (RFC 9535, section 2.5.1).
    private var text: String {
        switch self {
        case .index(let index): return "[\(index)]"
        case .key(let key):
            let isName =
                !key.isEmpty && key.first?.isNumber == false
                && key.unicodeScalars.allSatisfy { $0 == "_" || $0.properties.isAlphabetic || ("0"..."9").contains($0) }
            return isName && key.count <= 80 ? ".\(key)" : "['\(JSONShape.Constant.quotable(key))']"
        }
    }
}

extension JSONShape.Constant {
    func isEqual(to value: Any) -> Bool {
        switch self {
        case .string(let text): value as? String == text
        case .integer(let number): Int64.read(value) == number
        case .double(let number): Double.read(value) == number
        case .boolean(let flag): Bool.read(value) == flag
        }
    }

    var text: String {
        switch self {
        case .string(let text): "\"\(Self.quotable(text))\""
        case .integer(let number): "\(number)"
        case .double(let number): "\(number)"
        case .boolean(let flag): "\(flag)"
        }
    }

    /// The value itself where it is short, else its kind.
    static func text(of value: Any) -> String {
        if let text = value as? String { return Self.string(text).text }
        switch JSONNumber(value) {
        case .boolean(let flag): return "\(flag)"
        case .integer(let number): return "\(number)"
        case .unsigned(let number): return "\(number)"
        case .double(let number): return "\(number)"
        case .decimal(let number): return "\(number)"
        case nil: return JSONKind.name(of: value)
        }
    }

    /// On one line, and not too long, whatever the server put into it.
    static func quotable(_ text: String) -> String {
        var result = ""
        for scalar in text.unicodeScalars.prefix(40) {
            switch scalar {
            case "\"", "'", "\\": result += "\\\(scalar)"
            case "\n": result += "\\n"
            default:
                let isControl = scalar.properties.generalCategory == .control || scalar.properties.isBidiControl
                result += isControl ? "\\u{\(String(scalar.value, radix: 16))}" : String(scalar)
            }
        }
        return text.unicodeScalars.count > 40 ? result + "…" : result
    }
}

extension JSONShape.Mismatch: LocalizedError, CustomStringConvertible {
    public var description: String {
        "\(path): expected \(expected) but found \(found)"
    }

    public var errorDescription: String? { description + "." }
}

extension NetworkResponse {
    /// The body as JSON of this shape.
    ///
    /// - Throws: ``NetworkError/Code/cannotParseResponse`` when the body is no JSON, as ``json()``, and when it is of another
    ///   shape: the message names the place, `$.users[3].name: expected String but found null`, and `underlying` is the
    ///   ``JSONShape/Mismatch``. So it is when an object has a key twice, of which readers see one or the other, and when
    ///   the JSON is not in UTF-8 (RFC 8259, section 8.1). A shape that is nested too deep is ``NetworkError/Code/invalidRequest``.
    public func json(_ shape: JSONShape) throws(NetworkError) -> Any {
        if case .tooDeep = shape.rule {
            let message = "the JSON shape is nested deeper than \(JSONShape.maximumDepth) levels, use .any further down"
            throw error(.invalidRequest, message: message)
        }
        let json = try json()
        guard !body.prefix(4).contains(0), !body.starts(with: [0xFE, 0xFF]), !body.starts(with: [0xFF, 0xFE]) else {
            throw error(.cannotParseResponse, message: "the JSON is not in UTF-8")
        }
        if let mismatch = shape.mismatch(in: json) {
            throw error(.cannotParseResponse, message: mismatch.description, underlying: mismatch)
        }
        if let steps = JSONDuplicates.path(in: body) {
            throw error(.cannotParseResponse, message: "\(JSONStep.path(steps)): the key is there twice")
        }
        return json
    }
}
