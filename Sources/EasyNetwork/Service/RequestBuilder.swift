import Foundation

/// Builds the message from a request and the settings of its host. It has no other effects.
package enum RequestBuilder {
    /// Builds the message.
    ///
    /// - Parameter noteContentType: Called with the Content-Type of the request's headers and the body's own type, if
    ///   the body's type replaces one that contradicts it.
    /// - Throws: ``NetworkError/Code/invalidRequest`` with the reason.
    package static func build(
        _ request: some BaseAPIRequest,
        _ options: RequestOptions,
        for host: HostConfiguration,
        noteContentType: (_ given: String, _ sent: String) -> Void = { _, _ in }
    ) throws(NetworkError) -> TransportRequest {
        var deadlines = try host.deadlines(options)
        if let timeout = options.timeout { deadlines.total = try positive(timeout, "timeout") }
        if let custom = options.values.customURLRequest {
            return try message(from: custom, deadlines, allowsCellularAccess: options.allowsCellularAccess)
        }
        do {
            try request.validateParameters()
        } catch {
            throw .thrown(error, otherwise: .invalidRequest)
        }
        var own = try headers(of: request.headers)
        if let credential = options.values.credential, own["Authorization"] == nil {
            own["Authorization"] = credential.authorization
        }
        let (ownAPI, ownMethod) = (request.api, request.method)
        let encoder = options.values.queryEncoder ?? host.settings.queryEncoder
        let given = try parameters(of: request.params, encoder)
        let base = try base(options, host)
        let filters = options.values.filters ?? host.settings.filters
        var filtered: RequestDraft?
        if !filters.isEmpty {
            let url = try URLBuilder.url(api: ownAPI, base: base, query: nil)
            var draft = RequestDraft(
                request: request,
                method: ownMethod,
                url: url,
                parameters: given ?? [:],
                headers: host.headers(for: url, options).merging(own)
            )
            do {
                for filter in filters { try filter(&draft) }
            } catch {
                throw .thrown(error, otherwise: .invalidRequest)
            }
            filtered = draft
        }
        let method = filtered?.method ?? ownMethod
        let ownBody = if let body = options.values.body { body } else { try Self.body(of: request.body) }
        // A filter gets empty parameters if the request declares none.
        let hasNone = given == nil && filtered?.parameters.isEmpty != false
        let params = hasNone ? nil : filtered?.parameters ?? given
        let (query, content) = try place(params, ownBody, of: request, ownMethod, options, encoder, host)
        if content != nil, method == .get || method == .head || method.rawValue == "TRACE" {
            let message = "a \(method) request takes no body; send its params with query .path, or use another method"
            throw .invalidRequest(message)
        }
        let api = filtered?.url.absoluteString ?? ownAPI
        let url = try URLBuilder.url(api: api, base: filtered == nil ? base : nil, query: query)
        var headers =
            filtered.map { host.headers(of: $0, for: url) } ?? host.headers(for: url, options).merging(own)
        if let type = content?.contentType {
            // A Content-Type of the host's headers applies only to bodies without a type.
            let given = own["Content-Type"] == nil ? nil : headers["Content-Type"]
            let isReplaced = given.map { RequestBody.contradicts($0, type) } ?? true
            if isReplaced { headers["Content-Type"] = type }
            if let given, isReplaced { noteContentType(given, type) }
        }
        var body = content?.body ?? .none
        if let ownBody, ownBody.isGzipped, headers["Content-Encoding"] == nil,
            !RequestBody.isCompressed(headers["Content-Type"]), let compressed = try body.gzipped()
        {
            body = compressed
            headers["Content-Encoding"] = "gzip"
        }
        if let key = options.values.idempotencyKey { headers["Idempotency-Key"] = key }
        var message = TransportRequest(method: method, url: url, headers: headers, body: body, deadlines: deadlines)
        message.allowsCellularAccess = options.allowsCellularAccess
        message.networkServiceType = options.networkServiceType
        // The URL was made from checked parts, so only the method and the headers are checked.
        if method != .get { try message.checkMethod() }
        try host.check(headers)
        return message
    }

    /// Returns the base URL; nil if neither the request nor the host sets one.
    static func base(_ options: RequestOptions, _ host: HostConfiguration) throws(NetworkError) -> URLParts? {
        guard let other = options.values.baseURL ?? (options.useCDN ? host.settings.cdnURL : nil) else {
            return try host.base?.get()
        }
        return try URLBuilder.parts(ofBase: other.absoluteString)
    }

    static func positive(_ seconds: TimeInterval, _ name: String) throws(NetworkError) -> TimeInterval {
        guard seconds > 0, seconds.isFinite else {
            throw .invalidRequest("the \(name) must be a positive, finite number of seconds, but is \(seconds)")
        }
        return seconds
    }

    /// Returns the parameters that the request declares; nil if it declares none.
    private static func parameters<Declared>(
        of declared: Declared,
        _ encoder: QueryEncoder
    ) throws(NetworkError) -> [String: Any]? {
        if let params = same(declared, as: [String: Any]?.self) { return params }
        switch unwrapped(declared) {
        case nil: return nil
        case let params as [String: Any]: return params
        case let params as any Encodable: return try encoder.parameters(of: params)
        case let params?:
            let type = type(of: params)
            throw .invalidRequest(
                "params must be a dictionary with String keys or an Encodable value, but is a \(type); "
                    + "if it is Encodable only on the main actor, mark it nonisolated"
            )
        }
    }

    /// Returns the header fields that the request declares.
    static func headers<Declared>(of declared: Declared) throws(NetworkError) -> HTTPHeaders {
        if let headers = same(declared, as: [String: String]?.self) { return try headers.map(own) ?? HTTPHeaders() }
        switch unwrapped(declared) {
        case nil: return HTTPHeaders()
        case let headers as [String: String]: return try own(headers)
        case let headers as HTTPHeaders: return headers
        case let headers?:
            throw .invalidRequest("headers must be a [String: String] or HTTPHeaders, but is a \(type(of: headers))")
        }
    }

    /// Returns the body that the request declares.
    package static func body<Declared>(of declared: Declared) throws(NetworkError) -> RequestBody? {
        if let body = same(declared, as: RequestBody?.self) { return body }
        switch unwrapped(declared) {
        case nil: return nil
        case let body as RequestBody: return body
        case let body?:
            throw .invalidRequest(
                "body must be a RequestBody, but is a \(type(of: body)); create one, such as .json(value), "
                    + "or, if body is a property of your own, declare typealias DeclaredBody = RequestBody?"
            )
        }
    }

    /// Returns the value if it has this type, as in most requests. A cast would look up the type at run time.
    private static func same<Declared, Value>(_ declared: Declared, as type: Value.Type) -> Value? {
        Declared.self == Value.self ? unsafeBitCast(declared, to: Value.self) : nil
    }

    /// Returns the value of an optional, even of a nested one; nil if there is no value.
    private static func unwrapped(_ declared: Any) -> Any? {
        guard let optional = declared as? any OptionalValue else { return declared }
        return optional.held.flatMap(unwrapped)
    }

    /// Returns the query and the content of the body. The parameters are in one of the two. Without parameters, the
    /// content is the request's own body.
    private static func place(
        _ params: [String: Any]?,
        _ body: RequestBody?,
        of request: some BaseAPIRequest,
        _ method: NetworkService.Method,
        _ options: RequestOptions,
        _ encoder: QueryEncoder,
        _ host: HostConfiguration
    ) throws(NetworkError) -> (query: String?, content: RequestBody.Content?) {
        guard let params else { return (nil, try body?.build()) }
        let values = try JSONValue.object(from: params, encoder)
        // The options set a body, so the parameters cannot be the body, too.
        var place = options.body == nil ? request.query : .path
        if place == .automatic {
            let isInBody = body == nil && [.post, .put, .patch].contains(method)
            place = isInBody ? host.settings.query : .path
        }
        if place == .path {
            let query = encoder.encode(values, isForm: false)
            return (query.isEmpty ? nil : query, try body?.build())
        }
        guard body == nil else {
            throw .invalidRequest(
                "the request has a body, so params cannot be sent as the body too; "
                    + "set query to .path to send them in the URL"
            )
        }
        let made: RequestBody = place == .json ? .json(JSONValue.object(values)) : .form(values, encoder)
        return (nil, try made.build())
    }

    /// Returns the dictionary as header fields.
    ///
    /// - Throws: ``NetworkError/Code/invalidRequest`` if two names differ only by case, because a random one would take
    ///   precedence.
    static func own(_ dictionary: [String: String]) throws(NetworkError) -> HTTPHeaders {
        let headers = HTTPHeaders(dictionary)
        if let twice = headers.first(where: { headers.values(for: $0.name).count > 1 }) {
            throw .invalidRequest("the header \(twice.name.prefix(80)) occurs twice, in two spellings")
        }
        return headers
    }

    /// Checks a message that user code has made or changed.
    ///
    /// - Throws: ``NetworkError/Code/invalidRequest`` for a message that must not be sent.
    static func check(_ message: TransportRequest) throws(NetworkError) {
        try message.check()
        if message.url.absoluteString.utf8.contains(UInt8(ascii: "@")), message.url.withoutUser != message.url {
            throw URLParts.userRefusal("the URL")
        }
        try message.body.checkSegments()
        try message.headers.checkFraming()
    }
}

private protocol OptionalValue {
    var held: Any? { get }
}

extension Optional: OptionalValue {
    fileprivate var held: Any? { self }
}
