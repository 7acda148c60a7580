import EasyNetworkOpenAPI
import Foundation

/// A request that is generated.
struct RequestDeclaration {
    struct Property {
        let name: String
        let type: SwiftType
        var comment: [String] = []
        /// As it is written in Swift.
        var initial: String?
    }

    /// An answer or an error by its status.
    struct Answer {
        enum Content: Equatable {
            case none, text, data
            case json(SwiftType)
        }

        /// `200`, `2XX` or `default`.
        let status: String
        let content: Content

        var type: SwiftType? {
            switch content {
            case .none: nil
            case .text: .named("String")
            case .data: .named("Data")
            case .json(let type): type
            }
        }
    }

    let name: String
    let tag: String?
    let comment: [String]
    let isDeprecated: Bool
    var properties: [Property] = []
    /// The members of the protocol, each on a line or more.
    var members: [[String]] = []
    /// Keys of the parameters, when they are written by an encoder.
    var codingKeys: [(name: String, key: String)]?
    /// Answers that are a success, and others.
    var answers: [Answer] = []
    var failures: [Answer] = []
    var nested: [Declaration] = []
}

/// Reads the operations of a document.
struct RequestReader {
    var schemas: SchemaReader
    private(set) var operationCount = 0
    /// The names of all types that stand beside the requests.
    private var taken: Set<String>
    private var document: OpenAPIDocument { schemas.document }

    init(_ document: OpenAPIDocument) {
        schemas = SchemaReader(document)
        taken = Set(schemas.names.values)
    }

    /// The requests; an operation that cannot be one is left out, with a note.
    mutating func requests() -> [RequestDeclaration] {
        let operations = document.operations
        operationCount = operations.count
        // All names before the first nested type, which must hide none of them.
        let names = operations.map { method, path, result in
            let id = (try? result.get())?.json["operationId"]?.string
            let name = Name.type(id ?? "\(method.lowercased())_\(path)", limit: nil)
            return Name.unique(taken.contains(name) ? name + "Request" : name, &taken)
        }
        return zip(operations, names).compactMap { operation, name in
            do throws(InputError) {
                return try request(try operation.result.get(), name)
            } catch {
                let message = "\(operation.method) \(operation.path) is left out: \(error.message)"
                schemas.note(message, at: JSON(.null, offset: error.offset))
                return nil
            }
        }
    }

    private mutating func request(_ operation: OpenAPIOperation, _ name: String) throws(InputError)
        -> RequestDeclaration
    {
        let isDeprecated = operation.json["deprecated"]?.bool == true
        var request = RequestDeclaration(
            name: name,
            tag: operation.json["tags"]?.elements?.first?.string,
            comment: Comment.lines(operation.json["summary"]?.string, operation.json["description"]?.string),
            isDeprecated: isDeprecated
        )
        var scope = SchemaReader.Scope(taken: taken.union([name, "Failure", "Payload", "Item"]))
        var names = Name.requestProperties
        var parameters: [Parameter] = []
        for parameter in operation.parameters {
            guard let read = try read(parameter, operation, &names, &scope) else { continue }
            parameters.append(read)
            request.properties.append(
                RequestDeclaration.Property(
                    name: read.name,
                    type: read.type,
                    comment: read.comment,
                    initial: read.initial
                )
            )
        }
        request.members.append(["var api: String { \"\(path(operation.path, parameters))\" }"])
        if operation.method != "GET" {
            let known = ["POST", "PUT", "DELETE", "PATCH", "HEAD"].contains(operation.method)
            let method = known ? operation.method.lowercased() : "init(rawValue: \(operation.method.literal))"
            request.members.append(["var method: NetworkService.Method { .\(method) }"])
        }
        writeQuery(parameters.filter { $0.source.location == .query }, of: operation, to: &request)
        var fields = headers(parameters, &request)
        if let body = operation.body { try write(body, to: &request, &fields, &names, &scope) }
        read(operation.responses, to: &request, &fields, &scope)
        write(fields, to: &request)
        writeOptions(parameters, of: operation, to: &request)
        request.nested = scope.declarations
        return request
    }

    // MARK: - Parameters

    private struct Parameter {
        let source: OpenAPIParameter
        let name: String
        let type: SwiftType
        let comment: [String]
        let initial: String?
        /// Whether the type is one of Swift's or Foundation's, or has such a raw value.
        let isPlain: Bool
        /// An expression of type String for one of the value.
        let asText: (String) -> String
    }

