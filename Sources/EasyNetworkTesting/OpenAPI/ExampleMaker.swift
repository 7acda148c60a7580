import EasyNetworkOpenAPI
import Foundation

/// Finds or creates values for a document's schemas.
struct ExampleMaker {
    let document: OpenAPIDocument

    /// - Parameter name: The name of one of several examples. With `nil` or an unknown name, the first one is used.
    /// - Returns: An example, or a value created from the schema. `nil` if there is neither an example nor a schema, or
    ///   if each value would be endless or too large.
    func example(of media: OpenAPIContent.Media, named name: String?) -> JSON? {
        if let examples = media.json["examples"]?.members, let first = examples.first {
            let chosen = examples.first { $0.key == name } ?? first
            if let value = try? document.resolve(chosen.value).json["value"] { return value }
        }
        if let example = media.json["example"] { return example }
        var run = ExampleRun(document: document)
        return media.schema.flatMap { run.value(of: $0, inside: [], share: 1_000, depth: 0) }
    }
}

/// The creation of one value, in bounded time and size.
private struct ExampleRun {
    let document: OpenAPIDocument
    /// The number of values that may still be created.
    private var left = 20_000

    private static let maximumDepth = 64

    init(document: OpenAPIDocument) { self.document = document }

    /// - Parameters:
    ///   - open: The references that lead to this schema.
    ///   - share: The number of optional values that the result may have. The members of an object divide it, so that
    ///     each receives a part.
    /// - Returns: `nil` if the value would contain itself or be too large.
    mutating func value(of json: JSON, inside open: Set<String>, share: Int, depth: Int) -> JSON? {
        guard depth < Self.maximumDepth, left > 0 else { return nil }
        left -= 1
        if let reference = json["$ref"]?.string {
            var open = open
            guard open.insert(reference).inserted, let found = try? document.resolve(json).json else { return nil }
            return value(of: found, inside: open, share: share, depth: depth + 1)
        }
        let schema = OpenAPISchema(json)
        func make(_ value: JSON.Value) -> JSON { JSON(value, offset: json.offset) }
        if let example = json["example"] ?? json["examples"]?.elements?.first ?? json["default"] {
            return spend(example) ? example : nil
        }
        if let value = schema.values?.first { return spend(value) ? value : nil }
        if let parts = schema.parts {
            let each = share / (parts.count + 1)
            let values = parts.map { value(of: $0, inside: open, share: each, depth: depth + 1) }
            return merged(values + [own(schema, open, each, depth)])
        }
        if let alternatives = schema.alternatives, schema.properties.isEmpty {
            for alternative in alternatives {
                let found = value(of: alternative, inside: open, share: share, depth: depth + 1)
                if let found, !found.isNull { return found }
            }
            return make(.null)
        }
        switch schema.kinds.first {
        case nil: return schema.isNullable ? make(.null) : make(.object([]))
        case .null: return make(.null)
        case .boolean: return make(.bool(true))
        case .integer: return make(ExampleNumber(schema).integer)
        case .number: return make(.double(ExampleNumber(schema).double))
        case .string:
            let text = ExampleText(schema).text
            left -= text.utf8.count / 64
            return make(.string(text))
        case .array: return array(schema, open, share, depth)
        case .object: return own(schema, open, share, depth)
        }
    }

    private mutating func array(_ schema: OpenAPISchema, _ open: Set<String>, _ share: Int, _ depth: Int) -> JSON? {
        let least = max(schema.json["minItems"]?.integer ?? 0, 0)
        let count = min(max(least, share > 0 ? 1 : 0), max(schema.json["maxItems"]?.integer ?? .max, least))
        let before = left
        guard count > 0, let items = schema.items else {
            let some = JSON(.string("text"), offset: schema.json.offset)
            let elements = count <= left ? Array(repeating: some, count: least) : []
            left -= elements.count
            return JSON(.array(elements), offset: schema.json.offset)
        }
        guard let element = value(of: items, inside: open, share: share / count, depth: depth + 1) else {
            return least == 0 ? JSON(.array([]), offset: schema.json.offset) : nil
        }
        // The element is repeated, so its cost counts for each copy.
        let (cost, isTooMuch) = (before - left).multipliedReportingOverflow(by: count)
        guard !isTooMuch, cost < before else {
            left = 0
            return nil
        }
        left = before - cost
        var elements = Array(repeating: element, count: count)
        if schema.json["uniqueItems"]?.bool == true, count > 1 {
            let values = (try? document.resolve(items).json).flatMap { OpenAPISchema($0).values } ?? []
            for index in 1..<count { elements[index] = index < values.count ? values[index] : other(element, index) }
        }
        return JSON(.array(elements), offset: schema.json.offset)
    }

    /// Returns a value that differs from a created one and usually fits the same schema.
    private func other(_ value: JSON, _ index: Int) -> JSON {
        switch value.value {
        case .integer(let number): JSON(.integer(number &+ index), offset: value.offset)
        case .double(let number): JSON(.double(number + Double(index)), offset: value.offset)
        case .string(let text): JSON(.string("\(text)\(index + 1)"), offset: value.offset)
        default: value
        }
    }

