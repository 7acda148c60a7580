import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

extension NetworkError: LocalizedError, CustomStringConvertible {
    /// A sentence for a person: the failure, its message and the server's message, without the secrets that
    /// ``Redaction`` recognizes. For a response that cannot be read, it includes the request, because a developer must
    /// fix this. For other failures only ``description`` includes the request.
    public var errorDescription: String? { sentence(withRequest: code == .cannotParseResponse) }

    private func sentence(withRequest: Bool) -> String {
        var sentence = code.summary
        if let statusCode, code == .unacceptableStatus || code == .unauthorized {
            let reason = HTTPURLResponse.localizedString(forStatusCode: statusCode)
            sentence = "The server responded with \(statusCode) \(reason)"
        }
        // Redact each part separately, because a secret can extend to the end of its part.
        let redaction = Redaction.standard
        let message = message.map { redaction.redacted($0.withoutFullStop) }
        if let message, code == .unauthorized, underlying != nil {
            // The message says why the refresh failed, and contains the server's message.
            sentence = message.prefix(1).uppercased() + message.dropFirst()
        } else {
            if let message { sentence += ": " + message }
            if let serverMessage { sentence += ": " + redaction.redacted(serverMessage.cleaned().withoutFullStop) }
        }
        if withRequest, let request { sentence += " (\(request))" }
        return sentence + "."
    }

    /// A line for a developer: the code, the sentence of ``errorDescription``, and the request without its secrets.
    public var description: String {
        let undos = undoFailures.map { " Not undone: " + $0.sentence(withRequest: true) }.joined()
        return "NetworkError.\(code): \(sentence(withRequest: true))\(undos)"
    }
}

// MARK: - NSError

extension NetworkError: CustomNSError {
    public static var errorDomain: String { "EasyNetwork.NetworkError" }

    /// The raw value of the ``code``.
    public var errorCode: Int { code.rawValue }

    /// The description, the underlying error and the URL, without the secrets that ``Redaction`` recognizes, because
    /// loggers and crash reporters upload this dictionary. The underlying error is reduced to its domain, code, strings
    /// and URLs; ``NetworkError/underlying`` is complete.
    public var errorUserInfo: [String: Any] {
        var info: [String: Any] = [:]
        info[NSLocalizedDescriptionKey] = errorDescription
        info[NSUnderlyingErrorKey] = underlying.map { Redaction.standard.redacted($0) }
        info[NSURLErrorFailingURLErrorKey] = request.flatMap { URL(string: Redaction.standard.redacted($0.url)) }
        return info
    }

    private static let bridgedKey = "EasyNetwork.NetworkError"

    /// The error as an `NSError` that ``init(bridged:)`` converts back. On Linux, `as NSError` loses the error.
    var bridged: NSError {
        var info = errorUserInfo
        info[Self.bridgedKey] = self
        return NSError(domain: Self.errorDomain, code: errorCode, userInfo: info)
    }

    /// Creates an error from an `NSError`.
    ///
    /// - Parameter error: Any error. One that was not ``bridged`` becomes ``Code/cannotParseResponse``.
    init(bridged error: NSError) {
        self = error.userInfo[Self.bridgedKey] as? NetworkError ?? .thrown(error, otherwise: .cannotParseResponse)
    }
}

extension NSError {
    /// Returns ``NetworkError/Code/cannotParseResponse`` as an `NSError`, for an unexpected response.
    ///
    /// ```swift
    /// do { show(try UserMapper.process(json)) } catch { handleFailure(NSError.cannotParseResponse(underlying: error)) }
    /// ```
    ///
    /// - Parameter underlying: The error that the mapper threw. It becomes the ``NetworkError/underlying`` error, and
    ///   its description becomes the ``NetworkError/message``. A ``NetworkError`` with this code is returned unchanged.
    ///   Defaults to `nil`.
    public static func cannotParseResponse(underlying: (any Error)? = nil) -> NSError {
        if let error = underlying as? NetworkError, error.code == .cannotParseResponse { return error.bridged }
        return NetworkError(code: .cannotParseResponse, message: underlying?.wording, underlying: underlying).bridged
    }
}

// MARK: - Debugging

