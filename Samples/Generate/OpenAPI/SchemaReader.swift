import EasyNetworkOpenAPI
import Foundation

/// Finds the Swift types for a document's schemas.
struct SchemaReader {
    /// The place for a declaration.
    struct Scope {
        /// The names of types that a type in this scope must not hide.
        var taken: TypeNames
        /// Whether the types belong to a request's body and to nothing else.
        var isBody = false
        var declarations: [Declaration] = []
    }

    /// The names of the types in a scope and in the scopes around it.
    struct TypeNames {
        /// The names of the surrounding scopes. All scopes share these sets, because a document can have very many
        /// names.
        private let outer: [Set<String>]
        private var own: Set<String>

        init(_ own: Set<String> = [], in outer: [Set<String>] = []) { (self.own, self.outer) = (own, outer) }

        func contains(_ name: String) -> Bool { own.contains(name) || outer.contains { $0.contains(name) } }
        mutating func insert(_ name: String) { own.insert(name) }
        mutating func remove(_ name: String) { own.remove(name) }

        func inside(_ name: String) -> TypeNames { TypeNames([name], in: outer + [own]) }
    }

    let document: OpenAPIDocument
    /// The names of the types of named schemas.
    let names: [String: String]
    /// The kinds of the named schemas' types, once ``components()`` has found them.
    private(set) var kinds: [String: Declaration.Kind] = [:]
    /// The parts that could not be read, each with its place.
    private(set) var notes: [InputError] = []
    /// The named schemas that are part of a body.
    private let sent: Set<String>
    private let objects: FlatObjects
    /// The references that are being read inline.
    private var open: Set<String> = []
    /// The nesting depth of the schema that is being read.
    private var depth = 0
    /// The number of schemas that may still be read. A schema without a component name is read again at every reference
    /// to it.
    private var left: Int
    /// Whether a schema was skipped.
    private var isCut = false

    /// The largest depth. Deeper schemas could overflow the stack.
    private static let maximumDepth = 100

    init(_ document: OpenAPIDocument) {
        self.document = document
        objects = FlatObjects(document)
        left = 2_000 + document.data.count / 2
        var taken: Set<String> = []
        names = Dictionary(
            document.schemas.map { ($0.key, Name.unique(Name.type($0.key, limit: nil), &taken)) },
            uniquingKeysWith: { first, _ in first }
        )
        sent = Self.sent(document)
    }

    /// Returns the named schemas that request bodies refer to, directly or through others.
    private static func sent(_ document: OpenAPIDocument) -> Set<String> {
        var (found, next): (Set<String>, [JSON]) = (
            [],
            document.operations.compactMap { try? $0.result.get() }.flatMap {
                $0.body?.media.compactMap(\.schema) ?? []
            }
        )
        while let json = next.popLast() {
            switch json.value {
            case .array(let elements): next += elements
            case .object(let members):
                next += members.map(\.value)
                let reference = json["$ref"]?.string
                if let name = document.component(reference), found.insert(name).inserted,
                    let schema = document.schema(named: name)
                {
                    next.append(schema)
                }
            default: break
            }
        }
        return found
    }

    mutating func note(_ message: String, at json: JSON) {
        notes.append(InputError(message: message, offset: json.offset))
    }

    /// Returns the declarations of all named schemas.
    mutating func components() -> [Declaration] {
        var scope = Scope(taken: TypeNames(in: [Set(names.values)]))
        for (key, json) in document.schemas {
            guard let name = names[key] else { continue }
            scope.isBody = false
            let count = scope.declarations.count
            let type = type(of: json, as: .component(name, isSent: sent.contains(key)), in: &scope)
            if !scope.declarations[count...].contains(where: { $0.name == name }) {
                let comment = Comment(json["description"]?.string)
                scope.declarations.append(Declaration(name: name, comment: comment, kind: .alias(type.unwrapped)))
            }
        }
        kinds = Dictionary(scope.declarations.map { ($0.name, $0.kind) }, uniquingKeysWith: { _, last in last })
        return scope.declarations
    }

