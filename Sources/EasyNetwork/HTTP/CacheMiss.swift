/// Why the cache did not answer.
///
/// A struct and not an enum, so that a new reason breaks no `switch`.
public struct CacheMiss: RawRepresentable, Hashable, Error, CustomStringConvertible {
    public let rawValue: String

    public init(rawValue: String) {
        self.rawValue = rawValue
    }

    public var description: String { rawValue }

    /// There is no entry.
    public static let absent = CacheMiss(rawValue: "absent")
    /// The entry is older than the policy, the cache or its own headers allow.
    public static let expired = CacheMiss(rawValue: "expired")
    /// It was stored with another ``CachePolicy/version``.
    public static let version = CacheMiss(rawValue: "version")
    /// It was stored with other ``CachePolicy/sensitiveData``.
    public static let sensitiveData = CacheMiss(rawValue: "sensitive data")
    /// It was stored by another version of the app.
    public static let appVersion = CacheMiss(rawValue: "app version")
    /// Its file was cut or altered, and has been removed.
    public static let damaged = CacheMiss(rawValue: "damaged")
    /// It is not accepted, or not mapped, as answers are now; one that is not mapped has been removed.
    public static let unreadable = CacheMiss(rawValue: "unreadable")
    /// It answers a request with other header fields (`Vary`; RFC 9111, section 4.1).
    public static let varies = CacheMiss(rawValue: "varies")
    /// The request, or the entry, wants the server asked (`no-cache`, a range, a precondition of one's own).
    public static let mustAsk = CacheMiss(rawValue: "must ask")
    /// The call was to go past the cache: ``RequestOperation/ignoresCache``.
    public static let ignored = CacheMiss(rawValue: "ignored")
    /// A request of this kind is found by no key: see ``CachePolicy``.
    public static let noKey = CacheMiss(rawValue: "no key")
}
