import Foundation

/// The keys of entries. They are readable, so that entries can be listed.
enum CacheKey {
    /// Returns the key of a message: its method, URL and body, and the additions of the policy.
    ///
    /// - Returns: nil for a body that is a file or a stream unless the policy has a key, and for a request with `Range`
    ///   unless the policy has a key or an extra key. With ``CachePolicy/Reading/http``, nil for any body.
    static func key(for message: TransportRequest, _ policy: CachePolicy, partition: String?) -> String? {
        if policy.reading == .http {
            // HTTP caches no requests with a body.
            return message.body == .none ? http(message.url, partition: partition) : nil
        }
        // A range request would share its key with a request for the whole resource.
        if policy.key == nil, policy.extraKey == nil, message.headers["Range"] != nil { return nil }
        if let key = policy.key {
            let host = message.url.hostAndPort ?? "\(message.url.host ?? ""):\(message.url.port ?? 0)"
            let origin = "\(message.url.scheme ?? "")://\(host)".lowercased()
            return joined(["key", key, origin], partition, policy.extraKey)
        }
        let url = address(message.url, without: policy.ignoredParameters)
        switch message.body {
        case .none: return joined([message.method.rawValue, url], partition, policy.extraKey)
        case .data(let data):
            // The meaning of the bytes depends on their type.
            let type = message.headers["Content-Type"] ?? ""
            let digest = SHA256.digest(of: data).hexadecimal
            return joined([message.method.rawValue, url, type, digest], partition, policy.extraKey)
        case .file, .stream: return nil
        }
    }

    /// Returns the key by the rules of HTTP, which stores only responses to GET (RFC 9111, section 2).
    static func http(_ url: URL, partition: String?) -> String {
        joined(["HTTP", address(url, without: [])], partition, nil)
    }

    /// Returns the key of a response that another one with other nominated fields has replaced under the key of their
    /// URL.
    static func variant(_ fields: NominatedFields, of key: String) -> String {
        let values = fields.digests.sorted { $0.key < $1.key }.map {
            "\($0.key):\($0.value?.base64EncodedString() ?? "")"
        }
        return "\(key)\nvariant\n\(SHA256.digest(of: Data(values.joined(separator: ",").utf8)).hexadecimal)"
    }

    /// Joins the escaped parts with line feeds, so that different parts give different keys.
    private static func joined(_ parts: [String], _ partition: String?, _ extra: String?) -> String {
        let lines = parts + (partition.map { ["partition", $0] } ?? []) + (extra.map { ["extra", $0] } ?? [])
        return lines.map { line in
            line.utf8.contains { $0 == UInt8(ascii: "\n") || $0 == UInt8(ascii: "\\") }
                ? line.replacingOccurrences(of: "\\", with: "\\\\").replacingOccurrences(of: "\n", with: "\\n")
                : line
        }.joined(separator: "\n")
    }

    private static func address(_ url: URL, without ignored: Set<String>) -> String {
        let text = url.textWithoutFragment
        guard !ignored.isEmpty, var parts = URLComponents(string: text), let items = parts.percentEncodedQueryItems
        else { return text }
        let kept = items.filter { !ignored.contains($0.name.removingPercentEncoding ?? $0.name) }
        parts.percentEncodedQueryItems = kept.isEmpty ? nil : kept
        return parts.string ?? text
    }
}

extension URL {
    /// The absolute URL, without a fragment.
    var textWithoutFragment: String { String(Substring(absoluteString.utf8.prefix { $0 != UInt8(ascii: "#") })) }
}
