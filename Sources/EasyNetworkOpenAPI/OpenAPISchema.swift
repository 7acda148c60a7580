import Foundation

/// The rules of a schema for its values. The properties hide the differences between OpenAPI 3.0 and 3.1.
///
/// The JSON is the schema itself: resolve a reference first.
package struct OpenAPISchema: Sendable {
    package enum Kind: String, Sendable { case null, boolean, integer, number, string, array, object }

    package let json: JSON

    package init(_ json: JSON) { self.json = json }

    /// The kinds of the schema's values, without null. Empty if the schema does not specify any.
    package var kinds: [Kind] {
        var names = json["type"]?.elements?.compactMap(\.string) ?? []
        if let name = json["type"]?.string { names = [name] }
        let kinds = names.compactMap(Kind.init).filter { $0 != .null }
        if !kinds.isEmpty { return kinds }
        // Many documents omit a type that is clear from other keys.
        if json["properties"] != nil || json["additionalProperties"] != nil || json["required"] != nil {
            return [.object]
        }
        if json["items"] != nil || json["prefixItems"] != nil { return [.array] }
        if let values { return Self.kinds(of: values) }
        return []
    }

    private static func kinds(of values: [JSON]) -> [Kind] {
        let kinds = values.filter { !$0.isNull }.map { value -> Kind in
            switch value.value {
            case .null: .null
            case .bool: .boolean
            case .integer: .integer
            case .double: .number
            case .string: .string
            case .array: .array
            case .object: .object
            }
        }
        return kinds.reduce(into: []) { if !$0.contains($1) { $0.append($1) } }
    }

    /// Whether null is a possible value.
    package var isNullable: Bool {
        json["nullable"]?.bool == true || json["type"]?.string == "null"
            || json["type"]?.elements?.contains { $0.string == "null" } == true
            || json["enum"]?.elements?.contains(where: \.isNull) == true && json["type"]?.string == nil
    }

    /// Whether null is the only possible value.
    package var isNull: Bool {
        json["type"]?.string == "null" || json["enum"]?.elements?.allSatisfy(\.isNull) == true
            || json["const"]?.isNull == true
    }

    /// The possible values if they are listed; otherwise `nil`.
    package var values: [JSON]? { json["enum"]?.elements ?? json["const"].map { [$0] } }

    package var format: String { json["format"]?.string ?? "" }
    package var properties: [(key: String, value: JSON)] { json["properties"]?.members ?? [] }
    package var required: Set<String> { Set((json["required"]?.elements ?? []).compactMap(\.string)) }
    package var items: JSON? { json["items"] }

    /// The schema of the members that have no name in the document; `nil` if there are none.
    package var additional: JSON? {
        guard let schema = json["additionalProperties"] else { return nil }
        return schema.bool == false ? nil : schema
    }

    /// The schemas of `oneOf` or `anyOf`.
    package var alternatives: [JSON]? { json["oneOf"]?.elements ?? json["anyOf"]?.elements }
    package var parts: [JSON]? { json["allOf"]?.elements }

    /// Whether the values can have parts, or the schema consists of other schemas.
    package var isCompound: Bool {
        parts != nil || alternatives != nil || kinds.contains(.array) || kinds.contains(.object)
    }
}