    /// Returns an object with the schema's own properties. Returns `nil` if it cannot be created, for example because a
    /// required property has no possible value.
    private mutating func own(_ schema: OpenAPISchema, _ open: Set<String>, _ share: Int, _ depth: Int) -> JSON? {
        var members: [(key: String, value: JSON)] = []
        let properties = schema.properties.filter { $0.value["writeOnly"]?.bool != true }
        let each = share / max(properties.count, 1)
        for (key, json) in properties {
            let isRequired = schema.required.contains(key)
            let resolved = (try? document.resolve(json).json).map(OpenAPISchema.init)
            if !isRequired, each == 0, resolved?.isCompound != false { continue }
            if let value = value(of: json, inside: open, share: each, depth: depth + 1) {
                members.append((key, value))
            } else if isRequired {
                guard resolved?.isNullable == true else { return nil }
                members.append((key, JSON(.null, offset: json.offset)))
            }
        }
        let missing = max(schema.json["minProperties"]?.integer ?? 0, 0) - members.count
        if missing > 0, let additional = schema.additional {
            guard missing <= left else { return nil }
            for index in 1...missing {
                guard let value = value(of: additional, inside: open, share: 0, depth: depth + 1) else { return nil }
                members.append(("key\(index)", value))
            }
        }
        return JSON(.object(members), offset: schema.json.offset)
    }

    private func merged(_ values: [JSON?]) -> JSON? {
        let found = values.compactMap { $0 }
        let members = found.compactMap(\.members)
        guard members.count == found.count else { return found.first { $0.members == nil } }
        var (result, places): ([(key: String, value: JSON)], [String: Int]) = ([], [:])
        for (key, value) in members.joined() {
            if let place = places[key] {
                result[place].value = value
            } else {
                places[key] = result.count
                result.append((key, value))
            }
        }
        return JSON(.object(result), offset: found.first?.offset ?? 0)
    }

    /// Returns whether a value of the document is small enough to be a part of another value.
    private mutating func spend(_ value: JSON) -> Bool {
        var next = [value]
        while left > 0, let value = next.popLast() {
            left -= 1 + (value.string?.utf8.count ?? 0) / 64
            next += value.elements ?? value.members?.map(\.value) ?? []
        }
        return left > 0
    }
}

/// A number within the limits of a schema.
private struct ExampleNumber {
    private var (least, most) = (-Double.infinity, Double.infinity)
    private var (isOpenBelow, isOpenAbove) = (false, false)
    private let step: Double?

    init(_ schema: OpenAPISchema) {
        let json = schema.json
        if let limit = json["minimum"]?.number {
            (least, isOpenBelow) = (limit, json["exclusiveMinimum"]?.bool == true)
        }
        if let limit = json["maximum"]?.number { (most, isOpenAbove) = (limit, json["exclusiveMaximum"]?.bool == true) }
        if let limit = json["exclusiveMinimum"]?.number, limit >= least { (least, isOpenBelow) = (limit, true) }
        if let limit = json["exclusiveMaximum"]?.number, limit <= most { (most, isOpenAbove) = (limit, true) }
        step = json["multipleOf"]?.number.flatMap { $0 > 0 ? $0 : nil }
    }

    private func fits(_ number: Double) -> Bool {
        (isOpenBelow ? number > least : number >= least) && (isOpenAbove ? number < most : number <= most)
    }

    /// 1, or the whole number nearest to it within the limits. If there is no whole number between the limits, one that
    /// does not fit.
    var integer: JSON.Value {
        var number = min(max(1, least.rounded(.up)), most.rounded(.down))
        if isOpenBelow, number <= least { number = max(least.rounded(.down) + 1, number) }
        if isOpenAbove, number >= most { number = min(most.rounded(.up) - 1, number) }
        if let step, step == step.rounded() {
            let multiple = (number / step).rounded(.up) * step
            number = fits(multiple) ? multiple : (number / step).rounded(.down) * step
        }
        if let integer = Int(exactly: number) { return .integer(integer) }
        return .double(fits(number) ? number : number < 0 ? most.nextDown : least.nextUp)
    }

    var double: Double {
        var candidates = [1.5, least + 0.5, most - 0.5, (least + most) / 2, least, most, least.nextUp, most.nextDown]
        if let step {
            candidates = candidates.flatMap { [($0 / step).rounded(.up) * step, ($0 / step).rounded(.down) * step] }
        }
        return candidates.first { $0.isFinite && fits($0) } ?? 1.5
    }
}

/// A string that has the format, the length and the pattern of a schema.
private struct ExampleText {
    let text: String

    init(_ schema: OpenAPISchema) {
        let json = schema.json
        let least = min(max(json["minLength"]?.integer ?? 0, 0), 10_000)
        let most = max(json["maxLength"]?.integer ?? .max, 0)
        if let pattern = json["pattern"]?.string, let text = PatternText.text(of: pattern),
            text.count >= least, text.count <= most, Pattern(pattern)?.matches(text).result == true
        {
            self.text = text
            return
        }
        let texts = [
            "date-time": "2026-07-01T12:00:00Z", "date": "2026-07-01", "time": "12:00:00Z", "email": "ada@example.com",
            "uri": "https://example.com/", "uuid": "6F9619FF-8B86-4D01-B42D-00CF4FC964FF", "byte": "dGV4dA==",
            "ipv4": "192.0.2.1", "ipv6": "2001:db8::1", "hostname": "example.com", "decimal": "1.5",
        ]
        var text = texts[schema.format] ?? "text"
        if schema.format == "email", text.count > most { text = "a@b.c" }
        let padded = text.padding(toLength: max(text.count, least), withPad: "x", startingAt: 0)
        self.text = String(padded.prefix(most))
    }
}
