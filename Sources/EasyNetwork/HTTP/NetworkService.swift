/// The vocabulary of a request: its ``Method``, and the ``QueryType`` that says where its parameters are sent.
///
/// ```swift
/// struct AddUser: BaseAPIRequest {
///     let api = "users"
///     let method = NetworkService.Method.post
///     let query = NetworkService.QueryType.json
///     let name: String
///     var params: [String: Any]? { ["name": name] }
/// }
/// ```
public enum NetworkService {
    /// A request method, always in upper case (RFC 9110, section 9.1).
    ///
    /// ```swift
    /// var method: NetworkService.Method { .delete }
    /// ```
    ///
    /// Any token is a method: `NetworkService.Method(rawValue: "PROPFIND")`. A request with any other string, such as
    /// one with a space, fails with ``NetworkError/Code/invalidRequest``.
    public struct Method: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
        public let rawValue: String

        /// Creates a method from its name.
        ///
        /// - Parameter rawValue: The method's name, in any case. It is stored and sent in upper case.
        public init(rawValue: String) {
            // Convert only a to z: `uppercased()` would turn a dotless i into I, and an invalid name into a token.
            self.rawValue = String(decoding: rawValue.utf8.map { $0.isLetter ? $0 & ~0x20 : $0 }, as: UTF8.self)
        }

        public var description: String { rawValue }

        /// `GET`: reads a resource (RFC 9110, section 9.3.1).
        public static let get = Method(rawValue: "GET")
        /// `POST`: asks the resource to process the body (section 9.3.3).
        public static let post = Method(rawValue: "POST")
        /// `PUT`: creates or replaces a resource (section 9.3.4).
        public static let put = Method(rawValue: "PUT")
        /// `DELETE`: removes a resource (section 9.3.5).
        public static let delete = Method(rawValue: "DELETE")
        /// `PATCH`: changes a part of a resource (RFC 5789).
        public static let patch = Method(rawValue: "PATCH")
        /// `HEAD`: reads the header fields of a resource without its body (section 9.3.2).
        public static let head = Method(rawValue: "HEAD")
    }
}
