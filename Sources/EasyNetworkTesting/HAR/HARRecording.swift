import EasyNetwork
import Foundation

/// The responses in a HAR file, for ``InMemoryTransport/init(har:clock:conditions:)``.
struct HARRecording: Sendable {
    private struct Entry: Sendable {
        let method: String
        let url: String
        /// The body of the request. `nil` if the request has no body or the file does not contain it.
        let body: String?
        let result: Result<MockResponse, NetworkError>
        var isUsed = false
    }

    private let name: String
    private var entries: [Entry] = []
    /// The indices of the entries by method and path.
    private var places: [String: [Int]] = [:]

    /// - Throws: `NetworkError.Code.cannotParseResponse` if the file cannot be read or is not a HAR file.
    init(_ file: URL) throws(NetworkError) {
        name = file.lastPathComponent
        let json: Any
        do {
            json = try Self.document(Data(contentsOf: file))
        } catch {
            let message = "the recording \(file.path) cannot be read"
            throw NetworkError(code: .cannotParseResponse, message: message, underlying: error)
        }
        let log = (json as? [String: Any])?["log"] as? [String: Any]
        guard let list = log?["entries"] as? [[String: Any]]
        else {
            throw NetworkError(
                code: .cannotParseResponse,
                message: "\(file.path) is not a HAR file: log.entries must be an array of objects"
            )
        }
        for entry in list.compactMap(Self.entry) {
            places[Self.place(entry.method, entry.url), default: []].append(entries.count)
            entries.append(entry)
        }
    }

    /// Returns the response to a request. If several entries match, this is the first unused one, or the last one if
    /// all are used.
    ///
    /// - Returns: The recorded response or error. `NetworkError.Code.invalidRequest` if the recording has no matching
    ///   entry.
    mutating func answer(
        to request: TransportRequest,
        _ message: MockRequest
    ) -> Result<MockResponse, NetworkError> {
        let url = Self.address(request.url.absoluteString)
        var found = (places[Self.place(message.method, url)] ?? []).filter { Self.matches(entries[$0].url, url) }
        if found.contains(where: { entries[$0].url == url }) { found.removeAll { entries[$0].url != url } }
        if found.contains(where: { entries[$0].body != entries[found[0]].body }) {
            let same = found.filter { Self.matches(entries[$0].body, message) }
            if !same.isEmpty { found = same }
        }
        guard let last = found.last else { return .failure(missing(message.method, url)) }
        let index = found.first { !entries[$0].isUsed } ?? last
        entries[index].isUsed = true
        let isConditional = message.headers["If-None-Match"] != nil || message.headers["If-Modified-Since"] != nil
        return entries[index].result.map { response in
            var response = response
            // The cache had a stored response when the recording was made, but doesn't now.
            if response.statusCode == 304, !isConditional, response.body != .data(Data()) { response.statusCode = 200 }
            return response
        }
    }

    private func missing(_ method: String, _ url: String) -> NetworkError {
        let redaction = Redaction.standard
        var message = "the recording \(name) has no response for \(method) \(redaction.redacted(url))"
        // The nearest entries are those whose URLs share the longest beginning with the request's URL.
        let nearest = entries.enumerated().map { index, entry in
            (index, zip(entry.url.utf8, url.utf8).prefix { $0 == $1 }.count * 2 + (entry.method == method ? 1 : 0))
        }
        var names: [String] = []
        for (index, _) in nearest.sorted(by: { ($0.1, $1.0) > ($1.1, $0.0) }) where names.count < 3 {
            let name = "\(entries[index].method) \(redaction.redacted(entries[index].url))"
            if !names.contains(name) { names.append(name) }
        }
        message += names.isEmpty ? "; it contains no responses" : "; nearest: \(names.joined(separator: ", "))"
        return NetworkError(code: .invalidRequest, message: message)
    }
}

// MARK: - Reading

extension HARRecording {
    /// Returns the JSON of a file. The last line is left out if it is incomplete, because the recorder was killed while
    /// writing the entry.
    private static func document(_ data: Data) throws -> Any {
        do {
            return try JSONSerialization.jsonObject(with: data)
        } catch {
            // Ignore the line feed at the end of the file.
            let lines = data.dropLast()
            guard let end = lines.lastIndex(of: UInt8(ascii: "\n")),
                let json = try? JSONSerialization.jsonObject(with: lines[..<end] + Data("]}}".utf8))
            else { throw error }
            return json
        }
    }

    /// - Returns: `nil` for an entry without a response, such as a cancelled request or a WebSocket.
    private static func entry(_ json: [String: Any]) -> Entry? {
        guard let request = json["request"] as? [String: Any], let response = json["response"] as? [String: Any],
            let method = request["method"] as? String, let url = request["url"] as? String,
            let result = result(response)
        else { return nil }
        let body = (request["postData"] as? [String: Any])?["text"] as? String
        return Entry(method: method, url: address(url), body: body.flatMap { $0.isEmpty ? nil : $0 }, result: result)
    }

