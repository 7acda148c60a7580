/// Which answers may come without a body although an item is to be made from them.
///
/// An empty body is no JSON, and so an error, unless this rule allows it and the item has a value that stands for
/// nothing: see ``EmptyRepresentable``.
///
/// ```swift
/// ResponseValidation(emptyBody: EmptyBodyRule(statusCodes: [200, 204], methods: [.head, .delete]))
/// ```
public struct EmptyBodyRule: Hashable, Sendable {
    /// The statuses with which the body may be empty. Default 204, 205 and 304, which never have one (RFC 9110,
    /// sections 15.3.5, 15.3.6 and 15.4.5).
    public var statusCodes: Set<Int>

    /// The methods whose answers may have an empty body, whatever the status. Default HEAD (RFC 9110, section 9.3.2).
    public var methods: Set<NetworkService.Method>

    public init(statusCodes: Set<Int> = [204, 205, 304], methods: Set<NetworkService.Method> = [.head]) {
        self.statusCodes = statusCodes
        self.methods = methods
    }

    /// The default: 204, 205, 304, and any answer to HEAD. One for all, since every answer has it.
    public static let standard = EmptyBodyRule()

    /// Every answer may be empty.
    public static let always = EmptyBodyRule(statusCodes: Set(100...999), methods: [])

    /// No answer may be empty.
    public static let never = EmptyBodyRule(statusCodes: [], methods: [])

    /// - Parameter method: the method of the request, nil when nobody knows it.
    public func allows(statusCode: Int, method: NetworkService.Method?) -> Bool {
        if let method, methods.contains(method) { return true }
        return statusCodes.contains(statusCode)
    }
}

/// A type with a value for "nothing came", which an answer without a body is decoded into where ``EmptyBodyRule`` allows it.
///
/// `Optional` is one: `typealias Item = User?` is nil after a 204.
public protocol EmptyRepresentable {
    static var emptyValue: Self { get }
}

extension Optional: EmptyRepresentable {
    public static var emptyValue: Wrapped? { nil }
}

/// An item of which nothing is read: for answers that say all by their status, where a `Decodable` type is asked for.
///
/// It is made from an empty body, where ``EmptyBodyRule`` allows it, and from any JSON. A request whose item is `Void`
/// does not look at the body at all.
public struct EmptyItem: Codable, Hashable, Sendable, ParsedItem, EmptyRepresentable {
    public static var emptyValue: EmptyItem { EmptyItem() }

    public init() {}

    public init(from decoder: any Decoder) {}
}
