import EasyNetworkOpenAPI
import Foundation

/// Writes a document's requests and schemas as Swift code, in extensions of one type.
struct OpenAPIWriter {
    /// The name of the type that contains all others.
    let name: String
    /// Whether other modules can use the types.
    let isPublic: Bool

    private var access: String { isPublic ? "public " : "" }

    struct Output {
        /// The contents of the files by their names, in order.
        var files: [(name: String, text: String)] = []
        /// The parts that were left out, each with its place.
        var notes: [InputError] = []
        var operationCount = 0
        var requestCount = 0
        var schemaCount = 0
    }

    func output(of document: OpenAPIDocument) -> Output {
        var reader = RequestReader(document)
        var schemas = reader.schemas.components()
        let requests = reader.requests()
        let places = Dictionary(
            document.schemas.map { (reader.schemas.names[$0.key] ?? "", $0.value) },
            uniquingKeysWith: { first, _ in first }
        )
        for broken in schemas.breakCircles() {
            let json = places[broken] ?? document.root
            reader.schemas.note("the schema \(broken) only refers to itself, so it becomes a JSONValue", at: json)
        }
        var output = Output()
        output.notes = reader.schemas.notes
        output.operationCount = reader.operationCount
        output.requestCount = requests.count
        output.schemaCount = schemas.count

        var texts: [(name: String, lines: [[String]])] = []
        var files: [String: Int] = [:]
        for request in requests {
            let file = Self.file(request.tag)
            // Names that differ only by case are the same file on some disks.
            let index = files[file.lowercased()] ?? texts.count
            if index == texts.count { texts.append(("\(name)+\(file).swift", [])) }
            files[file.lowercased()] = index
            texts[index].lines.append(text(request))
        }
        if !schemas.isEmpty { texts.append(("\(name)+Schemas.swift", schemas.map { text($0) })) }
        let all = texts.flatMap(\.lines).joined().joined(separator: "\n")
        texts.insert(("\(name).swift", [root(document)] + support(for: all)), at: 0)
        output.files = texts.enumerated().map { index, text in
            let lines = index == 0 ? text.lines : [Lines.block("nonisolated extension \(name) {", text.lines)]
            let body = lines.map { $0.joined(separator: "\n") }.joined(separator: "\n\n")
            return (text.name, "\(Self.mark)\n\nimport EasyNetwork\nimport Foundation\n\n\(body)\n")
        }
        return output
    }

    /// The first lines of each file.
    static let mark = """
        // Written by Generate from an OpenAPI document; what is changed here is lost when it is written again.
        // swift-format-ignore-file
        """

    private static func file(_ tag: String?) -> String {
        let name = Name.type(tag ?? "Requests", limit: 100)
        return name.lowercased() == "schemas" ? "SchemasRequests" : name
    }

    // MARK: - The type that holds all

    private func root(_ document: OpenAPIDocument) -> [String] {
        let info = document.root["info"]
        let title = [info?["title"]?.string, info?["version"]?.string].compactMap { $0 }.joined(separator: " ")
        let lines = Comment(title.isEmpty ? nil : "\(title).", info?["description"]?.string).source()
        let sections = [servers(document), credentials(document)]
        if sections.allSatisfy(\.isEmpty) { return lines + ["\(access)nonisolated enum \(name) {}"] }
        return lines + Lines.block("\(access)nonisolated enum \(name) {", sections)
    }

