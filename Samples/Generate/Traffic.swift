import EasyNetworkOpenAPI
import Foundation

/// A request of recorded traffic and its answer.
struct Exchange {
    /// A body, or the common form of several.
    enum Content: Equatable {
        case nothing
        case json(Shape, type: String)
        case other

        /// A body that is sometimes missing is optional.
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

    /// The place in the recording.
    let index: Int
    let method: String
    /// Scheme, host and port; and the prefix of all paths.
    private(set) var origin: String
    /// The percent-encoded segments of the path behind that.
    private(set) var segments: [String]
    /// The percent-encoded query items.
    let query: [URLQueryItem]
    let body: Content
    /// Nil for a failure, and for JSON that was not recorded.
    let answer: Content?

    /// The exchanges of a recording in HAR 1.2 that went over HTTP, in order.
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

    /// Whether a segment tells an interface or its version, `api` or `v1`, and not what is asked for.
    static func isVersion(_ segment: String) -> Bool { segment.wholeMatch(of: /api|v[0-9.]+|/) != nil }

    /// Moves such segments, with which all paths begin, to the origin.
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

    /// More could overflow the stack when the paths are compared.
    private static let maximumSegments = 100

    /// Nil for another scheme than http and https, such as that of a web socket.
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
        // Not from `queryString`: some programs decode its values, others do not.
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
    /// - Parameter json: `postData` or `content`. Nil for JSON whose text is missing.
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
            // Browsers write `x-unknown` for an answer without a type.
            self = data.isEmpty && ["", "x-unknown"].contains(essence) ? .nothing : .other
        }
    }
}

extension JSON {
    /// The value of a key that is not null.
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

    /// - Parameter key: the key of this value, for the message.
    fileprivate func string(_ key: String) throws(InputError) -> String {
        if case .string(let text) = value { return text }
        throw mismatch(key, "a string")
    }

    fileprivate func mismatch(_ key: String, _ expected: String) -> InputError {
        InputError(message: "this is not HAR 1.2: \"\(key)\" is not \(expected)", offset: offset)
    }
}
