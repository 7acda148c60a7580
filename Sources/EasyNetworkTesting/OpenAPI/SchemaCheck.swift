import EasyNetworkOpenAPI
import Foundation

/// Finds out why a JSON value does not match a schema.
struct SchemaCheck {
    let document: OpenAPIDocument
    /// Whether the value is a request body. Then a property that only the server sets can be missing.
    var isRequest = false

    /// Returns the reason, with the place of the value, to be appended to a word for the whole value: `.labels[0] is a
    /// number, not a string`. Returns `nil` if the value fits.
    func mismatch(_ value: JSON, _ json: JSON) -> String? {
        var run = SchemaRun(check: self, root: value)
        return run.mismatch(value, json, at: [], depth: 0)
    }
}

/// One check, in bounded time.
private struct SchemaRun {
    /// The indices of the members and elements that lead to a value.
    typealias Path = [Int]

    private struct Pair: Hashable {
        let schema: Int
        let value: Path
    }

    private enum State {
        /// The pair is being checked, at this depth.
        case open(Int)
        case found(String?)
        /// The result assumed that an enclosing pair fits, so it might not hold elsewhere.
        case assumed
    }

    private let check: SchemaCheck
    private let root: JSON
    private var states: [Pair: State] = [:]
    /// The depth of the outermost open pair that was assumed to fit during the current check.
    private var assumed = Int.max
    /// The number of pairs that may still be checked, and how many of these may be checked again. Any others count as
    /// fitting.
    private var (left, again) = (500_000, 1_000)

    private static let maximumDepth = 128

    init(check: SchemaCheck, root: JSON) { (self.check, self.root) = (check, root) }

    /// Returns a reason with the place of the value.
    private func say(_ reason: String, at path: Path) -> String {
        var (value, place) = (root, "")
        for index in path {
            if let members = value.members {
                place += "." + String(members[index].key.unicodeScalars.prefix(100))
                value = members[index].value
            } else if let elements = value.elements {
                place += "[\(index)]"
                value = elements[index]
            }
        }
        return place.isEmpty ? reason : "\(place) \(reason)"
    }

    mutating func mismatch(_ value: JSON, _ json: JSON, at path: Path, depth: Int) -> String? {
        guard depth < Self.maximumDepth, let json = try? check.document.resolve(json).json else { return nil }
        if json.bool == false { return say("is not allowed", at: path) }
        let schema = OpenAPISchema(json)
        guard schema.isCompound || json["not"] != nil else {
            left -= 1
            return left > 0 ? find(value, schema, at: path, depth: depth) : nil
        }
        let pair = Pair(schema: json.offset, value: path)
        switch states[pair] {
        case .found(let reason): return reason
        case .open(let depth):
            assumed = min(assumed, depth)
            return nil
        case .assumed: again -= 1
        case nil: left -= 1
        }
        if left <= 0 || again <= 0 { return nil }
        let outer = assumed
        (assumed, states[pair]) = (.max, .open(depth))
        let reason = find(value, schema, at: path, depth: depth)
        states[pair] = assumed < depth ? .assumed : .found(reason)
        assumed = min(outer, assumed < depth ? assumed : .max)
        return reason
    }

    private mutating func find(
        _ value: JSON,
        _ schema: OpenAPISchema,
        at path: Path,
        depth: Int
    ) -> String? {
        let json = schema.json
        if value.isNull, schema.isNullable { return nil }
        if let values = schema.values {
            left -= values.count / 16
            if !values.contains(where: { $0.equals(value) }) {
                let known = values.prefix(12).map(\.shortText).joined(separator: ", ")
                return say("is \(value.shortText), not one of \(known)", at: path)
            }
        }
        if !schema.kinds.isEmpty, json["type"] != nil || schema.values == nil, !schema.kinds.contains(where: value.isOf)
        {
            let kinds = schema.kinds.map(\.withArticle).joined(separator: " or ")
            return say("is \(value.kindName), not \(kinds)", at: path)
        }
        if let reason = limits(value, schema) { return say(reason, at: path) }
        for part in schema.parts ?? [] {
            if let reason = mismatch(value, part, at: path, depth: depth + 1) { return reason }
        }
        if let alternatives = schema.alternatives {
            var first: String?
            var fits = false
            // One fitting alternative is enough. If two fit, this is more often a weakness of the document than of the
            // request.
            for alternative in alternatives where !fits {
                let reason = mismatch(value, alternative, at: path, depth: depth + 1)
                fits = reason == nil
                first = first ?? reason
            }
            if !fits {
                return say("matches none of \(alternatives.count) schemas; for the first: \(first ?? "")", at: path)
            }
        }
        if let not = json["not"], mismatch(value, not, at: path, depth: depth + 1) == nil {
            return say("is not allowed", at: path)
        }
        switch value.value {
        case .array(let elements):
            guard let items = schema.items else { return nil }
            for (index, element) in elements.enumerated() {
                if let reason = mismatch(element, items, at: path + [index], depth: depth + 1) { return reason }
            }
            return nil
        case .object(let members): return self.members(members, schema, at: path, depth: depth)
        default: return nil
        }
    }

