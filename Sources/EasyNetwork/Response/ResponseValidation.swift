import Foundation

/// The rule for which responses are successes: by status, media type, length, and shape of the JSON.
///
/// ```swift
/// var options: RequestOptions { RequestOptions(validation: ResponseValidation(statusCodes: [200, 404])) }
/// ```
public struct ResponseValidation: Hashable, Sendable {
    /// The accepted status codes. Defaults to 200 to 299.
    public var statusCodes: Set<Int>

    /// The accepted media types, including `type/*` and `*/*`. Defaults to `nil`: any type. An empty body is accepted
    /// with any type.
    public var contentTypes: Set<String>?

    /// Whether every response can have an empty body although an item is decoded from it; an optional item is then nil.
    /// Responses with the statuses 204, 205 and 304, and responses to HEAD, can always be empty. Defaults to `false`.
    public var allowsEmptyBody: Bool

    /// The maximum length of the body in bytes, without content codings such as gzip. Defaults to `nil`: only the limit
    /// of the transport applies, ``TransportConfiguration/maximumDecodedBodyCount``.
    ///
    /// If the body of an otherwise accepted response is longer, the request fails with
    /// ``NetworkError/Code/bodyTooLong``. Of any other response, at most 64 KiB are read.
    public var maximumBodyCount: Int?

    /// The shape of the JSON in an accepted response. Defaults to `nil`: any body, JSON or not.
    ///
    /// The check and later decoding share one index of a body that is an object or an array. An empty body is accepted
    /// if ``allowsEmptyBody`` allows it.
    public var jsonShape: JSONShape?

    /// Creates a rule.
    ///
    /// - Parameters:
    ///   - statusCodes: the accepted status codes, such as `200...399` or `[200, 404]`. Only the first thousand count.
    ///     Defaults to 200 to 299.
    ///   - contentTypes: see ``contentTypes``. Defaults to `nil`.
    ///   - allowsEmptyBody: see ``allowsEmptyBody``. Defaults to `false`.
    ///   - maximumBodyCount: see ``maximumBodyCount``. Defaults to `nil`.
    ///   - jsonShape: see ``jsonShape``. Defaults to `nil`.
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

    /// A rule that accepts every response.
    public static let any = ResponseValidation(statusCodes: 100...999)

    /// Returns whether the status is accepted.
    public func accepts(statusCode: Int) -> Bool {
        statusCodes.contains(statusCode)
    }

    /// Returns whether the media type is accepted.
    ///
    /// - Parameter contentType: the value of the header field; `nil` if there is none.
    public func accepts(contentType: String?) -> Bool {
        guard let contentTypes else { return true }
        guard let type = contentType.flatMap(MediaType.init) else { return contentTypes.contains("*/*") }
        return contentTypes.contains { type.matches($0) }
    }

    /// Returns whether the length of the body is accepted.
    ///
    /// - Parameter bodyCount: the length of the received body in bytes.
    public func accepts(bodyCount: Int) -> Bool {
        maximumBodyCount.map { bodyCount <= max(0, $0) } ?? true
    }

    /// Returns whether status and media type are accepted. ``error(for:cut:)`` accepts an empty body with any media
    /// type.
    func accepts(_ head: TransportHead) -> Bool {
        accepts(statusCode: head.statusCode)
            && (contentTypes == nil || accepts(contentType: head.headers["Content-Type"]))
    }

    /// Returns the error of a response that is not a success, or nil for a success: ``NetworkError/Code/unauthorized``
    /// for a 401, ``NetworkError/Code/unacceptableStatus`` for another status, ``NetworkError/Code/bodyTooLong``, and
    /// ``NetworkError/Code/cannotParseResponse`` for the media type and the shape of the JSON.
    ///
    /// - Parameter cut: the reason why the body is incomplete. It is returned unless status or media type are rejected.
    ///   Defaults to nil.
    func error(for response: NetworkResponse, cut: NetworkError? = nil) -> NetworkError? {
        guard accepts(statusCode: response.statusCode) else {
            return response.error(response.statusCode == 401 ? .unauthorized : .unacceptableStatus)
        }
        let type = response.headers["Content-Type"]
        guard response.body.isEmpty || accepts(contentType: type) else {
            let found = type.map { "\"\($0.prefix(80))\"" } ?? "missing"
            let wanted = (contentTypes ?? []).sorted().joined(separator: ", ")
            return response.error(.cannotParseResponse, message: "the Content-Type must be \(wanted), but is \(found)")
        }
        if let cut { return cut }
        guard accepts(bodyCount: response.body.count) else { return bodyTooLong(response) }
        guard let jsonShape, !response.body.isEmpty || !(allowsEmptyBody || response.mayBeEmpty) else { return nil }
        do throws(NetworkError) {
            let mismatch = jsonShape.mismatch(in: try response.jsonNode())
            return mismatch.map { response.error(.cannotParseResponse, message: $0) }
        } catch {
            return error
        }
    }

    /// - Parameter response: a response with at least the beginning of its body.
    func bodyTooLong(_ response: NetworkResponse) -> NetworkError {
        response.error(.bodyTooLong, message: "the body has more than \(max(0, maximumBodyCount ?? 0)) bytes")
    }
}

extension ResponseValidation: CustomStringConvertible {
    /// The status codes, as ranges, and the properties that differ from their defaults.
    public var description: String {
        String(
            listing: "ResponseValidation",
            [
                ("statusCodes", statusCodes), ("contentTypes", contentTypes),
                ("allowsEmptyBody", allowsEmptyBody ? true : nil), ("maximumBodyCount", maximumBodyCount),
                ("jsonShape", jsonShape),
            ]
        )
    }
}
