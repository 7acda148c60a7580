import EasyNetworkOpenAPI
import Foundation

/// Says why a value of JSON is none of a schema.
struct SchemaCheck {
    let document: OpenAPIDocument
    /// Whether the value is a body: then what a server alone sets need not be there.
    var isRequest = false

    /// The reason with its place, behind the word for the whole: `.labels[0] is a number, not a string`; nil for a
    /// value that fits.
    func mismatch(_ value: JSON, _ json: JSON) -> String? {
        mismatch(value, json, at: "", depth: 0)
    }

    private func mismatch(_ value: JSON, _ json: JSON, at place: String, depth: Int) -> String? {
        guard depth < 128, let json = try? document.resolve(json).json else { return nil }
        if json.bool == false { return "\(place) is not allowed".trimmingCharacters(in: .whitespaces) }
        let schema = OpenAPISchema(json)
        func say(_ reason: String) -> String { place.isEmpty ? reason : "\(place) \(reason)" }
        if value.isNull, schema.isNullable { return nil }
        if let values = schema.values, !values.contains(where: { $0.equals(value) }) {
            return say("is \(value.text), not one of \(values.prefix(12).map(\.text).joined(separator: ", "))")
        }
        if !schema.kinds.isEmpty, json["type"] != nil || schema.values == nil, !schema.kinds.contains(where: value.isOf)
        {
            return say("is \(value.kindName), not \(schema.kinds.map(\.withArticle).joined(separator: " or "))")
        }
        if let reason = limits(value, schema) { return say(reason) }
        if let parts = schema.parts {
            for part in parts {
                if let reason = mismatch(value, part, at: place, depth: depth + 1) { return reason }
            }
        }
        if let alternatives = schema.alternatives {
            let reasons = alternatives.map { mismatch(value, $0, at: place, depth: depth + 1) }
            let count = reasons.count { $0 == nil }
            // That two fit is the document's weakness more often than the request's.
            if count == 0 {
                return say(
                    "is of none of \(alternatives.count) schemas; of the first: \(reasons.first.flatMap { $0 } ?? "")"
                )
            }
        }
        if let not = json["not"], mismatch(value, not, at: place, depth: depth + 1) == nil {
            return say("is not allowed")
        }
        switch value.value {
        case .array(let elements):
            guard let items = schema.items else { return nil }
            for (index, element) in elements.enumerated() {
                if let reason = mismatch(element, items, at: "\(place)[\(index)]", depth: depth + 1) { return reason }
            }
        case .object(let members):
            return self.members(members, schema, at: place, depth: depth)
        default: break
        }
        return nil
    }

    private func members(
        _ members: [(key: String, value: JSON)],
        _ schema: OpenAPISchema,
        at place: String,
        depth: Int
    ) -> String? {
        let properties = Dictionary(schema.properties.map { ($0.key, $0.value) }, uniquingKeysWith: { _, last in last })
        let keys = Set(members.map(\.key))
        for key in schema.required.subtracting(keys).sorted() {
            let property = properties[key].flatMap { try? document.resolve($0).json }
            if isRequest, property?["readOnly"]?.bool == true { continue }
            return "\(place.isEmpty ? "" : place + " ")has no \"\(key)\""
        }
        let isClosed =
            schema.json["additionalProperties"]?.bool == false && schema.parts == nil && schema.alternatives == nil
        for (key, value) in members {
            if let property = properties[key] {
                if let reason = mismatch(value, property, at: "\(place).\(key)", depth: depth + 1) { return reason }
            } else if isClosed {
                return "\(place.isEmpty ? "" : place + " ")has \"\(key)\", which the document does not"
            } else if let additional = schema.additional, additional.members != nil {
                if let reason = mismatch(value, additional, at: "\(place).\(key)", depth: depth + 1) { return reason }
            }
        }
        return nil
    }

    private func limits(_ value: JSON, _ schema: OpenAPISchema) -> String? {
        let json = schema.json
        switch value.value {
        case .string(let text):
            if let least = json["minLength"]?.integer, text.count < least {
                return "is shorter than \(least) characters"
            }
            if let most = json["maxLength"]?.integer, text.count > most { return "is longer than \(most) characters" }
            // A pattern of JavaScript that Swift does not read is no reason to refuse.
            if let pattern = json["pattern"]?.string, let regex = try? Regex(pattern), text.firstMatch(of: regex) == nil
            {
                return "does not match \(pattern)"
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
        case .array(let elements):
            if let least = json["minItems"]?.integer, elements.count < least {
                return "has fewer than \(least) elements"
            }
            if let most = json["maxItems"]?.integer, elements.count > most { return "has more than \(most) elements" }
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
        if let number, let otherNumber = other.number { return number == otherNumber }
        return text == other.text
    }
}