    private func servers(_ document: OpenAPIDocument) -> [String] {
        var taken: Set<String> = ["baseURL"]
        let servers = (document.root["servers"]?.elements ?? []).compactMap { json -> [String]? in
            guard let url = json["url"]?.string else { return nil }
            let description = json["description"]?.string
            let words = description?.split(separator: " ").prefix(3).joined(separator: " ") ?? ""
            let fallback = taken.count == 1 ? "main" : "server"
            let name = Name.unique(words.isEmpty ? fallback : Name.property(words, limit: nil), &taken)
            let comment = Comment(description ?? url).source()
            let variables = json["variables"]?.members ?? []
            if variables.isEmpty {
                return comment + ["\(access)static let \(Name.declared(name)) = Server(text: \(url.literal))"]
            }
            var taken: Set<String> = []
            var names: [String: String] = [:]
            let parameters = variables.map { key, variable in
                let name = Name.declared(Name.unique(Name.property(key, limit: nil), &taken))
                names[key] = name
                return "\(name): String = \((variable["default"]?.string ?? "").literal)"
            }
            let text = TemplatePart.parts(of: url).map { part in
                switch part {
                case .literal(let text): text.escaped
                case .parameter(let key): names[key].map { "\\(\($0))" } ?? "{\(key)}".escaped
                }
            }.joined()
            let head = "\(access)static func \(Name.declared(name))(\(parameters.joined(separator: ", "))) -> Server {"
            return comment + Lines.block(head, [["Server(text: \"\(text)\")"]])
        }
        if servers.isEmpty { return [] }
        let own = [
            "fileprivate let text: String",
            "/// The base URL for a `HostConfiguration`; `nil` if the text is not a URL.",
            "\(access)var baseURL: URL? { URL(string: text) }",
        ]
        return ["/// A server of the API."]
            + Lines.block("\(access)struct Server: Hashable, Sendable {", [own] + servers)
    }

    private func credentials(_ document: OpenAPIDocument) -> [String] {
        let schemes = SecurityScheme.all(of: document)
        if schemes.isEmpty { return [] }
        let cases = schemes.map { scheme in
            let values = scheme.kind == .basic ? "user: String, password: String" : "String"
            return scheme.comment.source() + ["case \(Name.declared(scheme.name))(\(values))"]
        }
        let branches = schemes.map { scheme in
            let value = scheme.kind == .basic ? "let user, let password" : "let value"
            let line =
                switch scheme.kind {
                case .basic:
                    "settings.headers[\"Authorization\"] = try HTTPCredential.basic(user: user, password: password).authorization"
                case .bearer: "settings.headers[\"Authorization\"] = try HTTPCredential.bearer(value).authorization"
                case .header(let name): "settings.headers[\(name.literal)] = value"
                case .cookie(let name): "settings.headers[\"Cookie\"] = \"\(name.escaped)=\\(value)\""
                case .query(let name): "settings.filters.append { draft in draft.parameters[\(name.literal)] = value }"
                }
            var lines = [line]
            switch scheme.kind {
            case .header(let name), .query(let name): lines.append("settings.secretNames.insert(\(name.literal))")
            case .basic, .bearer, .cookie: break
            }
            return ["case .\(scheme.name)(\(value)):"] + lines.map { "    " + $0 }
        }
        let apply =
            [
                "/// Adds the credential to all requests of a host: `HostConfiguration(baseURL: url) { try? credential.apply(to: &$0) }`.",
                "/// To refresh a token, use `AuthenticationSession`.",
            ]
            + Lines.block(
                "\(access)func apply(to settings: inout HostSettings) throws(NetworkError) {",
                [["switch self {"] + branches.joined() + ["}"]]
            )
        let head = "\(access)enum Credential: Hashable, Sendable {"
        return ["/// A credential of the client."] + Lines.block(head, [Array(cases.joined()), apply])
    }

    /// Returns the supporting types that the text uses.
    private func support(for text: String) -> [[String]] {
        func uses(_ name: String) -> Bool { text.contains(name) }
        var types: [[String]] = []
        if uses("JSONValue") { types.append(source(JSONValueSource.type)) }
        if uses("AnyKey") { types.append(source(SupportSource.anyKey)) }
        if uses("Box<") { types.append(source(SupportSource.box)) }
        if uses("ParameterText") { types.append(source(SupportSource.parameterText)) }
        if uses("FormFile") { types.append(source(SupportSource.formFile)) }
        return types.isEmpty ? [] : [Lines.block("nonisolated extension \(name) {", types)]
    }

