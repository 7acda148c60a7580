import Foundation

extension NetworkResponse: CustomDebugStringConvertible, CustomReflectable {
    /// Status, headers and the beginning of the body, on several lines, without secrets: those that ``Redaction`` knows by
    /// name.
    public var debugDescription: String {
        let redaction = Redaction.standard
        var text = DebugText(title: "NetworkResponse \(statusCode) from \(source)")
        text.add("URL", url.map(redaction.redacted))
        text.add("Headers", redaction.redacted(headers))
        text.add("Body", body, contentType: headers["Content-Type"])
        text.add("Trailers", redaction.redacted(trailers))
        text.add("Sent", history)
        text.add("Metrics", metrics)
        return text.lines.joined(separator: "\n")
    }

    /// Without children, so that a dump has no more than ``debugDescription``.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}
