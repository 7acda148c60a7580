import EasyNetworkOpenAPI
import Foundation

/// Parameters in the path, the query, headers and cookies.
extension RequestReader {
    struct Parameter {
        let source: OpenAPIParameter
        let name: String
        let type: SwiftType
        let comment: Comment
        let initial: String?
        /// Whether the type is one of Swift's or Foundation's, or has such a raw value.
        let isPlain: Bool
        /// Turns an expression of the value into one of type `String`.
        let asText: (String) -> String
        /// Does the same for an element of an array.
        var elementText: ((String) -> String)?
    }

    /// Reads a parameter. Returns `nil` for one that is left out: because HTTP itself sets it, or because it cannot be
    /// written and is optional.
    mutating func read(
        _ parameter: OpenAPIParameter,
        _ operation: OpenAPIOperation,
        _ names: inout Set<String>,
        _ scope: inout SchemaReader.Scope
    ) throws(InputError) -> Parameter? {
        // OpenAPI says to ignore these three.
        let isOwn = ["accept", "content-type", "authorization"].contains(parameter.name.lowercased())
        if parameter.location == .header, isOwn { return nil }
        func refuse(_ reason: String) throws(InputError) {
            let message = "the parameter \"\(parameter.name)\" \(reason)"
            if parameter.isRequired { throw InputError(message: message, offset: parameter.json.offset) }
            schemas.note("\(operation.method) \(operation.path): \(message), and is left out", at: parameter.json)
        }
        let isCookie = parameter.location == .header && parameter.name.lowercased() == "cookie"
        if isCookie, operation.parameters.contains(where: { $0.location == .cookie }) {
            try refuse("is the header of the cookie parameters")
            return nil
        }
        let schema = parameter.schema ?? JSON(.object([]), offset: parameter.json.offset)
        var type = schemas.type(of: schema, as: .nested(parameter.name), in: &scope).unwrapped
        if parameter.hasContent || type == .any { type = .named("String") }
        // A value such as a number or a name, which is sent as a string in any case.
        if parameter.location != .query, isPlainUnion(type, in: scope) {
            scope.declarations.removeAll { type == .named($0.name) }
            type = .named("String")
        }
        if case .dictionary = type, parameter.location == .query, parameter.style == "form" {
            try refuse("is an object without named members in the query")
            return nil
        }
        var isPlain = false
        var asText: (String) -> String = { $0 }
        var elementText: ((String) -> String)?
        switch type {
        case .array(let element):
            isPlain = element != .any && isPlainType(element, in: scope)
            let separator = ["spaceDelimited": " ", "pipeDelimited": "|"][parameter.style] ?? ","
            let text = text(of: element, in: scope)
            asText = { "\($0).map { \(text("$0")) }.joined(separator: \(separator.literal))" }
            elementText = text
        case .named:
            isPlain = isPlainType(type, in: scope)
            asText = text(of: type, in: scope)
        default: break
        }
        // The members of an exploded object are separate parameters, unless it consists of several schemas.
        if parameter.location == .query, parameter.style != "deepObject", case .structure? = kind(type, in: scope) {
            try refuse("is an object in the style \(parameter.style)")
            return nil
        }
        if !isPlain, parameter.location != .query {
            try refuse("is an object in a \(parameter.location.rawValue)")
            return nil
        }
        let isMissing = !parameter.isRequired
        let initial = parameter.isRequired ? self.initial(of: schema, type) : nil
        var comment = Comment(
            parameter.json["description"]?.string,
            isDeprecated: parameter.json["deprecated"]?.bool == true
        )
        if isMissing, let value = OpenAPISchema(schema).json["default"].flatMap(shown) {
            comment.append("Default \(value).")
        }
        return Parameter(
            source: parameter,
            name: Name.unique(Name.property(parameter.name, limit: nil), &names),
            type: isMissing ? .optional(type) : type,
            comment: comment,
            initial: initial,
            isPlain: isPlain,
            asText: asText,
            elementText: elementText
        )
    }

    /// Returns the default value of a required parameter as a Swift expression.
    private func initial(of schema: JSON, _ type: SwiftType) -> String? {
        guard let value = schema["default"] else { return nil }
        switch (type, value.value) {
        case (.named("Int"), .integer(let number)): return "\(number)"
        case (.named("Double"), _): return value.number.map { "\($0)" }
        case (.named("Bool"), .bool(let bool)): return "\(bool)"
        case (.named("String"), .string(let text)): return text.literal
        default: return nil
        }
    }

