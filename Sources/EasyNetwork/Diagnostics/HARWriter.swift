import Foundation

/// Writes an entry of HAR 1.2 (http://www.softwareishard.com/blog/har-12-spec/).
struct HARWriter {
    let redaction: Redaction?
    let maximumBodyCount: Int

    /// The entry on one line.
    func json(_ entry: HAREntry) -> String {
        var object: [String: JSONValue] = [
            "startedDateTime": Self.text(entry.date),
            "request": request(entry),
            "response": response(entry),
            "cache": .object([:]),
        ]
        let timings = Timings(entry.source)
        object["timings"] = .object(timings.json)
        object["time"] = .double(timings.total)
        if case .sent(let attempt, let number, _) = entry.source {
            object["_reason"] = .string(attempt.reason.rawValue)
            object["_attempt"] = .integer(Int64(number))
            if attempt.delay > 0 { object["_delay"] = .double(attempt.delay) }
            object["_cache"] = (attempt.cacheMiss?.rawValue).map(JSONValue.string)
            if let address = attempt.metrics?.remoteAddress, let colon = address.lastIndex(of: ":") {
                object["serverIPAddress"] = .string(address[..<colon].filter { $0 != "[" && $0 != "]" })
                object["connection"] = .string(String(address[address.index(after: colon)...]))
            }
        } else {
            object["_fromCache"] = .bool(true)
        }
        object["_call"] = .unsigned(entry.callNumber)
        if let job = entry.job {
            var description = named(job.id, job.name)
            description["host"] = job.host.map(JSONValue.string)
            description["tags"] = .array(job.tags.map(redacted).sorted().map(JSONValue.string))
            object["_job"] = .object(description)
            object["_dependsOn"] = .array(job.dependencies.map { .object(named($0.id, $0.name)) })
        }
        var text: [UInt8] = []
        JSONValue.object(object).write(to: &text)
        return String(decoding: text, as: UTF8.self)
    }

    private static func text(_ date: Date) -> JSONValue {
        .string(date.formatted(Date.ISO8601FormatStyle(includingFractionalSeconds: true)))
    }

    private func redacted(_ text: String) -> String { redaction?.redacted(text) ?? text }

    private func redacted(_ headers: HTTPHeaders) -> JSONValue {
        .array((redaction?.redacted(headers) ?? headers).map { Self.pair($0.name, $0.value) })
    }

    private static func pair(_ name: String, _ value: String) -> JSONValue {
        .object(["name": .string(name), "value": .string(value)])
    }

    private func named(_ id: UInt64?, _ name: String?) -> [String: JSONValue] {
        var object: [String: JSONValue] = [:]
        object["id"] = id.map(JSONValue.unsigned)
        object["name"] = name.map { .string(redacted($0)) }
        return object
    }
}

// MARK: - Messages

extension HARWriter {
    private func request(_ entry: HAREntry) -> JSONValue {
        let url = redacted(entry.url.absoluteString)
        var object: [String: JSONValue] = [
            "method": .string(entry.method),
            "url": .string(url),
            "httpVersion": version(entry),
            "headers": redacted(entry.headers),
            "cookies": .array(entry.headers.values(for: "Cookie").flatMap(cookies)),
            "queryString": Self.items(of: url),
        ]
        let contentType = entry.headers["Content-Type"] ?? ""
        var count: Int?
        switch entry.body {
        case .none: count = 0
        case .data(let body):
            count = body.count
            if body.count > 0 { object["postData"] = postData(body, contentType) }
        case .elsewhere(let length):
            count = length
            object["postData"] = .object([
                "mimeType": .string(contentType), "params": .array([]), "text": .string(""),
                "comment": .string("left out: it is read or made while it is sent"),
            ])
        }
        object["bodySize"] = .integer(Int64(count ?? -1))
        object["headersSize"] = size(metrics(entry)?.bytesSent, without: count)
        return .object(object)
    }

