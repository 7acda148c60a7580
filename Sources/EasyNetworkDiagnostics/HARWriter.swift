import EasyNetwork
import Foundation

/// A writer of HAR 1.2 entries (http://www.softwareishard.com/blog/har-12-spec/).
///
/// Sendable because it is used only on the file's queue.
final class HARWriter: @unchecked Sendable {
    /// The last fields and their JSON, by their positions. The messages to a host mostly differ in few fields.
    private typealias Fields = [(field: HTTPHeaders.Field, text: JSONText)]

    private let redaction: Redaction?
    private let maximumBodyCount: Int
    private var requestFields: Fields = []
    private var responseFields: Fields = []

    init(redaction: Redaction?, maximumBodyCount: Int) {
        (self.redaction, self.maximumBodyCount) = (redaction, maximumBodyCount)
    }

    /// Appends an entry on one line, with sorted keys.
    func write(_ entry: HAREntry, to bytes: inout [UInt8]) {
        var text = JSONText()
        swap(&text.bytes, &bytes)
        text.object { write(entry, to: &$0) }
        swap(&text.bytes, &bytes)
    }

    private func write(_ entry: HAREntry, to text: inout JSONText) {
        if let number = entry.sent?.number { text.add("_attempt", number) }
        if let miss = entry.sent?.attempt.cacheMiss { text.add("_cache", miss.rawValue) }
        text.add("_call", entry.callNumber)
        if let delay = entry.sent?.attempt.delay, delay > 0 { text.add("_delay", delay) }
        if let job = entry.job {
            text.array("_dependsOn") { text in
                for other in job.dependencies { text.object { addNamed(other.id, other.name, to: &$0) } }
            }
        }
        if entry.sent == nil { text.add("_fromCache", true) }
        if let job = entry.job {
            text.object("_job") { text in
                if let host = job.host { text.add("host", host) }
                addNamed(job.id, job.name, to: &text)
                text.array("tags") { text in
                    for tag in job.tags.map(redacted).sorted() { text.add(tag) }
                }
            }
        }
        if let reason = entry.sent?.attempt.reason { text.add("_reason", reason.rawValue) }
        text.object("cache") { _ in }
        let address = entry.metrics?.remoteAddress.flatMap(Self.parts)
        if let address { text.add("connection", address.port) }
        text.object("request") { addRequest(entry, to: &$0) }
        text.object("response") { addResponse(entry, to: &$0) }
        if let address { text.add("serverIPAddress", address.host) }
        text.add("startedDateTime", entry.date.timestamp)
        let timings = Timings(entry.sent)
        text.add("time", timings.total)
        text.object("timings") { timings.write(to: &$0) }
    }

    /// Returns the host and port of `192.0.2.1:443` or `[2001:db8::1]:443`; `nil` without a port.
    private static func parts(of address: String) -> (host: String, port: String)? {
        guard let colon = address.utf8.lastIndex(of: UInt8(ascii: ":")) else { return nil }
        var host = address[..<colon]
        if host.utf8.first == UInt8(ascii: "[") { host = host.dropFirst().dropLast() }
        return (String(host), String(address[address.utf8.index(after: colon)...]))
    }

    private func redacted(_ text: String) -> String { redaction?.redacted(text) ?? text }

    private func add(_ headers: HTTPHeaders, like last: inout Fields, to text: inout JSONText) {
        text.array("headers") { text in
            for (index, field) in headers.enumerated() {
                if index == last.count {
                    last.append((field, self.text(of: field)))
                } else {
                    let old = last[index].field
                    let isSame = old.value.hasSameBytes(as: field.value) && old.name.hasSameBytes(as: field.name)
                    if !isSame { last[index] = (field, self.text(of: field)) }
                }
                text.add(last[index].text)
            }
        }
    }

    private func text(of field: HTTPHeaders.Field) -> JSONText {
        let field = redaction?.redacted(field) ?? field
        var text = JSONText()
        Self.addPair(field.name, field.value, to: &text)
        return text
    }

    private static func addPair(_ name: String, _ value: String, to text: inout JSONText) {
        text.object { text in
            text.add("name", name)
            text.add("value", value)
        }
    }

    private func addNamed(_ id: UInt64?, _ name: String?, to text: inout JSONText) {
        if let id { text.add("id", id) }
        if let name { text.add("name", redacted(name)) }
    }
}

// MARK: - Messages

