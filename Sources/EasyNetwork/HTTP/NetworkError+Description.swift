import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

extension NetworkError: LocalizedError {
    /// One sentence for a person: what happened, the server's own words, and to which request; without the secrets that
    /// ``Redaction`` knows by name.
    public var errorDescription: String? {
        var sentence = summary
        if let message { sentence += ": \(message)" }
        // The server's own full stop would stand in the middle of the sentence.
        if let serverMessage { sentence += ": \(serverMessage.cleaned().withoutFullStop)" }
        if let request { sentence += " (\(request))" }
        return Redaction.standard.redacted(sentence) + "."
    }

    private var summary: String {
        if let statusCode, code == .unacceptableStatus || code == .unauthorized {
            let reason = HTTPURLResponse.localizedString(forStatusCode: statusCode)
            return "The server answered \(statusCode) \(reason)"
        }
        return switch code {
        case .invalidRequest: "The request cannot be sent"
        case .cancelled: "Cancelled"
        case .dependencyFailed: "An operation this one depends on failed"
        case .cycle: "The operation waits for itself"
        case .refused: "The request was refused before it was sent"
        case .cannotConnect: "Cannot connect to the server"
        case .tls: "No secure connection to the server"
        case .timedOut: "The server took too long"
        case .connectionLost: "The connection to the server was lost"
        case .badServerResponse: "The server's answer is not HTTP"
        case .notConnected: "There is no network"
        case .bodyTooLong: "The server's answer is too long"
        case .unacceptableStatus: "The server refused the request"
        case .unauthorized: "The server wants other credentials"
        case .cannotParseResponse: "The server's answer cannot be understood"
        case .redirectFailed: "The server's redirect cannot be followed"
        case .notCached: "The cache has no usable answer"
        case .cannotWriteFile: "The file cannot be written"
        case .digestMismatch: "The file is not the one that was wanted"
        default: "The request failed with \(code)"
        }
    }
}

extension NetworkError.Request: CustomStringConvertible {
    /// Method and address, without user, password, query and fragment: they may hold secrets.
    public var description: String {
        "\(method.cleaned(limit: 40)) \(url.withoutSecrets)"
    }
}

extension NetworkError: CustomNSError {
    public static var errorDomain: String { "EasyNetwork.NetworkError" }

    /// The number of the ``code``.
    public var errorCode: Int { code.rawValue }

    /// The text, the error underneath, and the URL, all without the secrets that ``Redaction`` knows by name: loggers and
    /// crash reporters send this dictionary away. Of the error underneath it has domain, code, texts and URLs; all of it is
    /// in ``NetworkError/underlying``.
    public var errorUserInfo: [String: Any] {
        var info: [String: Any] = [:]
        info[NSLocalizedDescriptionKey] = errorDescription
        info[NSUnderlyingErrorKey] = underlying.map { Redaction.standard.redacted($0) }
        info[NSURLErrorFailingURLErrorKey] = request.flatMap { URL(string: Redaction.standard.redacted($0.url)) }
        return info
    }
}

extension NetworkError {
    private static let bridgedKey = "EasyNetwork.NetworkError"

    /// The error as an `NSError`, from which ``init(bridged:)`` gets it back. `as NSError` loses it on Linux.
    var bridged: NSError {
        var info = errorUserInfo
        info[Self.bridgedKey] = self
        return NSError(domain: Self.errorDomain, code: errorCode, userInfo: info)
    }

    /// - Parameter error: one that is none of the package's becomes ``Code/cannotParseResponse``.
    init(bridged error: NSError) {
        self = error.userInfo[Self.bridgedKey] as? NetworkError ?? .thrown(error, otherwise: .cannotParseResponse)
    }
}

extension NSError {
    /// An answer that is not what was expected: ``NetworkError/Code/cannotParseResponse`` as an `NSError`.
    ///
    /// ```swift
    /// catch { handleFailure(NSError.cannotParseResponse()) }
    /// ```
    public static func cannotParseResponse() -> NSError {
        NetworkError(code: .cannotParseResponse).bridged
    }
}

extension NetworkError: CustomStringConvertible {
    public var description: String {
        "NetworkError.\(code): \(errorDescription ?? "")"
    }
}

extension URL {
    /// The URL without user, password, query and fragment.
    package var withoutSecrets: String {
        guard var components = URLComponents(url: self, resolvingAgainstBaseURL: true) else { return scheme ?? "" }
        components.user = nil
        components.password = nil
        components.query = nil
        components.fragment = nil
        return components.string ?? ""
    }
}
