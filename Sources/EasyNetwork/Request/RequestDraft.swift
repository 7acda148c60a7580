import Foundation

/// A request before its parameters are encoded, for ``HostSettings/filters``.
///
/// ```swift
/// host.filters = [{ draft in draft.parameters["lang"] = "de" }]
/// ```
public struct RequestDraft {
    /// The original request.
    public let request: any BaseAPIRequest
    /// The HTTP method.
    public var method: NetworkService.Method
    /// The URL without the parameters. Its scheme must be http or https.
    public var url: URL
    /// The parameters. Those of an `Encodable` value are a dictionary. The values can be of any type that
    /// ``BaseAPIRequest/params`` lists.
    public var parameters: [String: Any]
    /// The header fields of the host and of the request.
    public var headers: HTTPHeaders
}

extension RequestDraft: CustomStringConvertible, CustomReflectable {
    /// The method and the URL without user, password, query and fragment, which can be secrets.
    public var description: String {
        "\(method.rawValue) \(url.withoutSecrets)"
    }

    /// A mirror without children, so that a dump shows no secret.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}
