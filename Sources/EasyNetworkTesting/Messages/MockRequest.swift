import EasyNetwork
import Foundation

/// A request as ``MockServer`` or ``InMemoryTransport`` received it, without decoding, merging or sorting.
///
/// ```swift
/// server.route("POST", "/users") { request in
///     let user = request.json() as? [String: Any]
///     return .json(["name": user?["name"] as? String ?? ""], status: 201)
/// }
/// ```
public struct MockRequest: Sendable {
    /// The method in its original case.
    public let method: String
    /// The request target as it was sent, including percent escapes (RFC 9112, section 3.2).
    public let target: String
    /// The path of the target, before `?`, with its percent escapes. For a target that names only a host, it is `/`.
    public let path: String
    /// The part of the target after the first `?`, with its percent escapes. `nil` if there is no `?`.
    public let query: String?
    /// The header fields in their original order, including repeated ones.
    public let headers: HTTPHeaders
    /// The body without the chunked coding. Empty if there is no body.
    public let body: Data
    /// The number of the server's connection, from 1. Requests with the same number arrived on the same connection. It
    /// is 0 for ``InMemoryTransport``, which has no connections.
    public let connection: Int

    /// Creates a request, for example to call the closure of a route directly.
    ///
    /// - Parameters:
    ///   - method: The method.
    ///   - target: The raw path and query, or an absolute URL.
    ///   - headers: The header fields. Defaults to none.
    ///   - body: The body. Defaults to no bytes.
    ///   - connection: The number of the connection. Defaults to 0.
    public init(
        method: String,
        target: String,
        headers: HTTPHeaders = HTTPHeaders(),
        body: Data = Data(),
        connection: Int = 0
    ) {
        self.method = method
        self.target = target
        (path, query) = Self.split(target)
        self.headers = headers
        self.body = body
        self.connection = connection
    }

    /// The same request with an empty body.
    var withoutBody: MockRequest {
        MockRequest(method: method, target: target, headers: headers, connection: connection)
    }

    /// The names and values of the query, percent-decoded, in order.
    ///
    /// A name without `=` has no value. A `+` stays a plus sign, because it means a space only in forms. An item with
    /// an invalid escape is not decoded.
    public var queryItems: [(name: String, value: String?)] {
        (query ?? "").split(separator: "&").map { item in
            let parts = item.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            return (Self.decoded(parts[0]), parts.count > 1 ? Self.decoded(parts[1]) : nil)
        }
    }

    /// Returns the body as JSON, which can be a single string or number. Returns `nil` if the body is not valid JSON.
    public func json() -> Any? {
        try? JSONSerialization.jsonObject(with: body, options: .fragmentsAllowed)
    }

    private static func decoded(_ text: Substring) -> String {
        text.removingPercentEncoding ?? String(text)
    }

    /// Splits the target (RFC 9112, section 3.2): `/path?query`, `http://host/path?query`, or any other string, which
    /// counts as a path.
    private static func split(_ target: String) -> (path: String, query: String?) {
        let parts = target.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        var path = parts.first.map(String.init) ?? ""
        if !path.hasPrefix("/"), let scheme = path.range(of: "://") {
            path = path[scheme.upperBound...].firstIndex(of: "/").map { String(path[$0...]) } ?? "/"
        }
        return (path, parts.count > 1 ? String(parts[1]) : nil)
    }
}

extension MockRequest: CustomStringConvertible {
    /// The method, the target, each header field on its own line, and the length of the body, without the secrets that
    /// `Redaction` recognizes.
    public var description: String {
        let head = "\(method) \(Redaction.standard.redacted(target))".cleaned()
        return ([head] + headers.map(\.description) + ["\(body.count) bytes"]).joined(separator: "\n")
    }
}
