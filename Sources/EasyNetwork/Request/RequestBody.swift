import Foundation

/// The body of a request that is not made from its parameters.
///
/// ```swift
/// var body: RequestBody? { .json(NewUser(name: "Ada")) }
/// ```
///
/// Making one never fails; what cannot be encoded is ``NetworkError/Code/invalidRequest`` of the request that is built
/// with it. A body can be sent again.
public struct RequestBody: Sendable {
    /// What is sent, and its Content-Type.
    typealias Content = (body: TransportBody, contentType: String?)

    private let content: @Sendable () throws(NetworkError) -> Content

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

    /// The value as JSON, with sorted keys and plain slashes; `Content-Type: application/json`. Encoded when the request
    /// is built.
    public static func json(_ value: some Encodable & Sendable) -> RequestBody {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return json(value, encoder: encoder)
    }

    /// The value as JSON, by an encoder of one's own, with its strategies for dates and keys.
    ///
    /// - Parameter encoder: not to be altered afterwards.
    public static func json(_ value: some Encodable & Sendable, encoder: JSONEncoder) -> RequestBody {
        RequestBody { () throws(NetworkError) in
            do {
                return (.data(try encoder.encode(value)), "application/json")
            } catch {
                throw EncodingFailure.networkError(for: error, encoding: type(of: value))
            }
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

    /// A regular file, read while it is sent, in constant memory. It must stay as it is until the request has ended.
    ///
    /// - Parameter contentType: default `application/octet-stream`.
    public static func file(_ url: URL, contentType: String? = "application/octet-stream") -> RequestBody {
        RequestBody { () throws(NetworkError) in
            try checkFile(url)
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

    /// Encodes the body.
    ///
    /// - Throws: ``NetworkError/Code/invalidRequest``.
    func build() throws(NetworkError) -> Content {
        try content()
    }

    private static func checkFile(_ url: URL) throws(NetworkError) {
        func failure(_ message: String) -> NetworkError { NetworkError(code: .invalidRequest, message: message) }
        guard url.isFileURL else {
            throw failure("the body is to be read from \(url.withoutSecrets), which is no file")
        }
        var isDirectory: ObjCBool = false
        guard FileManager.default.fileExists(atPath: url.path, isDirectory: &isDirectory) else {
            throw failure("the body is to be read from \(url.path), which does not exist")
        }
        guard !isDirectory.boolValue else {
            throw failure("the body is to be read from \(url.path), which is a directory")
        }
    }
}

/// Puts an error of an encoder into words.
enum EncodingFailure {
    static func networkError(for error: any Error, encoding type: Any.Type) -> NetworkError {
        var message = "a body of type \(type) cannot be encoded: "
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
