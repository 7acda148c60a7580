import EasyNetwork
import Foundation

/// The contents of a HAR entry: a message and its response, from the network or the cache.
struct HAREntry: Sendable {
    struct Job: Sendable {
        let id: UInt64?
        let name: String?
        let host: String?
        let tags: Set<String>
        /// The job's dependencies, which are known until the job has finished.
        let dependencies: [(id: UInt64?, name: String?)]

        /// Returns `nil` for an event without a job.
        init?(_ event: NetworkEvent) {
            guard let operation = event.operation else { return nil }
            id = event.operationID
            name = operation.name
            host = event.host
            // Events of a host have no tags.
            tags = (operation as? NetworkOperation)?.tags ?? event.tags
            dependencies = operation.dependencies.map { (($0 as? NetworkOperation)?.operationID, $0.name) }
        }
    }

    /// The maximum bytes of a body that are kept to search them for secrets.
    private static let maximumBody = 4_194_304

    enum RequestBody: Sendable {
        case none
        case data(BodyExcerpt)
        /// A file or a stream, with its length; `nil` if the length is unknown.
        case elsewhere(count: Int?)
    }

    /// The attempt, its number within the call, and its duration in seconds.
    typealias Sent = (attempt: NetworkAttempt, number: Int, duration: TimeInterval)

    /// The date on which the attempt started.
    let date: Date
    let callNumber: UInt64
    let job: Job?
    /// The attempt; `nil` for a response from the cache.
    let sent: Sent?
    let method: String
    let url: URL
    let headers: HTTPHeaders
    let body: RequestBody
    /// The head of the response; `nil` if there was no response.
    let response: TransportHead?
    /// The response's body; `nil` if there was no response, or the body was consumed elsewhere.
    let responseBody: BodyExcerpt?
    let error: NetworkError?

    init(
        _ message: TransportRequest,
        _ result: Result<NetworkResponse, NetworkError>,
        _ sent: Sent? = nil,
        at date: Date,
        callNumber: UInt64,
        job: Job?
    ) {
        (self.sent, self.date, self.callNumber, self.job) = (sent, date, callNumber, job)
        (method, url, headers) = (message.method.rawValue, message.url, message.headers)
        switch message.body {
        case .none: body = .none
        case .data(let data): body = .data(Self.excerpt(data))
        case .file: body = .elsewhere(count: nil)
        case .stream(let stream): body = .elsewhere(count: stream.length)
        }
        switch result {
        case .success(let answer):
            // The cache's response replaces the server's 304, whose status the attempt has.
            let statusCode = sent?.attempt.statusCode ?? answer.statusCode
            let length = Int(clamping: answer.headers.contentLength ?? 0)
            let mayHaveBody = message.method != .head && ![204, 304].contains(statusCode)
            let isElsewhere = answer.body.isEmpty && mayHaveBody && length > 0
            response = TransportHead(statusCode: statusCode, headers: answer.headers)
            responseBody = isElsewhere ? nil : Self.excerpt(answer.body)
            error = nil
        case .failure(let failure):
            let bytes = failure.responseBody ?? Data()
            // An error keeps no more than the limit, so the length of a longer body is not known.
            let isCut = bytes.count == NetworkError.responseBodyLimit
            response = failure.statusCode.map { TransportHead(statusCode: $0, headers: failure.headers) }
            responseBody = response == nil ? nil : Self.excerpt(bytes, isCut ? bytes.count + 1 : nil)
            error = failure
        }
    }

    private static func excerpt(_ body: Data, _ count: Int? = nil) -> BodyExcerpt {
        BodyExcerpt(body, count: count, limit: maximumBody)
    }

    /// The metrics of a message that was sent.
    var metrics: TransportMetrics? { sent?.attempt.metrics }

    /// The approximate number of bytes that the entry occupies in memory.
    var size: Int {
        var size = 4_096 + url.absoluteString.utf8.count + headers.size + (response?.headers.size ?? 0)
        size += (responseBody?.bytes.count ?? 0) + 64 * (job?.dependencies.count ?? 0)
        if case .data(let body) = body { size += body.bytes.count }
        return size
    }
}