    /// Returns the source of a type, public if the other types are.
    private func source(_ text: String) -> [String] {
        let lines = text.replacing("nonisolated ", with: "").split(separator: "\n", omittingEmptySubsequences: false)
        return lines.map { line in
            let isMember = line.contains(/^(    )?(indirect enum|enum|struct|init|func|var|static func) ?/)
            guard isPublic, isMember else { return String(line) }
            return line.hasPrefix("    ") ? "    public " + line.dropFirst(4) : "public " + line
        }
    }

    // MARK: - Schemas

    private func text(_ declaration: Declaration) -> [String] {
        let lines =
            switch declaration.kind {
            case .structure(let properties, let additional): structure(declaration, properties, additional)
            case .values(let cases, let raw): values(declaration, cases, raw)
            case .union(let cases, let key): union(declaration, cases, key)
            case .alias(let type): ["\(access)typealias \(declaration.name) = \(type.text)"]
            }
        return declaration.comment.source() + lines
    }

    private func structure(
        _ declaration: Declaration,
        _ properties: [Declaration.Property],
        _ additional: SwiftType?
    ) -> [String] {
        var stored: [String] = []
        for property in properties {
            let name = Name.declared(property.name)
            stored += property.comment.source()
            if let box = property.box {
                let get = "\(box)\(property.type.isOptional ? "?" : "").value"
                let set = property.type.isOptional ? "newValue.map(Box.boxed)" : ".boxed(newValue)"
                stored.append("\(access)var \(name): \(property.type.text) {")
                stored += ["    get { \(get) }", "    set { \(box) = \(set) }", "}"]
                let type = "Box<\(property.type.unwrapped.text)>" + (property.type.isOptional ? "?" : "")
                stored.append("private var \(box): \(type)")
            } else {
                stored.append("\(access)var \(name): \(property.type.text)")
            }
        }
        if let additional {
            stored.append("/// The other members.")
            stored.append("\(access)var additionalProperties: [String: \(additional.text)] = [:]")
        }
        var sections = [stored]
        let isBoxed = properties.contains { $0.box != nil }
        if isPublic || isBoxed || additional != nil { sections.append(initializer(properties, additional)) }
        sections += declaration.nested.map(text)
        let hasOtherKeys = properties.contains { $0.key != $0.name || $0.box != nil }
        let isCustom = additional != nil || properties.contains(where: \.writesNull)
        if hasOtherKeys || isCustom {
            let cases = properties.map { property in
                let name = property.box ?? property.name
                return "case \(Name.declared(name))" + (property.key == name ? "" : " = \(property.key.literal)")
            }
            sections.append(Lines.block("private enum CodingKeys: String, CodingKey {", [cases]))
        }
        if additional != nil { sections.append(decoding(properties, additional)) }
        if isCustom { sections.append(encoding(properties, additional)) }
        return Lines.block("\(access)struct \(declaration.name): Codable, Hashable, Sendable {", sections)
    }

    private func initializer(_ properties: [Declaration.Property], _ additional: SwiftType?) -> [String] {
        var parameters = properties.map { property in
            "\(Name.declared(property.name)): \(property.type.text)" + (property.type.isOptional ? " = nil" : "")
        }
        var lines = properties.map { property in
            let name = Name.declared(property.name)
            guard let box = property.box else { return "self.\(property.name) = \(name)" }
            return "self.\(box) = " + (property.type.isOptional ? "\(name).map(Box.boxed)" : ".boxed(\(name))")
        }
        if let additional {
            parameters.append("additionalProperties: [String: \(additional.text)] = [:]")
            lines.append("self.additionalProperties = additionalProperties")
        }
        return Lines.block("\(access)init(\(parameters.joined(separator: ", "))) {", [lines])
    }