    private mutating func limits(_ value: JSON, _ schema: OpenAPISchema) -> String? {
        let json = schema.json
        switch value.value {
        case .string(let text):
            if let least = json["minLength"]?.integer, text.count < least {
                return "is shorter than \(least) characters"
            }
            if let most = json["maxLength"]?.integer, text.count > most { return "is longer than \(most) characters" }
            // Ignore a pattern that Foundation cannot read.
            if let source = json["pattern"]?.string, let pattern = Pattern(source) {
                let (matches, steps) = pattern.matches(text)
                left -= steps * 1_000 + text.utf16.count / 16
                guard let matches else { return "is not checked: \(source) takes too long" }
                if !matches { return "does not match \(source)" }
            }
        case .integer, .double:
            guard let number = value.number else { return nil }
            let isOpenBelow = json["exclusiveMinimum"]?.bool == true
            let isOpenAbove = json["exclusiveMaximum"]?.bool == true
            let below = json["exclusiveMinimum"]?.number ?? (isOpenBelow ? json["minimum"]?.number : nil)
            let above = json["exclusiveMaximum"]?.number ?? (isOpenAbove ? json["maximum"]?.number : nil)
            if let below, number <= below { return "is not above \(JSON(.double(below), offset: 0).text)" }
            if let above, number >= above { return "is not below \(JSON(.double(above), offset: 0).text)" }
            if let least = json["minimum"], let limit = least.number, number < limit { return "is below \(least.text)" }
            if let most = json["maximum"], let limit = most.number, number > limit { return "is above \(most.text)" }
            if let step = json["multipleOf"], let size = step.number, size > 0,
                abs((number / size).rounded() * size - number) > abs(number) * 1e-9
            {
                return "is not a multiple of \(step.text)"
            }
        case .array(let elements):
            if let least = json["minItems"]?.integer, elements.count < least {
                return "has fewer than \(least) elements"
            }
            if let most = json["maxItems"]?.integer, elements.count > most { return "has more than \(most) elements" }
            if json["uniqueItems"]?.bool == true, Set(elements.map(\.text)).count < elements.count {
                return "has an element twice"
            }
        case .object(let members):
            if let least = json["minProperties"]?.integer, members.count < least {
                return "has fewer than \(least) members"
            }
            if let most = json["maxProperties"]?.integer, members.count > most {
                return "has more than \(most) members"
            }
        case .null, .bool: break
        }
        return nil
    }

    private mutating func members(
        _ members: [(key: String, value: JSON)],
        _ schema: OpenAPISchema,
        at path: Path,
        depth: Int
    ) -> String? {
        let properties = Dictionary(schema.properties.map { ($0.key, $0.value) }, uniquingKeysWith: { _, last in last })
        left -= (properties.count + members.count) / 16
        let keys = Set(members.map(\.key))
        for key in schema.required.subtracting(keys).sorted() {
            let property = properties[key].flatMap { try? check.document.resolve($0).json }
            if check.isRequest, property?["readOnly"]?.bool == true { continue }
            return say("has no \"\(key)\"", at: path)
        }
        let isClosed =
            schema.json["additionalProperties"]?.bool == false && schema.parts == nil && schema.alternatives == nil
        for (index, (key, value)) in members.enumerated() {
            let inner = path + [index]
            if let property = properties[key] {
                if let reason = mismatch(value, property, at: inner, depth: depth + 1) { return reason }
            } else if isClosed {
                return say("has \"\(key)\", which the document does not", at: path)
            } else if let additional = schema.additional, additional.members != nil {
                if let reason = mismatch(value, additional, at: inner, depth: depth + 1) { return reason }
            }
        }
        return nil
    }
}

extension OpenAPISchema.Kind {
    fileprivate var withArticle: String {
        switch self {
        case .null: "null"
        case .integer: "an integer"
        case .array: "an array"
        case .object: "an object"
        case .boolean, .number, .string: "a \(rawValue)"
        }
    }
}

extension JSON {
    fileprivate func isOf(_ kind: OpenAPISchema.Kind) -> Bool {
        switch (value, kind) {
        case (.null, .null), (.bool, .boolean), (.integer, .integer), (.integer, .number), (.double, .number): true
        case (.string, .string), (.array, .array), (.object, .object): true
        // 1.0 is an integer in JSON Schema.
        case (.double(let number), .integer): number == number.rounded()
        default: false
        }
    }

    fileprivate var kindName: String {
        switch value {
        case .null: "null"
        case .bool: "a boolean"
        case .integer: "an integer"
        case .double: "a number"
        case .string: "a string"
        case .array: "an array"
        case .object: "an object"
        }
    }

    fileprivate func equals(_ other: JSON) -> Bool {
        switch (value, other.value) {
        case (.null, .null): return true
        case (.bool(let left), .bool(let right)): return left == right
        case (.string(let left), .string(let right)): return left == right
        case (.array(let left), .array(let right)):
            return left.count == right.count && zip(left, right).allSatisfy { $0.equals($1) }
        case (.object(let left), .object(let right)):
            let values = Dictionary(right.map { ($0.key, $0.value) }, uniquingKeysWith: { _, last in last })
            return left.count == right.count && left.allSatisfy { values[$0.key]?.equals($0.value) == true }
        default:
            guard let number, let otherNumber = other.number else { return false }
            return number == otherNumber
        }
    }

    /// A short form for messages, because a value can be very long.
    fileprivate var shortText: String {
        switch value {
        case .array, .object: kindName
        case .string(let text) where text.unicodeScalars.count > 100:
            JSON(.string(String(text.unicodeScalars.prefix(100)) + "…"), offset: offset).text
        default: text
        }
    }
}