    private func response(_ entry: HAREntry) -> JSONValue {
        let headers = entry.response?.headers ?? HTTPHeaders()
        let statusCode = entry.response?.statusCode ?? 0
        let location = (300..<400).contains(statusCode) ? headers["Location"] : nil
        var object: [String: JSONValue] = [
            "status": .integer(Int64(statusCode)),
            // No transport reports it.
            "statusText": .string(""),
            "httpVersion": version(entry),
            "headers": redacted(headers),
            "cookies": .array(headers.values(for: "Set-Cookie").compactMap(setCookie)),
            "redirectURL": .string(location.map(redacted) ?? ""),
            "content": .object(content(entry.response, headers)),
        ]
        if let error = entry.error {
            object["_error"] = .string("\(error.code)")
            object["comment"] = .string(redacted(error.localizedDescription))
        }
        var count = headers["Content-Length"].flatMap { Int($0) }
        if case .fromCache = entry.source { count = 0 }
        if statusCode == 304 || entry.method == "HEAD" { count = 0 }
        object["bodySize"] = .integer(Int64(entry.error == nil ? count ?? -1 : -1))
        object["headersSize"] = size(entry.error == nil ? metrics(entry)?.bytesReceived : nil, without: count)
        return .object(object)
    }

    private func metrics(_ entry: HAREntry) -> TransportMetrics? {
        if case .sent(let attempt, _, _) = entry.source { attempt.metrics } else { nil }
    }

    private func version(_ entry: HAREntry) -> JSONValue { .string(metrics(entry)?.networkProtocol ?? "unknown") }

    /// The size of a head; -1 if it is not known.
    private func size(_ total: Int?, without bodyCount: Int?) -> JSONValue {
        guard let total, let bodyCount, total > bodyCount else { return .integer(-1) }
        return .integer(Int64(total - bodyCount))
    }

    /// The parameters of a URL.
    private static func items(of url: String) -> JSONValue {
        guard url.utf8.contains(UInt8(ascii: "?")) else { return .array([]) }
        return .array((URLComponents(string: url)?.queryItems ?? []).map { pair($0.name, $0.value ?? "") })
    }

    private func cookies(_ field: String) -> [JSONValue] {
        field.split(separator: ";").map { .object(cookie($0)) }
    }

    private func cookie(_ text: Substring) -> [String: JSONValue] {
        let parts = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(\.trimmed)
        let value = parts.count > 1 ? parts[1] : ""
        return ["name": .string(parts.first ?? ""), "value": .string(redaction == nil ? value : Redaction.mark)]
    }

    private func setCookie(_ field: String) -> JSONValue? {
        let parts = field.split(separator: ";")
        guard let first = parts.first else { return nil }
        var cookie = cookie(first)
        for part in parts.dropFirst() {
            let attribute = part.split(separator: "=", maxSplits: 1).map(\.trimmed)
            let value = attribute.count > 1 ? attribute[1] : ""
            switch attribute.first?.lowercased() {
            case "path": cookie["path"] = .string(value)
            case "domain": cookie["domain"] = .string(value)
            case "expires": cookie["expires"] = Date(httpText: value, now: Date()).map(Self.text)
            case "httponly": cookie["httpOnly"] = .bool(true)
            case "secure": cookie["secure"] = .bool(true)
            default: break
            }
        }
        return .object(cookie)
    }
}

// MARK: - Bodies

extension HARWriter {
    /// A body as HAR has it.
    private enum Form {
        case text(String)
        case bytes(Data)
        /// For this reason.
        case leftOut(String)
    }

    private func postData(_ body: HAREntry.Body, _ contentType: String) -> JSONValue {
        var object: [String: JSONValue] = ["mimeType": .string(contentType), "params": .array([]), "text": .string("")]
        switch form(of: body, contentType) {
        case .text(let text):
            let (text, comment) = cut(text)
            object["text"] = .string(text)
            object["comment"] = comment.map(JSONValue.string)
            if MediaType(contentType)?.essence == "application/x-www-form-urlencoded" {
                object["params"] = Self.items(of: "?" + text.replacingOccurrences(of: "+", with: "%20"))
            }
        case .bytes: object["comment"] = .string("left out: \(body.count) bytes that are no text")
        case .leftOut(let reason): object["comment"] = .string(reason)
        }
        return .object(object)
    }

