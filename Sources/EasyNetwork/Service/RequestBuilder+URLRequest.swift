import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

extension RequestBuilder {
    /// Returns the sendable parts of a `URLRequest` that the user made.
    static func message(
        from custom: URLRequest,
        _ deadlines: TransportDeadlines,
        allowsCellularAccess: Bool
    ) throws(NetworkError) -> TransportRequest {
        guard let url = custom.url else { throw .invalidRequest("the URLRequest has no URL") }
        var deadlines = deadlines
        // Foundation's timeout limits silence. Its default value of 60 seconds is not the user's choice.
        if custom.timeoutInterval != 60 { deadlines.idle = try positive(custom.timeoutInterval, "timeout") }
        let body = custom.httpBody.map(TransportBody.data) ?? custom.httpBodyStream.map(once) ?? .none
        var message = TransportRequest(
            method: NetworkService.Method(rawValue: custom.httpMethod ?? "GET"),
            url: try URLBuilder.url(api: url.absoluteString, base: nil, query: nil),
            headers: try own(custom.allHTTPHeaderFields ?? [:]),
            body: body,
            deadlines: deadlines
        )
        message.headers.remove("Content-Length")
        message.allowsCellularAccess = allowsCellularAccess && custom.allowsCellularAccess
        try check(message)
        return message
    }

    private static func once(_ stream: InputStream) -> TransportBody {
        // `InputStream` is not Sendable. The request has handed over this stream, and `InputStreamReader` lets only one
        // reader read it.
        nonisolated(unsafe) let stream = stream
        return .stream(TransportBodyStream(isReplayable: false) { stream })
    }
}
