import Foundation

/// Writes an entry of HAR 1.2 (http://www.softwareishard.com/blog/har-12-spec/).
struct HARWriter {
    let redaction: Redaction?
    let maximumBodyCount: Int

    /// The entry on one line; nil if it cannot be written as JSON.
    func json(_ entry: HAREntry) -> String? {
        var object: [String: Any] = [
            "startedDateTime": Self.text(entry.date),
            "request": request(entry),
            "response": response(entry),
            "cache": [String: Any](),
        ]
        let timings = Timings(entry.source)
        object["timings"] = timings.json
        object["time"] = timings.total
        if case .sent(let attempt, let number, _) = entry.source {
            object["_reason"] = attempt.reason.rawValue
            object["_attempt"] = number
            if attempt.delay > 0 { object["_delay"] = attempt.delay }
            object["_cache"] = attempt.cacheMiss?.rawValue
            if let address = attempt.metrics?.remoteAddress, let colon = address.lastIndex(of: ":") {
                object["serverIPAddress"] = address[..<colon].filter { $0 != "[" && $0 != "]" }
                object["connection"] = String(address[address.index(after: colon)...])
            }
        } else {
            object["_fromCache"] = true
        }
        object["_call"] = entry.callNumber
        if let job = entry.job {
            var description = named(job.id, job.name)
            description["host"] = job.host
            description["tags"] = job.tags.map(redacted).sorted()
            object["_job"] = description
            object["_dependsOn"] = job.dependencies.map(named)
        }
        guard JSONSerialization.isValidJSONObject(object),
            let data = try? JSONSerialization.data(
                withJSONObject: object,
                options: [.sortedKeys, .withoutEscapingSlashes]
            )
        else { return nil }
        return String(decoding: data, as: UTF8.self)
    }

    private static func text(_ date: Date) -> String {
        date.formatted(Date.ISO8601FormatStyle(includingFractionalSeconds: true))
    }

    private func redacted(_ text: String) -> String { redaction?.redacted(text) ?? text }

    private func redacted(_ headers: HTTPHeaders) -> [[String: Any]] {
        (redaction?.redacted(headers) ?? headers).map { ["name": $0.name, "value": $0.value] }
    }

    private func named(_ id: UInt64?, _ name: String?) -> [String: Any] {
        var object: [String: Any] = [:]
        object["id"] = id
        object["name"] = name.map(redacted)
        return object
    }
}

// MARK: - Messages

extension HARWriter {
    private func request(_ entry: HAREntry) -> [String: Any] {
        let url = redacted(entry.url.absoluteString)
        let items = URLComponents(string: url)?.queryItems ?? []
        var object: [String: Any] = [
            "method": entry.method,
            "url": url,
            "httpVersion": version(entry),
            "headers": redacted(entry.headers),
            "cookies": entry.headers.values(for: "Cookie").flatMap(cookies),
            "queryString": items.map { ["name": $0.name, "value": $0.value ?? ""] },
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
            let comment = "left out: it is read or made while it is sent"
            object["postData"] = ["mimeType": contentType, "params": [Any](), "text": "", "comment": comment]
        }
        object["bodySize"] = count ?? -1
        object["headersSize"] = size(metrics(entry)?.bytesSent, without: count)
        return object
    }

    private func response(_ entry: HAREntry) -> [String: Any] {
        let headers = entry.response?.headers ?? HTTPHeaders()
        let statusCode = entry.response?.statusCode ?? 0
        var object: [String: Any] = [
            "status": statusCode,
            // No transport reports it.
            "statusText": "",
            "httpVersion": version(entry),
            "headers": redacted(headers),
            "cookies": headers.values(for: "Set-Cookie").compactMap(setCookie),
            "redirectURL": (300..<400).contains(statusCode) ? redacted(headers["Location"] ?? "") : "",
            "content": content(entry.response, headers),
        ]
        if let error = entry.error {
            object["_error"] = "\(error.code)"
            object["comment"] = redacted(error.localizedDescription)
        }
        var count = headers["Content-Length"].flatMap { Int($0) }
        if case .fromCache = entry.source { count = 0 }
        if statusCode == 304 || entry.method == "HEAD" { count = 0 }
        object["bodySize"] = entry.error == nil ? count ?? -1 : -1
        object["headersSize"] = entry.error == nil ? size(metrics(entry)?.bytesReceived, without: count) : -1
        return object
    }