    private static func result(_ json: [String: Any]) -> Result<MockResponse, NetworkError>? {
        let statusCode = json["status"] as? Int ?? 0
        if let name = json["_error"] as? String, !name.isEmpty {
            guard let code = code(name) else { return nil }
            return .failure(NetworkError(code: code, message: "recorded as \(name)"))
        }
        guard statusCode != 0 else {
            return .failure(NetworkError(code: .connectionLost, message: "recorded without a response"))
        }
        guard (200...999).contains(statusCode) else { return nil }
        let content = json["content"] as? [String: Any] ?? [:]
        let text = content["text"] as? String
        let isMissing = text == nil && content["size"] as? Int ?? 0 > 0 && statusCode != 304
        if isMissing || content["_isIncomplete"] as? Bool == true {
            let reason = content["comment"] as? String ?? "left out"
            return .failure(
                NetworkError(
                    code: .cannotParseResponse,
                    message: "the recording does not contain the whole body: \(reason)"
                )
            )
        }
        let isEncoded = content["encoding"] as? String == "base64"
        guard let body = isEncoded ? Data(base64Encoded: text ?? "") : Data((text ?? "").utf8) else {
            return .failure(NetworkError(code: .cannotParseResponse, message: "the recorded body is not valid Base64"))
        }
        return .success(MockResponse(statusCode: statusCode, headers: headers(json), body: .data(body)))
    }

    /// Returns the header fields, without the pseudo-header fields of HTTP/2 and without fields that contradict the
    /// decoded body.
    private static func headers(_ json: [String: Any]) -> HTTPHeaders {
        var headers = HTTPHeaders()
        for field in json["headers"] as? [[String: Any]] ?? [] {
            guard let name = field["name"] as? String, !name.hasPrefix(":"), let value = field["value"] as? String
            else { continue }
            // Chrome joins repeated fields with line breaks.
            for value in value.split(whereSeparator: \.isNewline) { headers.add(String(value), for: name) }
        }
        for name in ["Content-Encoding", "Transfer-Encoding"] { headers.remove(name) }
        return headers
    }

    /// Returns the code of a recorded error; `nil` for a cancellation.
    private static func code(_ name: String) -> NetworkError.Code? {
        let codes: [NetworkError.Code] = [
            .cannotConnect, .tls, .timedOut, .connectionLost, .badServerResponse, .bodyTooLong, .notConnected,
        ]
        if name == "\(NetworkError.Code.cancelled)" || name == "net::ERR_ABORTED" { return nil }
        if let code = codes.first(where: { "\($0)" == name }) { return code }
        let words: [(String, NetworkError.Code)] = [
            ("TIMED_OUT", .timedOut), ("INTERNET_DISCONNECTED", .notConnected), ("CERT", .tls), ("SSL", .tls),
            ("NAME_NOT_RESOLVED", .cannotConnect), ("REFUSED", .cannotConnect), ("UNREACHABLE", .cannotConnect),
            ("INVALID", .badServerResponse),
        ]
        return words.first { name.contains($0.0) }?.1 ?? .connectionLost
    }
}

// MARK: - Matching

extension HARRecording {
    /// Returns the URL without user, password and fragment, with scheme and host in lower case, and without a default
    /// port.
    private static func address(_ url: String) -> String {
        guard var parts = URLComponents(string: url) else { return url }
        parts.scheme = parts.scheme?.lowercased()
        parts.percentEncodedHost = parts.percentEncodedHost?.lowercased()
        (parts.user, parts.password, parts.fragment) = (nil, nil, nil)
        if parts.port == (parts.scheme == "https" ? 443 : 80) { parts.port = nil }
        if parts.percentEncodedPath.isEmpty { parts.percentEncodedPath = "/" }
        return parts.string ?? url
    }

    /// Returns the key for the table of entries. The path can contain secrets, too, so it is cut at the first `=`.
    private static func place(_ method: String, _ url: String) -> String {
        let path = url.prefix { $0 != "?" }
        return method + " " + (path.contains("=") ? path.prefix { $0 != "=" } : path)
    }

    /// Returns whether a string matches the recorded one, in which the mark of a redacted secret matches any value.
    private static func matches(_ recorded: String, _ text: String) -> Bool {
        guard recorded.contains(Redaction.mark) else { return recorded == text }
        var rest = Array(text.utf8)[...]
        for (index, part) in recorded.components(separatedBy: Redaction.mark).enumerated() {
            if index > 0 {
                // The byte after a secret ends it.
                let ends = part.utf8.first.map { [$0] } ?? Array("&#".utf8)
                rest = rest.drop { !ends.contains($0) }
            }
            guard rest.starts(with: part.utf8) else { return false }
            rest = rest.dropFirst(part.utf8.count)
        }
        return rest.isEmpty
    }

    private static func matches(_ recorded: String?, _ message: MockRequest) -> Bool {
        guard let recorded else { return message.body.isEmpty }
        if let json = message.json(), let other = try? JSONSerialization.jsonObject(with: Data(recorded.utf8)) {
            return matches(other, json)
        }
        return matches(recorded, String(decoding: message.body, as: UTF8.self))
    }

    private static func matches(_ recorded: Any, _ value: Any) -> Bool {
        switch (recorded, value) {
        case (Redaction.mark as String, _): true
        case (let recorded as String, let value as String): matches(recorded, value)
        case (let recorded as [Any], let value as [Any]):
            recorded.count == value.count && zip(recorded, value).allSatisfy { matches($0, $1) }
        case (let recorded as [String: Any], let value as [String: Any]):
            recorded.count == value.count
                && recorded.allSatisfy { key, recorded in value[key].map { matches(recorded, $0) } ?? false }
        case (let recorded as NSObject, let value as NSObject): recorded == value
        default: false
        }
    }
}