    // MARK: - Types

    enum Target {
        /// The type of a named schema.
        case component(String, isSent: Bool)
        /// A type that is named after its place: a property, an element, a parameter or a body.
        case nested(String)

        /// Returns the target for a nested value: the value of a key, or an element.
        func inner(_ hint: String) -> Target {
            switch self {
            case .component(let name, _): .nested(name + Name.type(hint, limit: nil))
            case .nested(let name): .nested(name)
            }
        }
    }

    mutating func type(of json: JSON, as target: Target, in scope: inout Scope) -> SwiftType {
        guard depth < Self.maximumDepth, left > 0 else {
            noteCut(at: json)
            return .any
        }
        (depth, left) = (depth + 1, left - 1)
        defer { depth -= 1 }
        if let reference = json["$ref"]?.string { return type(of: reference, json, as: target, in: &scope) }
        let schema = OpenAPISchema(json)
        let type = plainType(of: schema, as: target, in: &scope)
        if objects.isCut { noteCut(at: json) }
        // `JSONValue` has a case for null.
        return schema.isNullable && type != .any ? type.asOptional : type
    }

    private mutating func noteCut(at json: JSON) {
        if !isCut {
            note("too many or too deeply nested schemas: from here on, some are not read completely", at: json)
        }
        isCut = true
    }

    private mutating func type(
        of reference: String,
        _ json: JSON,
        as target: Target,
        in scope: inout Scope
    ) -> SwiftType {
        do throws(InputError) {
            let (found, last) = try document.resolve(json)
            let isNullable = OpenAPISchema(found).isNullable
            for candidate in [reference, last ?? reference] {
                guard let name = document.component(candidate).flatMap({ names[$0] }) else { continue }
                return isNullable ? .optional(.named(name)) : .named(name)
            }
            guard open.insert(reference).inserted else {
                note("\"\(reference)\" contains itself and has no name, so it becomes a JSONValue", at: json)
                return .any
            }
            defer { open.remove(reference) }
            return type(of: found, as: target, in: &scope)
        } catch {
            notes.append(InputError(message: error.message + ": the value is a JSONValue", offset: error.offset))
            return .any
        }
    }

    private mutating func plainType(of schema: OpenAPISchema, as target: Target, in scope: inout Scope) -> SwiftType {
        if schema.isNull || schema.json.bool != nil { return .any }
        if let parts = schema.parts {
            let telling = parts.filter(isTelling)
            if telling.count == 1, schema.properties.isEmpty, schema.alternatives == nil {
                // The schema's own description and other keys belong to the property.
                return type(of: telling[0], as: target, in: &scope)
            }
            if let object = objects.object(schema.json) { return structure(object, schema, as: target, in: &scope) }
            if let first = telling.first { return type(of: first, as: target, in: &scope) }
        }
        if let alternatives = schema.alternatives {
            let telling = alternatives.filter(isTelling)
            // Next to properties, alternatives often only say which of them are required.
            if !schema.properties.isEmpty, let object = objects.object(schema.json) {
                return structure(object, schema, as: target, in: &scope)
            }
            if !telling.isEmpty { return union(telling, schema, as: target, in: &scope) }
        }
        if let values = schema.values { return type(of: values, schema, as: target, in: &scope) }
        switch schema.kinds.count {
        case 0: return .any
        case 1: return type(of: schema.kinds[0], schema, as: target, in: &scope)
        default:
            let cases = schema.kinds.map { ($0, type(of: $0, schema, as: target.inner($0.rawValue), in: &scope)) }
            return union(cases.map { (nil, $0.1) }, schema, as: target, in: &scope)
        }
    }

