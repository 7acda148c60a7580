import Foundation

/// The request of a resumable upload, as it was read, and the bytes of its body.
struct ResumableRequest: Sendable {
    let settings: ResumableUpload
    let snapshot: RequestSnapshot
    let source: UploadSource
    /// The state of the bytes when the request was read.
    let fingerprint: UploadSource.Fingerprint
    /// The digest of what names the upload in every process.
    let identity: String

    /// - Throws: ``NetworkError/Code/invalidRequest`` for a request that cannot be resumed.
    init(_ settings: ResumableUpload, _ snapshot: RequestSnapshot, itemType: Any.Type) throws(NetworkError) {
        (self.settings, self.snapshot) = (settings, snapshot)
        guard settings.partSize > 0 else {
            throw .invalidRequest("the partSize of an upload must be at least 1, but is \(settings.partSize)")
        }
        let message = snapshot.message
        if settings.kind == .tus {
            guard message.method == .post || message.method == .patch else {
                throw .invalidRequest("tus needs POST, or PATCH for an upload that exists, but not \(message.method)")
            }
            guard settings.item != nil || !(itemType is any Decodable.Type) else {
                throw .invalidRequest(
                    "tus ends with a response without content, so no \(itemType) can be decoded; "
                        + "name its address in .tus(item:), or use Void or NetworkResponse"
                )
            }
        }
        source = try UploadSource(message.body)
        fingerprint = try source.fingerprint()
        let host = snapshot.host.settings
        let names = [
            settings.kind.rawValue, message.method.rawValue, message.url.absoluteString,
            // The owner of a journal has one for each file, whose folder can move.
            settings.journal == nil ? source.identity(fingerprint) : "", host.cachePartition ?? "",
            HTTPCredential.userName(in: message.headers) ?? host.authentication?.userName ?? "",
            // Two entries of an outbox can have the same bytes, and both are wanted.
            message.headers["Idempotency-Key"] ?? "",
        ]
        identity = SHA256.digest(of: Data(names.joined(separator: "\n").utf8)).prefix(16).hexadecimal
    }

    /// The request's message, from whose URL and headers the messages of the upload are made.
    var message: TransportRequest { snapshot.message }

    var isTus: Bool { settings.kind == .tus }

    /// Whether the upload is created. If not, the URL of the request is the URL of the upload.
    var isCreated: Bool { !isTus || message.method != .patch }

    /// The field with the version of the protocol.
    var version: HTTPHeaders { isTus ? ["Tus-Resumable": "1.0.0"] : ["Upload-Draft-Interop-Version": "8"] }

    // MARK: - Messages

    /// The fields of the request that describe its body, or belong to its creation alone.
    static let contentFields: Set<String> = [
        "content-type", "content-encoding", "content-language", "content-disposition", "idempotency-key",
    ]

    /// The fields of the request that its upload's messages have only where they set them.
    private static let ownFields = contentFields.union(["upload-metadata"])

    /// Returns a message of the upload, with the request's headers. Only the origin of the request gets its credentials.
    ///
    /// - Parameters:
    ///   - validation: Checks the response; `nil` for the request's validation.
    ///   - retry: The retry policy; `nil` for the request's policy.
    func call(
        _ method: NetworkService.Method,
        _ url: URL,
        _ fields: HTTPHeaders,
        _ body: TransportBody = .none,
        validation: ResponseValidation? = ResponseValidation(),
        retry: RetryPolicy? = .never,
        overallTimeout: TimeInterval? = nil,
        beginBody: (@Sendable (TransportBody) throws(NetworkError) -> TransportBody)? = nil
    ) -> CallRequest {
        var (message, options) = (snapshot.message, snapshot.options)
        let home = url.origin == message.url.origin ? nil : message.url
        var headers = HTTPHeaders(message.headers.filter { !Self.ownFields.contains($0.name.lowercased()) })
        if home != nil {
            headers = snapshot.redirects.headersElsewhere(headers)
            (options.isAuthenticated, options.usesCookies, options.sendsTraceContext) = (false, false, false)
        }
        for field in fields { headers[field.name] = field.value }
        (message.url, message.method, message.headers, message.body) = (url, method, headers, body)
        (options.validation, options.retry, options.overallTimeout) = (validation, retry, overallTimeout)
        options.beginBody = beginBody
        var request = CallRequest(RequestSnapshot(snapshot, message, options, home: home))
        request.isAnnounced = false
        return request
    }

    /// Returns the `Upload-Metadata` of tus.
    func metadata() throws(NetworkError) -> String? {
        if let own = message.headers["Upload-Metadata"] { return own }
        var metadata: [String: String] = [:]
        metadata["filename"] = source.name
        metadata["filetype"] = message.headers["Content-Type"]
        metadata.merge(settings.metadata) { $1 }
        let isValid = { (name: String) in
            !name.isEmpty && name.utf8.allSatisfy { (0x21...0x7E).contains($0) && $0 != UInt8(ascii: ",") }
        }
        for name in metadata.keys where !isValid(name) {
            throw .invalidRequest("the name \"\(name)\" of tus metadata must be ASCII without spaces and commas")
        }
        let pairs = metadata.sorted { $0.key < $1.key }
            .map { $0.value.isEmpty ? $0.key : "\($0.key) \(Data($0.value.utf8).base64EncodedString())" }
        return pairs.isEmpty ? nil : pairs.joined(separator: ",")
    }

    /// Deletes an upload on the server, which may no longer have it.
    func delete(_ address: URL) async -> Result<Void, NetworkError> {
        // Servers without the extension for termination respond with 405 or 501.
        let validation = ResponseValidation(statusCodes: ResponseValidation.success.union([404, 405, 410, 501]))
        let request = call(.delete, address, version, validation: validation, retry: nil)
        return await CallGroup(snapshot.host).result(of: request) { _ in }
    }
}
