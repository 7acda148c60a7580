import EasyNetwork
import Foundation

/// A request as ``MockServer`` or ``InMemoryTransport`` received it, with nothing decoded, merged or put in order.
///
/// ```swift
/// server.route("POST", "/users") { request in
///     let user = request.json() as? [String: Any]
///     return .json(["name": user?["name"] as? String ?? ""], status: 201)
/// }
/// ```
public struct MockRequest: Sendable {
    /// The method as it was sent, in the case in which it was sent.
    public let method: String
    /// The request-target as it was sent, percent-escapes included (RFC 9112, section 3.2).
    public let target: String
    /// The path of the target, before `?`, with its percent-escapes. It is `/` for a target that names a host only.
    public let path: String
    /// What follows the first `?` of the target, with its percent-escapes; nil without a `?`.
    public let query: String?
    /// The header fields in the order in which they came, repeats included.
    public let headers: HTTPHeaders
    /// The body with the chunked coding taken off; empty when there is none.
    public let body: Data
    /// On which connection of the server it came, counted from 1; two requests with the same number shared a
    /// connection. It is 0 for a request of ``InMemoryTransport``, which has no connections.
    public let connection: Int

    /// For trying an answer closure on its own.
    ///
    /// - Parameters:
    ///   - target: path and query as they go over the wire, or an absolute URL.
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
    /// A name without `=` has no value; a `+` is a plus, as it means a space in forms only. What is not a valid escape
    /// stays as it was sent.
    public var queryItems: [(name: String, value: String?)] {
        (query ?? "").split(separator: "&").map { item in
            let parts = item.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            return (Self.decoded(parts[0]), parts.count > 1 ? Self.decoded(parts[1]) : nil)
        }
    }

    /// The body read as JSON, a lone string or number included; nil when it is none.
    public func json() -> Any? {
        try? JSONSerialization.jsonObject(with: body, options: .fragmentsAllowed)
    }

    private static func decoded(_ text: Substring) -> String {
        text.removingPercentEncoding ?? String(text)
    }

    /// Takes the target apart by RFC 9112, section 3.2: `/path?query`, `http://host/path?query`, or anything else,
    /// which is then all path.
    private static func split(_ target: String) -> (path: String, query: String?) {
        let parts = target.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        var path = parts.first.map(String.init) ?? ""
        if !path.hasPrefix("/"), let scheme = path.range(of: "://") {
            path = path[scheme.upperBound...].firstIndex(of: "/").map { String(path[$0...]) } ?? "/"
        }
        return (path, parts.count > 1 ? String(parts[1]) : nil)
    }
}
