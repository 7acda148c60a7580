import EasyNetworkOpenAPI
import Foundation

/// Finds or makes values of a document's schemas.
struct ExampleMaker {
    let document: OpenAPIDocument

    /// - Parameter name: of one of several examples; nil, or a name that there is not, for the first.
    /// - Returns: nil if there is neither an example nor a schema.
    func example(of media: OpenAPIContent.Media, named name: String?) -> JSON? {
        if let examples = media.json["examples"]?.members, let first = examples.first {
            let chosen = examples.first { $0.key == name } ?? first
            if let value = try? document.resolve(chosen.value).json["value"] { return value }
        }
        if let example = media.json["example"] { return example }
        return media.schema.flatMap { value(of: $0, inside: []) }
    }

    /// - Parameter open: the references that lead here.
    /// - Returns: nil where a value would have itself as a part.
    private func value(of json: JSON, inside open: Set<String>) -> JSON? {
        var open = open
        if let reference = json["$ref"]?.string {
            guard open.insert(reference).inserted, let found = try? document.resolve(json).json else { return nil }
            return value(of: found, inside: open)
        }
        let schema = OpenAPISchema(json)
        func make(_ value: JSON.Value) -> JSON { JSON(value, offset: json.offset) }
        if let example = json["example"] ?? json["examples"]?.elements?.first ?? json["default"] { return example }
        if let value = schema.values?.first { return value }
        if let parts = schema.parts { return merged(parts.map { value(of: $0, inside: open) } + [own(schema, open)]) }
        if let alternatives = schema.alternatives, schema.properties.isEmpty {
            return alternatives.lazy.compactMap { self.value(of: $0, inside: open) }.first { !$0.isNull } ?? make(.null)
        }
        switch schema.kinds.first {
        case nil: return schema.isNullable ? make(.null) : make(.object([]))
        case .null: return make(.null)
        case .boolean: return make(.bool(true))
        case .integer: return make(.integer(integer(schema)))
        case .number: return make(.double(Double(integer(schema)) + 0.5))
        case .string: return make(.string(text(schema)))
        case .array:
            guard let items = schema.items, let element = value(of: items, inside: open) else {
                return make(.array([]))
            }
            let count = min(max(json["minItems"]?.integer ?? 1, 1), 100)
            return make(.array(Array(repeating: element, count: count)))
        case .object: return own(schema, open)
        }
    }

    /// The object of the schema's own properties; nil if it has none that it can have.
    private func own(_ schema: OpenAPISchema, _ open: Set<String>) -> JSON? {
        var members: [(key: String, value: JSON)] = []
        for (key, json) in schema.properties where json["writeOnly"]?.bool != true {
            if let value = value(of: json, inside: open) {
                members.append((key, value))
            } else if schema.required.contains(key) {
                let resolved = (try? document.resolve(json).json).map(OpenAPISchema.init)
                guard resolved?.isNullable == true else { return nil }
                members.append((key, JSON(.null, offset: json.offset)))
            }
        }
        return JSON(.object(members), offset: schema.json.offset)
    }

    private func merged(_ values: [JSON?]) -> JSON? {
        let found = values.compactMap { $0 }
        let members = found.compactMap(\.members)
        guard members.count == found.count else { return found.first { $0.members == nil } }
        var result: [(key: String, value: JSON)] = []
        for (key, value) in members.joined() {
            if let index = result.firstIndex(where: { $0.key == key }) {
                result[index].value = value
            } else {
                result.append((key, value))
            }
        }
        return JSON(.object(result), offset: found.first?.offset ?? 0)
    }

    private func integer(_ schema: OpenAPISchema) -> Int {
        let least = schema.json["minimum"]?.integer ?? schema.json["exclusiveMinimum"]?.integer.map { $0 + 1 } ?? 1
        return min(max(least, 1), schema.json["maximum"]?.integer ?? .max)
    }

    private func text(_ schema: OpenAPISchema) -> String {
        let texts = [
            "date-time": "2026-07-01T12:00:00Z", "date": "2026-07-01", "time": "12:00:00Z", "email": "ada@example.com",
            "uri": "https://example.com/", "uuid": "6F9619FF-8B86-4D01-B42D-00CF4FC964FF", "byte": "dGV4dA==",
            "ipv4": "192.0.2.1", "ipv6": "2001:db8::1", "hostname": "example.com", "decimal": "1.5",
        ]
        let text = texts[schema.format] ?? "text"
        let least = min(schema.json["minLength"]?.integer ?? 0, 10_000)
        let padded = text.padding(toLength: max(text.count, least), withPad: "x", startingAt: 0)
        return String(padded.prefix(max(schema.json["maxLength"]?.integer ?? .max, 0)))
    }
}