    /// Nil for a parameter that is left out: one that HTTP itself sets, or that cannot be written and need not be there.
    private mutating func read(
        _ parameter: OpenAPIParameter,
        _ operation: OpenAPIOperation,
        _ names: inout Set<String>,
        _ scope: inout SchemaReader.Scope
    ) throws(InputError) -> Parameter? {
        // OpenAPI says that these three are ignored.
        let isOwn = ["accept", "content-type", "authorization"].contains(parameter.name.lowercased())
        if parameter.location == .header, isOwn { return nil }
        func refuse(_ reason: String) throws(InputError) {
            let message = "the parameter \"\(parameter.name)\" \(reason)"
            if parameter.isRequired { throw InputError(message: message, offset: parameter.json.offset) }
            schemas.note("\(operation.method) \(operation.path): \(message), and is left out", at: parameter.json)
        }
        let schema = parameter.schema ?? JSON(.object([]), offset: parameter.json.offset)
        var type = schemas.type(of: schema, as: .nested(parameter.name), in: &scope).unwrapped
        if parameter.hasContent || type == .any { type = .named("String") }
        // A number or a name, which is a text in any case.
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
        switch type {
        case .array(let element):
            isPlain = element != .any && isPlainType(element, in: scope)
            let separator = ["spaceDelimited": " ", "pipeDelimited": "|"][parameter.style] ?? ","
            let text = text(of: element, in: scope)
            asText = { "\($0).map { \(text("$0")) }.joined(separator: \(separator.literal))" }
        case .named:
            isPlain = isPlainType(type, in: scope)
            asText = text(of: type, in: scope)
        default: break
        }
        if !isPlain, parameter.location != .query {
            try refuse("is an object in a \(parameter.location.rawValue)")
            return nil
        }
        let isMissing = !parameter.isRequired
        let initial = parameter.isRequired ? self.initial(of: schema, type) : nil
        var comment = Comment.lines(
            parameter.json["description"]?.string,
            isDeprecated: parameter.json["deprecated"]?.bool == true
        )
        if isMissing, let value = OpenAPISchema(schema).json["default"].flatMap(shown) {
            comment += (comment.isEmpty ? [] : [""]) + ["Default \(value)."]
        }
        return Parameter(
            source: parameter,
            name: Name.unique(Name.property(parameter.name, limit: nil), &names),
            type: isMissing ? .optional(type) : type,
            comment: comment,
            initial: initial,
            isPlain: isPlain,
            asText: asText
        )
    }

    /// The default of a required parameter, as it is written in Swift.
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

    /// What makes a text of a value.
    private static let builtIn = [
        "String": "", "Int": ".description", "Double": ".description", "Bool": ".description",
        "Decimal": ".description",
        "Date": ".formatted(.iso8601)", "URL": ".absoluteString", "UUID": ".uuidString",
        "Data": ".base64EncodedString()",
    ]

    /// What makes a text of a value of a type; nil for an object, an array or one of several kinds.
    private func suffix(_ type: SwiftType, in scope: SchemaReader.Scope) -> String? {
        guard case .named(let name) = type else { return nil }
        if let suffix = Self.builtIn[name] { return suffix }
        if let declaration = scope.declarations.first(where: { $0.name == name }) {
            guard case .values(_, let raw) = declaration.kind else { return nil }
            return raw == "Int" ? ".rawValue.description" : ".rawValue"
        }
        guard let key = schemas.names.first(where: { $0.value == name })?.key,
            let json = document.schema(named: key)
        else { return nil }
        var reader = schemas
        // The type of a named schema, found as for one without a name.
        var inner = SchemaReader.Scope(taken: [name])
        let own = reader.type(of: (try? document.resolve(json).json) ?? json, as: .nested(name), in: &inner).unwrapped
        return own == type ? nil : suffix(own, in: inner)
    }

    private func isPlainType(_ type: SwiftType, in scope: SchemaReader.Scope) -> Bool {
        suffix(type, in: scope) != nil
    }

    private func text(of type: SwiftType, in scope: SchemaReader.Scope) -> (String) -> String {
        let suffix = suffix(type, in: scope) ?? ""
        return { $0 + suffix }
    }

    /// Whether a type is one of several, all of which are plain.
    private func isPlainUnion(_ type: SwiftType, in scope: SchemaReader.Scope) -> Bool {
        guard case .named(let name) = type, let declaration = scope.declarations.first(where: { $0.name == name }),
            case .union(let cases, _) = declaration.kind
        else { return false }
        let inner = SchemaReader.Scope(taken: [], declarations: declaration.nested)
        return cases.allSatisfy { isPlainType($0.type, in: inner) }
    }

