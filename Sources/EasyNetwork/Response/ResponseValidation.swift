import Foundation

/// Which answers count as success.
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

    public init(statusCodes: Set<Int> = Self.success, contentTypes: Set<String>? = nil) {
        self.statusCodes = statusCodes
        self.contentTypes = contentTypes
    }

    /// - Parameter statusCodes: the accepted status codes, both ends in: `200...399`. Codes outside of 100 to 999 do not
    ///   exist and are passed over.
    public init(statusCodes: ClosedRange<Int>, contentTypes: Set<String>? = nil) {
        // One beyond each end: a range outside of them all is clamped to a code that no answer has.
        self.init(statusCodes: Set(statusCodes.clamped(to: 0...1_000)), contentTypes: contentTypes)
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

    /// Why the answer is no success; nil when it is one.
    ///
    /// - Returns: ``NetworkError/Code/unauthorized`` for a 401, ``NetworkError/Code/unacceptableStatus`` for any other
    ///   status that is not accepted, ``NetworkError/Code/cannotParseResponse`` for a media type that is not.
    func error(for response: NetworkResponse) -> NetworkError? {
        guard accepts(statusCode: response.statusCode) else {
            return response.error(response.statusCode == 401 ? .unauthorized : .unacceptableStatus)
        }
        let type = response.headers["Content-Type"]
        guard response.body.isEmpty || accepts(contentType: type) else {
            let found = type.map { "\"\($0.prefix(80))\"" } ?? "missing"
            let wanted = (contentTypes ?? []).sorted().joined(separator: ", ")
            return response.error(.cannotParseResponse, message: "the Content-Type is \(found), wanted is \(wanted)")
        }
        return nil
    }
}
