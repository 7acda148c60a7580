import Foundation

/// Finds the server's own words in the body of an error.
enum ServerMessage {
    /// The longest plain text that counts as a message, in characters. JSON's are cut there, with an ellipsis.
    static let limit = 200

    /// Bodies beyond this many bytes hold data or a page, not a message.
    private static let largestBody = 262_144

    /// - Returns: the message in a JSON object, or a short plain text; nil for HTML and for anything else. Of several
    ///   messages the one that is written for people comes first: `error.message`, `error_description`, `message`,
    ///   `detail`, then `error`, `title`, `errors[0]`.
    static func find(in body: Data, headers: HTTPHeaders) -> String? {
        guard !body.isEmpty, body.count <= largestBody else { return nil }
        let type = headers["Content-Type"].flatMap(MediaType.init)
        if let type, type.isHTML { return nil }
        if let object = (try? JSONSerialization.jsonObject(with: body)) as? [String: Any] { return find(in: object) }
        guard type?.essence == "text/plain" else { return nil }
        return plain(body, headers)
    }

    private static func find(in object: [String: Any]) -> String? {
        if let message = text((object["error"] as? [String: Any])?["message"]) { return message }
        for key in ["error_description", "message", "detail", "error", "title"] {
            if let message = text(object[key]) { return message }
        }
        let first = (object["errors"] as? [Any])?.first
        return text(first) ?? text((first as? [String: Any])?["message"])
    }

    private static func text(_ value: Any?) -> String? {
        guard let text = (value as? String)?.trimmed, !text.isEmpty else { return nil }
        return text.count > limit ? text.prefix(limit) + "…" : text
    }

    private static func plain(_ body: Data, _ headers: HTTPHeaders) -> String? {
        guard let text = try? NetworkResponse(headers: headers, body: body).text().trimmed else { return nil }
        // Many servers call their HTML pages plain text.
        return text.isEmpty || text.count > limit || text.hasPrefix("<") ? nil : text
    }
}
