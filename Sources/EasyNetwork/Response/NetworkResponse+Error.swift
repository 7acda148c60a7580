import Foundation

extension NetworkResponse {
    /// Returns an error with the status, the headers and the beginning of the body of this response. For a status of
    /// 400 and above, it contains the server's message.
    package func error(
        _ code: NetworkError.Code,
        message: String? = nil,
        underlying: (any Error)? = nil
    ) -> NetworkError {
        var error = NetworkError(
            code: code,
            message: message,
            statusCode: statusCode,
            headers: headers,
            responseBody: body,
            serverMessage: statusCode >= 400 ? serverMessage : nil,
            underlying: underlying
        )
        error.metrics = metrics
        error.adopt(history)
        return error
    }

    /// Returns the value that `map` makes of this response, or its error.
    func item<Item>(_ map: (NetworkResponse) throws -> Item) -> Result<Item, NetworkError> {
        Result { try map(self) }.mapError(mappingError)
    }

    /// Converts an error that a mapper, or ``APIRequest/item(from:)``, has thrown.
    ///
    /// A ``NetworkError`` is kept and completed. Any other error becomes ``NetworkError/Code/cannotParseResponse`` with
    /// its description, which for a ``ResponseMapperError`` names the key and the index.
    package func mappingError(_ error: any Error) -> NetworkError {
        guard var known = error as? NetworkError else {
            let decoding = error as? DecodingError
            var message = decoding?.message(in: node) ?? NetworkError.mapping(error).message
            if case .dataCorrupted = decoding, case .failure(let reason) = indexedBody { message = noJSON(reason) }
            return self.error(.cannotParseResponse, message: message, underlying: error)
        }
        guard known.statusCode == nil else { return known }
        if known.history.isEmpty { known.adopt(history) }
        known.statusCode = statusCode
        if known.headers.isEmpty { known.headers = headers }
        if known.responseBody == nil { known.responseBody = body }
        if known.metrics == nil { known.metrics = metrics }
        return known
    }

    /// Returns the message for a body that is not JSON. It names the server's media type, because a login page arrives
    /// as `text/html`; for JSON types, it names the place of the syntax error.
    func noJSON(_ reason: JSONSyntaxError) -> String {
        let type = MediaType(headers)
        guard let type, !type.isJSON else { return "the body is not JSON: \(reason.phrase)" }
        return "the body is not JSON but \(type.essence.prefix(60))"
    }
}

extension NetworkError {
    /// Converts an error that a mapper, a decoder or a view has thrown.
    package static func mapping(_ error: any Error) -> NetworkError {
        if let error = error as? NetworkError { return error }
        let message =
            (error as? ResponseMapperError)?.phrase ?? (error as? DecodingError)?.message(in: nil) ?? error.wording
        return NetworkError(code: .cannotParseResponse, message: message, underlying: error)
    }

    /// Decodes the body of the failed response, for details that a server reports in its own format.
    ///
    /// ```swift
    /// operation.failure = { error in
    ///     if let problem = try? error.decode(Problem.self) { show(problem.title) }
    /// }
    /// ```
    ///
    /// - Parameters:
    ///   - type: the type of the value.
    ///   - decoder: the decoder. Defaults to `nil`: JSON as in ``NetworkResponse/decode(_:with:)`` for a host without a
    ///     decoder.
    /// - Throws: ``Code/cannotParseResponse``, or this error if it has no response. If the body has more than
    ///   ``responseBodyLimit`` bytes, only its beginning is kept, which is not valid JSON.
    public func decode<T: Decodable>(_ type: T.Type, with decoder: ResponseDecoder? = nil) throws(NetworkError) -> T {
        guard let statusCode, let responseBody else { throw self }
        let response = NetworkResponse(statusCode: statusCode, headers: headers, body: responseBody)
        return try response.decode(type, with: decoder)
    }
}

extension DecodingError {
    /// Returns a message with the place, the expected value and the found one.
    ///
    /// - Parameter json: the whole document; nil if it is unknown. The found value is read from it, because the
    ///   description of a `DecodingError` differs by platform.
    func message(in json: JSONNode?) -> String {
        switch self {
        case .keyNotFound(let key, let context):
            // Name the key in the sentence: after `accessToken: `, the rest would be redacted as a secret.
            context.codingPath.place + "no value for key \"\(key.stringValue)\""
                + (json?.node(at: context.codingPath)?.hint(for: key.stringValue) ?? "")
        case .typeMismatch(let type, let context), .valueNotFound(let type, let context):
            context.codingPath.place + "expected \(Self.expected(type)) but found "
                + (json?.node(at: context.codingPath)?.kind ?? "something else")
        case .dataCorrupted(let context):
            context.codingPath.place + context.debugDescription.withoutFullStop
        @unknown default:
            String(describing: self)
        }
    }

    /// Returns the name of the expected type. JSONDecoder calls its containers `Dictionary<String, Any>` and
    /// `Array<Any>`.
    private static func expected(_ type: Any.Type) -> String {
        let name = String(describing: type)
        if name.hasPrefix("Dictionary<") { return "object" }
        if name.hasPrefix("Array<") { return "array" }
        return name
    }
}

extension JSONNode {
    /// Returns the value at a path, or nil if there is none.
    fileprivate func node(at path: [any CodingKey]) -> JSONNode? {
        path.reduce(self) { node, key in
            let element = key.intValue.flatMap { index in node?.elements?.dropFirst(max(index, 0)).first { _ in true } }
            return element ?? node?.member(key.stringValue)
        }
    }

    /// Returns a hint that names the fix when the JSON object has the key in snake case.
    fileprivate func hint(for key: String) -> String? {
        guard case .indexed = self else { return nil }
        let name = members?.keys.filter { $0 != key && $0.convertedFromSnakeCase == key }.min()
        return name.map { "; there is \"\($0)\", which keys: .convertFromSnakeCase would find" }
    }
}

// MARK: - The server's message

extension NetworkResponse {
    /// The maximum length of ``serverMessage`` in characters. Longer messages in JSON are truncated, with an ellipsis.
    static let serverMessageLimit = 200

    /// The message in a JSON object, or a short plain text; nil for anything else, such as HTML. The first of
    /// `error.message`, `error_description`, `message`, `detail`, `error`, `title`, `errors[0]` and `errors[0].message`
    /// counts.
    var serverMessage: String? {
        // Longer bodies contain data or a page.
        guard !body.isEmpty, body.count <= 262_144 else { return nil }
        let type = MediaType(headers)
        if let type, ["text/html", "application/xhtml+xml"].contains(type.essence) { return nil }
        if let node, node.isObject { return Self.message(in: node) }
        // Many servers label their HTML pages as plain text.
        guard type?.essence == "text/plain", let text = readText().text?.trimmed, !text.isEmpty,
            text.count <= Self.serverMessageLimit, !text.hasPrefix("<")
        else { return nil }
        return text
    }

    private static func message(in object: JSONNode) -> String? {
        let first = object.member("errors")?.elements?.first { _ in true }
        let candidates =
            [object.member("error")?.member("message")]
            + ["error_description", "message", "detail", "error", "title"].map(object.member)
            + [first, first?.member("message")]
        let texts = candidates.lazy.compactMap { $0?.string?.trimmed }
        guard let text = texts.first(where: { !$0.isEmpty }) else { return nil }
        return text.count > serverMessageLimit ? text.prefix(serverMessageLimit) + "…" : text
    }
}
