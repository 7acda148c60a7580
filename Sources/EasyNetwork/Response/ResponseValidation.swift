import Foundation

/// Which answers count as success: by status, media type, length, and the shape of the JSON.
///
/// ```swift
/// var validation: ResponseValidation? { ResponseValidation(statusCodes: [200, 404]) }
/// ```
public struct ResponseValidation: Hashable, Sendable {
    /// The accepted status codes. Default 200 to 299, both ends in.
    public var statusCodes: Set<Int>

    /// The accepted media types, `type/*` and `*/*` included; nil, the default, accepts any. An empty body has no type
    /// and passes.
    public var contentTypes: Set<String>?

    /// Which answers may have an empty body although something is decoded from it. Default 204, 205, 304, and any to
    /// HEAD.
    public var emptyBody: EmptyBodyRule

    /// The longest body in bytes, content codings such as gzip taken off; below 0 counts as 0. Default nil: no limit but
    /// the transport's ``TransportConfiguration/maximumDecodedBodyCount``.
    ///
    /// A longer body ends the request with ``NetworkError/Code/bodyTooLong``.
    public var maximumBodyCount: Int?

    /// The shape of the JSON in an accepted answer. Default nil: anything, JSON or not.
    ///
    /// The body is parsed once for it and once more when it is decoded. A body that may be empty is not looked at when it
    /// is.
    public var jsonShape: JSONShape?

    public init(
        statusCodes: Set<Int> = Self.success,
        contentTypes: Set<String>? = nil,
        emptyBody: EmptyBodyRule = .standard,
        maximumBodyCount: Int? = nil,
        jsonShape: JSONShape? = nil
    ) {
        self.statusCodes = statusCodes
        self.contentTypes = contentTypes
        self.emptyBody = emptyBody
        self.maximumBodyCount = maximumBodyCount
        self.jsonShape = jsonShape
    }

    /// - Parameter statusCodes: the accepted status codes, both ends in: `200...399`. Codes outside of 100 to 999 do not
    ///   exist and are passed over.
    public init(
        statusCodes: ClosedRange<Int>,
        contentTypes: Set<String>? = nil,
        emptyBody: EmptyBodyRule = .standard,
        maximumBodyCount: Int? = nil,
        jsonShape: JSONShape? = nil
    ) {
        self.init(
            // One beyond each end: a range outside of them all is clamped to a code that no answer has.
            statusCodes: Set(statusCodes.clamped(to: 0...1_000)),
            contentTypes: contentTypes,
            emptyBody: emptyBody,
            maximumBodyCount: maximumBodyCount,
            jsonShape: jsonShape
        )
    }

    /// Accepts the statuses that a predicate does.
    ///
    /// ```swift
    /// static let lenient = ResponseValidation(statusCodes: { $0 < 500 && $0 != 429 })
    /// ```
    ///
    /// The predicate is asked at once, for each code from 100 to 999, and not kept: keep the value for all requests.
    ///
    /// - Parameter isAccepted: whether an answer with this status code is a success.
    public init(
        statusCodes isAccepted: (Int) throws -> Bool,
        contentTypes: Set<String>? = nil,
        emptyBody: EmptyBodyRule = .standard,
        maximumBodyCount: Int? = nil,
        jsonShape: JSONShape? = nil
    ) rethrows {
        self.init(
            statusCodes: Set(try (100...999).filter(isAccepted)),
            contentTypes: contentTypes,
            emptyBody: emptyBody,
            maximumBodyCount: maximumBodyCount,
            jsonShape: jsonShape
        )
    }

    /// The status codes of success, 200 to 299.
    public static let success = Set(200...299)

    /// Accepts every answer.
    public static let any = ResponseValidation(statusCodes: 100...999)

    public func accepts(statusCode: Int) -> Bool {
        statusCodes.contains(statusCode)
    }

    /// - Parameter contentType: the value of the header field, nil when there is none.
    public func accepts(contentType: String?) -> Bool {
        guard let contentTypes else { return true }
        guard let type = contentType.flatMap(MediaType.init) else { return contentTypes.contains("*/*") }
        return contentTypes.contains { type.matches($0) }
    }

    /// - Parameter bodyCount: the length in bytes, as far as the body has come.
    public func accepts(bodyCount: Int) -> Bool {
        maximumBodyCount.map { bodyCount <= max(0, $0) } ?? true
    }

    /// Why the answer is no success; nil when it is one.
    ///
    /// - Returns: ``NetworkError/Code/unauthorized`` for a 401, ``NetworkError/Code/unacceptableStatus`` for any other
    ///   status that is not accepted, ``NetworkError/Code/bodyTooLong`` for a body that is,
    ///   ``NetworkError/Code/cannotParseResponse`` for a media type that is not accepted and for JSON of another shape.
    func error(for response: NetworkResponse) -> NetworkError? {
        guard accepts(statusCode: response.statusCode) else {
            return response.error(response.statusCode == 401 ? .unauthorized : .unacceptableStatus)
        }
        guard accepts(bodyCount: response.body.count) else { return bodyTooLong(response) }
        let type = response.headers["Content-Type"]
        guard response.body.isEmpty || accepts(contentType: type) else {
            let found = type.map { "\"\($0.prefix(80))\"" } ?? "missing"
            let wanted = (contentTypes ?? []).sorted().joined(separator: ", ")
            return response.error(.cannotParseResponse, message: "the Content-Type is \(found), wanted is \(wanted)")
        }
        return shapeError(for: response)
    }

    /// - Parameter response: with the beginning of the body at least.
    func bodyTooLong(_ response: NetworkResponse) -> NetworkError {
        response.error(.bodyTooLong, message: "more than \(max(0, maximumBodyCount ?? 0)) bytes of body")
    }

    private func shapeError(for response: NetworkResponse) -> NetworkError? {
        guard let jsonShape else { return nil }
        let mayBeEmpty = emptyBody.allows(statusCode: response.statusCode, method: response.requestMethod)
        if response.body.isEmpty && mayBeEmpty { return nil }
        do throws(NetworkError) {
            _ = try response.json(jsonShape)
            return nil
        } catch {
            return error
        }
    }
}
