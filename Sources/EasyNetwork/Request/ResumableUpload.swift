import Foundation

/// The protocol with which an ``UploadOperation`` resumes where it stopped, and its settings.
///
/// ```swift
/// struct AddMovie: APIRequest {
///     typealias Item = Void
///     var api: String { "movies" }
///     var method: NetworkService.Method { .post }
///     var options: RequestOptions { RequestOptions(resuming: .tus) }
/// }
/// ```
///
/// The server must support the protocol, unless you add ``ifSupported``. See <doc:UploadsThatResume>.
public struct ResumableUpload: Sendable {
    package enum Kind: String, Sendable {
        case tus, http
    }

    package let kind: Kind
    package let partSize: Int
    package let metadata: [String: String]
    package let directory: URL?
    package let item: (@Sendable (URL) -> String)?
    /// The file of the journal, which its owner removes; `nil` for one in the directory.
    package var journal: URL?
    /// Whether the body is sent in one piece if the server does not support the protocol.
    package private(set) var isOptional = false

    /// tus 1.0.0 (https://tus.io/protocols/resumable-upload), with the defaults of
    /// ``tus(partSize:metadata:directory:item:)``.
    public static let tus = tus()

    /// The IETF's "Resumable Uploads for HTTP" (draft-ietf-httpbis-resumable-upload, interop version 8), with the
    /// defaults of ``http(partSize:directory:item:)``.
    public static let http = http()

    /// Returns tus 1.0.0 with settings.
    ///
    /// The protocol ends with a response without content. To decode an item from JSON, name its address in `item`.
    ///
    /// - Parameters:
    ///   - partSize: The number of bytes of a message, at least 1. A kill of the process costs at most one part.
    ///     Defaults to 8 MiB.
    ///   - metadata: The metadata of the upload (`Upload-Metadata`), in addition to `filename` and `filetype`, which
    ///     come from the file and its Content-Type. The names are ASCII without spaces and commas. A field
    ///     `Upload-Metadata` in the request's headers replaces all of them. Defaults to none.
    ///   - directory: The folder of the journals. Defaults to `nil`: the folder `uploads` in
    ///     ``NetworkCache/defaultDirectory``. An outbox keeps the journals of its entries in its own folder instead.
    ///   - item: Returns the path or URL of the item, which is requested with GET when the upload is complete. The
    ///     closure gets the URL of the upload, and is called once, on a background thread. Defaults to `nil`: the
    ///     item is `Void`, a ``NetworkResponse``, or what ``APIRequest/item(from:)`` makes of a response without
    ///     content.
    public static func tus(
        partSize: Int = 8_388_608,
        metadata: [String: String] = [:],
        directory: URL? = nil,
        item: (@Sendable (URL) -> String)? = nil
    ) -> ResumableUpload {
        ResumableUpload(kind: .tus, partSize: partSize, metadata: metadata, directory: directory, item: item)
    }

    /// Returns the IETF's protocol with settings. The last response of the server becomes the item.
    ///
    /// - Parameters:
    ///   - partSize: The number of bytes of a message, at least 1. A limit of the server (`Upload-Limit`) takes
    ///     precedence. A kill of the process costs at most one part. Defaults to 8 MiB.
    ///   - directory: The folder of the journals. Defaults to `nil`: the folder `uploads` in
    ///     ``NetworkCache/defaultDirectory``. An outbox keeps the journals of its entries in its own folder instead.
    ///   - item: Returns the path or URL of the item, which is requested with GET if the last response was lost. The
    ///     closure gets the URL of the upload. Defaults to `nil`: the upload then fails.
    public static func http(
        partSize: Int = 8_388_608,
        directory: URL? = nil,
        item: (@Sendable (URL) -> String)? = nil
    ) -> ResumableUpload {
        ResumableUpload(kind: .http, partSize: partSize, metadata: [:], directory: directory, item: item)
    }

    /// The same protocol, if the server supports it. An `OPTIONS` request asks the server first. If it does not support
    /// the protocol, the body is sent in one message, and a failure starts it over.
    public var ifSupported: ResumableUpload {
        var copy = self
        copy.isOptional = true
        return copy
    }
}

extension ResumableUpload: CustomStringConvertible {
    /// The protocol, and whether it is optional, without the metadata.
    public var description: String { isOptional ? "\(kind), if supported" : "\(kind)" }
}