extension NetworkError: CustomDebugStringConvertible, CustomReflectable {
    /// All properties on several lines, without the secrets that ``Redaction`` recognizes. The description is for logs
    /// and debuggers, and shows at most 4,000 characters of the body.
    public var debugDescription: String {
        var lines = Self.lines(of: self)
        // A loop is used instead of recursion, because the errors can form a long chain.
        var next = underlying
        var depth = 1
        while let error = next, depth <= 8 {
            let indent = String(repeating: "  ", count: depth)
            lines.append(indent + "Underlying:")
            if let error = error as? NetworkError {
                lines += Self.lines(of: error).map { indent + "  " + $0 }
                next = error.underlying
            } else {
                let text = Redaction.standard.redacted(String(reflecting: error)).cleaned(keepsLines: true)
                lines += text.split(separator: "\n").map { indent + "  " + $0 }
                next = nil
            }
            depth += 1
        }
        return lines.joined(separator: "\n")
    }

    /// An empty mirror, so that a dump shows only ``debugDescription``.
    public var customMirror: Mirror { Mirror(self, children: [:]) }

    private static func lines(of error: NetworkError) -> [String] {
        let redaction = Redaction.standard
        var text = DebugText(title: "NetworkError.\(error.code) (code \(error.code.rawValue))")
        text.add("Summary", error.errorDescription)
        text.add("Request", error.request.map { "\($0.method) \(redaction.redacted($0.url))" })
        text.add("Request headers", error.request?.headers ?? HTTPHeaders())
        text.add("Attempts", "\(error.attempts)")
        text.add("Sent", error.history)
        text.add("Phase", error.phase.map { "\($0)" })
        text.add("Status", error.statusCode.map { "\($0)" })
        text.add("Headers", error.headers)
        text.add("Server's message", error.serverMessage.map(redaction.redacted))
        text.add("Body", error.responseBody, contentType: error.headers["Content-Type"])
        text.add("Not undone", error.undoFailures.map(\.description).joined(separator: " "))
        text.add("Path", error.dependencyPath.map(redaction.redacted).joined(separator: " → "))
        text.add("Metrics", error.metrics?.description)
        return text.lines
    }
}

extension NetworkError.Request: CustomStringConvertible, CustomReflectable {
    /// The method and the URL without user, password, query and fragment.
    public var description: String {
        "\(method.cleaned(limit: 40)) \(url.withoutSecrets)"
    }

    /// An empty mirror, so that a dump shows no secrets.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

/// A title with indented lines below it.
struct DebugText {
    private(set) var lines: [String]

    init(title: String) {
        lines = [title.cleaned()]
    }

    /// Adds a value. Its further lines are indented, so that a string from outside cannot forge a line.
    mutating func add(_ name: String, _ value: String?) {
        guard let value, !value.isEmpty else { return }
        let parts = value.cleaned(limit: 4_000, keepsLines: true)
            .split(separator: "\n", omittingEmptySubsequences: false)
        lines.append("  \(name): \(parts[0])")
        lines += parts.dropFirst().map { "    \($0)" }
    }

    /// Adds header fields without their secrets.
    mutating func add(_ name: String, _ headers: HTTPHeaders) {
        guard !headers.isEmpty else { return }
        lines.append("  \(name):")
        lines += headers.map { "    " + $0.description.cleaned(limit: 1_000) }
    }

    /// Adds the last twenty messages if there is more than one. The other lines describe a single message.
    mutating func add(_ name: String, _ history: [NetworkAttempt]) {
        guard history.count > 1 else { return }
        lines.append("  \(name):")
        lines += history.suffix(20).map { "    \($0)" }
    }

    /// Adds the length of the body, and its text if ``Redaction`` can remove the secrets.
    mutating func add(_ name: String, _ body: Data?, contentType: String?) {
        guard let body else { return }
        guard !body.isEmpty else { return add(name, "empty") }
        let limit = NetworkError.responseBodyLimit
        let count = "\(body.count == limit ? "at least " : "")\(body.count) bytes"
        let text = body.count > limit ? nil : Redaction.standard.redactedText(of: body, contentType: contentType)
        add(name, text.map { "\(count)\n\($0)" } ?? count)
    }
}
