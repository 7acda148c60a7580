import EasyNetworkOpenAPI

/// Writes endpoints as Swift code.
struct SwiftWriter {
    /// Whether structs have mappers. By default, they are `Decodable`.
    var usesMappers = false

    /// - Parameter baseURL: The base URL of the paths, for a comment.
    func text(of endpoints: [Endpoint], baseURL: String? = nil) -> String {
        var endpoints = endpoints
        var shapes = nameItems(of: &endpoints)
        var declarations: [[String]] = []
        for endpoint in endpoints {
            if let members = shapes.removeValue(forKey: endpoint.itemName)?.members {
                let model = Model(name: endpoint.itemName, members: members)
                declarations.append(structure(model, usesMappers ? "ParsedItem" : "Decodable"))
                if usesMappers { declarations.append(mapper(model, of: model.name)) }
            }
            declarations.append(request(endpoint))
        }
        func contains(_ text: String) -> Bool { declarations.joined().contains { $0.contains(text) } }
        if contains("JSONValue") { declarations.append([JSONValueSource.type]) }
        if contains("JSONValue($0)") || contains("JSONValue(json.") { declarations.append([JSONValueSource.mapping]) }
        let needsFoundation = contains("= Data") || contains("JSONDecoder")
        var parts = ["import EasyNetwork" + (needsFoundation ? "\nimport Foundation" : "")]
        if let baseURL { parts += Comment("The base URL is \(baseURL)").source("//") }
        parts += declarations.map { lines in
            // swift-format cannot break long string literals.
            let isWide = lines.count > 1 && lines.contains { $0.count > 120 }
            return (isWide ? "// swift-format-ignore\n" : "") + lines.joined(separator: "\n")
        }
        return parts.joined(separator: "\n\n") + "\n"
    }

    /// Gives requests and structs unique names. Structs that would have the same name and have the same keys become
    /// one.
    ///
    /// - Returns: The objects by the names of their structs.
    private func nameItems(of endpoints: inout [Endpoint]) -> [String: Shape] {
        var taken: Set<String> = []
        var shapes: [String: Shape] = [:]
        for index in endpoints.indices {
            var name: String { endpoints[index].itemName }
            if case .json(let answer, _) = endpoints[index].answer, let members = answer.members {
                let shape = Shape(kind: .object(members))
                if let known = shapes[name], known.keys == shape.keys {
                    shapes[name] = known.merged(with: shape)
                } else {
                    endpoints[index].itemName = Name.unique(taken.contains(name) ? Name.longer(name) : name, &taken)
                    taken.insert(name + "Mapper")
                    shapes[name] = shape
                }
            }
            endpoints[index].name = Name.unique(endpoints[index].name, &taken)
        }
        return shapes
    }

    // MARK: - Structs

    /// - Parameters:
    ///   - keyword: `var` for a value that the caller creates, so that optional properties can be left out.
    ///   - isNested: Whether the struct is inside a type that is not isolated, such as a request.
    private func structure(
        _ model: Model,
        _ conformance: String,
        keyword: String = "let",
        isNested: Bool = false
    ) -> [String] {
        // Responses are decoded in the background, even in modules with default main-actor isolation. A `ParsedItem` is
        // not isolated there.
        let isolation = isNested || conformance == "ParsedItem" ? "" : "nonisolated "
        let head = "\(isolation)struct \(model.name): \(conformance)"
        if model.properties.isEmpty { return [head + " {}"] }
        let properties = model.properties.map { property in
            let type = property.shape.type(object: property.nested?.name ?? "")
            return "\(keyword) \(Name.declared(property.name)): \(type)"
        }
        let nested = model.properties.compactMap(\.nested).map {
            structure($0, conformance, keyword: keyword, isNested: true)
        }
        let cases = model.properties.map { property in
            let key = property.key == property.name ? "" : " = " + property.key.literal
            return "case " + Name.declared(property.name) + key
        }
        let needsKeys = conformance != "ParsedItem" && model.properties.contains { $0.key != $0.name }
        let keys = needsKeys ? Lines.block("private enum CodingKeys: String, CodingKey {", [cases]) : []
        return Lines.block(head + " {", [properties] + nested + [keys])
    }

    // MARK: - Mappers

    /// - Parameter type: The struct with the structs around it, such as `User.Address`.
    private func mapper(_ model: Model, of type: String) -> [String] {
        let values = model.properties.map { property in
            let value = value(of: property.shape, key: property.key, mapper: property.nested?.name ?? "")
            return "    \(property.name): \(value)"
        }
        let lines = ["\(type)("] + values.dropLast().map { $0 + "," } + values.suffix(1) + [")"]
        let parse =
            values.isEmpty
            ? ["try process(json) { _ in \(type)() }"] : Lines.block("try process(json) { json in", [lines])
        let process = Lines.block("static func process(_ json: Any?) throws -> \(type) {", [parse])
        let nested = model.properties.compactMap(\.nested).map { mapper($0, of: "\(type).\($0.name)") }
        let isolation = type == model.name ? "nonisolated " : ""
        return Lines.block(
            "\(isolation)final class \(model.name)Mapper: ResponseMapper<\(type)>, ResponseMapperProtocol {",
            [process] + nested
        )
    }

    /// Returns an expression that reads a member of `json`.
    ///
    /// - Parameter mapper: The name of the object in the shape.
    private func value(of shape: Shape, key: String, mapper: String) -> String {
        let getter = "json.\(shape.isOptional ? "optional" : "required")(\(key.literal)"
        if !shape.needsMapping { return "try \(getter))" }
        return "try " + mapped(shape, "\(getter), as: \(Shape(kind: shape.kind).unmappedType).self)", mapper)
    }