    /// Returns whether a schema says more than that there is a value, or that it is null.
    private func isTelling(_ json: JSON) -> Bool {
        if json["$ref"] != nil { return true }
        let schema = OpenAPISchema(json)
        if schema.isNull || json.bool != nil { return false }
        return !schema.kinds.isEmpty && (schema.kinds != [.object] || json["type"] != nil || !schema.properties.isEmpty)
            || schema.parts != nil || schema.alternatives?.contains(where: isTelling) == true
    }

    private mutating func type(
        of kind: OpenAPISchema.Kind,
        _ schema: OpenAPISchema,
        as target: Target,
        in scope: inout Scope
    ) -> SwiftType {
        switch kind {
        case .null: return .any
        case .boolean: return .named("Bool")
        case .integer: return .named("Int")
        case .number: return .named(schema.format == "decimal" ? "Decimal" : "Double")
        case .string:
            let types = ["date-time": "Date", "uri": "URL", "uuid": "UUID", "byte": "Data"]
            return .named(types[schema.format] ?? "String")
        case .array:
            guard let items = schema.items else { return .array(.any) }
            let inner: Target =
                if case .nested(let name) = target { .nested(Name.singular(name)) } else { target.inner("element") }
            return .array(type(of: items, as: inner, in: &scope))
        case .object:
            if let object = objects.object(schema.json), !object.properties.isEmpty {
                return structure(object, schema, as: target, in: &scope)
            }
            guard let additional = schema.additional, additional.members?.isEmpty == false else {
                return .dictionary(.any)
            }
            let inner: Target =
                if case .nested(let name) = target { .nested(Name.singular(name)) } else { target.inner("value") }
            return .dictionary(type(of: additional, as: inner, in: &scope))
        }
    }

    // MARK: - Declarations

    /// Returns the name of a new declaration.
    private func name(_ target: Target, in scope: inout Scope) -> String {
        switch target {
        case .component(let name, _): return name
        case .nested(let hint):
            let name = Name.type(hint, isNested: true, limit: nil)
            let unique = Name.unique(
                scope.taken.contains(name) ? Name.longer(name) : name,
                isTaken: scope.taken.contains
            )
            scope.taken.insert(unique)
            return unique
        }
    }

    private func type(
        of values: [JSON],
        _ schema: OpenAPISchema,
        as target: Target,
        in scope: inout Scope
    ) -> SwiftType {
        let values = values.filter { !$0.isNull }
        var taken: Set<String> = ["rawValue"]
        var cases: [(name: String, literal: String)] = []
        var (raw, known): (Set<String>, Set<String>) = ([], [])
        for value in values {
            switch value.value {
            case .string(let text):
                raw.insert("String")
                if known.insert(text.literal).inserted {
                    cases.append((Name.unique(Name.property(text, limit: nil), &taken), text.literal))
                }
            case .integer(let number):
                raw.insert("Int")
                let name = number < 0 ? "minus\(number.magnitude)" : "_\(number)"
                if known.insert("\(number)").inserted { cases.append((Name.unique(name, &taken), "\(number)")) }
            case .bool: raw.insert("Bool")
            case .double: raw.insert("Double")
            default: raw.insert("JSONValue")
            }
        }
        guard raw.count == 1, let type = raw.first else { return raw == ["Int", "Double"] ? .named("Double") : .any }
        guard type == "String" || type == "Int" else { return .named(type) }
        let name = name(target, in: &scope)
        let comment = Comment(schema.json["description"]?.string)
        scope.declarations.append(Declaration(name: name, comment: comment, kind: .values(cases, raw: type)))
        return .named(name)
    }

