import Foundation

/// A request before its parameters are encoded, for ``HostSettings/filters``.
///
/// ```swift
/// host.filters = [{ draft in draft.parameters["lang"] = "de" }]
/// ```
public struct RequestDraft {
    /// The request as its user made it.
    public let request: any BaseAPIRequest
    /// The method.
    public var method: NetworkService.Method
    /// The address without the parameters; http and https only.
    public var url: URL
    /// The parameters; those of an `Encodable` value as a dictionary. They may hold what ``BaseAPIRequest/params`` may.
    public var parameters: [String: Any]
    /// The header fields of the host and of the request.
    public var headers: HTTPHeaders
}

extension RequestDraft: CustomStringConvertible, CustomReflectable {
    /// Method and address without user, password, query and fragment, which may be secrets.
    public var description: String {
        "\(method.rawValue) \(url.withoutSecrets)"
    }

    /// A mirror without children, so that a dump shows no secret.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}
