import Foundation

/// The body of a request, if it does not come from the parameters.
///
/// ```swift
/// var body: RequestBody { .json(NewUser(name: "Ada")) }
/// ```
///
/// A body's Content-Type is sent unless the request's ``BaseAPIRequest/headers`` contain another. A header that
/// contradicts the body is replaced, and the log of the host reports this once for each type of request. Examples are
/// `multipart/form-data` without the boundary of the form, and `application/json` from
/// ``BaseAPIRequest/defaultJsonHeader()`` for a form or an image.
///
/// Creating a body never fails. If a value cannot be encoded, the request fails with
/// ``NetworkError/Code/invalidRequest``. A body can be sent again, unless it is a stream whose
/// ``TransportBodyStream/isReplayable`` is false.
public struct RequestBody: Sendable {
    /// The bytes to send, and their Content-Type.
    package typealias Content = (body: TransportBody, contentType: String?)
    /// Returns the file to read instead of the given one.
    package typealias FilePlaces = (URL) throws(NetworkError) -> URL

    private let content: @Sendable (FilePlaces) throws(NetworkError) -> Content
    /// Whether the bytes are compressed, unless they already are.
    var isGzipped: Bool

    init(isGzipped: Bool = false, _ content: @escaping @Sendable (FilePlaces) throws(NetworkError) -> Content) {
        self.content = content
        self.isGzipped = isGzipped
    }

    /// Creates a body from bytes, which are sent unchanged.
    ///
    /// - Parameters:
    ///   - data: the bytes.
    ///   - contentType: the Content-Type, unless the request sets another. Defaults to `nil`, which sends none.
    public static func data(_ data: Data, contentType: String? = nil) -> RequestBody {
        RequestBody { (_) throws(NetworkError) in (.data(data), contentType) }
    }

    /// Creates a body from a string in UTF-8.
    ///
    /// - Parameters:
    ///   - text: the string.
    ///   - contentType: the Content-Type. Defaults to `text/plain; charset=utf-8`.
    public static func text(_ text: String, contentType: String? = "text/plain; charset=utf-8") -> RequestBody {
        data(Data(text.utf8), contentType: contentType)
    }

    /// Creates a body from a value as JSON, with sorted keys and unescaped slashes, a Date as ISO 8601 in UTC, and a
    /// Data as Base64. The Content-Type is `application/json`. The value is encoded when the request is built. Nesting
    /// of more than a hundred levels is an error.
    ///
    /// - Parameters:
    ///   - value: the value.
    ///   - encoder: the encoder. Defaults to `nil`, which encodes as described. A custom encoder, with its strategies
    ///     for dates and keys, must not be changed afterwards.
    public static func json(_ value: some Encodable & Sendable, encoder: JSONEncoder? = nil) -> RequestBody {
        RequestBody { (_) throws(NetworkError) in
            (.data(try encode(value, as: role, by: (encoder ?? .stable()).encode)), "application/json")
        }
    }

    /// Creates a body from a dictionary, an array or a single value as JSON, with sorted keys and unescaped slashes.
    /// The Content-Type is `application/json`. The value can contain what ``BaseAPIRequest/params`` can contain. It is
    /// read immediately, because a value of type `Any` must not be sent to another thread.
    ///
    /// - Parameter value: the value. A Date becomes ISO 8601 in UTC, a Data becomes Base64.
    public static func jsonObject(_ value: Any) -> RequestBody {
        let json = Result { () throws(NetworkError) in try JSONValue(parameter: value) }
        return RequestBody { (_) throws(NetworkError) in try RequestBody.json(json.get()).build() }
    }

    /// Creates a body from parameters as JSON.
    static func json(_ value: JSONValue) -> RequestBody {
        data(value.json(), contentType: "application/json")
    }

    /// Creates a body from a value as a property list. The Content-Type is `application/x-plist`. The value is encoded
    /// when the request is built.
    ///
    /// - Parameters:
    ///   - value: the value.
    ///   - format: `.xml` or `.binary`. Defaults to `.xml`.
    public static func propertyList(
        _ value: some Encodable & Sendable,
        format: PropertyListSerialization.PropertyListFormat = .xml
    ) -> RequestBody {
        RequestBody { (_) throws(NetworkError) in
            guard format == .xml || format == .binary else {
                throw .invalidRequest("the format of a property list must be .xml or .binary")
            }
            let encoder = PropertyListEncoder()
            encoder.outputFormat = format
            return (.data(try encode(value, as: role, by: encoder.encode)), "application/x-plist")
        }
    }

