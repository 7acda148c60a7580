import Foundation

/// Changes every request of a host before it is encoded, for example by a common parameter, a version in the path, or a
/// header.
///
/// ```swift
/// struct Locale: RequestFilter {
///     func apply(to draft: inout RequestDraft) { draft.parameters["lang"] = "de" }
/// }
/// ```
///
/// Filters apply to every request, also to one with an absolute URL, but not to a
/// ``BaseAPIRequest/customURLRequest``. They are called in order, on the thread that builds the request, and more than
/// once for a request with a ``RepeatPolicy``.
public protocol RequestFilter: Sendable {
    /// Changes the draft.
    ///
    /// - Throws: any error, which ends the request before it is sent. All but a ``NetworkError`` become
    ///   ``NetworkError/Code/invalidRequest``.
    func apply(to draft: inout RequestDraft) throws
}

/// A request before its parameters are encoded.
public struct RequestDraft {
    /// The original request.
    public let request: any BaseAPIRequest
    public var method: NetworkService.Method
    /// The address without the parameters; http and https only.
    public var url: URL
    /// The parameters, whether they come from ``BaseAPIRequest/params`` or ``BaseAPIRequest/encodableParams``. They may
    /// hold the values that ``BaseAPIRequest/params`` may hold.
    public var parameters: [String: Any]
    /// The header fields of the host and of the request.
    public var headers: HTTPHeaders
}

extension RequestDraft: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// Method and address without user, password, query and fragment, which may be secrets.
    public var description: String {
        "\(method.rawValue) \(url.withoutSecrets)"
    }

    /// Method, address, the names of the parameters, and headers, without the secrets that ``Redaction`` knows by name.
    public var debugDescription: String {
        let redaction = Redaction.standard
        var text = DebugText(title: "RequestDraft \(method.rawValue) \(redaction.redacted(url))")
        text.add("Parameters", parameters.keys.sorted().joined(separator: ", "))
        text.add("Headers", redaction.redacted(headers))
        return text.lines.joined(separator: "\n")
    }

    /// A mirror without children, so that a dump shows no secret.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}
