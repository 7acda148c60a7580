/// The vocabulary of a request: its ``Method`` and where its parameters go, ``QueryType``.
public enum NetworkService {
    /// A request method, always in upper case (RFC 9110, section 9.1).
    ///
    /// Any token is a method: `NetworkService.Method(rawValue: "PROPFIND")`. A request with another text, such as one with a
    /// space, fails with ``NetworkError/Code/invalidRequest``.
    public struct Method: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
        public let rawValue: String

        /// - Parameter rawValue: the method's name, in any case; it is kept and sent in upper case.
        public init(rawValue: String) {
            // Only a to z: `uppercased()` would turn a dotless i into I, and so an invalid name into a token.
            self.rawValue = String(decoding: rawValue.utf8.map(\.uppercasedASCII), as: UTF8.self)
        }

        public var description: String { rawValue }

        public static let get = Method(rawValue: "GET")
        public static let post = Method(rawValue: "POST")
        public static let put = Method(rawValue: "PUT")
        public static let delete = Method(rawValue: "DELETE")
        public static let patch = Method(rawValue: "PATCH")
        public static let head = Method(rawValue: "HEAD")

        /// The methods that may be repeated without another effect (RFC 9110, section 9.2.2).
        static let idempotent: Set<Method> = [
            .get, .head, .put, .delete, Method(rawValue: "OPTIONS"), Method(rawValue: "TRACE"),
        ]
    }
}
