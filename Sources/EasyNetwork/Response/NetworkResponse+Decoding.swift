import Foundation

extension NetworkResponse {
    /// The body as JSON: `[String: Any]`, `[Any]`, `String`, `NSNumber` or `NSNull`. A bare value is JSON too (RFC 8259,
    /// section 2).
    ///
    /// - Throws: ``NetworkError/Code/cannotParseResponse`` when the body is empty or no JSON.
    public func json() throws(NetworkError) -> Any {
        guard !body.isEmpty else { throw error(.cannotParseResponse, message: "the body is empty, not JSON") }
        do {
            return try JSONSerialization.jsonObject(with: body, options: .fragmentsAllowed)
        } catch let cause {
            let reason = (cause as NSError).userInfo[NSDebugDescriptionErrorKey] as? String
            let message = "the body is no JSON" + (reason.map { ": \($0.withoutFullStop)" } ?? "")
            throw error(.cannotParseResponse, message: message, underlying: cause)
        }
    }

    /// The body as a value of the type, read from JSON by a plain `JSONDecoder`.
    ///
    /// - Throws: ``NetworkError/Code/cannotParseResponse`` with a message that names the place, as in
    ///   `users[3].age: expected Int but found String`. Its `underlying` is the `DecodingError`.
    public func decode<T: Decodable>(_ type: T.Type) throws(NetworkError) -> T {
        try decode(type, using: JSONDecoder())
    }

    /// The body as a value of the type, read from JSON by a decoder of one's own, with its strategies for dates and keys.
    ///
    /// - Throws: as ``decode(_:)``.
    public func decode<T: Decodable>(_ type: T.Type, using decoder: JSONDecoder) throws(NetworkError) -> T {
        guard !body.isEmpty else { throw error(.cannotParseResponse, message: "the body is empty, not JSON") }
        do {
            return try decoder.decode(type, from: body)
        } catch let cause {
            throw mappingError(cause)
        }
    }
}

/// Puts a `DecodingError` into words: the place, what was expected there and what was found.
enum DecodingFailure {
    static func message(for error: DecodingError, in body: Data) -> String {
        switch error {
        case .keyNotFound(let key, let context):
            return place(context.codingPath + [key]) + "no value for key \"\(key.stringValue)\""
        case .typeMismatch(let type, let context), .valueNotFound(let type, let context):
            return place(context.codingPath) + "expected \(expected(type)) but found "
                + (found(at: context.codingPath, in: body) ?? "something else")
        case .dataCorrupted(let context):
            guard isJSON(body) else { return "the body is no JSON" }
            return place(context.codingPath) + context.debugDescription.withoutFullStop
        @unknown default:
            return String(describing: error)
        }
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

    /// The kind of the value at the path. The body is read once more for it: the text inside a `DecodingError` is another
    /// on each platform.
    private static func found(at path: [any CodingKey], in body: Data) -> String? {
        var value = json(body)
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

    private static func isJSON(_ body: Data) -> Bool {
        json(body) != nil
    }

    private static func json(_ body: Data) -> Any? {
        try? JSONSerialization.jsonObject(with: body, options: .fragmentsAllowed)
    }
}