    /// Creates a body from parameters as a form like a browser's. The values can be those that
    /// ``BaseAPIRequest/params`` can contain. They are read immediately, because a dictionary of `Any` must not be sent
    /// to another thread.
    ///
    /// - Parameters:
    ///   - parameters: the names and values.
    ///   - encoder: the encoder. By default, it writes arrays as `a[]=1`, and Bools as `true` and `false`.
    public static func form(_ parameters: [String: Any], encoder: QueryEncoder = QueryEncoder()) -> RequestBody {
        let form = Result { () throws(NetworkError) in try encoder.encode(parameters, isForm: true) }
        return RequestBody { (_) throws(NetworkError) in
            (.data(Data(try form.get().utf8)), QueryEncoder.formContentType)
        }
    }

    /// Creates a body from the members of a value as a form like a browser's. The value is encoded when the request is
    /// built. ``QueryEncoder`` describes how it writes arrays and nested members.
    ///
    /// - Parameters:
    ///   - value: a value with keys. A member that is nil is omitted, unless its type encodes it.
    ///   - encoder: the encoder. By default, it writes arrays as `a[]=1`, and Bools as `true` and `false`.
    public static func form(
        of value: some Encodable & Sendable,
        encoder: QueryEncoder = QueryEncoder()
    ) -> RequestBody {
        RequestBody { (_) throws(NetworkError) in
            let form = try encoder.encode(encoder.parameters(of: value), isForm: true)
            return (.data(Data(form.utf8)), QueryEncoder.formContentType)
        }
    }

    /// Creates a body from parameters as a form.
    static func form(_ parameters: [String: JSONValue], _ encoder: QueryEncoder) -> RequestBody {
        data(Data(encoder.encode(parameters, isForm: true).utf8), contentType: QueryEncoder.formContentType)
    }

    /// Creates a body from a regular file, which is read while it is sent, in constant memory. The file must not change
    /// until the request has ended. If its length changes, the request fails with ``NetworkError/Code/invalidRequest``.
    ///
    /// The Content-Type follows from the file's extension: `image/png` for `.png`, and `application/octet-stream` for
    /// an unknown extension.
    public static func file(_ url: URL) -> RequestBody {
        file(url, contentType: contentType(forExtension: url.pathExtension))
    }

    /// Creates a body from a regular file, which is read while it is sent, in constant memory. The file must not change
    /// until the request has ended. If its length changes, the request fails with ``NetworkError/Code/invalidRequest``.
    ///
    /// - Parameters:
    ///   - url: the URL of the file.
    ///   - contentType: the Content-Type, or `nil` to send none.
    public static func file(_ url: URL, contentType: String?) -> RequestBody {
        RequestBody { (places) throws(NetworkError) in
            let file = try places(url)
            _ = try TransportBody.file(file).length()
            return (.file(file), contentType)
        }
    }

    /// Creates a body from bytes that are read or made while they are sent, in constant memory.
    ///
    /// - Parameters:
    ///   - stream: the source of the bytes.
    ///   - contentType: the Content-Type. Defaults to `application/octet-stream`.
    public static func stream(
        _ stream: TransportBodyStream,
        contentType: String? = "application/octet-stream"
    ) -> RequestBody {
        RequestBody { (_) throws(NetworkError) in (.stream(stream), contentType) }
    }

    /// Creates a body from named parts, as in a browser's form with files. The Content-Type is `multipart/form-data`.
    ///
    /// The form is written while it is sent, in constant memory, and can be sent again if its streams can. For
    /// ``RepeatPolicy``, two requests with a form are never alike without a ``RequestOptions/repeatKey``.
    public static func multipart(_ form: MultipartForm) -> RequestBody {
        RequestBody { (places) throws(NetworkError) in (.stream(try form.stream(places)), form.contentType) }
    }

    /// Encodes the body.
    ///
    /// - Parameter places: returns where each file of the body is. Defaults to the URL in the body.
    /// - Throws: ``NetworkError/Code/invalidRequest``.
    package func build(_ places: FilePlaces = { $0 }) throws(NetworkError) -> Content {
        let content = try content(places)
        try content.body.checkSegments()
        return content
    }

    /// Returns the same body with its files in other places.
    package func placed(_ places: @escaping @Sendable (URL) -> URL) -> RequestBody {
        RequestBody(isGzipped: isGzipped) { (_) throws(NetworkError) in try build(places) }
    }

    private static let role = "a body"

    /// - Parameter role: the part of the request that the value becomes, for error messages.
    package static func encode<Value: Encodable>(
        _ value: Value,
        as role: String,
        by encode: (LimitedEncodable<Value>) throws -> Data
    ) throws(NetworkError) -> Data {
        do {
            return try encode(LimitedEncodable(value: value))
        } catch {
            throw .encodable(error, Value.self, as: role)
        }
    }
}
