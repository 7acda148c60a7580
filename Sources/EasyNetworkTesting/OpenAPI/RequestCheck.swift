import EasyNetwork
import EasyNetworkOpenAPI
import Foundation

/// Finds where a request violates its document.
struct RequestCheck {
    let document: OpenAPIDocument
    let operation: OpenAPIOperation
    let request: MockRequest
    /// The percent-decoded values in the path.
    let pathValues: [String: String]

    /// The status and the message of the error response; `nil` if the document allows the request.
    var complaint: (status: Int, message: String)? {
        if let message = parameters { return (400, message) }
        return body
    }

    // MARK: - Parameters

    private var parameters: String? {
        let query = request.queryItems
        let cookies = (request.headers["Cookie"] ?? "").split(separator: ";").map { pair in
            pair.split(separator: "=", maxSplits: 1).map { $0.trimmingCharacters(in: .whitespaces) }
        }
        for parameter in operation.parameters {
            let name = parameter.name
            let texts: [String]
            switch parameter.location {
            case .path: texts = pathValues[name].map { [plain($0, parameter)] } ?? []
            case .header:
                if ["accept", "content-type", "authorization"].contains(name.lowercased()) { continue }
                texts = request.headers[name].map { [$0] } ?? []
            case .cookie: texts = cookies.filter { $0.first == name }.map { $0.count > 1 ? $0[1] : "" }
            case .query:
                if query.contains(where: { $0.name.hasPrefix(name + "[") }) { continue }
                texts = query.filter { $0.name == name }.map { $0.value ?? "" }
            }
            let place = "the parameter \"\(name)\" of the \(parameter.location.rawValue)"
            if texts.isEmpty, parameter.isRequired { return "\(place) is missing" }
            if parameter.hasContent { continue }
            guard let schema = parameter.schema else { continue }
            for text in texts {
                if let reason = mismatch(text, schema, parameter) { return "\(place) \(reason)" }
            }
        }
        let keys = Set(
            (document.root["components"]?["securitySchemes"]?.members ?? []).compactMap { $0.value["name"]?.string }
        )
        let known = Set(operation.parameters.filter { $0.location == .query }.map(\.name)).union(keys)
        // An object without named members accepts any name.
        let isOpen = operation.parameters.contains { parameter in
            parameter.location == .query && parameter.style == "form" && kinds(parameter.schema) == [.object]
        }
        for (name, _) in query
        where !isOpen && !known.contains(name) && !known.contains(String(name.prefix { $0 != "[" })) {
            return "the query has \"\(name)\", which the document does not"
        }
        return nil
    }

    /// Removes what the style adds to a value (RFC 6570). The elements of an array are separated by commas.
    private func plain(_ text: String, _ parameter: OpenAPIParameter) -> String {
        let isList = parameter.explodes && kinds(parameter.schema) == [.array]
        let prefix = ["label": ".", "matrix": ";\(parameter.name)="][parameter.style] ?? ""
        guard !prefix.isEmpty, text.hasPrefix(prefix) else { return text }
        let rest = text.dropFirst(prefix.count)
        return isList ? String(rest.replacing(prefix, with: ",")) : String(rest)
    }

    private func kinds(_ schema: JSON?) -> [OpenAPISchema.Kind] {
        schema.flatMap { try? document.resolve($0).json }.map { OpenAPISchema($0).kinds } ?? []
    }

    /// Returns the reason why a string is not a value of the schema.
    private func mismatch(_ text: String, _ schema: JSON, _ parameter: OpenAPIParameter) -> String? {
        let check = SchemaCheck(document: document)
        guard let found = try? document.resolve(schema).json else { return nil }
        if kinds(found) == [.array] {
            guard let items = OpenAPISchema(found).items else { return nil }
            let separator: Character =
                parameter.style == "pipeDelimited" ? "|" : parameter.style == "spaceDelimited" ? " " : ","
            let isWhole = parameter.location == .query && parameter.explodes
            let elements =
                isWhole ? [text] : text.split(separator: separator, omittingEmptySubsequences: false).map(String.init)
            // No style can write an array inside an array.
            if kinds(items) == [.array] { return nil }
            return elements.lazy.compactMap { self.mismatch($0, items, parameter) }.first
        }
        if kinds(found) == [.object] { return nil }
        // A string counts as every value that it can be read as.
        var values: [JSON] = [JSON(.string(text), offset: 0)]
        if let number = Int(text) { values.append(JSON(.integer(number), offset: 0)) }
        if let number = Double(text), number.isFinite { values.append(JSON(.double(number), offset: 0)) }
        if let bool = ["true": true, "false": false][text] { values.append(JSON(.bool(bool), offset: 0)) }
        let reasons = values.map { check.mismatch($0, found) }
        guard reasons.allSatisfy({ $0 != nil }) else { return nil }
        // Report the reason for the value that is closest to the schema.
        return reasons.compactMap { $0 }.first { !$0.hasPrefix("is a ") } ?? reasons[0]
    }

    // MARK: - Body

    private var body: (status: Int, message: String)? {
        guard let content = operation.body else { return nil }
        if request.body.isEmpty { return content.isRequired ? (400, "the body is missing") : nil }
        let field = (request.headers["Content-Type"] ?? "").lowercased()
        let type = field.prefix { $0 != ";" }.trimmingCharacters(in: .whitespaces)
        guard let media = content.media.first(where: { Self.matches($0.type, type) }) else {
            let known = content.media.map(\.type).joined(separator: ", ")
            return (415, "a body of the type \"\(type)\" is not in the document, only \(known)")
        }
        guard let schema = media.schema else { return nil }
        if type == "application/x-www-form-urlencoded" { return form(schema) }
        guard media.isJSON, type.isEmpty || type.contains("json") else { return nil }
        do throws(InputError) {
            let value = try JSON.parse(request.body)
            let reason = SchemaCheck(document: document, isRequest: true).mismatch(value, schema)
            return reason.map { (400, "the body \($0)") }
        } catch {
            return (400, "the body is not valid JSON: \(error.message)")
        }
    }

    private static func matches(_ known: String, _ type: String) -> Bool {
        if known == type || known == "*/*" { return true }
        return known.hasSuffix("/*") && type.hasPrefix(known.dropLast())
    }

    private func form(_ schema: JSON) -> (status: Int, message: String)? {
        guard let schema = (try? document.resolve(schema).json).map(OpenAPISchema.init) else { return nil }
        let pairs = MockRequest(method: "GET", target: "/?" + String(decoding: request.body, as: UTF8.self)).queryItems
        let names = Set(pairs.map { String($0.name.prefix { $0 != "[" }) })
        let missing = schema.required.subtracting(names).sorted().first
        return missing.map { (400, "the form has no \"\($0)\"") }
    }
}