    private func decoding(_ properties: [Declaration.Property], _ additional: SwiftType?) -> [String] {
        var lines = properties.isEmpty ? [] : ["let container = try decoder.container(keyedBy: CodingKeys.self)"]
        lines += properties.map { property in
            let name = property.box ?? property.name
            let held = property.type.isOptional ? unwrappedOnce(property.type) : property.type
            let type = property.box != nil ? "Box<\(held.text)>" : held.text
            let method = property.type.isOptional ? "decodeIfPresent" : "decode"
            return "self.\(name) = try container.\(method)(\(type).self, forKey: .\(name))"
        }
        if let additional {
            lines.append("let others = try decoder.container(keyedBy: AnyKey.self)")
            lines += Lines.block(
                "for key in others.allKeys where CodingKeys(stringValue: key.stringValue) == nil {",
                [["additionalProperties[key.stringValue] = try others.decode(\(additional.text).self, forKey: key)"]]
            )
        }
        return Lines.block("\(access)init(from decoder: any Decoder) throws {", [lines])
    }

    private func unwrappedOnce(_ type: SwiftType) -> SwiftType {
        if case .optional(let inner) = type { inner } else { type }
    }

    private func encoding(_ properties: [Declaration.Property], _ additional: SwiftType?) -> [String] {
        var lines = properties.isEmpty ? [] : ["var container = encoder.container(keyedBy: CodingKeys.self)"]
        lines += properties.map { property in
            let name = property.box ?? property.name
            let method = property.type.isOptional && !property.writesNull ? "encodeIfPresent" : "encode"
            return "try container.\(method)(self.\(name), forKey: .\(name))"
        }
        if additional != nil {
            lines.append("var others = encoder.container(keyedBy: AnyKey.self)")
            lines.append("for (key, value) in additionalProperties { try others.encode(value, forKey: AnyKey(key)) }")
        }
        return Lines.block("\(access)func encode(to encoder: any Encoder) throws {", [lines])
    }

    private func values(_ declaration: Declaration, _ cases: [(name: String, literal: String)], _ raw: String)
        -> [String]
    {
        let names = cases.map { item in
            "\(access)static let \(Name.declared(item.name)) = \(declaration.name)(rawValue: \(item.literal))"
        }
        let initializer = isPublic ? ["public init(rawValue: \(raw)) { self.rawValue = rawValue }"] : []
        let head = "\(access)struct \(declaration.name): RawRepresentable, Codable, Hashable, Sendable {"
        return Lines.block(head, [["\(access)var rawValue: \(raw)"] + initializer, names])
    }

    private func union(_ declaration: Declaration, _ cases: [Declaration.Case], _ key: String?) -> [String] {
        let names = cases.map { "case \(Name.declared($0.name))(\($0.type.text))" }
        let other = ["/// A value of a kind that the document does not have.", "case other(JSONValue)"]
        var read = ["let container = try decoder.singleValueContainer()"]
        let marked = key == nil ? [] : cases.filter { !$0.marks.isEmpty }
        if let key, !marked.isEmpty {
            read.append(
                "let mark = try? decoder.container(keyedBy: AnyKey.self).decode(String.self, forKey: AnyKey(\(key.literal)))"
            )
            let branches = marked.map { item in
                let marks = item.marks.map(\.literal).joined(separator: ", ")
                return "case \(marks): self = .\(item.name)(try container.decode(\(item.type.text).self))"
            }
            read +=
                ["switch mark {"] + branches + ["default:"]
                + attempts(cases.filter(\.marks.isEmpty)).map { "    " + $0 } + ["}"]
        } else {
            read += attempts(cases)
        }
        let write =
            cases.map { "case .\($0.name)(let value): try container.encode(value)" }
            + ["case .other(let value): try container.encode(value)"]
        let decoding = Lines.block("\(access)init(from decoder: any Decoder) throws {", [read])
        let encoding = Lines.block(
            "\(access)func encode(to encoder: any Encoder) throws {",
            [["var container = encoder.singleValueContainer()", "switch self {"] + write + ["}"]]
        )
        let keyword = declaration.isIndirect ? "indirect enum" : "enum"
        let head = "\(access)\(keyword) \(declaration.name): Codable, Hashable, Sendable {"
        return Lines.block(head, [names + other] + declaration.nested.map(text) + [decoding, encoding])
    }

