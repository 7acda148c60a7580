import Foundation

/// What an `Authorization` field says, for the schemes that need no challenge first.
///
/// ```swift
/// let credential = try HTTPCredential.basic(user: "ada", password: "secret")
/// request.headers["Authorization"] = credential.authorization
/// ```
///
/// It is a secret: its description has the scheme only.
public struct HTTPCredential: Hashable, Sendable {
    /// The value of the field, scheme included.
    public let authorization: String

    /// User and password, which everybody on the way can read who can read the message (RFC 7617).
    ///
    /// Both go out in UTF-8 and in normalization form C, as section 2.1 asks for.
    ///
    /// - Throws: ``NetworkError/Code/invalidRequest`` for a user name with a colon, which the server would take for its
    ///   end, and for a control character in either.
    public static func basic(user: String, password: String) throws(NetworkError) -> HTTPCredential {
        guard !user.utf8.contains(UInt8(ascii: ":")) else {
            throw invalid("a user name for basic authentication has no colon: the password begins behind the first one")
        }
        guard isPrintable(user), isPrintable(password) else {
            throw invalid("user name and password for basic authentication have no control characters")
        }
        let pair = "\(user):\(password)".precomposedStringWithCanonicalMapping
        return HTTPCredential(authorization: "Basic " + Data(pair.utf8).base64EncodedString())
    }

    /// A token whose bearer needs to prove nothing else (RFC 6750).
    ///
    /// - Throws: ``NetworkError/Code/invalidRequest`` for what is no token of section 2.1: letters, digits and
    ///   `-._~+/`, then possibly `=`.
    public static func bearer(_ token: String) throws(NetworkError) -> HTTPCredential {
        guard HTTPSyntax.isToken68(token.utf8) else {
            throw invalid("a bearer token has letters, digits and -._~+/ only, and = only at its end")
        }
        return HTTPCredential(authorization: "Bearer " + token)
    }

    private static func isPrintable(_ text: String) -> Bool {
        text.unicodeScalars.allSatisfy { $0.properties.generalCategory != .control }
    }

    private static func invalid(_ message: String) -> NetworkError {
        NetworkError(code: .invalidRequest, message: message)
    }
}

extension HTTPCredential: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    public var description: String {
        "\(authorization.prefix { $0 != " " }) …"
    }

    public var debugDescription: String { description }
    /// Without children, so that a dump has no secret either.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

extension HTTPSyntax {
    /// Whether these bytes are a token68: one word that may be base64 of any kind (RFC 9110, section 11.2).
    static func isToken68(_ bytes: some Collection<UInt8>) -> Bool {
        let letters = bytes.prefix(while: isToken68Byte)
        return !letters.isEmpty && bytes[letters.endIndex...].allSatisfy { $0 == UInt8(ascii: "=") }
    }

    static func isToken68Byte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
            UInt8(ascii: "~"), UInt8(ascii: "+"), UInt8(ascii: "/"):
            true
        default:
            false
        }
    }
}
