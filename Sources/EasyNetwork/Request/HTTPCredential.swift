import Foundation

/// The value of an `Authorization` field, for the schemes that need no challenge first.
///
/// ```swift
/// let credential = try HTTPCredential.basic(user: "ada", password: "secret")
/// request.headers["Authorization"] = credential.authorization
/// ```
///
/// A credential is a secret: its description shows only the scheme.
public struct HTTPCredential: Hashable, Sendable {
    /// The value of the field, including the scheme.
    public let authorization: String

    /// Creates a credential from a user name and a password. Everyone who can read the message can read them (RFC
    /// 7617).
    ///
    /// Both are sent in UTF-8, in normalization form C (section 2.1).
    ///
    /// - Throws: ``NetworkError/Code/invalidRequest`` if the user name contains a colon, which would end the name for
    ///   the server, or if either contains a control character.
    public static func basic(user: String, password: String) throws(NetworkError) -> HTTPCredential {
        guard !user.utf8.contains(UInt8(ascii: ":")) else {
            throw .invalidRequest(
                "the user name for basic authentication must not contain a colon, which separates the password"
            )
        }
        guard isPrintable(user), isPrintable(password) else {
            throw .invalidRequest("user name and password for basic authentication must not contain control characters")
        }
        let pair = "\(user):\(password)".precomposedStringWithCanonicalMapping
        return HTTPCredential(authorization: "Basic " + Data(pair.utf8).base64EncodedString())
    }

    /// Creates a credential from a bearer token (RFC 6750).
    ///
    /// - Throws: ``NetworkError/Code/invalidRequest`` if the token does not have the syntax of section 2.1: letters,
    ///   digits and `-._~+/`, then possibly `=`.
    public static func bearer(_ token: String) throws(NetworkError) -> HTTPCredential {
        guard HTTPSyntax.isToken68(token.utf8) else {
            throw .invalidRequest("a bearer token must contain only letters, digits and -._~+/, and = only at its end")
        }
        return HTTPCredential(authorization: "Bearer " + token)
    }

    /// Returns the user's name in the Basic credential of a message; nil without one.
    static func userName(in headers: HTTPHeaders) -> String? {
        let words = (headers["Authorization"] ?? "").split(separator: " ")
        guard words.count == 2, words[0].lowercased() == "basic",
            let pair = Data(base64Encoded: String(words[1]))
        else { return nil }
        return String(decoding: pair.prefix { $0 != UInt8(ascii: ":") }, as: UTF8.self)
    }

    private static func isPrintable(_ text: String) -> Bool {
        text.unicodeScalars.allSatisfy { $0.properties.generalCategory != .control }
    }
}

extension HTTPCredential: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    public var description: String {
        "\(authorization.prefix { $0 != " " }) …"
    }

    public var debugDescription: String { description }
    /// A mirror without children, so that a dump shows no secret.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}
