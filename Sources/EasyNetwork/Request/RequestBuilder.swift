import Foundation

/// Makes the message from a request and what its host adds. Reads the request's properties, touches nothing else.
enum RequestBuilder {
    /// - Parameters:
    ///   - base: the host's; ``BaseAPIRequest/baseURL`` beats it.
    ///   - headers: the host's; those of the request beat them.
    ///   - deadlines: the host's; ``BaseAPIRequest/timeout`` becomes the total.
    /// - Throws: ``NetworkError/Code/invalidRequest`` that says what to mend.
    static func build(
        _ request: some BaseAPIRequest,
        base: URL?,
        headers: HTTPHeaders,
        deadlines: TransportDeadlines
    ) throws(NetworkError) -> TransportRequest {
        let method = request.method
        guard HTTPSyntax.isToken(method.rawValue.utf8) else {
            throw failure("the method \"\(method.rawValue.prefix(40))\" is no token (RFC 9110, section 5.6.2)")
        }
        let (query, content) = try parameters(of: request)
        if content != nil, method == .get || method == .head {
            throw failure("a \(method) request has no body; send its params with query .path, or use another method")
        }
        var all = headers
        if let type = content?.contentType { all["Content-Type"] = type }
        all = all.merging(try own(request.headers ?? [:]))
        try check(all)
        var deadlines = deadlines
        if let timeout = request.timeout {
            guard timeout > 0, timeout.isFinite else {
                throw failure("the timeout of \(timeout) seconds is not a positive number")
            }
            deadlines.total = timeout
        }
        return TransportRequest(
            method: method,
            url: try URLBuilder.url(api: request.api, base: request.baseURL ?? base, query: query),
            headers: all,
            body: content?.body ?? .none,
            deadlines: deadlines
        )
    }

    /// The parameters where they belong, as query or as body; otherwise the request's own body.
    private static func parameters(
        of request: some BaseAPIRequest
    ) throws(NetworkError) -> (query: String?, content: RequestBody.Content?) {
        let body = request.body
        guard let params = request.params else { return (nil, try body?.build()) }
        if request.query == .path {
            let query = try request.queryEncoder.encode(params)
            return (query.isEmpty ? nil : query, try body?.build())
        }
        guard body == nil else {
            throw failure("the request has a body and params that would be another; send the params with query .path")
        }
        let made: RequestBody =
            request.query == .form
            ? .form(params, encoder: request.queryEncoder) : .json(try ParameterValue.object(from: params))
        return (nil, try made.build())
    }

    /// - Throws: when two names differ only by case, for it would be left to chance which of them wins.
    private static func own(_ dictionary: [String: String]) throws(NetworkError) -> HTTPHeaders {
        let headers = HTTPHeaders(dictionary)
        if let twice = headers.first(where: { headers.values(for: $0.name).count > 1 }) {
            throw failure("the header \(twice.name.prefix(80)) is there twice, in two spellings")
        }
        return headers
    }

    private static func check(_ headers: HTTPHeaders) throws(NetworkError) {
        for field in headers {
            guard HTTPSyntax.isToken(field.name.utf8) else {
                throw failure("the header name \"\(field.name.prefix(80))\" is no token (RFC 9110, section 5.6.2)")
            }
            // Told by hand they can only contradict what is sent, and the server then waits for what never comes.
            guard !["content-length", "transfer-encoding"].contains(field.name.lowercased()) else {
                throw failure("the header \(field.name) follows from the body and is not to be set")
            }
            // The value is not shown: it may be a secret.
            guard HTTPSyntax.isFieldValue(field.value.utf8) else {
                throw failure(
                    "the value of the header \(field.name.prefix(80)) has a line break or control character in it"
                )
            }
        }
    }

    private static func failure(_ message: String) -> NetworkError {
        NetworkError(code: .invalidRequest, message: message)
    }
}
