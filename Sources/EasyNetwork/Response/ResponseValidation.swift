import Foundation

/// The rule for which answers are successes: by status, media type, length, and shape of the JSON.
///
/// ```swift
/// var options: RequestOptions { RequestOptions(validation: ResponseValidation(statusCodes: [200, 404])) }
/// ```
public struct ResponseValidation: Hashable, Sendable {
    /// The accepted status codes. Default 200 to 299.
    public var statusCodes: Set<Int>

    /// The accepted media types, which may be `type/*` and `*/*`. Default nil: any. An empty body is accepted with any
    /// type.
    public var contentTypes: Set<String>?

    /// Whether every answer may have an empty body although an item is decoded from it, which is nil if it is an
    /// optional. Answers with the statuses 204, 205 and 304 and those to HEAD always may. Default false.
    public var allowsEmptyBody: Bool

    /// The maximum length of the body in bytes, without content codings such as gzip. Default nil: only the limit of
    /// the transport, ``TransportConfiguration/maximumDecodedBodyCount``.
    ///
    /// A longer body of a response that is accepted otherwise ends the request with
    /// ``NetworkError/Code/bodyTooLong``. At most 64 KiB are read of any other response.
    public var maximumBodyCount: Int?

    /// The shape of the JSON in an accepted answer. Default nil: any body, JSON or not.
    ///
    /// The body is parsed for it, and parsed again when it is decoded. An empty body is accepted if ``allowsEmptyBody``
    /// allows it.
    public var jsonShape: JSONShape?

    /// Creates a rule.
    ///
    /// - Parameters:
    ///   - statusCodes: the accepted status codes, such as `200...399` or `[200, 404]`. Default 200 to 299. The first
    ///     thousand count.
    ///   - contentTypes: see ``contentTypes``. Default nil.
    ///   - allowsEmptyBody: see ``allowsEmptyBody``. Default false.
    ///   - maximumBodyCount: see ``maximumBodyCount``. Default nil.
    ///   - jsonShape: see ``jsonShape``. Default nil.
    public init(
        statusCodes: some Sequence<Int> = Self.success,
        contentTypes: Set<String>? = nil,
        allowsEmptyBody: Bool = false,
        maximumBodyCount: Int? = nil,
        jsonShape: JSONShape? = nil
    ) {
        self.statusCodes = Set(statusCodes.prefix(1_000))
        self.contentTypes = contentTypes
        self.allowsEmptyBody = allowsEmptyBody
        self.maximumBodyCount = maximumBodyCount
        self.jsonShape = jsonShape
    }

    /// The status codes of success, 200 to 299.
    public static let success = Set(200...299)

    /// Accepts every answer.
    public static let any = ResponseValidation(statusCodes: 100...999)

    /// Whether the status is accepted.
    public func accepts(statusCode: Int) -> Bool {
        statusCodes.contains(statusCode)
    }

    /// Whether the media type is accepted.
    ///
    /// - Parameter contentType: the value of the header field; nil if there is none.
    public func accepts(contentType: String?) -> Bool {
        guard let contentTypes else { return true }
        guard let type = contentType.flatMap(MediaType.init) else { return contentTypes.contains("*/*") }
        return contentTypes.contains { type.matches($0) }
    }

    /// Whether the length of the body is accepted.
    ///
    /// - Parameter bodyCount: the length of the received body in bytes.
    public func accepts(bodyCount: Int) -> Bool {
        maximumBodyCount.map { bodyCount <= max(0, $0) } ?? true
    }

    /// Whether status and media type are accepted; for an empty body the latter does not matter.
    func accepts(_ head: TransportHead) -> Bool {
        accepts(statusCode: head.statusCode)
            && (contentTypes == nil || accepts(contentType: head.headers["Content-Type"]))
    }

    /// The error of an answer that is no success: ``NetworkError/Code/unauthorized`` for a 401,
    /// ``NetworkError/Code/unacceptableStatus`` for another status, ``NetworkError/Code/bodyTooLong``, and
    /// ``NetworkError/Code/cannotParseResponse`` for the media type and the shape of the JSON. Nil for a success.
    ///
    /// - Parameter cut: why the body is not complete: the error unless status or media type are refused. Default nil.
    func error(for response: NetworkResponse, cut: NetworkError? = nil) -> NetworkError? {
        guard accepts(statusCode: response.statusCode) else {
            return response.error(response.statusCode == 401 ? .unauthorized : .unacceptableStatus)
        }
        let type = response.headers["Content-Type"]
        guard response.body.isEmpty || accepts(contentType: type) else {
            let found = type.map { "\"\($0.prefix(80))\"" } ?? "missing"
            let wanted = (contentTypes ?? []).sorted().joined(separator: ", ")
            return response.error(.cannotParseResponse, message: "the Content-Type is \(found), wanted is \(wanted)")
        }
        if let cut { return cut }
        guard accepts(bodyCount: response.body.count) else { return bodyTooLong(response) }
        guard let jsonShape, !response.body.isEmpty || !(allowsEmptyBody || response.mayBeEmpty) else { return nil }
        do throws(NetworkError) {
            _ = try response.json(jsonShape)
            return nil
        } catch {
            return error
        }
    }

    /// - Parameter response: an answer with at least the beginning of its body.
    func bodyTooLong(_ response: NetworkResponse) -> NetworkError {
        response.error(.bodyTooLong, message: "more than \(max(0, maximumBodyCount ?? 0)) bytes of body")
    }
}