    /// The path as the inside of a literal.
    private func path(_ path: String, _ parameters: [Parameter]) -> String {
        var result = ""
        var rest = path.hasPrefix("/") ? path.dropFirst() : path[...]
        while let open = rest.firstIndex(of: "{"), let close = rest[open...].firstIndex(of: "}") {
            result += String(rest[..<open]).escaped
            let name = String(rest[rest.index(after: open)..<close])
            if let parameter = parameters.first(where: { $0.source.location == .path && $0.source.name == name }) {
                switch parameter.source.style {
                case "label": result += "."
                case "matrix": result += ";\(name.escaped)="
                default: break
                }
                // A segment takes all that describes itself.
                let text = parameter.asText(Name.declared(parameter.name))
                result += "\\(segment: \(text.hasSuffix(".description") ? String(text.dropLast(12)) : text))"
            }
            rest = rest[rest.index(after: close)...]
        }
        return result + String(rest).escaped
    }

    /// The text of a parameter, an optional of one if that may be nil.
    private func optionalText(_ parameter: Parameter) -> String {
        let name = Name.declared(parameter.name)
        let isOptional = parameter.type.isOptional && parameter.asText("$0") != "$0"
        return isOptional ? "\(name).map { \(parameter.asText("$0")) }" : parameter.asText(name)
    }

    private func writeQuery(
        _ parameters: [Parameter],
        of operation: OpenAPIOperation,
        to request: inout RequestDeclaration
    ) {
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
        // For these methods parameters are a form otherwise.
        if ["POST", "PUT", "PATCH"].contains(operation.method), operation.body == nil {
            request.members.append(["var query: NetworkService.QueryType { .path }"])
        }
    }

    private func isArray(_ parameter: Parameter) -> Bool {
        if case .array = parameter.type.unwrapped { true } else { false }
    }

    /// Whether arrays are written as `a=1&a=2`.
    private func repeats(_ parameters: [Parameter]) -> Bool {
        parameters.contains { isArray($0) && $0.source.explodes && $0.source.style == "form" }
    }

    private func key(_ parameter: Parameter, _ all: [Parameter]) -> String {
        let isDeep = isArray(parameter) && parameter.source.style == "deepObject"
        return parameter.source.name + (isDeep && repeats(all) ? "[]" : "")
    }

