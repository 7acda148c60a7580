import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// A request for a stream of events, from where the last one broke off.
struct EventStreamRequest: RequestWrapper {
    let wrapped: any BaseAPIRequest
    /// Empty when there is none to go on after.
    let lastEventID: String

    var headers: [String: String]? {
        var headers = wrapped.headers ?? [:]
        for (name, value) in added {
            headers = headers.filter { !$0.key.isEqualIgnoringASCIICase(to: name) }
            headers[name] = value
        }
        return headers
    }

    var customURLRequest: URLRequest? {
        guard var custom = wrapped.customURLRequest else { return nil }
        for (name, value) in added { custom.setValue(value, forHTTPHeaderField: name) }
        return custom
    }

    /// HTML Living Standard, section 9.2.2 and 9.2.4.
    private var added: [String: String] {
        var added = ["Accept": "text/event-stream", "Cache-Control": "no-store"]
        if !lastEventID.isEmpty, HTTPSyntax.isFieldValue(lastEventID.utf8) { added["Last-Event-ID"] = lastEventID }
        return added
    }
}
