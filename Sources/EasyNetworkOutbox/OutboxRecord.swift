import EasyNetwork
import Foundation

/// The contents of an entry's file.
struct OutboxRecord: Codable, Sendable {
    /// The version of the request's type.
    var version: Int
    var addedAt: Date
    /// The entries that come first.
    var after: [UUID]
    /// The number of the body's files, which are beside the record.
    var fileCount: Int
    /// The request as JSON.
    var request: Data
    var options: OutboxOptions?
    /// When its time comes, or its period begins. nil at once.
    var begin: Date?

    /// When it may be sent; nil at once.
    func due(at now: Date) -> Date? {
        begin.map { (options ?? OutboxOptions()).due($0, at: now) }
    }

    /// Whether it is older than an age, from its time on if it has one. An entry that was added before the clock was
    /// set has no age.
    func isOlder(than age: TimeInterval, at now: Date) -> Bool {
        guard addedAt.timeIntervalSince1970 >= Self.firstTime else { return false }
        return now.timeIntervalSince(max(addedAt, due(at: now) ?? addedAt)) > age
    }

    /// The beginning of 2020: no entry was added earlier. Clocks that are not set stand at 1970 or 2000, as a rule.
    private static let firstTime: TimeInterval = 1_577_836_800
}

/// How often, and with which error at last, an entry has failed, and when it is tried again.
struct OutboxTries: Codable, Sendable {
    var count: Int
    var next: Date
    /// The seconds until then, when it failed: the clock may have been another one.
    var delay: TimeInterval
    var failure: OutboxFailure

    /// The seconds until it is tried again.
    func wait(at now: Date) -> TimeInterval { min(next.timeIntervalSince(now), delay) }
}

/// Why an entry is a dead letter, as it is kept in a file.
struct OutboxFailure: Codable, Sendable {
    var code: Int
    var message: String?
    var statusCode: Int?
    var attempts: Int?
    var serverMessage: String?
    /// The beginning of the response's text without secrets, which may tell why; nil where a log leaves the body out.
    var responseBody: Data?

    /// The number of bytes that are kept of an answer.
    private static let bodyLimit = 1_024

    init(_ error: NetworkError) {
        (code, message) = (error.code.rawValue, error.message.map(Redaction().redacted))
        (statusCode, attempts) = (error.statusCode, error.attempts)
        serverMessage = error.serverMessage.map(Redaction().redacted)
        responseBody = error.responseBody.flatMap { body in
            // One of this length may have been cut.
            let limit = NetworkError.responseBodyLimit
            let excerpt = BodyExcerpt(body, count: body.count < limit ? nil : .max, limit: limit)
            // As in a log: a body is left out when its secrets cannot be found.
            guard case .text(let text) = ShownBody(excerpt, contentType: error.headers["Content-Type"], Redaction())
            else { return nil }
            return Data(ShownBody.beginning(of: text, Self.bodyLimit).utf8)
        }
    }

    var error: NetworkError {
        var error = NetworkError(code: NetworkError.Code(rawValue: code), message: message)
        (error.statusCode, error.attempts) = (statusCode, attempts ?? 0)
        error.serverMessage = serverMessage
        error.responseBody = responseBody
        return error
    }
}
