import Foundation

/// The body of a request, if it does not come from the parameters.
///
/// ```swift
/// var body: RequestBody { .json(NewUser(name: "Ada")) }
/// ```
///
/// A body's Content-Type is sent unless the request's ``BaseAPIRequest/headers`` have another. A header that contradicts
/// the body is replaced, and the log of the host says so once for each type of request: `multipart/form-data` without
/// the boundary of the form, or `application/json` from ``BaseAPIRequest/defaultJsonHeader()`` for a form or an image.
///
/// Creating a body never fails; a value that cannot be encoded ends its request with
/// ``NetworkError/Code/invalidRequest``. A body can be sent again, unless it is a stream whose
/// ``TransportBodyStream/isReplayable`` is false.
public struct RequestBody: Sendable {
    /// The bytes to send, and their Content-Type.
    package typealias Content = (body: TransportBody, contentType: String?)
    /// Returns the file to read in place of another.
    package typealias FilePlaces = (URL) throws(NetworkError) -> URL

    private let content: @Sendable (FilePlaces) throws(NetworkError) -> Content
    /// Whether the bytes are compressed, unless they are already.
    var isGzipped = false

    init(_ content: @escaping @Sendable (FilePlaces) throws(NetworkError) -> Content) {
        self.content = content
    }

    /// The bytes as they are.
    ///
    /// - Parameters:
    ///   - data: the bytes.
    ///   - contentType: the value of the header field unless the request sets another; default nil, none.
    public static func data(_ data: Data, contentType: String? = nil) -> RequestBody {
        RequestBody { (_) throws(NetworkError) in (.data(data), contentType) }
    }

    /// The text in UTF-8.
    ///
    /// - Parameters:
    ///   - text: the text.
    ///   - contentType: default `text/plain; charset=utf-8`.
    public static func text(_ text: String, contentType: String? = "text/plain; charset=utf-8") -> RequestBody {
        data(Data(text.utf8), contentType: contentType)
    }

    /// The value as JSON, with sorted keys and plain slashes, a Date as ISO 8601 in UTC, a Data as Base64;
    /// `Content-Type: application/json`. It is encoded when the request is built. A value that lies more than a hundred
    /// levels deep in itself is an error.
    ///
    /// - Parameters:
    ///   - value: the value.
    ///   - encoder: default nil, as above. A custom encoder, with its strategies for dates and keys, must not be
    ///     altered afterwards.
    public static func json(_ value: some Encodable & Sendable, encoder: JSONEncoder? = nil) -> RequestBody {
        RequestBody { (_) throws(NetworkError) in
            (.data(try encode(value, as: role, by: (encoder ?? .stable()).encode)), "application/json")
        }
    }

    /// A dictionary, an array or a single value as JSON, with sorted keys and plain slashes;
    /// `Content-Type: application/json`. It may hold the values that ``BaseAPIRequest/params`` may hold, and is read at
    /// once, because a value of `Any` must not go to another thread.
    ///
    /// - Parameter value: a Date becomes ISO 8601 in UTC, a Data Base64.
    public static func jsonObject(_ value: Any) -> RequestBody {
        let json = Result { () throws(NetworkError) in try JSONValue(parameter: value) }
        return RequestBody { (_) throws(NetworkError) in try RequestBody.json(json.get()).build() }
    }

    /// Parameters as JSON.
    static func json(_ value: JSONValue) -> RequestBody {
        RequestBody { (_) throws(NetworkError) in
            do {
                return (.data(try value.json()), "application/json")
            } catch {
                throw .encodable(error, JSONValue.self, as: role)
            }
        }
    }

    /// The value as a property list; `Content-Type: application/x-plist`. It is encoded when the request is built.
    ///
    /// - Parameters:
    ///   - value: the value.
    ///   - format: `.xml`, the default, or `.binary`.
    public static func propertyList(
        _ value: some Encodable & Sendable,
        format: PropertyListSerialization.PropertyListFormat = .xml
    ) -> RequestBody {
        RequestBody { (_) throws(NetworkError) in
            guard format == .xml || format == .binary else {
                throw .invalidRequest("a property list is sent as .xml or as .binary")
            }
            let encoder = PropertyListEncoder()
            encoder.outputFormat = format
            return (.data(try encode(value, as: role, by: encoder.encode)), "application/x-plist")
        }
    }

