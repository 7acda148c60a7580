import EasyNetwork
import Foundation

/// A message on its way, as far as the world looks into it, and what became of it.
final class Message: @unchecked Sendable {
    // Sendable because one thread uses it.
    /// The numbers of its job, and of the entry of an outbox.
    let job, mail: Int?
    let method, path, address: String
    let number, host, resource: Int
    let headers: HTTPHeaders
    let body: Data
    let sentAt: Double
    /// The number of the service that sends it; nil for an outbox.
    let client: Int?
    /// When its head came, and its end.
    var answeredAt, endedAt: Double?
    var error: NetworkError.Code?
    /// Whether nobody waits for it any more.
    var isCancelled = false

    // What the server saw in it and did. Without a status it has not arrived.
    var user, status: Int?
    /// Whether something was changed or made.
    var hasActed = false
    /// What the answer has, or confirms.
    var document: (version: Int, tag: String, madeAt: Double)?
    /// The seconds to wait that the answer asked for.
    var retryAfter: Double?

    init(_ number: Int, _ request: TransportRequest, at now: Double, _ client: Int?) {
        (self.number, sentAt, headers, self.client) = (number, now, request.headers, client)
        (method, path, address) = (request.method.rawValue, request.url.path, request.url.absoluteString)
        resource = path.split(separator: "/").last.flatMap { Int($0) } ?? -1
        host = request.url.host == "a.test" ? 0 : 1
        let query = request.url.query ?? ""
        body = if case .data(let data) = request.body { data } else { Data() }
        // Fields of the user do not follow to another origin.
        func field(_ name: String) -> Int? {
            if let field = request.headers["X-" + name] { return Int(field) }
            let part = query.split(separator: "&").first { $0.hasPrefix(name + "=") }
            return part.flatMap { Int($0.dropFirst(name.count + 1)) }
        }
        (job, mail) = (field("Job"), field("Mail"))
    }

    /// For the message that an answer redirects to.
    var redirectedQuery: String { "redirected" + (job.map { "&Job=\($0)" } ?? "") + (mail.map { "&Mail=\($0)" } ?? "") }
    var isRedirected: Bool { address.contains("?redirected") }
    var isOfFile: Bool { path.hasPrefix("/f/") }
    var hostName: String { host == 0 ? "a" : "b" }
    var isUnderWay: Bool { endedAt == nil }
    var language: String? { headers["Accept-Language"] }
    /// Whether it may count as a failure of its server.
    var hasFailed: Bool { status.map { $0 == 429 || $0 >= 500 } ?? false || error != nil && error != .cancelled }
    var key: String? { headers["Idempotency-Key"] }
    /// The token of the credential: `Bearer 12`.
    var token: Int? { headers["Authorization"].flatMap { Int($0.dropFirst(7)) } }
    var refreshToken: Int? { headers["X-Refresh"].flatMap { Int($0) } }
    /// The one in whose messages the cookie was set.
    var cookie: Int? { headers["Cookie"].flatMap { Int($0.dropFirst(6)) } }
    /// The number of the sign-in that the credential comes from.
    var epoch: Int? { headers["X-Epoch"].flatMap { Int($0) } }
}