    private mutating func structure(
        _ object: FlatObject,
        _ schema: OpenAPISchema,
        as target: Target,
        in scope: inout Scope
    ) -> SwiftType {
        if object.properties.isEmpty { return .dictionary(.any) }
        let name = name(target, in: &scope)
        var inner = Scope(taken: scope.taken.inside(name), isBody: scope.isBody)
        var isSent = scope.isBody
        if case .component(_, let sent) = target { isSent = sent }
        var taken: Set<String> = ["hashValue", "hash", "encode", "additionalProperties"]
        var properties: [Declaration.Property] = []
        for (key, json) in object.properties {
            var type = type(of: json, as: .nested(key), in: &inner)
            let isRequired = object.required.contains(key)
            let isWritten = isRequired && type.isOptional && isSent
            // A property that only the server sets is missing in a request.
            let isMissing = !isRequired || isSent && json["readOnly"]?.bool == true
            // In a body, null can mean to remove a value, and a missing key to keep it.
            if isMissing { type = scope.isBody && type.isOptional ? .optional(type) : type.asOptional }
            let property = Declaration.Property(
                key: key,
                name: Name.unique(Name.property(key, limit: nil), &taken),
                type: type,
                comment: Comment(json["description"]?.string, isDeprecated: json["deprecated"]?.bool == true),
                writesNull: isWritten && !isMissing
            )
            properties.append(property)
        }
        var additional: SwiftType?
        if let schema = object.additional {
            additional = schema.members?.isEmpty == false ? type(of: schema, as: .nested("Value"), in: &inner) : .any
        }
        let declaration = Declaration(
            name: name,
            comment: Comment(
                schema.json["description"]?.string,
                isDeprecated: schema.json["deprecated"]?.bool == true
            ),
            kind: .structure(properties, additional: additional),
            nested: inner.declarations
        )
        scope.declarations.append(declaration)
        return .named(name)
    }

    // MARK: - Unions

    private mutating func union(
        _ alternatives: [JSON],
        _ schema: OpenAPISchema,
        as target: Target,
        in scope: inout Scope
    ) -> SwiftType {
        if alternatives.count == 1 { return nullable(type(of: alternatives[0], as: target, in: &scope), schema) }
        // Several lists of strings become one.
        let resolved = alternatives.map { OpenAPISchema((try? document.resolve($0).json) ?? $0) }
        if resolved.allSatisfy({ $0.kinds == [.string] && $0.format.isEmpty }) {
            guard resolved.allSatisfy({ $0.values != nil }) else { return nullable(.named("String"), schema) }
            return nullable(type(of: resolved.flatMap { $0.values ?? [] }, schema, as: target, in: &scope), schema)
        }
        let name: String? = if case .component(let name, _) = target { name } else { nil }
        var inner = Scope(taken: scope.taken, isBody: scope.isBody)
        let union = name ?? self.name(target, in: &inner)
        inner.taken.insert(union)
        let types = alternatives.enumerated().map { index, json -> (JSON?, SwiftType) in
            let hint = json["title"]?.string ?? resolved[index].kinds.first?.rawValue ?? "value"
            return (json, type(of: json, as: .nested(hint), in: &inner))
        }
        return self.union(types, schema, named: union, inner, in: &scope)
    }

    private mutating func union(
        _ types: [(JSON?, SwiftType)],
        _ schema: OpenAPISchema,
        as target: Target,
        in scope: inout Scope
    ) -> SwiftType {
        let name = name(target, in: &scope)
        return union(types, schema, named: name, Scope(taken: scope.taken.inside(name)), in: &scope)
    }

    private func nullable(_ type: SwiftType, _ schema: OpenAPISchema) -> SwiftType {
        let hasNull = schema.alternatives?.contains { alternative in
            OpenAPISchema((try? document.resolve(alternative).json) ?? alternative).isNull
        }
        return hasNull == true && type != .any ? type.asOptional : type
    }