    private func content(_ response: HAREntry.Response?, _ headers: HTTPHeaders) -> [String: JSONValue] {
        let contentType = headers["Content-Type"]
        var object: [String: JSONValue] = ["mimeType": .string(contentType ?? "x-unknown")]
        guard let response else {
            object["size"] = .integer(0)
            return object
        }
        guard let body = response.body else {
            object["size"] = .integer(headers["Content-Length"].flatMap { Int64($0) } ?? 0)
            object["comment"] = .string("left out: it was used while it came")
            object["_isIncomplete"] = .bool(true)
            return object
        }
        object["size"] = .integer(Int64(body.count))
        switch form(of: body, contentType) {
        case .text(let text):
            let (text, comment) = cut(text)
            object["text"] = .string(text)
            object["comment"] = (comment ?? (body.isWhole ? nil : Self.beginning)).map(JSONValue.string)
        case .bytes(let bytes):
            object["text"] = .string(bytes.prefix(maximumBodyCount).base64EncodedString())
            object["encoding"] = .string("base64")
            if body.count > maximumBodyCount { object["comment"] = .string(Self.beginning) }
        case .leftOut(let reason): object["comment"] = .string(reason)
        }
        if object["comment"] != nil { object["_isIncomplete"] = .bool(true) }
        return object
    }

    private static let beginning = "only the beginning"

    private func cut(_ text: String) -> (text: String, comment: String?) {
        guard text.utf8.count > maximumBodyCount else { return (text, nil) }
        var end = text.utf8.index(text.startIndex, offsetBy: maximumBodyCount)
        while end.samePosition(in: text.unicodeScalars) == nil { end = text.utf8.index(before: end) }
        return (String(text[..<end]), Self.beginning)
    }

    private func form(of body: HAREntry.Body, _ contentType: String?) -> Form {
        if let redaction {
            if body.isWhole, let text = redaction.redactedText(of: body.bytes, contentType: contentType) {
                return .text(text)
            }
            let type = contentType.flatMap(MediaType.init)
            guard let text = Self.text(body) else {
                return type?.isText == true ? .leftOut("left out: its secrets cannot be found") : .bytes(body.bytes)
            }
            guard body.isWhole else { return .leftOut("left out: secrets cannot be found in its beginning alone") }
            guard !redaction.hasSecretName(text) else { return .leftOut("left out: it has secrets") }
            return .text(redaction.redacted(text))
        }
        return Self.text(body).map { .text($0) } ?? .bytes(body.bytes)
    }

    /// The body as text; nil for bytes that are no text in UTF-8.
    private static func text(_ body: HAREntry.Body) -> String? {
        // The last character of a beginning may be cut.
        for cut in 0...(body.isWhole ? 0 : 3) {
            guard let text = String(data: body.bytes.dropLast(cut), encoding: .utf8) else { continue }
            let isText = text.utf8.allSatisfy { byte in
                byte >= 0x20 || byte == 0x09 || byte == 0x0A || byte == 0x0C || byte == 0x0D || byte == 0x1B
            }
            return isText ? text : nil
        }
        return nil
    }
}

extension MediaType {
    fileprivate var isText: Bool {
        essence.hasPrefix("text/") || essence.hasPrefix("multipart/") || isJSON || essence.hasSuffix("xml")
            || essence.hasSuffix("javascript") || essence == "application/x-www-form-urlencoded"
    }
}

extension Redaction {
    /// Whether the text has the name of a secret where its value may be next to it, other than in `name=value`: as a
    /// key before a colon, in quotes, as an element of XML, or as a column.
    fileprivate func hasSecretName(_ text: String) -> Bool {
        let bytes = Array(text.utf8)
        var index = 0
        while index < bytes.count {
            let start = index
            while index < bytes.count, Self.isPartOfName(bytes[index]) { index += 1 }
            if index > start {
                let before = start > 0 ? bytes[start - 1] : UInt8(ascii: " ")
                let next = bytes[index...].first { $0 != UInt8(ascii: " ") } ?? UInt8(ascii: " ")
                let isKey = "\"'</,;|\t".utf8.contains(before) || "\"':>,;|\t".utf8.contains(next)
                if isKey, isSecret(String(decoding: bytes[start..<index], as: UTF8.self)) { return true }
            }
            index += 1
        }
        return false
    }