    /// Returns code that decodes a value as the first type that fits.
    private func attempts(_ cases: [Declaration.Case]) -> [String] {
        let other = "self = .other(try container.decode(JSONValue.self))"
        if cases.isEmpty { return [other] }
        let branches = cases.flatMap { item in
            [
                "if let value = try? container.decode(\(item.type.text).self) {", "    self = .\(item.name)(value)",
                "} else",
            ]
        }
        var lines: [String] = []
        for line in branches {
            if let last = lines.last, last == "} else" {
                lines[lines.count - 1] = "} else " + line
            } else {
                lines.append(line)
            }
        }
        lines[lines.count - 1] = "} else {"
        return lines + ["    " + other, "}"]
    }

    // MARK: - Requests

    private func text(_ request: RequestDeclaration) -> [String] {
        var members = request.members
        let item = item(request, &members)
        var stored: [String] = []
        for property in request.properties {
            let initial = property.initial.map { " = \($0)" } ?? (property.type.isOptional ? " = nil" : "")
            stored += property.comment.source()
            stored.append("\(access)var \(Name.declared(property.name)): \(property.type.text)\(initial)")
        }
        var sections = [item.alias, stored]
        if isPublic { sections.append(initializer(request.properties)) }
        sections.append(members.flatMap { $0.map { $0.hasPrefix("var ") || $0.hasPrefix("func ") ? access + $0 : $0 } })
        sections.append(item.method)
        sections += item.types + request.nested.map(text)
        if let keys = request.codingKeys {
            let cases = keys.map { name, key in
                "case \(Name.declared(name))" + (key == name ? "" : " = \(key.literal)")
            }
            sections.append(Lines.block("private enum CodingKeys: String, CodingKey {", [cases]))
        }
        if !request.failures.isEmpty { sections.append(failure(request.failures)) }
        let deprecated = request.isDeprecated ? ["@available(*, deprecated)"] : []
        let conformances = "APIRequest" + (request.codingKeys == nil ? "" : ", Encodable")
        return request.comment.source() + deprecated
            + Lines.block("\(access)struct \(request.name): \(conformances) {", sections)
    }

    private func initializer(_ properties: [RequestDeclaration.Property]) -> [String] {
        let parameters = properties.map { property in
            let initial = property.initial.map { " = \($0)" } ?? (property.type.isOptional ? " = nil" : "")
            return "\(Name.declared(property.name)): \(property.type.text)\(initial)"
        }
        let lines = properties.map { "self.\($0.name) = \(Name.declared($0.name))" }
        return Lines.block("public init(\(parameters.joined(separator: ", "))) {", [lines])
    }

