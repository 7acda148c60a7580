import EasyNetworkOpenAPI
import Foundation

/// Reads the operations of a document.
struct RequestReader {
    /// A header field. The value is a Swift expression, which is `nil` to leave the field out.
    typealias Field = (name: String, value: String, isOptional: Bool)

    var schemas: SchemaReader
    private(set) var operationCount = 0
    /// The names of all types next to the requests.
    private var taken: Set<String>
    /// The arguments of `RequestOptions` for a request without a credential.
    let withoutCredential: [String]
    var document: OpenAPIDocument { schemas.document }

    init(_ document: OpenAPIDocument) {
        schemas = SchemaReader(document)
        let security = SecurityScheme.all(of: document)
        let fields = Set(security.compactMap(\.field)).sorted().map(\.literal).joined(separator: ", ")
        let omitted = fields.isEmpty ? [] : ["omittedHeaders: [\(fields)]"]
        withoutCredential = security.isEmpty ? [] : omitted + ["isAuthenticated: false"]
        taken = Set(schemas.names.values)
    }

    /// Returns the requests. An operation that cannot become a request is left out, with a note.
    mutating func requests() -> [RequestDeclaration] {
        let operations = document.operations
        operationCount = operations.count
        // Find all names before the first nested type, which must not hide any of them.
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
            comment: Comment(operation.json["summary"]?.string, operation.json["description"]?.string),
            isDeprecated: isDeprecated
        )
        var scope = SchemaReader.Scope(taken: .init([name, "Answer", "Failure", "Payload", "Item"], in: [taken]))
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

    // MARK: - Answers

    private mutating func read(
        _ responses: [(status: String, content: OpenAPIContent)],
        to request: inout RequestDeclaration,
        _ fields: inout [Field],
        _ scope: inout SchemaReader.Scope
    ) {
        var types: Set<String> = []
        let successes = responses.filter { $0.status.hasPrefix("2") }
        let isAmongOthers = successes.count { !$0.content.media.isEmpty } > 1
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
                        // If other responses have no content, the item is an optional of this type.
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
        // The document doesn't describe the target of a redirect.
        if !hasSuccess, hasRedirect, request.answers.isEmpty {
            request.answers.append(RequestDeclaration.Answer(status: "default", content: .data))
        }
        if types.count == 1, let type = types.first, type != "application/json", !type.contains("*") {
            fields.append(("Accept", type.literal, false))
        }
    }

    /// Returns the type of a response.
    ///
    /// - Parameter name: The name for a schema without one.
    private mutating func item(_ schema: JSON, _ name: String, _ scope: inout SchemaReader.Scope) -> SwiftType {
        let found = OpenAPISchema((try? document.resolve(schema).json) ?? schema)
        // The item itself is called `Item`, so the type of a part of it needs another name.
        var name = name
        if name == "Item", found.isNullable || found.alternatives?.contains(where: isNull) == true { name = "Answer" }
        if found.kinds == [.array] { name = "Element" }
        if found.kinds == [.object], found.properties.isEmpty, found.parts == nil { name = "Value" }
        let isOwn = ["Answer", "Item"].contains(name)
        if isOwn { scope.taken.remove(name) }
        defer { if isOwn { scope.taken.insert(name) } }
        return schemas.type(of: schema, as: .nested(name), in: &scope)
    }

    private func isNull(_ schema: JSON) -> Bool {
        OpenAPISchema((try? document.resolve(schema).json) ?? schema).isNull
    }
}