    private static func isPartOfName(_ byte: UInt8) -> Bool {
        byte.isLetter || byte.isDigit || byte >= 0x80 || "_-.$".utf8.contains(byte)
    }
}

// MARK: - Times

extension HARWriter {
    /// The phases of an exchange, in milliseconds; nil for one that does not apply.
    private struct Timings {
        private var blocked: Double?
        private var dns: Double?
        /// With TLS.
        private var connect: Double?
        private var ssl: Double?
        private var wait = 0.0
        private var receive = 0.0

        init(_ source: HAREntry.Source) {
            guard case .sent(let attempt, _, let duration) = source else { return }
            guard let metrics = attempt.metrics else {
                wait = Self.milliseconds(duration)
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

        /// Sending is a part of the wait for the answer: no transport measures it.
        var json: [String: JSONValue] {
            [
                "blocked": blocked ?? -1, "dns": dns ?? -1, "connect": connect ?? -1, "ssl": ssl ?? -1, "send": 0,
                "wait": wait, "receive": receive,
            ].mapValues { .double(Self.rounded($0)) }
        }

        var total: Double { Self.rounded((blocked ?? 0) + (dns ?? 0) + (connect ?? 0) + wait + receive) }

        private static func milliseconds(_ time: TimeInterval) -> Double {
            time.isFinite ? max(0, time) * 1_000 : 0
        }

        private static func rounded(_ time: Double) -> Double { (time * 1_000).rounded() / 1_000 }
    }
}

// MARK: - JSON

extension JSONValue {
    /// Appends the value as text. Foundation's serialization would take most of the time of an entry.
    fileprivate func write(to text: inout [UInt8]) {
        switch self {
        case .null: text += "null".utf8
        case .bool(let value): text += (value ? "true" : "false").utf8
        case .integer(let value): text += "\(value)".utf8
        case .unsigned(let value): text += "\(value)".utf8
        case .double(let value): text += (value.isFinite ? "\(value)" : "null").utf8
        case .decimal(let value): text += "\(value)".utf8
        case .string(let value): Self.write(value, to: &text)
        case .array(let values):
            text.append(UInt8(ascii: "["))
            for (index, value) in values.enumerated() {
                if index > 0 { text.append(UInt8(ascii: ",")) }
                value.write(to: &text)
            }
            text.append(UInt8(ascii: "]"))
        case .object(let values):
            text.append(UInt8(ascii: "{"))
            for (index, (key, value)) in values.sorted(by: { $0.key < $1.key }).enumerated() {
                if index > 0 { text.append(UInt8(ascii: ",")) }
                Self.write(key, to: &text)
                text.append(UInt8(ascii: ":"))
                value.write(to: &text)
            }
            text.append(UInt8(ascii: "}"))
        }
    }

    private static func write(_ string: String, to text: inout [UInt8]) {
        text.append(UInt8(ascii: "\""))
        // Most texts need no escape.
        if string.utf8.contains(where: { $0 < 0x20 || $0 == UInt8(ascii: "\"") || $0 == UInt8(ascii: "\\") }) {
            for byte in string.utf8 {
                switch byte {
                case UInt8(ascii: "\""), UInt8(ascii: "\\"):
                    text.append(UInt8(ascii: "\\"))
                    text.append(byte)
                case UInt8(ascii: "\n"): text += #"\n"#.utf8
                case 0..<0x20: text += ((byte < 16 ? #"\u000"# : #"\u00"#) + String(byte, radix: 16)).utf8
                default: text.append(byte)
                }
            }
        } else {
            text += string.utf8
        }
        text.append(UInt8(ascii: "\""))
    }
}
