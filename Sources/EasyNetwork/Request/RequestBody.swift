import Foundation

/// The body of a request that is not made from its parameters.
///
/// ```swift
/// var body: RequestBody? { .json(NewUser(name: "Ada")) }
/// ```
///
/// Making one never fails; what cannot be encoded is ``NetworkError/Code/invalidRequest`` of the request that is built
/// with it. A body can be sent again, unless it is a stream that says it cannot (``TransportBodyStream/isReplayable``).
public struct RequestBody: Sendable {
    /// What is sent, and its Content-Type.
    typealias Content = (body: TransportBody, contentType: String?)

    private let content: @Sendable () throws(NetworkError) -> Content

    init(_ content: @escaping @Sendable () throws(NetworkError) -> Content) {
        self.content = content
    }

    /// The bytes as they are.
    ///
    /// - Parameter contentType: the value of the header field unless the request sets it; default nil, none.
    public static func data(_ data: Data, contentType: String? = nil) -> RequestBody {
        RequestBody { () throws(NetworkError) in (.data(data), contentType) }
    }

    /// The text in UTF-8.
    ///
    /// - Parameter contentType: default `text/plain; charset=utf-8`.
    public static func text(_ text: String, contentType: String? = "text/plain; charset=utf-8") -> RequestBody {
        data(Data(text.utf8), contentType: contentType)
    }

    /// The value as JSON, with sorted keys and plain slashes, a Date as ISO 8601 in UTC, a Data as Base64;
    /// `Content-Type: application/json`. Encoded when the request is built. Its `encode(to:)` is called twice, first to see that it comes to an end: a value that lies more than a
    /// hundred deep in itself is an error.
    public static func json(_ value: some Encodable & Sendable) -> RequestBody {
        json(value, encoder: stableEncoder())
    }

    /// The value as JSON, by an encoder of one's own, with its strategies for dates and keys.
    ///
    /// - Parameter encoder: not to be altered afterwards.
    public static func json(_ value: some Encodable & Sendable, encoder: JSONEncoder) -> RequestBody {
        RequestBody { () throws(NetworkError) in
            try ParameterEncoder.checkDepth(value, encoder.userInfo)
            return (try encoded(value, by: encoder.encode), "application/json")
        }
    }

    /// A dictionary, an array or a single value as JSON, with sorted keys and plain slashes;
    /// `Content-Type: application/json`. It may hold what ``BaseAPIRequest/params`` may, and is read at once, for a
    /// value of `Any` must not go to another thread.
    ///
    /// - Parameter value: a Date becomes ISO 8601 in UTC, a Data Base64.
    public static func jsonObject(_ value: Any) -> RequestBody {
        let json = Result { () throws(NetworkError) in try ParameterValue(value) }
        return RequestBody { () throws(NetworkError) in try RequestBody.json(json.get()).build() }
    }

    /// Parameters, whose depth has been seen to, as JSON.
    static func json(_ value: ParameterValue) -> RequestBody {
        RequestBody { () throws(NetworkError) in (try encoded(value, by: stableEncoder().encode), "application/json") }
    }

    /// The value as a property list; `Content-Type: application/x-plist`. Encoded when the request is built.
    ///
    /// - Parameter format: default XML; OpenStep's cannot be written.
    public static func propertyList(
        _ value: some Encodable & Sendable,
        format: PropertyListSerialization.PropertyListFormat = .xml
    ) -> RequestBody {
        RequestBody { () throws(NetworkError) in
            guard format == .xml || format == .binary else {
                throw NetworkError(code: .invalidRequest, message: "a property list is sent as .xml or as .binary")
            }
            try ParameterEncoder.checkDepth(value, [:])
            let encoder = PropertyListEncoder()
            encoder.outputFormat = format
            return (try encoded(value, by: encoder.encode), "application/x-plist")
        }
    }

