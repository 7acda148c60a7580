import Foundation

/// The use of the cache by a request: whether to read it, where to store the response, and which stored responses are
/// valid.
///
/// ```swift
/// // At most five minutes old, with this version of the schema, and stored for this user.
/// var options: RequestOptions {
///     RequestOptions(cache: CachePolicy(.cacheElseNetwork, maximumAge: 300, version: 2, sensitiveData: userID))
/// }
/// ```
///
/// A response is stored after it has been accepted and mapped, and the callbacks of the operation have returned. With
/// ``Reading/http``, the headers of request and response decide (RFC 9111); otherwise only this policy does. A request
/// whose body is a file, a stream or a multipart form is cached only with a ``key``.
public struct CachePolicy: Sendable {
    /// The order of cache and network.
    ///
    /// ```swift
    /// var options: RequestOptions { RequestOptions(cache: CachePolicy(.cacheElseNetwork, maximumAge: 300)) }
    /// ```
    public enum Reading: Hashable, Sendable {
        /// Loads from the network only. The response can still be stored for other requests.
        case network
        /// Delivers a valid cached response at once, and then the network's: see ``RequestOperation/cached``,
        /// ``RequestOperation/cachedItem``, and ``EasyNetworkService/responses(to:)``.
        case cacheThenNetwork
        /// Uses a valid cached response, otherwise the network.
        case cacheElseNetwork
        /// Uses a valid cached response, otherwise fails with ``NetworkError/Code/notCached``. Nothing is sent.
        case cacheOnly
        /// Follows the rules of HTTP (RFC 9111, for a private cache): GET only, fresh responses from the cache, stale
        /// responses after revalidation. If the server allows it, a stale response is also used during the
        /// revalidation, or instead of an error (RFC 5861).
        case http
    }

    /// The order of cache and network.
    public var reading: Reading

    /// Whether responses are stored in memory, until the program ends. Defaults to `true`.
    public var storesInMemory: Bool

    /// Whether responses are stored in files. Defaults to `true`. With ``storesInMemory``, a response that is read from
    /// a file is also kept in memory.
    public var storesOnDisk: Bool

    /// The maximum age of a valid response in seconds. A response from the future is not valid either. Defaults to
    /// `nil`: only the limit of the cache applies. Not used by ``Reading/http``.
    public var maximumAge: TimeInterval?

    /// The version of the response's format. A response that was stored with another version is not valid. Defaults to
    /// 0. Not used by ``Reading/http``.
    public var version: Int

    /// A value such as a user's name or a token. A response that was stored with another value is not valid. The cache
    /// stores the SHA-256 digest of the value. To keep the responses of several users at the same time, use
    /// ``extraKey`` or ``HostSettings/cachePartition``. Defaults to `nil`. Not used by ``Reading/http``.
    public var sensitiveData: String?

    /// The version of the app. A response that was stored by another version is not valid. See ``currentAppVersion``.
    /// Defaults to `nil`: any version. Not used by ``Reading/http``.
    public var appVersion: String?

    /// A string that is added to the key of the response. Defaults to `nil`. Not used by ``Reading/http``.
    public var extraKey: String?

    /// The key of the response, instead of method, path, query and body. The origin of the URL, ``extraKey`` and
    /// ``HostSettings/cachePartition`` are added to it. Defaults to `nil`. Not used by ``Reading/http``.
    public var key: String?

    /// The names of query parameters that are left out of the response's key, such as a time or a signature. Defaults
    /// to an empty set. Not used by ``Reading/http``.
    public var ignoredParameters: Set<String>

    /// A closure that returns whether a response is stored. It is called on a background queue after the response has
    /// been mapped. Defaults to `nil`: every response is stored.
    public var isStorable: (@Sendable (NetworkResponse) -> Bool)?

    /// Creates a policy with the given properties.
    public init(
        _ reading: Reading,
        storesInMemory: Bool = true,
        storesOnDisk: Bool = true,
        maximumAge: TimeInterval? = nil,
        version: Int = 0,
        sensitiveData: String? = nil,
        appVersion: String? = nil,
        extraKey: String? = nil,
        key: String? = nil,
        ignoredParameters: Set<String> = [],
        isStorable: (@Sendable (NetworkResponse) -> Bool)? = nil
    ) {
        self.reading = reading
        self.storesInMemory = storesInMemory
        self.storesOnDisk = storesOnDisk
        self.maximumAge = maximumAge
        self.version = version
        self.sensitiveData = sensitiveData
        self.appVersion = appVersion
        self.extraKey = extraKey
        self.key = key
        self.ignoredParameters = ignoredParameters
        self.isStorable = isStorable
    }

    /// A policy that neither reads nor stores.
    public static let never = CachePolicy(.network, storesInMemory: false, storesOnDisk: false)

    /// A policy that follows the rules of HTTP, in memory and on disk.
    public static let http = CachePolicy(.http)

    /// The `CFBundleShortVersionString` of the main bundle, for ``appVersion``; `nil` for a program without one.
    public static let currentAppVersion =
        Bundle.main.object(forInfoDictionaryKey: "CFBundleShortVersionString") as? String

    /// All properties except the predicate, which cannot be compared.
    var identity: [String?] {
        let numbers = ["\(reading)", "\(storage.rawValue)", maximumAge.map { "\($0)" }, "\(version)"]
        return numbers + [sensitiveData, appVersion, extraKey, key] + ignoredParameters.sorted()
    }

    var storage: CacheStorage { [storesInMemory ? .memory : [], storesOnDisk ? .disk : []] }

    /// Whether the policy reads or stores.
    var isActive: Bool { reading != .network || storesInMemory || storesOnDisk }
}

/// The places where responses are stored.
struct CacheStorage: OptionSet, Sendable {
    let rawValue: Int

    static let memory = CacheStorage(rawValue: 1)
    static let disk = CacheStorage(rawValue: 2)
    static let all: CacheStorage = [.memory, .disk]
}

extension CachePolicy: CustomStringConvertible, CustomReflectable {
    /// The reading, and the properties that differ from their defaults, without sensitive data and keys.
    public var description: String {
        String(
            listing: "CachePolicy",
            [
                ("reading", reading), ("storesInMemory", storesInMemory ? nil : false),
                ("storesOnDisk", storesOnDisk ? nil : false), ("maximumAge", maximumAge),
                ("version", version == 0 ? nil : version), ("sensitiveData", sensitiveData.map { _ in Redaction.mark }),
                ("appVersion", appVersion), ("extraKey", extraKey.map { _ in Redaction.mark }),
                ("key", key.map { _ in Redaction.mark }),
                ("ignoredParameters", ignoredParameters.isEmpty ? nil : ignoredParameters),
                ("isStorable", isStorable.map { _ in "…" }),
            ]
        )
    }

    /// A mirror without children, so that a dump has no secrets.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}
