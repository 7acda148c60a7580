/// The vocabulary of a request: its ``Method`` and where its parameters go, ``QueryType``.
public enum NetworkService {
    /// A request method, always in upper case (RFC 9110, section 9.1).
    ///
    /// Any token is a method: `NetworkService.Method(rawValue: "PROPFIND")`. Text that is no token (a space in it,
    /// say) is an error of the request that uses it, `NetworkError.Code.invalidRequest`.
    public struct Method: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
        public let rawValue: String

        /// - Parameter rawValue: the method's name, in any case; it is kept and sent in upper case.
        public init(rawValue: String) {
            // Only A to Z: `uppercased()` makes an I of a dotless i, and so a token of what is none.
            self.rawValue = String(decoding: rawValue.utf8.map(\.uppercasedASCII), as: UTF8.self)
        }

        public var description: String { rawValue }

        public static let get = Method(rawValue: "GET")
        public static let post = Method(rawValue: "POST")
        public static let put = Method(rawValue: "PUT")
        public static let delete = Method(rawValue: "DELETE")
        public static let patch = Method(rawValue: "PATCH")
        public static let head = Method(rawValue: "HEAD")

        /// Those whose effect is the same however often they are sent (RFC 9110, section 9.2.2).
        static let idempotent: Set<Method> = [
            .get, .head, .put, .delete, Method(rawValue: "OPTIONS"), Method(rawValue: "TRACE"),
        ]
    }
}
