import EasyNetworkOpenAPI

/// The members of an object and of all its parts.
struct FlatObject {
    private(set) var properties: [(key: String, schema: JSON)] = []
    private(set) var required: Set<String>
    private(set) var additional: JSON?
    private var places: [String: Int] = [:]

    init(_ schema: OpenAPISchema) {
        (required, additional) = (schema.required, schema.additional)
        for (key, json) in schema.properties { add(key, json) }
    }

    func schema(of key: String) -> JSON? { places[key].map { properties[$0].schema } }

    fileprivate mutating func merge(_ other: FlatObject, isOptional: Bool) {
        for (key, schema) in other.properties { add(key, schema) }
        if !isOptional { required.formUnion(other.required) }
        additional = other.additional ?? additional
    }

    private mutating func add(_ key: String, _ schema: JSON) {
        if let place = places[key] {
            if schema["$ref"] != nil || !OpenAPISchema(schema).kinds.isEmpty { properties[place].schema = schema }
        } else {
            places[key] = properties.count
            properties.append((key, schema))
        }
    }
}

/// Finds the flat objects of a document's schemas, each only once, because a schema can be a part of others in very
/// many ways.
final class FlatObjects {
    private let document: OpenAPIDocument
    /// The objects by the places of their schemas in the document; `nil` for a schema with a part that is not an
    /// object.
    private var known: [Int: FlatObject?] = [:]
    /// The objects of schemas that contain themselves. They depend on the schema for which ``object(_:)`` was called.
    private var circular: [Int: FlatObject?] = [:]
    /// The schemas that are being merged.
    private var open: Set<Int> = []
    private var isCircular = false
    /// The number of members that may still be copied.
    private var left: Int
    /// Whether an object was skipped because there are too many or it is too deep.
    private(set) var isCut = false

    private static let maximumDepth = 100

    init(_ document: OpenAPIDocument) {
        self.document = document
        left = 20_000 + document.data.count
    }

    /// Returns the flat object, or `nil` if the schema or a part of it is not an object.
    func object(_ json: JSON) -> FlatObject? {
        circular = [:]
        return find(json)
    }

    private func find(_ json: JSON) -> FlatObject? {
        guard let json = try? document.resolve(json).json else { return nil }
        let place = json.offset
        if let object = known[place] { return object }
        if let object = circular[place] {
            isCircular = true
            return object
        }
        guard open.count < Self.maximumDepth, left > 0 else {
            (isCut, isCircular) = (true, true)
            return nil
        }
        guard open.insert(place).inserted else {
            isCircular = true
            return nil
        }
        let wasCircular = isCircular
        isCircular = false
        let object = make(OpenAPISchema(json))
        open.remove(place)
        if isCircular { circular.updateValue(object, forKey: place) } else { known.updateValue(object, forKey: place) }
        isCircular = isCircular || wasCircular
        return object
    }

    private func make(_ schema: OpenAPISchema) -> FlatObject? {
        guard schema.kinds.isEmpty || schema.kinds == [.object], schema.values == nil else { return nil }
        var object = FlatObject(schema)
        left -= 1 + object.properties.count
        for part in schema.parts ?? [] {
            guard let part = find(part) else { return nil }
            left -= part.properties.count
            object.merge(part, isOptional: false)
        }
        let alternatives = schema.alternatives ?? []
        // The schema is the base of one of its alternatives, which is being merged. The alternatives say nothing about
        // the base's own members.
        if alternatives.contains(where: isOpen) {
            isCircular = true
            return object
        }
        for alternative in alternatives where !OpenAPISchema(alternative).isNull {
            guard let alternative = find(alternative) else { return nil }
            left -= alternative.properties.count
            object.merge(alternative, isOptional: true)
        }
        return object
    }

    private func isOpen(_ json: JSON) -> Bool {
        (try? document.resolve(json).json).map { open.contains($0.offset) } == true
    }
}