extension HARWriter {
    private func addRequest(_ entry: HAREntry, to text: inout JSONText) {
        let url = redacted(entry.url.absoluteString)
        let count: Int? =
            switch entry.body {
            case .none: 0
            case .data(let body): body.count
            case .elsewhere(let length): length
            }
        text.add("bodySize", count ?? -1)
        text.array("cookies") { text in
            for field in entry.headers.values(for: "Cookie") {
                for cookie in field.split(separator: ";") { text.object { addCookie(String(cookie), to: &$0) } }
            }
        }
        add(entry.headers, like: &requestFields, to: &text)
        text.add("headersSize", size(entry.metrics?.bytesSent, without: count))
        text.add("httpVersion", entry.metrics?.networkProtocol ?? "unknown")
        text.add("method", entry.method)
        addPostData(entry, to: &text)
        Self.addItems(of: url, "queryString", to: &text)
        text.add("url", url)
    }

    private func addResponse(_ entry: HAREntry, to text: inout JSONText) {
        let headers = entry.response?.headers ?? HTTPHeaders()
        let statusCode = entry.response?.statusCode ?? 0
        let location = (300..<400).contains(statusCode) ? headers["Location"] : nil
        var count = headers.contentLength.map { Int(clamping: $0) }
        if entry.sent == nil || statusCode == 304 || entry.method == "HEAD" { count = 0 }
        if let error = entry.error { text.add("_error", "\(error.code)") }
        text.add("bodySize", entry.error == nil ? count ?? -1 : -1)
        if let error = entry.error { text.add("comment", redacted(error.localizedDescription)) }
        text.object("content") { addContent(entry, to: &$0) }
        text.array("cookies") { text in
            for field in headers.values(for: "Set-Cookie") { addSetCookie(field, to: &text) }
        }
        add(headers, like: &responseFields, to: &text)
        text.add("headersSize", size(entry.error == nil ? entry.metrics?.bytesReceived : nil, without: count))
        text.add("httpVersion", entry.metrics?.networkProtocol ?? "unknown")
        text.add("redirectURL", location.map(redacted) ?? "")
        text.add("status", statusCode)
        // No transport reports the reason phrase.
        text.add("statusText", "")
    }

    /// Returns the size of a head; -1 if it is not known.
    private func size(_ total: Int?, without bodyCount: Int?) -> Int {
        guard let total, let bodyCount, total > bodyCount else { return -1 }
        return total - bodyCount
    }

    private static func addItems(of url: String, _ key: StaticString, to text: inout JSONText) {
        text.array(key) { text in
            guard url.utf8.contains(UInt8(ascii: "?")) else { return }
            for item in URLComponents(string: url)?.queryItems ?? [] { addPair(item.name, item.value ?? "", to: &text) }
        }
    }

    /// Returns the name and the value of `name=value`. The name is `nil` if there is no `=`.
    private func pair(_ text: some StringProtocol) -> (name: String?, value: String) {
        let parts = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(\.trimmed)
        return parts.count > 1 ? (parts[0], parts[1]) : (nil, parts.first ?? "")
    }

    private func addCookie(_ cookie: String, _ path: String? = nil, isSecure: Bool = false, to text: inout JSONText) {
        let (name, value) = pair(cookie)
        // A cookie without a name consists of a value only (RFC 6265bis, section 5.6).
        text.add("name", name ?? "")
        if let path { text.add("path", redacted(path)) }
        if isSecure { text.add("secure", true) }
        text.add("value", redaction == nil ? value : Redaction.mark)
    }

    private func addSetCookie(_ field: String, to text: inout JSONText) {
        let parts = field.split(separator: ";")
        guard let first = parts.first else { return }
        var attributes: [String: String] = [:]
        for part in parts.dropFirst() {
            let (name, value) = pair(part)
            attributes[(name ?? value).lowercased()] = value
        }
        text.object { text in
            if let domain = attributes["domain"] { text.add("domain", domain) }
            if let date = attributes["expires"].flatMap({ Date(httpText: $0, now: Date()) }) {
                text.add("expires", date.timestamp)
            }
            if attributes["httponly"] != nil { text.add("httpOnly", true) }
            addCookie(String(first), attributes["path"], isSecure: attributes["secure"] != nil, to: &text)
        }
    }
}

// MARK: - Bodies

