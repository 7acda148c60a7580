import EasyNetworkOpenAPI
import Foundation

/// A request of recorded traffic and its response.
struct Exchange {
    /// A body, or the common form of several bodies.
    enum Content: Equatable {
        case nothing
        case json(Shape, type: String)
        case other

        /// Merges two bodies. A body that is sometimes missing is optional.
        func merged(with content: Content) -> Content {
            switch (self, content) {
            case (.nothing, .nothing): .nothing
            case (.json(let left, let type), .json(let right, _)): .json(left.merged(with: right), type: type)
            case (.json(let shape, let type), .nothing), (.nothing, .json(let shape, let type)):
                .json(shape.optional, type: type)
            default: .other
            }
        }
    }

    /// The position in the recording.
    let index: Int
    let method: String
    /// The scheme, host and port, and the common prefix of all paths.
    private(set) var origin: String
    /// The percent-encoded segments of the path after the origin.
    private(set) var segments: [String]
    /// The percent-encoded query items.
    let query: [URLQueryItem]
    let body: Content
    /// The body of the response. `nil` for a failure, and for JSON that was not recorded.
    let answer: Content?

    /// Reads the HTTP exchanges of a recording in HAR 1.2, in order.
    static func read(_ har: JSON) throws(InputError) -> [Exchange] {
        let list = try har.required("log").required("entries")
        guard case .array(let entries) = list.value else { throw list.mismatch("entries", "an array") }
        var exchanges: [Exchange] = []
        for entry in entries {
            if let exchange = try Exchange(entry, index: exchanges.count) { exchanges.append(exchange) }
        }
        moveVersion(of: &exchanges)
        return exchanges
    }

    /// Returns whether a segment names an interface or its version, such as `api` or `v1`, and not a resource.
    static func isVersion(_ segment: String) -> Bool { segment.wholeMatch(of: /api|v[0-9.]+|/) != nil }

    /// Moves version segments with which all paths begin to the origin.
    private static func moveVersion(of exchanges: inout [Exchange]) {
        while let first = exchanges.first, let segment = first.segments.first, !segment.isEmpty, isVersion(segment),
            exchanges.allSatisfy({ exchange in
                exchange.origin == first.origin && exchange.segments.first == segment
                    && exchange.segments.dropFirst().contains { !$0.isEmpty }
            })
        {
            for index in exchanges.indices {
                exchanges[index].origin += "/" + segment
                exchanges[index].segments.removeFirst()
            }
        }
    }

    /// The largest number of segments. More could overflow the stack when the paths are compared.
    private static let maximumSegments = 100

    /// Returns `nil` for a scheme other than http and https, such as a web socket.
    private init?(_ entry: JSON, index: Int) throws(InputError) {
        let (request, response) = (try entry.required("request"), try entry.required("response"))
        let url = try request.required("url")
        guard var parts = URLComponents(string: try url.string("url")), let scheme = parts.scheme else {
            throw url.mismatch("url", "an absolute URL")
        }
        guard ["http", "https"].contains(scheme.lowercased()), parts.host?.isEmpty == false else { return nil }
        self.index = index
        method = try request.required("method").string("method").uppercased()
        let path = parts.percentEncodedPath.split(separator: "/", omittingEmptySubsequences: false)
        segments = path.dropFirst().map(String.init)
        guard segments.count <= Self.maximumSegments else {
            throw InputError(message: "the URL has more than \(Self.maximumSegments) segments", offset: url.offset)
        }
        // Take the items from the URL: in `queryString`, some programs decode the values and others do not.
        query = (parts.percentEncodedQueryItems ?? []).filter { !$0.name.isEmpty }
        (parts.path, parts.query, parts.fragment, parts.user, parts.password) = ("", nil, nil, nil, nil)
        origin = parts.string ?? ""
        body = try Content(request.member("postData")) ?? .other
        let status = try response.required("status")
        guard case .integer(let code) = status.value else { throw status.mismatch("status", "an integer") }
        let isEmpty = [204, 205].contains(code) || method == "HEAD"
        let content = isEmpty ? .nothing : try Content(response.member("content"))
        answer = (200..<300).contains(code) ? content : nil
    }
}

extension Exchange.Content {
    /// - Parameter json: `postData` or `content`. The result is `nil` for JSON whose text is missing.
    fileprivate init?(_ json: JSON?) throws(InputError) {
        let type = try json?.member("mimeType")?.string("mimeType") ?? ""
        let essence = type.prefix { $0 != ";" }.trimmingCharacters(in: .whitespaces).lowercased()
        let isJSON = ["application/json", "text/json"].contains(essence) || essence.hasSuffix("+json")
        var data = Data(try json?.member("text")?.string("text").utf8 ?? "".utf8)
        if try json?.member("encoding")?.string("encoding") == "base64" {
            data = Data(base64Encoded: data, options: .ignoreUnknownCharacters) ?? Data()
        }
        if isJSON {
            if data.isEmpty { return nil }
            self = (try? JSON.parse(data)).map { .json(Shape($0), type: type) } ?? .other
        } else {
            // Browsers write `x-unknown` for a response without a type.
            self = data.isEmpty && ["", "x-unknown"].contains(essence) ? .nothing : .other
        }
    }
}

extension JSON {
    /// Returns the value of a key, unless it is null.
    fileprivate func member(_ key: String) -> JSON? {
        guard case .object(let members) = value, let member = members.last(where: { $0.key == key })?.value else {
            return nil
        }
        if case .null = member.value { return nil }
        return member
    }

    fileprivate func required(_ key: String) throws(InputError) -> JSON {
        if let member = member(key) { return member }
        throw InputError(message: "this is not HAR 1.2: \"\(key)\" is missing here", offset: offset)
    }

    /// - Parameter key: The key of this value, for the message.
    fileprivate func string(_ key: String) throws(InputError) -> String {
        if case .string(let text) = value { return text }
        throw mismatch(key, "a string")
    }

    fileprivate func mismatch(_ key: String, _ expected: String) -> InputError {
        InputError(message: "this is not HAR 1.2: \"\(key)\" is not \(expected)", offset: offset)
    }
}
