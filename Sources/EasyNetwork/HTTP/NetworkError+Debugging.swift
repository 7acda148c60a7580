import Foundation

extension NetworkError: CustomDebugStringConvertible, CustomReflectable {
    /// Everything that is known, on several lines, without secrets: those that ``Redaction`` knows by name.
    ///
    /// For logs and debuggers; ``errorDescription`` is for people. It keeps some 4,000 characters of the body.
    public var debugDescription: String {
        var lines = Self.lines(of: self)
        // A row of errors is walked and not nested, so that it may be of any length.
        var next = underlying
        var depth = 1
        while let error = next, depth <= 8 {
            let indent = String(repeating: "  ", count: depth)
            lines.append(indent + "Underlying:")
            if let error = error as? NetworkError {
                lines += Self.lines(of: error).map { indent + "  " + $0 }
                next = error.underlying
            } else {
                let text = Redaction.standard.redacted(String(reflecting: error))
                lines += DebugText.lines(text, limit: 2_000).map { indent + "  " + $0 }
                next = nil
            }
            depth += 1
        }
        return lines.joined(separator: "\n")
    }

    /// Without children, so that a dump has no more than ``debugDescription``.
    public var customMirror: Mirror { Mirror(self, children: [:]) }

    private static func lines(of error: NetworkError) -> [String] {
        let redaction = Redaction.standard
        var text = DebugText(title: "NetworkError.\(error.code) (\(error.code.rawValue))")
        text.add("Summary", redaction.redacted(error.errorDescription ?? ""))
        if let request = error.request {
            text.add("Request", "\(request.method) \(redaction.redacted(request.url))")
            text.add("Request headers", redaction.redacted(request.headers))
        }
        text.add("Attempts", "\(error.attempts)")
        text.add("Sent", error.history)
        text.add("Phase", error.phase.map { "\($0)" })
        text.add("Status", error.statusCode.map { "\($0)" })
        text.add("Headers", redaction.redacted(error.headers))
        text.add("Server's message", error.serverMessage.map(redaction.redacted))
        text.add("Body", error.responseBody, contentType: error.headers["Content-Type"])
        text.add("Path", error.dependencyPath.isEmpty ? nil : error.dependencyPath.joined(separator: " → "))
        text.add("Metrics", error.metrics)
        return text.lines
    }
}

extension NetworkError.Request: CustomDebugStringConvertible, CustomReflectable {
    /// Method, address and headers on several lines, without secrets: those that ``Redaction`` knows by name.
    public var debugDescription: String {
        let redaction = Redaction.standard
        var text = DebugText(title: "\(method) \(redaction.redacted(url))")
        text.add("Headers", redaction.redacted(headers))
        return text.lines.joined(separator: "\n")
    }

    /// Without children, so that a dump has no secret either.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

extension NetworkAttempt: CustomStringConvertible, CustomReflectable {
    /// `retry: GET https://example.com/a?token=REDACTED → 503`, without secrets: those that ``Redaction`` knows by
    /// name.
    public var description: String {
        let end = statusCode.map { "\($0)" } ?? errorCode.map { "\($0)" } ?? "no end"
        return "\(reason): \(request.method) \(Redaction.standard.redacted(request.url)) → \(end)"
    }

    /// Without children, so that a dump has no secret either.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

/// A title, and below it a line or more for each thing that there is.
struct DebugText {
    private(set) var lines: [String]

    init(title: String) {
        lines = [title.cleaned()]
    }

    mutating func add(_ name: String, _ value: String?) {
        guard let value, !value.isEmpty else { return }
        let parts = Self.lines(value, limit: 4_000)
        lines.append("  \(name): \(parts[0])")
        lines += parts.dropFirst().map { "    \($0)" }
    }

    mutating func add(_ name: String, _ headers: HTTPHeaders) {
        guard !headers.isEmpty else { return }
        lines.append("  \(name):")
        for field in headers { lines += Self.lines("\(field.name): \(field.value)", limit: 1_000).map { "    \($0)" } }
    }

    mutating func add(_ name: String, _ body: Data?, contentType: String?) {
        guard let body else { return }
        guard !body.isEmpty else { return lines.append("  \(name): empty") }
        let atLeast = body.count == NetworkError.responseBodyLimit ? "at least " : ""
        let size = "\(atLeast)\(body.count) bytes"
        // The beginning is enough: of a body of megabytes nobody reads more.
        let start = body.prefix(NetworkError.responseBodyLimit)
        guard let text = Redaction.standard.redactedText(of: start, contentType: contentType) else {
            return lines.append("  \(name): \(size) that are no text")
        }
        lines.append("  \(name): \(size)")
        lines += Self.lines(text, limit: 4_000).map { "    \($0)" }
    }

    /// Only when it was more than one message: what there is to know of one stands in the other lines.
    mutating func add(_ name: String, _ history: [NetworkAttempt]) {
        guard history.count > 1 else { return }
        lines.append("  \(name):")
        if history.count > 20 { lines.append("    … \(history.count - 20) before") }
        lines += history.suffix(20).map { "    \($0)" }
    }

    mutating func add(_ name: String, _ metrics: TransportMetrics?) {
        guard let metrics else { return }
        var parts = ["total \(Self.seconds(metrics.total))", "waited \(Self.seconds(metrics.wait))"]
        let moments = [
            ("name", metrics.nameLookup), ("connected", metrics.connect), ("secure", metrics.tls),
            ("first byte", metrics.firstByte),
        ]
        for case (let moment, let time?) in moments { parts.append("\(moment) at \(Self.seconds(time))") }
        if let count = metrics.bytesSent { parts.append("\(count) bytes out") }
        if let count = metrics.bytesReceived { parts.append("\(count) bytes in") }
        parts += [metrics.networkProtocol, metrics.remoteAddress].compactMap { $0 }
        if let isReused = metrics.isReusedConnection { parts.append(isReused ? "connection reused" : "new connection") }
        add(name, parts.joined(separator: ", "))
    }

    private static func seconds(_ time: TimeInterval) -> String {
        "\((time * 1_000_000).rounded() / 1_000_000) s"
    }

    /// At least one, so that nothing that came from outside begins a line by itself.
    static func lines(_ text: String, limit: Int) -> [String] {
        text.cleaned(limit: limit, keepsLines: true)
            .split(separator: "\n", omittingEmptySubsequences: false)
            .map(String.init)
    }
}