    private func headers(
        _ parameters: [Parameter],
        _ request: inout RequestDeclaration
    ) -> [(name: String, value: String, isOptional: Bool)] {
        var fields = parameters.filter { $0.source.location == .header }.map {
            ($0.source.name, optionalText($0), $0.type.isOptional)
        }
        let cookies = parameters.filter { $0.source.location == .cookie }.map { parameter -> String in
            let name = parameter.source.name.escaped
            if !parameter.type.isOptional { return "\"\(name)=\\(segment: \(optionalText(parameter)))\"" }
            return "\(optionalText(parameter)).map { \"\(name)=\\(segment: $0)\" }"
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

    private func write(
        _ fields: [(name: String, value: String, isOptional: Bool)],
        to request: inout RequestDeclaration
    ) {
        if fields.isEmpty { return }
        let items = fields.map { "\($0.name.literal): \($0.value)" }
        let list = "[\(items.joined(separator: ", "))]"
        guard fields.contains(where: \.isOptional) else {
            return request.members.append(["var headers: [String: String]? { \(list) }"])
        }
        let lines = ["let fields: [String: String?] = \(list)", "return fields.compactMapValues { $0 }"]
        request.members.append(Lines.block("var headers: [String: String]? {", [lines]))
    }

    private func writeOptions(
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
        var styles = repeats(query) ? ["arrays: .repeated"] : []
        if query.contains(where: \.type.isOptional) { styles.append("nulls: nil") }
        if !styles.isEmpty { options.append("queryEncoder: QueryEncoder(\(styles.joined(separator: ", ")))") }
        if operation.json["security"]?.elements?.isEmpty == true, !SecurityScheme.all(of: document).isEmpty {
            let fields = SecurityScheme.all(of: document).compactMap(\.field)
            let names = Set(fields).sorted().map(\.literal).joined(separator: ", ")
            if !fields.isEmpty { options.append("omittedHeaders: [\(names)]") }
            options.append("isAuthenticated: false")
        }
        if options.isEmpty { return }
        request.members.append(["var options: RequestOptions { RequestOptions(\(options.joined(separator: ", "))) }"])
    }

    // MARK: - Bodies

    private mutating func write(
        _ body: OpenAPIContent,
        to request: inout RequestDeclaration,
        _ fields: inout [(name: String, value: String, isOptional: Bool)],
        _ names: inout Set<String>,
        _ scope: inout SchemaReader.Scope
    ) throws(InputError) {
        guard let first = body.media.first else { return }
        let isOptional = !body.isRequired
        var comment = Comment.lines(body.description)
        func property(_ type: SwiftType) -> RequestDeclaration.Property {
            let type = isOptional ? type.asOptional : type
            return RequestDeclaration.Property(name: "payload", type: type, comment: comment)
        }
        scope.isBody = true
        defer { scope.isBody = false }
        let json = body.media.filter(\.isJSON)
        if let media = body.json, let schema = media.schema {
            let type = payload(schema, &scope)
            request.properties.append(property(type))
            let value = type.isOptional || isOptional ? "payload.map { .json($0) }" : ".json(payload)"
            request.members.append(["var body: RequestBody? { \(value) }"])
            if json.count > 1, media.type != "application/json" {
                // A body of the same schema, which the type says how to take.
                let types = json.map { "`\($0.type)`" }.joined(separator: ", ")
                let name = Name.unique("contentType", &names)
                let text = "The type of the body: \(types)."
                request.properties.append(
                    RequestDeclaration.Property(
                        name: name,
                        type: .named("String"),
                        comment: [text],
                        initial: media.type.literal
                    )
                )
                fields.append(("Content-Type", name, false))
            } else if media.type != "application/json", media.type != "*/*" {
                fields.append(("Content-Type", media.type.literal, false))
            }
            return
        }
        if let media = body.media.first(where: { $0.type == "application/x-www-form-urlencoded" }),
            let schema = media.schema
        {
            let type = payload(schema, &scope)
            guard type != .any else {
                throw InputError(message: "its form has no members", offset: schema.offset)
            }
            request.properties.append(property(type))
            let hasDeep =
                media.json["encoding"]?.members?.contains { $0.value["style"]?.string == "deepObject" } == true
            let encoder = hasDeep ? "" : ", encoder: QueryEncoder(arrays: .repeated)"
            let value =
                isOptional || type.isOptional
                ? "payload.map { .form(of: $0\(encoder)) }" : ".form(of: payload\(encoder))"
            request.members.append(["var body: RequestBody? { \(value) }"])
            return
        }
        if let media = body.media.first(where: { $0.type == "multipart/form-data" }), let schema = media.schema {
            return try writeForm(schema, isOptional, comment, to: &request, &scope)
        }
        comment.append("Of the type \(body.media.map { "`\($0.type)`" }.joined(separator: " or ")).")
        request.properties.append(property(.named("RequestBody")))
        request.members.append(["var body: RequestBody? { payload }"])
        if body.media.count == 1, !first.type.contains("*") {
            fields.append(("Content-Type", first.type.literal, false))
        }
    }

    /// The type of a body; `Payload` for one without a name.
    private mutating func payload(_ schema: JSON, _ scope: inout SchemaReader.Scope) -> SwiftType {
        scope.taken.remove("Payload")
        defer { scope.taken.insert("Payload") }
        return schemas.type(of: schema, as: .nested("Payload"), in: &scope)
    }

    private mutating func writeForm(
        _ json: JSON,
        _ isOptional: Bool,
        _ comment: [String],
        to request: inout RequestDeclaration,
        _ scope: inout SchemaReader.Scope
    ) throws(InputError) {
        let found = try document.resolve(json).json
        let schema = OpenAPISchema(found)
        guard !schema.properties.isEmpty else {
            throw InputError(message: "its form has no members", offset: json.offset)
        }
        var taken = Name.requestProperties.union(request.properties.map(\.name))
        var lines = ["var form = MultipartForm()"]
        for (key, json) in schema.properties {
            let name = Name.unique(Name.property(key, limit: nil), &taken)
            let member = OpenAPISchema((try? document.resolve(json).json) ?? json)
            let element = member.items.map { OpenAPISchema((try? document.resolve($0).json) ?? $0) }
            func isFile(_ schema: OpenAPISchema) -> Bool {
                schema.kinds == [.string] && ["binary", "byte", "base64"].contains(schema.format)
                    || schema.json["contentMediaType"] != nil
            }
            var type: SwiftType
            var write: (String) -> String
            if isFile(member) {
                type = .named("FormFile")
                write = { "\($0).append(to: &form, name: \(key.literal))" }
            } else if let element, isFile(element) {
                type = .array(.named("FormFile"))
                write = { "for part in \($0) { part.append(to: &form, name: \(key.literal)) }" }
            } else {
                type = schemas.type(of: json, as: .nested(key), in: &scope).unwrapped
                if isPlainType(type, in: scope) {
                    let text = text(of: type, in: scope)
                    write = { "form.append(\(text($0)), name: \(key.literal))" }
                } else if case .array(let element) = type, isPlainType(element, in: scope) {
                    let text = text(of: element, in: scope)("part")
                    write = { "for part in \($0) { form.append(\(text), name: \(key.literal)) }" }
                } else {
                    write = { "FormFile.append(\($0), to: &form, name: \(key.literal))" }
                }
            }
            let isRequired = schema.required.contains(key) && !isOptional
            let declared = Name.declared(name)
            lines.append(isRequired ? write(declared) : "if let \(declared) { \(write(declared)) }")
            request.properties.append(
                RequestDeclaration.Property(
                    name: name,
                    type: isRequired ? type : .optional(type),
                    comment: Comment.lines(json["description"]?.string)
                )
            )
        }
        lines.append("return .multipart(form)")
        request.members.append(Lines.block("var body: RequestBody? {", [lines]))
    }

    // MARK: - Answers

    private mutating func read(
        _ responses: [(status: String, content: OpenAPIContent)],
        to request: inout RequestDeclaration,
        _ fields: inout [(name: String, value: String, isOptional: Bool)],
        _ scope: inout SchemaReader.Scope
    ) {
        var types: Set<String> = []
        let successes = responses.filter { $0.status.hasPrefix("2") }
        let isAmongOthers = successes.count { $0.content.json != nil } > 1
        let hasSuccess = responses.contains { $0.status.hasPrefix("2") }
        let hasRedirect = responses.contains { $0.status.hasPrefix("3") }
        for (status, content) in responses.sorted(by: { $0.status < $1.status }) {
            let isSuccess = status.hasPrefix("2") || status == "default" && !hasSuccess && !hasRedirect
            if isSuccess {
                let media = content.json ?? content.media.first
                var answer: RequestDeclaration.Answer.Content = .none
                if let media {
                    types.insert(media.type)
                    if media.isJSON, let schema = media.schema {
                        // Among answers without content the item is an optional of it.
                        let name = isAmongOthers ? "Status \(status)" : successes.count > 1 ? "Answer" : "Item"
                        answer = .json(item(schema, name, &scope))
                    } else {
                        answer = media.type.hasPrefix("text/") ? .text : .data
                    }
                }
                request.answers.append(RequestDeclaration.Answer(status: status, content: answer))
            } else if !status.hasPrefix("1"), !status.hasPrefix("3"),
                let schema = content.json?.schema
            {
                let type = schemas.type(of: schema, as: .nested("status \(status)"), in: &scope).unwrapped
                request.failures.append(RequestDeclaration.Answer(status: status, content: .json(type)))
            }
        }
        // What a redirect leads to has no description.
        if !hasSuccess, hasRedirect, request.answers.isEmpty {
            request.answers.append(RequestDeclaration.Answer(status: "default", content: .data))
        }
        if types.count == 1, let type = types.first, type != "application/json", !type.contains("*") {
            fields.append(("Accept", type.literal, false))
        }
    }

    /// The type of an answer.
    ///
    /// - Parameter name: for one that has none.
    private mutating func item(_ schema: JSON, _ name: String, _ scope: inout SchemaReader.Scope) -> SwiftType {
        let found = OpenAPISchema((try? document.resolve(schema).json) ?? schema)
        // The item itself has the name Item; the type of a part of it needs another one.
        var name = name
        if name == "Item", found.isNullable || found.alternatives?.contains(where: isNull) == true { name = "Answer" }
        if found.kinds == [.array] { name = "Element" }
        if found.kinds == [.object], found.properties.isEmpty, found.parts == nil { name = "Value" }
        if name == "Item" { scope.taken.remove("Item") }
        defer { scope.taken.insert("Item") }
        return schemas.type(of: schema, as: .nested(name), in: &scope)
    }

    private func isNull(_ schema: JSON) -> Bool {
        OpenAPISchema((try? document.resolve(schema).json) ?? schema).isNull
    }
}