    /// The parameters as a form of a browser, with the values that ``BaseAPIRequest/params`` may hold. They are read at
    /// once, because a dictionary of `Any` must not go to another thread.
    ///
    /// - Parameters:
    ///   - parameters: the names and values.
    ///   - encoder: default arrays as `a[]=1`, Bools as `true` and `false`.
    public static func form(_ parameters: [String: Any], encoder: QueryEncoder = QueryEncoder()) -> RequestBody {
        let form = Result { () throws(NetworkError) in try encoder.encode(parameters, isForm: true) }
        return RequestBody { (_) throws(NetworkError) in
            (.data(Data(try form.get().utf8)), QueryEncoder.formContentType)
        }
    }

    /// The members of a value as a form of a browser; see ``QueryEncoder`` for arrays and members with members. It is
    /// encoded when the request is built.
    ///
    /// - Parameters:
    ///   - value: one with keys; a member that is nil is left out, unless its type encodes it.
    ///   - encoder: default arrays as `a[]=1`, Bools as `true` and `false`.
    public static func form(
        of value: some Encodable & Sendable,
        encoder: QueryEncoder = QueryEncoder()
    ) -> RequestBody {
        RequestBody { (_) throws(NetworkError) in
            let form = try encoder.encode(encoder.parameters(of: value), isForm: true)
            return (.data(Data(form.utf8)), QueryEncoder.formContentType)
        }
    }

    /// The parameters as a form.
    static func form(_ parameters: [String: JSONValue], _ encoder: QueryEncoder) -> RequestBody {
        data(Data(encoder.encode(parameters, isForm: true).utf8), contentType: QueryEncoder.formContentType)
    }

    /// A regular file, read while it is sent, in constant memory. It must not change until the request has ended: a file
    /// whose length changes ends it with ``NetworkError/Code/invalidRequest``.
    ///
    /// Its Content-Type follows from the extension of its name, `image/png` from `.png`; an unknown extension gives
    /// `application/octet-stream`.
    public static func file(_ url: URL) -> RequestBody {
        file(url, contentType: contentType(forExtension: url.pathExtension))
    }

    /// A regular file, read while it is sent, in constant memory. It must not change until the request has ended: a file
    /// whose length changes ends it with ``NetworkError/Code/invalidRequest``.
    ///
    /// - Parameters:
    ///   - url: the URL of the file.
    ///   - contentType: nil for none.
    public static func file(_ url: URL, contentType: String?) -> RequestBody {
        RequestBody { (places) throws(NetworkError) in
            let file = try places(url)
            _ = try TransportBody.file(file).length()
            return (.file(file), contentType)
        }
    }

    /// Bytes that are read or made while they are sent, in constant memory.
    ///
    /// - Parameters:
    ///   - stream: the source of the bytes.
    ///   - contentType: default `application/octet-stream`.
    public static func stream(
        _ stream: TransportBodyStream,
        contentType: String? = "application/octet-stream"
    ) -> RequestBody {
        RequestBody { (_) throws(NetworkError) in (.stream(stream), contentType) }
    }

    /// Parts with names, as in a form of a browser with files; `Content-Type: multipart/form-data`.
    ///
    /// The form is written while it is sent, in constant memory, and can be sent again if its streams can. For
    /// ``RepeatPolicy`` two requests with a form are never alike without a ``RequestOptions/repeatKey``.
    public static func multipart(_ form: MultipartForm) -> RequestBody {
        RequestBody { (places) throws(NetworkError) in (.stream(try form.stream(places)), form.contentType) }
    }

    /// Encodes the body.
    ///
    /// - Parameter places: where the files of the body are; default where the request says.
    /// - Throws: ``NetworkError/Code/invalidRequest``.
    package func build(_ places: FilePlaces = { $0 }) throws(NetworkError) -> Content {
        let content = try content(places)
        try content.body.checkSegments()
        return content
    }

    /// The same body with its files in other places.
    package func placed(_ places: @escaping @Sendable (URL) -> URL) -> RequestBody {
        var body = RequestBody { (_) throws(NetworkError) in try build(places) }
        body.isGzipped = isGzipped
        return body
    }

    private static let role = "a body"

    /// - Parameter role: the part of the request that the value becomes, for messages.
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
