import Foundation

/// Changes every request of a host before it is encoded: a parameter that all have, a version in the path, a header.
///
/// ```swift
/// struct Locale: RequestFilter {
///     func apply(to draft: inout RequestDraft) { draft.parameters["lang"] = "de" }
/// }
/// ```
///
/// Filters reach every request that is built, also one with an absolute URL; not one that is a `URLRequest` already.
/// They are called in order, on the thread that builds the request; more than once when its repeats are looked for.
public protocol RequestFilter: Sendable {
    /// - Throws: anything, which ends the request before it is sent. What is no ``NetworkError`` becomes
    ///   ``NetworkError/Code/invalidRequest``.
    func apply(to draft: inout RequestDraft) throws
}

/// A request that is being built, as filters see it.
public struct RequestDraft {
    /// The request as it was made.
    public let request: any BaseAPIRequest
    public var method: NetworkService.Method
    /// The address without the parameters; http and https only.
    public var url: URL
    /// What will go where ``BaseAPIRequest/query`` says. The values that ``BaseAPIRequest/params`` may have, also for what
    /// was given as ``BaseAPIRequest/encodableParams``.
    public var parameters: [String: Any]
    /// Those of the host and of the request.
    public var headers: HTTPHeaders
}

extension RequestDraft: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// Method and address, without user, password, query and fragment: they may hold secrets.
    public var description: String {
        "\(method.rawValue) \(url.withoutSecrets)"
    }

    /// Method, address, the names of the parameters, and headers, without secrets: those that ``Redaction`` knows by name.
    public var debugDescription: String {
        let redaction = Redaction.standard
        var text = DebugText(title: "RequestDraft \(method.rawValue) \(redaction.redacted(url))")
        text.add("Parameters", parameters.keys.sorted().joined(separator: ", "))
        text.add("Headers", redaction.redacted(headers))
        return text.lines.joined(separator: "\n")
    }

    /// Without children, so that a dump has no secret either.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}