    private func shown(_ value: JSON) -> String? {
        switch value.value {
        case .bool(let value): "\(value)"
        case .integer(let value): "\(value)"
        case .double(let value): "\(value)"
        case .string(let value): "`\(value)`"
        default: nil
        }
    }

    /// The suffixes that turn a value into a string, by type.
    private static let builtIn = [
        "String": "", "Int": ".description", "Double": ".description", "Bool": ".description",
        "Decimal": ".description",
        "Date": ".formatted(.iso8601)", "URL": ".absoluteString", "UUID": ".uuidString",
        "Data": ".base64EncodedString()",
    ]

    /// Returns the suffix that turns a value of the type into a string; `nil` for an object, an array or a union.
    private func suffix(_ type: SwiftType, in scope: SchemaReader.Scope) -> String? {
        switch kind(type, in: scope) {
        case .values(_, let raw): raw == "Int" ? ".rawValue.description" : ".rawValue"
        case .alias(.named(let name)): Self.builtIn[name]
        case .structure, .union, .alias, nil: nil
        }
    }

    /// Returns the kind of a type after resolving its aliases. For a type that Swift has, this is an alias of itself.
    private func kind(_ type: SwiftType, in scope: SchemaReader.Scope) -> Declaration.Kind? {
        var (type, known): (SwiftType, Set<SwiftType>) = (type, [])
        // An alias can refer to itself.
        while case .named(let name) = type, known.insert(type).inserted {
            guard let kind = scope.declarations.first(where: { $0.name == name })?.kind ?? schemas.kinds[name] else {
                return .alias(type)
            }
            guard case .alias(let other) = kind else { return kind }
            type = other.unwrapped
        }
        return nil
    }

    func isPlainType(_ type: SwiftType, in scope: SchemaReader.Scope) -> Bool {
        suffix(type, in: scope) != nil
    }

    func text(of type: SwiftType, in scope: SchemaReader.Scope) -> (String) -> String {
        let suffix = suffix(type, in: scope) ?? ""
        return { $0 + suffix }
    }

    /// Returns whether a type is a union of plain types.
    private func isPlainUnion(_ type: SwiftType, in scope: SchemaReader.Scope) -> Bool {
        guard case .named(let name) = type, let declaration = scope.declarations.first(where: { $0.name == name }),
            case .union(let cases, _) = declaration.kind
        else { return false }
        let inner = SchemaReader.Scope(taken: .init(), declarations: declaration.nested)
        return cases.allSatisfy { isPlainType($0.type, in: inner) }
    }

    /// Returns the path as the contents of a string literal.
    func path(_ path: String, _ parameters: [Parameter]) -> String {
        let parts = TemplatePart.parts(of: path.hasPrefix("/") ? path.dropFirst() : path[...])
        return parts.map { part in
            switch part {
            case .literal(let text): return text.escaped
            case .parameter(let name):
                guard let parameter = parameters.first(where: { $0.source.location == .path && $0.source.name == name })
                else { return "" }
                let prefix = ["label": ".", "matrix": ";\(name.escaped)="][parameter.source.style] ?? ""
                // `\(segment:)` accepts any `CustomStringConvertible`.
                let value = Name.declared(parameter.name)
                if let element = parameter.elementText {
                    let texts = element("$0") == "$0" ? value : "\(value).map { \(element("$0")) }"
                    let exploded = ["label": ".", "matrix": ";\(name)="][parameter.source.style] ?? ","
                    let separator = parameter.source.explodes ? exploded.literal : ",".literal
                    return "\(prefix)\\(ParameterText.segment(\(texts), separator: \(separator)))"
                }
                let text = parameter.asText(value)
                let shown = text.hasSuffix(".description") ? String(text.dropLast(12)) : text
                return "\(prefix)\\(segment: \(shown))"
            }
        }.joined()
    }

    /// Returns an expression for the string of a parameter, optional if the parameter is.
    private func optionalText(_ parameter: Parameter) -> String {
        // A local variable or a keyword can have the same name.
        let name = "self.\(parameter.name)"
        let isOptional = parameter.type.isOptional && parameter.asText("$0") != "$0"
        return isOptional ? "\(name).map { \(parameter.asText("$0")) }" : parameter.asText(name)
    }

