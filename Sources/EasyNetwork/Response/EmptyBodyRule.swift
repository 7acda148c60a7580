/// The answers that may have an empty body although an item is decoded from them.
///
/// An empty body is no JSON, and so an error, unless this rule allows it and the item is ``EmptyRepresentable``.
///
/// ```swift
/// ResponseValidation(emptyBody: EmptyBodyRule(statusCodes: [200, 204], methods: [.head, .delete]))
/// ```
public struct EmptyBodyRule: Hashable, Sendable {
    /// The statuses whose body may be empty. Default 204, 205 and 304, which never have one (RFC 9110, sections 15.3.5,
    /// 15.3.6 and 15.4.5).
    public var statusCodes: Set<Int>

    /// The methods whose answers may have an empty body with any status. Default HEAD (RFC 9110, section 9.3.2).
    public var methods: Set<NetworkService.Method>

    public init(statusCodes: Set<Int> = [204, 205, 304], methods: Set<NetworkService.Method> = [.head]) {
        self.statusCodes = statusCodes
        self.methods = methods
    }

    /// The default: 204, 205, 304, and any answer to HEAD. Answers share this value.
    public static let standard = EmptyBodyRule()

    /// Every answer may be empty.
    public static let always = EmptyBodyRule(statusCodes: Set(100...999), methods: [])

    /// No answer may be empty.
    public static let never = EmptyBodyRule(statusCodes: [], methods: [])

    /// - Parameter method: the method of the request; nil if it is unknown.
    public func allows(statusCode: Int, method: NetworkService.Method?) -> Bool {
        if let method, methods.contains(method) { return true }
        return statusCodes.contains(statusCode)
    }
}

/// A type with a value for an answer without a body, which ``EmptyBodyRule`` has to allow.
///
/// `Optional` conforms: with `typealias Item = User?` the item is nil after a 204.
public protocol EmptyRepresentable {
    static var emptyValue: Self { get }
}

extension Optional: EmptyRepresentable {
    public static var emptyValue: Wrapped? { nil }
}

/// An item without contents, for answers whose status says everything.
///
/// It is decoded from any JSON, and from an empty body if ``EmptyBodyRule`` allows it. A request whose item is `Void` ignores
/// the body.
public struct EmptyItem: Codable, Hashable, Sendable, ParsedItem, EmptyRepresentable {
    public static var emptyValue: EmptyItem { EmptyItem() }

    public init() {}

    public init(from decoder: any Decoder) {}
}
