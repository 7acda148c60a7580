import Foundation

/// An OpenAPI 3.0 or 3.1 document in JSON.
///
/// Each part is read when it is requested, so an error in one operation affects only that operation.
package struct OpenAPIDocument: Sendable {
    package let root: JSON
    /// The bytes of the document, for the places of errors. The work for a document is limited in proportion to its
    /// size.
    package let data: Data
    /// The schemas by name, which each reference looks up.
    private let schemasByName: [String: JSON]
    /// The names of the schemas with an `$id`, by that id.
    private let namesByID: [String: String]
    /// The other components, by the references to them.
    private let components: [String: JSON]
    /// The schemas with an `$anchor`, by the `$id` of the schema around them and by the anchor.
    private let anchors: [String: [String: JSON]]

    /// - Throws: An error for invalid JSON, a repeated key, YAML, or another format or version.
    package init(_ data: Data) throws(InputError) {
        root = try Self.json(data)
        self.data = data
        let schemas = root["components"]?["schemas"]?.members ?? []
        schemasByName = Dictionary(schemas.map { ($0.key, $0.value) }, uniquingKeysWith: { _, last in last })
        namesByID = Dictionary(
            schemas.compactMap { name, json in json["$id"]?.string.map { ($0, name) } },
            uniquingKeysWith: { first, _ in first }
        )
        var components: [String: JSON] = [:]
        for (section, json) in root["components"]?.members ?? [] {
            for (key, value) in json.members ?? [] { components["#/components/\(section)/\(key)"] = value }
        }
        self.components = components
        var anchors = ["": Self.anchors(in: root)]
        for (id, name) in namesByID { anchors[id] = schemasByName[name].map(Self.anchors) }
        self.anchors = anchors
        guard let version = root["openapi"]?.string else {
            let isSwagger = root["swagger"] != nil
            let message = isSwagger ? "this is Swagger 2.0: convert it to OpenAPI 3.0 first" : "\"openapi\" is missing"
            throw InputError(message: message, offset: root.offset)
        }
        guard version.hasPrefix("3.0") || version.hasPrefix("3.1") else {
            throw InputError(message: "OpenAPI \(version) is not supported; use 3.0 or 3.1", offset: root.offset)
        }
        guard root["paths"]?.members != nil || root["components"] != nil || root["webhooks"] != nil else {
            throw InputError(message: "the document has no paths", offset: root.offset)
        }
    }

    private static func json(_ data: Data) throws(InputError) -> JSON {
        do throws(InputError) {
            return try JSON.parse(data, hasUniqueKeys: true)
        } catch {
            let start = String(decoding: data.prefix(4_096), as: UTF8.self)
            guard start.contains(/(?m)^["']?(openapi|swagger)["']?\s*:/), !start.contains(/^\s*\{/) else { throw error }
            let message = "this is YAML; convert it to JSON first, for example by `yq -o json`"
            throw InputError(message: message, offset: 0)
        }
    }

    /// Returns the value that a reference names, or the value itself if it is not a reference.
    ///
    /// - Returns: The value, and the last reference that led to it.
    package func resolve(_ json: JSON) throws(InputError) -> (json: JSON, reference: String?) {
        var (result, last) = (json, String?.none)
        // A longer chain of references must be a cycle.
        for _ in 0..<64 {
            guard let reference = result["$ref"]?.string else { return (result, last) }
            last = reference
            result = try value(of: reference, offset: result.offset)
        }
        throw InputError(message: "the reference \"\(last ?? "")\" refers to itself", offset: json.offset)
    }

    /// - Parameter reference: A JSON Pointer in a fragment (RFC 6901, section 6), or the `$id` of a schema, optionally
    ///   followed by a pointer or by the `$anchor` of a schema inside (JSON Schema, sections 8.2.1 and 8.2.2).
    private func value(of reference: String, offset: Int) throws(InputError) -> JSON {
        if let name = component(reference), let schema = schemasByName[name] { return schema }
        if let component = components[reference] { return component }
        let parts = reference.split(separator: "#", maxSplits: 1, omittingEmptySubsequences: false)
        var result = root
        if let id = parts.first, !id.isEmpty {
            guard let name = namesByID[String(id)], let schema = schemasByName[name] else {
                throw InputError(message: "\"\(reference)\" is in another document", offset: offset)
            }
            result = schema
        }
        let fragment = parts.count > 1 ? String(parts[1]) : ""
        let pointer = fragment.removingPercentEncoding ?? fragment
        if !pointer.isEmpty, !pointer.hasPrefix("/") {
            if let schema = anchors[parts.first.map(String.init) ?? ""]?[pointer] { return schema }
            throw InputError(message: "there is no \"\(reference)\"", offset: offset)
        }
        for part in pointer.split(separator: "/", omittingEmptySubsequences: false).dropFirst() {
            let key = String(part.replacing("~1", with: "/").replacing("~0", with: "~"))
            let elements = result.elements ?? []
            let element = Int(key).flatMap { elements.indices.contains($0) ? elements[$0] : nil }
            guard let next = result[key] ?? element else {
                throw InputError(message: "there is no \"\(reference)\"", offset: offset)
            }
            result = next
        }
        return result
    }

    /// Returns the values with an `$anchor`, the first one of each name.
    private static func anchors(in json: JSON) -> [String: JSON] {
        var (anchors, next): ([String: JSON], [JSON]) = ([:], [json])
        while let json = next.popLast() {
            if let anchor = json["$anchor"]?.string, anchors[anchor] == nil { anchors[anchor] = json }
            next += (json.elements ?? json.members?.map(\.value) ?? []).reversed()
        }
        return anchors
    }

    /// Returns the name of the schema that a reference leads to: `Pet` for `#/components/schemas/Pet`, or for the
    /// schema's `$id`.
    package func component(_ reference: String?) -> String? {
        if let reference, let name = namesByID[reference] { return name }
        let prefix = "#/components/schemas/"
        guard let reference, reference.utf8.starts(with: prefix.utf8) else { return nil }
        let name = String(decoding: reference.utf8.dropFirst(prefix.utf8.count), as: UTF8.self)
        if name.isEmpty || name.contains("/") { return nil }
        return (name.removingPercentEncoding ?? name).replacing("~1", with: "/").replacing("~0", with: "~")
    }

    package func schema(named name: String) -> JSON? { schemasByName[name] }

    /// The named schemas, in the order of the document.
    package var schemas: [(key: String, value: JSON)] { root["components"]?["schemas"]?.members ?? [] }

    /// The paths of the servers, such as `/v1` for `https://api.example.com/v1`, without a trailing slash.
    package var basePaths: [String] {
        (root["servers"]?.elements ?? []).compactMap { server in
            server["url"]?.string.flatMap { URLComponents(string: $0)?.path }
        }.map { $0.hasSuffix("/") ? String($0.dropLast()) : $0 }
    }
}

// MARK: - Operations

/// A request that a document describes.
package struct OpenAPIOperation: Sendable {
    /// The method in upper case.
    package let method: String
    /// The path with parameter names in braces: `/users/{id}`.
    package let path: String
    /// The object of the operation.
    package let json: JSON
    package let parameters: [OpenAPIParameter]
    package let body: OpenAPIContent?
    /// The responses in the order of the document. The status is `200`, `2XX` or `default`.
    package let responses: [(status: String, content: OpenAPIContent)]
}

/// The bodies of a request or a response, by their types.
package struct OpenAPIContent: Sendable {
    package struct Media: Sendable {
        /// The media type without its parameters, in lower case: `application/json`.
        package let type: String
        package let json: JSON
        /// The schema; `nil` if the document does not specify one.
        package let schema: JSON?

        package init(type: String, json: JSON, schema: JSON?) {
            (self.type, self.json, self.schema) = (type, json, schema)
        }

        package var isJSON: Bool {
            type == "application/json" || type == "text/json" || type.hasSuffix("+json")
                || type == "*/*" && schema != nil
                || type.hasPrefix("application/json+")
        }
    }

    package let description: String?
    package let isRequired: Bool
    package let media: [Media]

    /// The entry that is read and written as JSON. `application/json` is preferred. `nil` if there is no such entry.
    package var json: Media? { media.first { $0.type == "application/json" } ?? media.first(where: \.isJSON) }
}

package struct OpenAPIParameter: Sendable {
    package enum Location: String, Sendable { case path, query, header, cookie }

    package let name: String
    package let location: Location
    package let isRequired: Bool
    /// The style of an array or an object: `simple`, `form`, `deepObject` and so on.
    package let style: String
    package let explodes: Bool
    /// The object of the parameter.
    package let json: JSON
    /// The schema; `nil` if the document does not specify one.
    package let schema: JSON?
    /// Whether the value has a media type, such as JSON.
    package let hasContent: Bool
}

extension OpenAPIDocument {
    private static let methods = ["get", "put", "post", "delete", "patch", "head", "options", "trace"]

    /// The operations in the order of the document, each as read, or with the reason why it cannot be read.
    package var operations: [(method: String, path: String, result: Result<OpenAPIOperation, InputError>)] {
        (root["paths"]?.members ?? []).flatMap { path, item in
            let item = (try? resolve(item).json) ?? item
            let methods = (item.members ?? []).filter { Self.methods.contains($0.key) }
            return methods.map { method, json in
                let result = Result { () throws(InputError) in try operation(method, path, json, of: item) }
                return (method.uppercased(), path, result)
            }
        }
    }

    private func operation(
        _ method: String,
        _ path: String,
        _ json: JSON,
        of item: JSON
    ) throws(InputError) -> OpenAPIOperation {
        // Parameters of the operation replace parameters of its path with the same name and location.
        var all: [OpenAPIParameter] = []
        for list in [item["parameters"], json["parameters"]] {
            for element in list?.elements ?? [] { all.append(try parameter(element)) }
        }
        let parameters = Self.last(of: Self.last(of: all).flatMap(members))
        let names = Set(parameters.filter { $0.location == .path }.map(\.name))
        for case .parameter(let name) in TemplatePart.parts(of: path) where !names.contains(name) {
            let message = "the parameter \"\(name)\" of the path \(path) is not described"
            throw InputError(message: message, offset: json.offset)
        }
        var responses: [(status: String, content: OpenAPIContent)] = []
        for (key, response) in json["responses"]?.members ?? [] where !key.lowercased().hasPrefix("x-") {
            let status = key.uppercased() == "DEFAULT" ? "default" : key.uppercased()
            guard status == "default" || status.wholeMatch(of: /[1-5](?:[0-9]{2}|XX)/) != nil else {
                throw InputError(
                    message: "\"\(key)\" is not a response status; use 100 to 599, a class such as 2XX, or default",
                    offset: response.offset
                )
            }
            responses.append((status, try content(response)))
        }
        return OpenAPIOperation(
            method: method.uppercased(),
            path: path,
            json: json,
            parameters: parameters,
            body: try json["requestBody"].map { (body) throws(InputError) in try content(body) },
            responses: responses
        )
    }

    /// Returns the last parameter of each name and location.
    private static func last(of parameters: [OpenAPIParameter]) -> [OpenAPIParameter] {
        var known: [OpenAPIParameter.Location: Set<String>] = [:]
        return parameters.reversed().filter { known[$0.location, default: []].insert($0.name).inserted }.reversed()
    }

    private func content(_ json: JSON) throws(InputError) -> OpenAPIContent {
        let json = try resolve(json).json
        var media: [OpenAPIContent.Media] = []
        var types: Set<String> = []
        for (key, value) in json["content"]?.members ?? [] {
            let type = key.prefix { $0 != ";" }.trimmingCharacters(in: .whitespaces).lowercased()
            guard type.unicodeScalars.allSatisfy({ ("!"..."~").contains($0) }) else {
                throw InputError(message: "\"\(key)\" is not a media type", offset: value.offset)
            }
            // If a type occurs several times with different parameters, such as `;stream=watch`, use the first one.
            if !types.insert(type).inserted { continue }
            media.append(OpenAPIContent.Media(type: type, json: value, schema: value["schema"]))
        }
        return OpenAPIContent(
            description: json["description"]?.string,
            isRequired: json["required"]?.bool ?? false,
            media: media
        )
    }

    private func parameter(_ json: JSON) throws(InputError) -> OpenAPIParameter {
        let json = try resolve(json).json
        guard let name = json["name"]?.string, let location = json["in"]?.string else {
            throw InputError(message: "a parameter has no \"name\" or no \"in\"", offset: json.offset)
        }
        guard let location = OpenAPIParameter.Location(rawValue: location) else {
            throw InputError(message: "a parameter is in \"\(location)\"", offset: json.offset)
        }
        let style = json["style"]?.string ?? (location == .query || location == .cookie ? "form" : "simple")
        let media = json["content"]?.members?.first?.value
        return OpenAPIParameter(
            name: name,
            location: location,
            isRequired: location == .path || json["required"]?.bool == true,
            style: style,
            explodes: json["explode"]?.bool ?? (style == "form"),
            json: json,
            schema: media?["schema"] ?? json["schema"],
            hasContent: media != nil
        )
    }

    /// Returns the members of an object that are sent in the query instead of the object. For any other parameter,
    /// returns the parameter itself.
    private func members(of parameter: OpenAPIParameter) -> [OpenAPIParameter] {
        guard parameter.location == .query, parameter.style == "form", parameter.explodes, !parameter.hasContent,
            let json = parameter.schema, let schema = (try? resolve(json).json).map(OpenAPISchema.init),
            schema.kinds == [.object], !schema.properties.isEmpty
        else { return [parameter] }
        return schema.properties.map { key, json in
            OpenAPIParameter(
                name: key,
                location: .query,
                isRequired: parameter.isRequired && schema.required.contains(key),
                style: "form",
                explodes: true,
                json: json,
                schema: json,
                hasContent: false
            )
        }
    }
}