    /// - Parameter inner: The scope of the declarations inside the union.
    private mutating func union(
        _ types: [(json: JSON?, type: SwiftType)],
        _ schema: OpenAPISchema,
        named name: String,
        _ inner: Scope,
        in scope: inout Scope
    ) -> SwiftType {
        var known: Set<SwiftType> = [.any]
        var members = types.filter { known.insert($0.type.unwrapped).inserted }
        let isNullable = types.contains { $0.type.isOptional }
        if members.isEmpty { return .any }
        if members.count == 1, types.allSatisfy({ $0.type.unwrapped == members[0].type.unwrapped }),
            inner.declarations.isEmpty
        {
            return isNullable ? members[0].type.asOptional : nullable(members[0].type, schema)
        }
        let key = discriminator(members.compactMap(\.json), schema)
        let ranks = members.map { member in member.json.map { rank($0) } ?? 0 }
        let order = members.indices.sorted { (ranks[$0], $1) > (ranks[$1], $0) }
        members = order.map { members[$0] }
        var taken: Set<String> = ["other"]
        let cases = members.map { json, type in
            let name = Name.unique(Name.property(caseName(type.unwrapped), limit: nil), &taken)
            return Declaration.Case(name: name, type: type.unwrapped, marks: key.flatMap { json.map($0.marks) } ?? [])
        }
        let comment = Comment(schema.json["description"]?.string)
        scope.declarations.append(
            Declaration(name: name, comment: comment, kind: .union(cases, key: key?.name), nested: inner.declarations)
        )
        scope.taken.insert(name)
        return isNullable ? .optional(.named(name)) : nullable(.named(name), schema)
    }

    private func caseName(_ type: SwiftType) -> String {
        switch type {
        case .named("Int"): "integer"
        case .named("Double"), .named("Decimal"): "number"
        case .named(let name): name
        case .array(let element): caseName(element.unwrapped) + "s"
        case .dictionary: "dictionary"
        case .optional(let type): caseName(type)
        }
    }

    /// Returns the rank of an alternative. Alternatives with more requirements are tried first, and a plain string
    /// last.
    private func rank(_ json: JSON) -> Int {
        guard let found = try? document.resolve(json).json else { return 0 }
        let schema = OpenAPISchema(found)
        if schema.kinds == [.string] { return schema.values == nil && schema.format.isEmpty ? -2 : -1 }
        if schema.kinds == [.number] { return -1 }
        guard let object = objects.object(found) else { return 0 }
        return 1_000 * object.required.count + object.properties.count
    }

    /// Returns the key that distinguishes several objects, and a closure that returns its values for each of them.
    private func discriminator(_ members: [JSON], _ schema: OpenAPISchema) -> (name: String, marks: (JSON) -> [String])?
    {
        if let discriminator = schema.json["discriminator"], let name = discriminator["propertyName"]?.string {
            let mapping = discriminator["mapping"]?.members ?? []
            let keys = Dictionary(grouping: mapping) { $0.value.string ?? "" }.mapValues { $0.map(\.key) }
            return (
                name,
                { json in
                    guard let reference = json["$ref"]?.string else { return [] }
                    let component = document.component(reference)
                    let marks = Set([reference, component ?? reference]).flatMap { keys[$0] ?? [] }.sorted()
                    return marks.isEmpty ? component.map { [$0] } ?? [] : marks
                }
            )
        }
        // Without a discriminator, use a key that has exactly one value in each object, and a different one in each.
        let found = members.compactMap { objects.object($0) }.filter { !$0.properties.isEmpty }
        guard found.count > 1 else { return nil }
        func mark(_ object: FlatObject, _ key: String) -> String? {
            guard object.required.contains(key), let json = object.schema(of: key),
                let values = (try? document.resolve(json).json).flatMap({ OpenAPISchema($0).values }), values.count == 1
            else { return nil }
            return values[0].string
        }
        for (key, _) in found[0].properties {
            let marks = found.compactMap { mark($0, key) }
            guard marks.count == found.count, Set(marks).count == marks.count else { continue }
            return (key, { json in objects.object(json).flatMap { mark($0, key) }.map { [$0] } ?? [] })
        }
        return nil
    }
}