    func writeQuery(
        _ parameters: [Parameter],
        of operation: OpenAPIOperation,
        to request: inout RequestDeclaration
    ) {
        var keys: Set<String> = []
        let parameters = parameters.filter { keys.insert(key($0, parameters)).inserted }
        if parameters.isEmpty { return }
        if parameters.allSatisfy(\.isPlain) {
            let items = parameters.map { parameter -> String in
                let isJoined =
                    isArray(parameter) && !parameter.source.explodes && parameter.source.style != "deepObject"
                let value = isJoined ? optionalText(parameter) : Name.declared(parameter.name)
                return "\(key(parameter, parameters).literal): \(value)" + (parameter.type.isOptional ? " as Any" : "")
            }
            let isLong = items.count > 2
            let lines = isLong ? ["["] + items.map { "    \($0)," } + ["]"] : ["[\(items.joined(separator: ", "))]"]
            request.members.append(Lines.block("var params: [String: Any]? {", [lines]))
        } else {
            request.codingKeys = parameters.map { ($0.name, key($0, parameters)) }
            request.members.append(["var params: Self { self }"])
        }
        // With these methods, parameters would be sent as a form.
        if ["POST", "PUT", "PATCH"].contains(operation.method), operation.body == nil {
            request.members.append(["var query: NetworkService.QueryType { .path }"])
        }
    }

    private func isArray(_ parameter: Parameter) -> Bool {
        if case .array = parameter.type.unwrapped { true } else { false }
    }

    /// Returns whether arrays are written as `a=1&a=2`.
    private func repeats(_ parameters: [Parameter]) -> Bool {
        parameters.contains { isArray($0) && $0.source.explodes && $0.source.style == "form" }
    }

    private func key(_ parameter: Parameter, _ all: [Parameter]) -> String {
        let isDeep = isArray(parameter) && parameter.source.style == "deepObject"
        return parameter.source.name + (isDeep && repeats(all) ? "[]" : "")
    }

    func headers(
        _ parameters: [Parameter],
        _ request: inout RequestDeclaration
    ) -> [Field] {
        var fields = parameters.filter { $0.source.location == .header }.map {
            ($0.source.name, optionalText($0), $0.type.isOptional)
        }
        let cookies = parameters.filter { $0.source.location == .cookie }.map { parameter -> String in
            let name = parameter.source.name.escaped
            if !parameter.type.isOptional {
                return "\"\(name)=\\(ParameterText.encoded(\(optionalText(parameter))))\""
            }
            return "\(optionalText(parameter)).map { \"\(name)=\\(ParameterText.encoded($0))\" }"
        }
        if !cookies.isEmpty {
            let isOptional = !parameters.contains { $0.source.location == .cookie && !$0.type.isOptional }
            fields.append(("Cookie", "cookies", isOptional))
            let lines = [
                "let pairs: [String?] = [\(cookies.joined(separator: ", "))]",
                "return pairs.compactMap { $0 }.joined(separator: \"; \")",
            ]
            let some = [
                "let text = pairs.compactMap { $0 }.joined(separator: \"; \")", "return text.isEmpty ? nil : text",
            ]
            let head = "private var cookies: String\(isOptional ? "?" : "") {"
            request.members.append(Lines.block(head, [isOptional ? [lines[0]] + some : lines]))
        }
        return fields
    }

    func write(
        _ fields: [Field],
        to request: inout RequestDeclaration
    ) {
        if fields.isEmpty { return }
        // The last field with a name wins, because a dictionary has each key once.
        var names: Set<String> = []
        let fields = fields.reversed().filter { names.insert($0.name.lowercased()).inserted }.reversed()
        let items = fields.map { "\($0.name.literal): \($0.value)" }
        let list = "[\(items.joined(separator: ", "))]"
        guard fields.contains(where: \.isOptional) else {
            return request.members.append(["var headers: [String: String]? { \(list) }"])
        }
        let lines = ["let fields: [String: String?] = \(list)", "return fields.compactMapValues { $0 }"]
        request.members.append(Lines.block("var headers: [String: String]? {", [lines]))
    }

    func writeOptions(
        _ parameters: [Parameter],
        of operation: OpenAPIOperation,
        to request: inout RequestDeclaration
    ) {
        var options: [String] = []
        if let server = operation.json["servers"]?.elements?.first?["url"]?.string, !server.contains("{"),
            URLComponents(string: server)?.scheme != nil
        {
            options.append("baseURL: URL(string: \(server.literal))")
        }
        let query = parameters.filter { $0.source.location == .query }
        var styles = repeats(query) ? ["arrayStyle: .repeated"] : []
        if query.contains(where: \.type.isOptional) { styles.append("nullSuffix: nil") }
        if !styles.isEmpty { options.append("queryEncoder: QueryEncoder(\(styles.joined(separator: ", ")))") }
        if operation.json["security"]?.elements?.isEmpty == true { options += withoutCredential }
        if options.isEmpty { return }
        request.members.append(["var options: RequestOptions { RequestOptions(\(options.joined(separator: ", "))) }"])
    }
}