    /// The parameters as a browser sends a form; the values that ``BaseAPIRequest/params`` may have. They are read at
    /// once, for a dictionary of `Any` must not go to another thread.
    ///
    /// - Parameter encoder: default arrays as `a[]=1`, Bools as `true` and `false`.
    public static func form(_ parameters: [String: Any], encoder: QueryEncoder = QueryEncoder()) -> RequestBody {
        let form = Result { () throws(NetworkError) in try encoder.encode(parameters, as: .form) }
        return RequestBody { () throws(NetworkError) in
            (.data(Data(try form.get().utf8)), QueryEncoder.formContentType)
        }
    }

    /// The parameters as a form.
    static func form(_ parameters: [String: ParameterValue], _ encoder: QueryEncoder) -> RequestBody {
        data(Data(encoder.encode(parameters, as: .form).utf8), contentType: QueryEncoder.formContentType)
    }

    /// A regular file, read while it is sent, in constant memory. It must stay as it is until the request has ended.
    ///
    /// Its Content-Type follows from the extension of its name, `image/png` from `.png`; it is
    /// `application/octet-stream` for one that is not known.
    public static func file(_ url: URL) -> RequestBody {
        file(url, contentType: FileContentType.named(byExtension: url.pathExtension))
    }

    /// A regular file, read while it is sent, in constant memory. It must stay as it is until the request has ended.
    ///
    /// - Parameter contentType: nil for none.
    public static func file(_ url: URL, contentType: String?) -> RequestBody {
        RequestBody { () throws(NetworkError) in
            _ = try BodyFile.length(of: url, role: "the body")
            return (.file(url), contentType)
        }
    }

    /// Bytes that are read or made while they are sent, in constant memory.
    ///
    /// - Parameter contentType: default `application/octet-stream`.
    public static func stream(
        _ stream: TransportBodyStream,
        contentType: String? = "application/octet-stream"
    ) -> RequestBody {
        RequestBody { () throws(NetworkError) in (.stream(stream), contentType) }
    }

    /// Parts with names, as a browser sends a form with files in it; `Content-Type: multipart/form-data`.
    ///
    /// It is written while it is sent, in constant memory, and can be sent again if its streams can. Two requests with
    /// a form are never alike for ``RepeatPolicy`` without a key of their own.
    public static func multipart(_ form: MultipartForm) -> RequestBody {
        RequestBody { () throws(NetworkError) in (.stream(try form.stream()), form.contentType) }
    }

    /// Encodes the body.
    ///
    /// - Throws: ``NetworkError/Code/invalidRequest``.
    func build() throws(NetworkError) -> Content {
        try content()
    }

    private static func stableEncoder() -> JSONEncoder {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        encoder.dateEncodingStrategy = .custom { date, encoder in
            var container = encoder.singleValueContainer()
            guard case .string(let text) = try ParameterStyles().value(of: date, at: ParameterPath()) else { return }
            try container.encode(text)
        }
        return encoder
    }

    private static func encoded<Value: Encodable>(
        _ value: Value,
        by encode: (Value) throws -> Data
    ) throws(NetworkError) -> TransportBody {
        do {
            return .data(try encode(value))
        } catch {
            throw EncodingFailure.networkError(for: error, encoding: Value.self, as: "a body")
        }
    }
}

/// Puts an error of an encoder into words.
enum EncodingFailure {
    /// - Parameter role: what it was to be, `a body`.
    static func networkError(for error: any Error, encoding type: Any.Type, as role: String) -> NetworkError {
        var message = "\(role) of type \(type) cannot be encoded: "
        if case EncodingError.invalidValue(let value, let context)? = error as? EncodingError {
            let path = context.codingPath.reduce(ParameterPath()) { path, key in
                key.intValue.map(path.appending) ?? path.appending(key.stringValue)
            }
            message += path.text.isEmpty ? "" : "\(path.text): "
            message += "\(Swift.type(of: value)) \(context.debugDescription)"
        } else {
            message += error.wording
        }
        return NetworkError(code: .invalidRequest, message: message.withoutFullStop, underlying: error)
    }
}