    /// Returns the alias, the method and the types for the item.
    private func item(
        _ request: RequestDeclaration,
        _ members: inout [[String]]
    ) -> (alias: [String], method: [String], types: [[String]]) {
        func alias(_ type: String) -> [String] { type == "Item" ? [] : ["\(access)typealias Item = \(type)"] }
        func read(_ content: RequestDeclaration.Answer.Content) -> String {
            switch content {
            case .none: "()"
            case .text: "try response.text()"
            case .data: "response.body"
            case .json(let type): "try response.decode(\(type.text).self, with: .json)"
            }
        }
        let full = request.answers.filter { $0.type != nil }
        let isSometimesEmpty = full.count < request.answers.count
        guard let first = full.first, let type = first.type else { return (alias("Void"), [], []) }
        let head = "\(access)func item(from response: NetworkResponse) throws -> "
        guard full.contains(where: { $0.content != first.content }) else {
            if first.content == .data, !isSometimesEmpty { return (alias("Data"), [], []) }
            let item = isSometimesEmpty ? type.asOptional : type
            let value = isSometimesEmpty ? "response.body.isEmpty ? nil : \(read(first.content))" : read(first.content)
            return (alias(item.text), Lines.block("\(head)\(item.text) {", [[value]]), [])
        }
        var taken: Set<String> = []
        let cases = request.answers.map { (answer: $0, name: Name.unique(Status.name($0.status), &taken)) }
        let names = cases.map { answer, name in "case \(name)" + (answer.type.map { "(\($0.text))" } ?? "") }
        let branches = cases.map { answer, name in
            let value = answer.type == nil ? ".\(name)" : ".\(name)(\(read(answer.content)))"
            return "case \(Status.pattern(answer.status)): \(value)"
        }
        let last = cases.last { $0.answer.type != nil }.map { ".\($0.name)(\(read($0.answer.content)))" } ?? ""
        let hasDefault = cases.contains { $0.answer.status == "default" }
        let switched = ["switch response.statusCode {"] + branches + (hasDefault ? [] : ["default: \(last)"]) + ["}"]
        let type0 =
            ["/// The response, by its status."] + Lines.block("\(access)enum Answer: Hashable, Sendable {", [names])
        return (alias("Answer"), Lines.block("\(head)Answer {", [switched]), [type0])
    }

    private func failure(_ failures: [RequestDeclaration.Answer]) -> [String] {
        var taken: Set<String> = []
        let cases = failures.compactMap { failure in
            failure.type.map {
                (status: failure.status, name: Name.unique(Status.name(failure.status), &taken), type: $0)
            }
        }
        let names = cases.map { "case \($0.name)(\($0.type.text))" }
        var branches = cases.map { status, name, type in
            let pattern = Status.pattern(status)
            let head = pattern == "_" ? "default" : "case \(pattern)"
            return "\(head): self = .\(name)(try error.decode(\(type.text).self, with: .json))"
        }
        if !cases.contains(where: { $0.status == "default" }) { branches.append("default: throw error") }
        let isSwitch = branches.count > 1
        let lines =
            isSwitch ? ["switch error.statusCode ?? 0 {"] + branches + ["}"] : [String(branches[0].dropFirst(9))]
        let initializer =
            [
                "/// - Throws: The error itself if the document doesn't describe its response; another error if the body cannot be decoded."
            ] + Lines.block("\(access)init(_ error: NetworkError) throws(NetworkError) {", [lines])
        return ["/// The error responses of the document."]
            + Lines.block("\(access)enum Failure: Error, Hashable, Sendable {", [names, initializer])
    }
}

/// The names of statuses.
private enum Status {
    static func name(_ status: String) -> String {
        if status == "default" { return "other" }
        guard let code = Int(status) else {
            return ["2": "success", "4": "refused", "5": "failed"][status.prefix(1)] ?? "other"
        }
        return names[code] ?? "status\(code)"
    }

    /// Returns a pattern for a `switch`.
    static func pattern(_ status: String) -> String {
        if status == "default" { return "_" }
        return Int(status).map(String.init) ?? "\(status.prefix(1))00...\(status.prefix(1))99"
    }

    private static let names = [
        200: "ok", 201: "created", 202: "accepted", 203: "nonAuthoritative", 204: "noContent", 205: "resetContent",
        206: "partialContent", 400: "badRequest", 401: "unauthorized", 402: "paymentRequired", 403: "forbidden",
        404: "notFound", 405: "methodNotAllowed", 406: "notAcceptable", 408: "requestTimeout", 409: "conflict",
        410: "gone",
        412: "preconditionFailed", 413: "contentTooLarge", 415: "unsupportedMediaType", 422: "unprocessableContent",
        423: "locked", 429: "tooManyRequests", 500: "internalServerError", 501: "notImplemented", 502: "badGateway",
        503: "serviceUnavailable", 504: "gatewayTimeout",
    ]
}
