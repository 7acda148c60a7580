import EasyNetworkOpenAPI
import Foundation

/// Bodies: JSON, forms, forms with files, and any other data.
extension RequestReader {
    mutating func write(
        _ body: OpenAPIContent,
        to request: inout RequestDeclaration,
        _ fields: inout [Field],
        _ names: inout Set<String>,
        _ scope: inout SchemaReader.Scope
    ) throws(InputError) {
        guard let first = body.media.first else { return }
        let isOptional = !body.isRequired
        var comment = Comment(body.description)
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
                // The types share one schema, and the content type tells the server how to apply the body.
                let types = json.map { "`\($0.type)`" }.joined(separator: ", ")
                let name = Name.unique("contentType", &names)
                request.properties.append(
                    RequestDeclaration.Property(
                        name: name,
                        type: .named("String"),
                        comment: Comment("The type of the body: \(types)."),
                        initial: media.type.literal
                    )
                )
                fields.append(("Content-Type", "self.\(name)", false))
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
            let encoder = hasDeep ? "" : ", encoder: QueryEncoder(arrayStyle: .repeated)"
            let value =
                isOptional || type.isOptional
                ? "payload.map { .form(of: $0\(encoder)) }" : ".form(of: payload\(encoder))"
            request.members.append(["var body: RequestBody? { \(value) }"])
            return
        }
        if let media = body.media.first(where: { $0.type == "multipart/form-data" }), let schema = media.schema {
            return try writeForm(schema, media.json["encoding"], isOptional, to: &request, &scope)
        }
        comment.append("Of the type \(body.media.map { "`\($0.type)`" }.joined(separator: " or ")).")
        request.properties.append(property(.named("RequestBody")))
        request.members.append(["var body: RequestBody? { payload }"])
        if body.media.count == 1, !first.type.contains("*") {
            fields.append(("Content-Type", first.type.literal, false))
        }
    }

    /// Returns the type of a body, called `Payload` if the schema has no name.
    private mutating func payload(_ schema: JSON, _ scope: inout SchemaReader.Scope) -> SwiftType {
        scope.taken.remove("Payload")
        defer { scope.taken.insert("Payload") }
        return schemas.type(of: schema, as: .nested("Payload"), in: &scope)
    }

    private mutating func writeForm(
        _ json: JSON,
        _ encoding: JSON?,
        _ isOptional: Bool,
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
            let property = Name.unique(Name.property(key, limit: nil), &taken)
            let member = OpenAPISchema((try? document.resolve(json).json) ?? json)
            let element = member.items.map { OpenAPISchema((try? document.resolve($0).json) ?? $0) }
            func isFile(_ schema: OpenAPISchema) -> Bool {
                schema.kinds == [.string] && ["binary", "byte", "base64"].contains(schema.format)
                    || schema.json["contentMediaType"] != nil
            }
            // With several types or a range, the value or the file name decides.
            let contentType = encoding?[key]?["contentType"]?.string.flatMap { $0.contains(/[,*]/) ? nil : $0 }
            let name = "name: \(key.literal)" + (contentType.map { ", contentType: \($0.literal)" } ?? "")
            var type: SwiftType
            var write: (String) -> String
            if isFile(member) {
                type = .named("FormFile")
                write = { "\($0).append(to: &form, \(name))" }
            } else if let element, isFile(element) {
                type = .array(.named("FormFile"))
                write = { "for part in \($0) { part.append(to: &form, \(name)) }" }
            } else {
                type = schemas.type(of: json, as: .nested(key), in: &scope).unwrapped
                if isPlainType(type, in: scope) {
                    let text = text(of: type, in: scope)
                    write = { "form.append(\(text($0)), \(name))" }
                } else if case .array(let element) = type, isPlainType(element, in: scope) {
                    let text = text(of: element, in: scope)("part")
                    write = { "for part in \($0) { form.append(\(text), \(name)) }" }
                } else {
                    write = { "FormFile.append(\($0), to: &form, \(name))" }
                }
            }
            let isRequired = schema.required.contains(key) && !isOptional
            lines.append(
                isRequired ? write("self.\(property)") : "if let value = self.\(property) { \(write("value")) }"
            )
            request.properties.append(
                RequestDeclaration.Property(
                    name: property,
                    type: isRequired ? type : .optional(type),
                    comment: Comment(json["description"]?.string)
                )
            )
        }
        lines.append("return .multipart(form)")
        request.members.append(Lines.block("var body: RequestBody? {", [lines]))
    }
}