    private func metrics(_ entry: HAREntry) -> TransportMetrics? {
        if case .sent(let attempt, _, _) = entry.source { attempt.metrics } else { nil }
    }

    private func version(_ entry: HAREntry) -> String { metrics(entry)?.networkProtocol ?? "unknown" }

    /// The size of a head; -1 if it is not known.
    private func size(_ total: Int?, without bodyCount: Int?) -> Int {
        guard let total, let bodyCount, total > bodyCount else { return -1 }
        return total - bodyCount
    }

    private func cookies(_ field: String) -> [[String: Any]] {
        field.split(separator: ";").map(pair)
    }

    private func pair(_ text: Substring) -> [String: Any] {
        let parts = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(\.trimmed)
        let value = parts.count > 1 ? parts[1] : ""
        return ["name": parts.first ?? "", "value": redaction == nil ? value : Redaction.mark]
    }

    private func setCookie(_ field: String) -> [String: Any]? {
        let parts = field.split(separator: ";")
        guard let first = parts.first else { return nil }
        var cookie = pair(first)
        for part in parts.dropFirst() {
            let attribute = part.split(separator: "=", maxSplits: 1).map(\.trimmed)
            let value = attribute.count > 1 ? attribute[1] : ""
            switch attribute.first?.lowercased() {
            case "path": cookie["path"] = value
            case "domain": cookie["domain"] = value
            case "expires": cookie["expires"] = Date(httpText: value, now: Date()).map(Self.text)
            case "httponly": cookie["httpOnly"] = true
            case "secure": cookie["secure"] = true
            default: break
            }
        }
        return cookie
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

    private func postData(_ body: HAREntry.Body, _ contentType: String) -> [String: Any] {
        var object: [String: Any] = ["mimeType": contentType, "params": [Any](), "text": ""]
        switch form(of: body, contentType) {
        case .text(let text):
            let (text, comment) = cut(text)
            object["text"] = text
            object["comment"] = comment
            if MediaType(contentType)?.essence == "application/x-www-form-urlencoded" {
                let items = URLComponents(string: "?" + text.replacingOccurrences(of: "+", with: "%20"))?.queryItems
                object["params"] = (items ?? []).map { ["name": $0.name, "value": $0.value ?? ""] }
            }
        case .bytes: object["comment"] = "left out: \(body.count) bytes that are no text"
        case .leftOut(let reason): object["comment"] = reason
        }
        return object
    }

    private func content(_ response: HAREntry.Response?, _ headers: HTTPHeaders) -> [String: Any] {
        let contentType = headers["Content-Type"]
        var object: [String: Any] = ["mimeType": contentType ?? "x-unknown"]
        guard let response else {
            object["size"] = 0
            return object
        }
        guard let body = response.body else {
            object["size"] = headers["Content-Length"].flatMap { Int($0) } ?? 0
            object["comment"] = "left out: it was used while it came"
            object["_isIncomplete"] = true
            return object
        }
        object["size"] = body.count
        switch form(of: body, contentType) {
        case .text(let text):
            let (text, comment) = cut(text)
            object["text"] = text
            object["comment"] = comment ?? (body.isWhole ? nil : Self.beginning)
        case .bytes(let bytes):
            object["text"] = bytes.prefix(maximumBodyCount).base64EncodedString()
            object["encoding"] = "base64"
            if body.count > maximumBodyCount { object["comment"] = Self.beginning }
        case .leftOut(let reason): object["comment"] = reason
        }
        if object["comment"] != nil { object["_isIncomplete"] = true }
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
            let isText = text.utf8.allSatisfy { $0 >= 0x20 || [0x09, 0x0A, 0x0C, 0x0D, 0x1B].contains($0) }
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
        var json: [String: Any] {
            [
                "blocked": blocked ?? -1, "dns": dns ?? -1, "connect": connect ?? -1, "ssl": ssl ?? -1, "send": 0,
                "wait": wait, "receive": receive,
            ].mapValues(Self.rounded)
        }

        var total: Double { Self.rounded((blocked ?? 0) + (dns ?? 0) + (connect ?? 0) + wait + receive) }

        private static func milliseconds(_ time: TimeInterval) -> Double {
            time.isFinite ? max(0, time) * 1_000 : 0
        }

        private static func rounded(_ time: Double) -> Double { (time * 1_000).rounded() / 1_000 }
    }
}
