import Foundation

/// A document of OpenAPI 3.0 or 3.1 in JSON.
///
/// It is read where it is asked: what is wrong in one operation is an error of that operation alone.
package struct OpenAPIDocument: Sendable {
    package let root: JSON
    /// The text, for the places of mistakes. The work that a document may cause is in proportion to its size.
    package let data: Data
    /// Asked for at each reference.
    private let schemasByName: [String: JSON]
    /// The names of schemas with a `$id`, by that.
    private let namesByID: [String: String]
    /// The other components by the references to them.
    private let components: [String: JSON]
    /// The schemas with an `$anchor`, by that and the `$id` of the schema that they are in.
    private let anchors: [String: [String: JSON]]

    /// - Throws: an error for a text that is no JSON or repeats a key, for YAML, and for another format or version.
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
            throw InputError(message: "OpenAPI \(version) is not read; 3.0 and 3.1 are", offset: root.offset)
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

    /// The value that a reference names, or the value itself if it is none.
    ///
    /// - Returns: the value, and the last reference that led to it.
    package func resolve(_ json: JSON) throws(InputError) -> (json: JSON, reference: String?) {
        var (result, last) = (json, String?.none)
        // A chain of references that is longer is a circle.
        for _ in 0..<64 {
            guard let reference = result["$ref"]?.string else { return (result, last) }
            last = reference
            result = try value(of: reference, offset: result.offset)
        }
        throw InputError(message: "the reference \"\(last ?? "")\" leads to itself", offset: json.offset)
    }

    /// - Parameter reference: a JSON Pointer in a fragment (RFC 6901, section 6), or the `$id` of a schema; behind that
    ///   a pointer, or the `$anchor` of a schema in it (JSON Schema, sections 8.2.1 and 8.2.2).
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

    /// The values with an `$anchor`; the first one of each name.
    private static func anchors(in json: JSON) -> [String: JSON] {
        var (anchors, next): ([String: JSON], [JSON]) = ([:], [json])
        while let json = next.popLast() {
            if let anchor = json["$anchor"]?.string, anchors[anchor] == nil { anchors[anchor] = json }
            next += (json.elements ?? json.members?.map(\.value) ?? []).reversed()
        }
        return anchors
    }

    /// The name of the schema that a reference leads to: `Pet` for `#/components/schemas/Pet`, or for the `$id` of
    /// that.
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

    /// The paths of servers, `/v1` for `https://api.example.com/v1`, without a slash at the end.
    package var basePaths: [String] {
        (root["servers"]?.elements ?? []).compactMap { server in
            server["url"]?.string.flatMap { URLComponents(string: $0)?.path }
        }.map { $0.hasSuffix("/") ? String($0.dropLast()) : $0 }
    }
}

// MARK: - Operations

/// A request that a document describes.
package struct OpenAPIOperation: Sendable {
    /// In upper case.
    package let method: String
    /// With the names of parameters in braces: `/users/{id}`.
    package let path: String
    /// The object of the operation.
    package let json: JSON
    package let parameters: [OpenAPIParameter]
    package let body: OpenAPIContent?
    /// In the order of the document; the status is `200`, `2XX` or `default`.
    package let responses: [(status: String, content: OpenAPIContent)]
}

/// The bodies of a request or an answer, by their types.
package struct OpenAPIContent: Sendable {
    package struct Media: Sendable {
        /// Without its parameters, in lower case: `application/json`.
        package let type: String
        package let json: JSON
        /// Nil if the document has none.
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

    /// The entry that is read and written as JSON, `application/json` before others; nil if there is none.
    package var json: Media? { media.first { $0.type == "application/json" } ?? media.first(where: \.isJSON) }
}

package struct OpenAPIParameter: Sendable {
    package enum Location: String, Sendable { case path, query, header, cookie }

    package let name: String
    package let location: Location
    package let isRequired: Bool
    /// How an array or an object is written: `simple`, `form`, `deepObject` and so on.
    package let style: String
    package let explodes: Bool
    /// The object of the parameter.
    package let json: JSON
    /// Nil if the document has none.
    package let schema: JSON?
    /// Whether the value is a text of JSON, or of another type.
    package let hasContent: Bool
}

extension OpenAPIDocument {
    private static let methods = ["get", "put", "post", "delete", "patch", "head", "options", "trace"]

    /// The operations in the order of the document, each as it is read, or the reason why it cannot be.
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
        // The operation's parameters replace those of its path.
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
                throw InputError(message: "\"\(key)\" is no status of a response", offset: response.offset)
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

    /// The last parameter of each name and location.
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
                throw InputError(message: "\"\(key)\" is no type of a body", offset: value.offset)
            }
            // When a type stands there with several parameters, such as `;stream=watch`, the first counts.
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

    /// The members of an object that the query has in place of the object; else the parameter itself.
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