    /// Returns an expression that makes items of `value`, which has the type ``Shape/unmappedType``.
    private func mapped(_ shape: Shape, _ value: String, _ mapper: String) -> String {
        if shape.isOptional { return "\(value).map { try \(mapped(Shape(kind: shape.kind), "$0", mapper)) }" }
        switch shape.kind {
        case .object: return "\(mapper)Mapper.process(\(value))"
        case .array(let element) where element.isObject: return "\(value).map(\(mapper)Mapper.process)"
        case .array(let element): return "\(value).map { try \(mapped(element.asElement, "$0", mapper)) }"
        default: return "JSONValue(\(value))"
        }
    }

    // MARK: - Requests

    private func request(_ endpoint: Endpoint) -> [String] {
        var stored: [String] = []
        var computed: [String] = []
        var sections: [[String]] = []
        var item = "Void"
        var method: [String] = []
        switch endpoint.answer {
        case .nothing: break
        case .json(let shape, _):
            item = shape.type(object: endpoint.itemName)
            if usesMappers, shape.needsMapping { method = itemMethod(shape, item, endpoint.itemName) }
            if !usesMappers, let members = shape.members, Model(name: endpoint.itemName, members: members).hasSnakeCase
            {
                method = decodingMethod(item)
            }
        case .other: item = "Data"
        }
        if method.isEmpty { stored.append("typealias Item = \(item)") }

        let path = endpoint.path.map { segment in
            switch segment {
            case .constant(let text): return text.escaped
            case .variable(let name, let type):
                stored.append("let \(name): \(type)")
                return "\\(\(name))"
            }
        }
        let query = (endpoint.constants.isEmpty ? "" : "?") + endpoint.constants.joined(separator: "&").escaped
        computed.append("var api: String { \"\(path.joined(separator: "/"))\(query)\" }")
        let hasName = ["POST", "PUT", "DELETE", "PATCH", "HEAD"].contains(endpoint.method)
        let name = hasName ? endpoint.method.lowercased() : "init(rawValue: \(endpoint.method.literal))"
        if endpoint.method != "GET" { computed.append("var method: NetworkService.Method { .\(name) }") }

        if !endpoint.parameters.isEmpty {
            let items = endpoint.parameters.map { parameter in
                let (name, isOptional) = (Name.declared(parameter.name), parameter.type.hasSuffix("?"))
                stored.append("\(isOptional ? "var" : "let") \(name): \(parameter.type)")
                return "\(parameter.key.literal): \(name)" + (isOptional ? " as Any" : "")
            }
            computed.append("var params: [String: Any]? { [\(items.joined(separator: ", "))] }")
            let isForm = ["POST", "PUT", "PATCH"].contains(endpoint.method)
            if isForm { computed.append("var query: NetworkService.QueryType { .path }") }
            let hasArrays = endpoint.parameters.contains { $0.type.hasPrefix("[") }
            let hasNulls = endpoint.parameters.contains { $0.type.hasSuffix("?") }
            let styles = (hasArrays ? ["arrayStyle: .repeated"] : []) + (hasNulls ? ["nullSuffix: nil"] : [])
            let encoder = "QueryEncoder(\(styles.joined(separator: ", ")))"
            if !styles.isEmpty {
                computed.append("var options: RequestOptions { RequestOptions(queryEncoder: \(encoder)) }")
            }
        }

        switch endpoint.body {
        case .nothing: break
        case .json(let shape, let type):
            stored.append("var payload: \(shape.type(object: "Payload"))")
            if let members = shape.members {
                let model = Model(name: "Payload", members: members)
                sections.append(structure(model, "Encodable", keyword: "var", isNested: true))
            }
            let body = shape.isOptional ? "payload.map { RequestBody.json($0) }" : ".json(payload)"
            computed.append("var body: RequestBody? { \(body) }")
            if !type.lowercased().hasPrefix("application/json") {
                computed.append("var headers: [String: String]? { [\"Content-Type\": \(type.literal)] }")
            }
        case .other: stored.append("var body: RequestBody?")
        }
        return Lines.block("struct \(endpoint.name): APIRequest {", [stored + computed] + sections + [method])
    }

    /// Returns a method that decodes with the struct's own keys. A decoder that converts keys would not find them.
    private func decodingMethod(_ type: String) -> [String] {
        Lines.block(
            "func item(from response: NetworkResponse) throws -> \(type) {",
            [["try response.decode(\(type).self, with: .json)"]]
        )
    }

    private func itemMethod(_ shape: Shape, _ type: String, _ mapper: String) -> [String] {
        var lines = shape.isOptional ? ["if response.body.isEmpty { return nil }"] : []
        switch shape.kind {
        case .object where shape.isObject: lines.append("try \(mapper)Mapper.process(response)")
        case .array(let element) where element.isObject && !shape.isOptional:
            lines.append("try ArrayResponseMapper.process(response, mapper: \(mapper)Mapper.process)")
        default:
            lines.append("let json = [\"item\": try response.json()]")
            lines.append("return " + value(of: shape, key: "item", mapper: mapper))
        }
        return Lines.block("func item(from response: NetworkResponse) throws -> \(type) {", [lines])
    }
}

extension Shape {
    fileprivate var isObject: Bool { keys != nil && !isOptional }

    /// Whether a mapper must do more than read Swift's own types.
    fileprivate var needsMapping: Bool {
        switch kind {
        case .unknown, .mixed, .object: true
        case .bool, .integer, .double, .string: false
        case .array(let element): element.needsMapping
        }
    }

    /// The type that a mapper reads before it makes items.
    fileprivate var unmappedType: String {
        let type =
            switch kind {
            case .object: "JSONObject"
            case .array(let element): "[\(element.asElement.unmappedType)]"
            default: "Any"
            }
        return type + (isOptional ? "?" : "")
    }
}
