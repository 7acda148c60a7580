import EasyNetwork
import Foundation

/// The contents of an entry's file.
struct OutboxRecord: Codable, Sendable {
    /// The version of the request's type.
    var version: Int
    var addedAt: Date
    /// The entries that must be delivered first.
    var after: [UUID]
    /// The number of the body's files, which are next to the record.
    var fileCount: Int
    /// The request as JSON.
    var request: Data
    var options: OutboxOptions?
    /// The entry's time, or the start of its period; `nil` if it can be sent at once.
    var begin: Date?

    /// Returns when the entry may be sent; `nil` if at once.
    func due(at now: Date) -> Date? {
        begin.map { (options ?? OutboxOptions()).due($0, at: now) }
    }

    /// Returns whether the entry has exceeded an age, counted from its time if it has one. An entry that was added
    /// before the clock was set has no age.
    func isOlder(than age: TimeInterval, at now: Date) -> Bool {
        guard addedAt.timeIntervalSince1970 >= Self.firstTime else { return false }
        return now.timeIntervalSince(max(addedAt, due(at: now) ?? addedAt)) > age
    }

    /// The beginning of 2020, before which no entry was added. Clocks that are not set usually show 1970 or 2000.
    private static let firstTime: TimeInterval = 1_577_836_800
}

/// The failed tries of an entry: their number, the last error, and the date of the next attempt.
struct OutboxTries: Codable, Sendable {
    var count: Int
    var next: Date
    /// The delay in seconds that was chosen at the failure. It limits the wait if the clock has been changed since.
    var delay: TimeInterval
    var failure: OutboxFailure

    /// Returns the seconds until the next attempt.
    func wait(at now: Date) -> TimeInterval { min(next.timeIntervalSince(now), delay) }
}

/// Why an entry failed, in the form that is stored in a file.
struct OutboxFailure: Codable, Sendable {
    var code: Int
    var message: String?
    var statusCode: Int?
    var attempts: Int?
    var serverMessage: String?
    /// The beginning of the response's text without secrets, which may explain the failure. `nil` if a log would leave
    /// the body out.
    var responseBody: Data?

    /// The maximum number of bytes of a response that are kept.
    private static let bodyLimit = 1_024

    init(_ error: NetworkError) {
        (code, message) = (error.code.rawValue, error.message.map(Redaction().redacted))
        (statusCode, attempts) = (error.statusCode, error.attempts)
        serverMessage = error.serverMessage.map(Redaction().redacted)
        responseBody = error.responseBody.flatMap { body in
            // A body of this length may have been cut.
            let limit = NetworkError.responseBodyLimit
            let excerpt = BodyExcerpt(body, count: body.count < limit ? nil : .max, limit: limit)
            // A body whose secrets cannot be found is left out, as in a log.
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
