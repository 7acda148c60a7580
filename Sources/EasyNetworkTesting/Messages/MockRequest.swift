import EasyNetwork
import Foundation

/// A request as ``MockServer`` or ``InMemoryTransport`` received it: not decoded, merged or sorted.
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
    /// The request-target as it was sent, percent-escapes included (RFC 9112, section 3.2).
    public let target: String
    /// The path of the target, before `?`, with its percent-escapes. It is `/` for a target that names a host only.
    public let path: String
    /// The text after the first `?` of the target, with its percent-escapes; nil without a `?`.
    public let query: String?
    /// The header fields in their original order, repeats included.
    public let headers: HTTPHeaders
    /// The body without the chunked coding; empty without a body.
    public let body: Data
    /// The number of the server's connection, from 1. Requests with one number came on one connection. It is 0 for
    /// ``InMemoryTransport``, which has no connections.
    public let connection: Int

    /// A request for a direct call of an answer closure.
    ///
    /// - Parameters:
    ///   - method: the method.
    ///   - target: the raw path and query, or an absolute URL.
    ///   - headers: default none.
    ///   - body: default empty.
    ///   - connection: default 0.
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

    /// The names and values of the query, percent-decoded, in order.
    ///
    /// A name without `=` has no value; a `+` is a plus, because it means a space only in forms. An item with an
    /// invalid escape is not decoded.
    public var queryItems: [(name: String, value: String?)] {
        (query ?? "").split(separator: "&").map { item in
            let parts = item.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            return (Self.decoded(parts[0]), parts.count > 1 ? Self.decoded(parts[1]) : nil)
        }
    }

    /// The body as JSON, which may be a single string or number; nil when it is no JSON.
    public func json() -> Any? {
        try? JSONSerialization.jsonObject(with: body, options: .fragmentsAllowed)
    }

    private static func decoded(_ text: Substring) -> String {
        text.removingPercentEncoding ?? String(text)
    }

    /// Splits the target (RFC 9112, section 3.2): `/path?query`, `http://host/path?query`, or any other text, which is
    /// a path.
    private static func split(_ target: String) -> (path: String, query: String?) {
        let parts = target.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        var path = parts.first.map(String.init) ?? ""
        if !path.hasPrefix("/"), let scheme = path.range(of: "://") {
            path = path[scheme.upperBound...].firstIndex(of: "/").map { String(path[$0...]) } ?? "/"
        }
        return (path, parts.count > 1 ? String(parts[1]) : nil)
    }
}
