import Foundation

/// Puts a `DecodingError` into words: the place, what was expected there and what was found.
enum DecodingFailure {
    /// - Parameter tree: what was decoded, as dictionaries and arrays; nil when it could not even be parsed. What was found
    ///   is looked up there: the text inside a `DecodingError` is another on each platform.
    static func message(for error: DecodingError, in tree: Any?) -> String {
        switch error {
        case .keyNotFound(let key, let context):
            return place(context.codingPath + [key]) + "no value for key \"\(key.stringValue)\""
        case .typeMismatch(let type, let context), .valueNotFound(let type, let context):
            return place(context.codingPath) + "expected \(expected(type)) but found "
                + (found(at: context.codingPath, in: tree) ?? "something else")
        case .dataCorrupted(let context):
            return place(context.codingPath) + context.debugDescription.withoutFullStop
        @unknown default:
            return String(describing: error)
        }
    }

    /// - Parameter headers: of the answer that the body is of.
    static func message(for error: DecodingError, inJSON body: Data, _ headers: HTTPHeaders) -> String {
        let tree = try? JSONSerialization.jsonObject(with: body, options: .fragmentsAllowed)
        if case .dataCorrupted = error, tree == nil { return noJSON(headers) }
        return message(for: error, in: tree)
    }

    /// With what the server says that it is: a page of a hotel's network comes as `text/html`.
    static func noJSON(_ headers: HTTPHeaders) -> String {
        let type = headers["Content-Type"].flatMap(MediaType.init)
        guard let type, !type.isJSON else { return "the body is no JSON" }
        return "the body is no JSON but \(type.essence.prefix(60))"
    }

    private static func place(_ path: [any CodingKey]) -> String {
        path.isEmpty ? "" : text(path) + ": "
    }

    private static func text(_ path: [any CodingKey]) -> String {
        path.reduce(into: "") { text, key in
            if let index = key.intValue {
                text += "[\(index)]"
            } else {
                text += text.isEmpty ? key.stringValue : ".\(key.stringValue)"
            }
        }
    }

    /// JSONDecoder speaks of its containers as `Dictionary<String, Any>` and `Array<Any>`; JSON has other words for them.
    private static func expected(_ type: Any.Type) -> String {
        let name = String(describing: type)
        if name.hasPrefix("Dictionary<") { return "object" }
        if name.hasPrefix("Array<") { return "array" }
        return name
    }

    private static func found(at path: [any CodingKey], in tree: Any?) -> String? {
        var value = tree
        for key in path {
            if let object = value as? [String: Any] {
                value = object[key.stringValue]
            } else if let array = value as? [Any], let index = key.intValue, array.indices.contains(index) {
                value = array[index]
            } else {
                return nil
            }
        }
        return value.map(JSONKind.name(of:))
    }
}