extension HARWriter {
    private func addPostData(_ entry: HAREntry, to text: inout JSONText) {
        let contentType = entry.headers["Content-Type"] ?? ""
        var content = ""
        var comment: String?
        switch entry.body {
        case .none: return
        case .elsewhere: comment = "left out: the body is read or made while it is sent"
        case .data(let body):
            guard body.count > 0 else { return }
            switch ShownBody(body, contentType: contentType, redaction) {
            case .text(let text): (content, comment) = cut(text)
            case .bytes: comment = "left out: \(body.count) bytes that are not text"
            case .leftOut(let reason): comment = reason
            }
        }
        text.object("postData") { text in
            if let comment { text.add("comment", comment) }
            text.add("mimeType", contentType)
            let isForm = !content.isEmpty && MediaType(contentType)?.essence == "application/x-www-form-urlencoded"
            let items = isForm ? "?" + content.replacingOccurrences(of: "+", with: "%20") : ""
            Self.addItems(of: items, "params", to: &text)
            text.add("text", content)
        }
    }

    private func addContent(_ entry: HAREntry, to text: inout JSONText) {
        let contentType = entry.response?.headers["Content-Type"]
        var size = 0
        var content: String?
        var encoding: String?
        var comment: String?
        if let body = entry.responseBody {
            size = body.count
            switch ShownBody(body, contentType: contentType, redaction) {
            case .text(let text):
                let (text, reason) = cut(text)
                (content, comment) = (text, reason ?? (body.isWhole ? nil : Self.beginning))
            case .bytes(let bytes):
                (content, encoding) = (bytes.prefix(maximumBodyCount).base64EncodedString(), "base64")
                if body.count > maximumBodyCount { comment = Self.beginning }
            case .leftOut(let reason): comment = reason
            }
        } else if let response = entry.response {
            size = Int(clamping: response.headers.contentLength ?? 0)
            comment = "left out: the body was consumed as it arrived"
        }
        if let comment {
            text.add("_isIncomplete", true)
            text.add("comment", comment)
        }
        if let encoding { text.add("encoding", encoding) }
        text.add("mimeType", contentType ?? "x-unknown")
        text.add("size", size)
        if let content { text.add("text", content) }
    }

    private static let beginning = "only the beginning"

    private func cut(_ text: String) -> (text: String, comment: String?) {
        guard text.utf8.count > maximumBodyCount else { return (text, nil) }
        return (ShownBody.beginning(of: text, maximumBodyCount), Self.beginning)
    }
}

// MARK: - Times

extension HARWriter {
    /// The phases of an exchange in milliseconds; `nil` for a phase that does not apply.
    private struct Timings {
        private var blocked: Double?
        private var dns: Double?
        /// The time to connect, including TLS.
        private var connect: Double?
        private var ssl: Double?
        private var wait = 0.0
        private var receive = 0.0

        init(_ sent: HAREntry.Sent?) {
            guard let sent else { return }
            guard let metrics = sent.attempt.metrics else {
                wait = Self.milliseconds(sent.duration)
                return
            }
            var last = 0.0
            func phase(until end: TimeInterval) -> Double {
                let time = Self.milliseconds(end) - last
                last = max(last, Self.milliseconds(end))
                return max(0, time)
            }
            blocked = Self.milliseconds(metrics.wait)
            dns = metrics.nameLookup.map(phase)
            connect = metrics.connect.map(phase)
            ssl = metrics.tls.map(phase)
            if let ssl { connect = (connect ?? 0) + ssl }
            wait = phase(until: metrics.firstByte ?? metrics.total)
            receive = phase(until: metrics.total)
        }

        /// Writes the phases. Sending counts as part of the wait for the response, because no transport measures it.
        func write(to text: inout JSONText) {
            text.add("blocked", Self.rounded(blocked ?? -1))
            text.add("connect", Self.rounded(connect ?? -1))
            text.add("dns", Self.rounded(dns ?? -1))
            text.add("receive", Self.rounded(receive))
            text.add("send", 0.0)
            text.add("ssl", Self.rounded(ssl ?? -1))
            text.add("wait", Self.rounded(wait))
        }

        var total: Double { Self.rounded((blocked ?? 0) + (dns ?? 0) + (connect ?? 0) + wait + receive) }

        private static func milliseconds(_ time: TimeInterval) -> Double {
            time.isFinite ? max(0, time) * 1_000 : 0
        }

        private static func rounded(_ time: Double) -> Double { (time * 1_000).rounded() / 1_000 }
    }
}
