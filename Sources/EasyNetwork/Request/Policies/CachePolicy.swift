import Foundation

/// The use of the cache by a request: whether it reads, where its answer is stored, and which stored answers are valid.
///
/// ```swift
/// // Five minutes old at most, of this version of the schema, and this user's.
/// var options: RequestOptions {
///     RequestOptions(cache: CachePolicy(.cacheElseNetwork, maximumAge: 300, version: 2, sensitiveData: userID))
/// }
/// ```
///
/// An answer is stored after it has been accepted and mapped, and the callbacks of the operation have returned. With
/// ``Reading/http`` the headers of request and answer decide (RFC 9111), otherwise this policy alone. A request whose
/// body is a file, a stream or a multipart form is cached only with a ``key``.
public struct CachePolicy: Sendable {
    /// The order of cache and network.
    ///
    /// ```swift
    /// var options: RequestOptions { RequestOptions(cache: CachePolicy(.cacheElseNetwork, maximumAge: 300)) }
    /// ```
    public enum Reading: Hashable, Sendable {
        /// The network alone. The answer may still be stored for other requests.
        case network
        /// A valid cached answer at once, and then the network's: see ``RequestOperation/cached``,
        /// ``RequestOperation/cachedItem``, and ``EasyNetworkService/responses(to:)``.
        case cacheThenNetwork
        /// A valid cached answer, otherwise the network's.
        case cacheElseNetwork
        /// A valid cached answer, otherwise ``NetworkError/Code/notCached``. It sends nothing.
        case cacheOnly
        /// The rules of HTTP (RFC 9111, for a private cache): GET only, fresh answers from the cache, stale answers
        /// after revalidation. A stale answer also serves during the revalidation, or instead of an error, if the
        /// server allows it (RFC 5861).
        case http
    }

    /// The order of cache and network.
    public var reading: Reading

    /// Whether answers are stored in memory, until the program ends. Default true unless the policy is ``never``.
    public var storesInMemory: Bool

    /// Whether answers are stored in files. Default true unless the policy is ``never``. With ``storesInMemory`` an
    /// answer that is read from a file is also kept in memory.
    public var storesOnDisk: Bool

    /// The longest age of a valid answer in seconds; an answer from the future is not valid either. Default nil: the
    /// limit of the cache alone. Not for ``Reading/http``.
    public var maximumAge: TimeInterval?

    /// The version of the answer's format; an answer stored with another version is not valid. Default 0. Not for
    /// ``Reading/http``.
    public var version: Int

    /// A value such as a user's name or a token; an answer stored with another value is not valid. The cache holds its
    /// SHA-256 digest. To keep the answers of several users side by side use ``extraKey`` or
    /// ``HostSettings/cachePartition``. Default nil. Not for ``Reading/http``.
    public var sensitiveData: String?

    /// The version of the app; an answer stored by another version is not valid. See ``currentAppVersion``. Default
    /// nil: any version. Not for ``Reading/http``.
    public var appVersion: String?

    /// A text that is added to the key of the answer. Default nil. Not for ``Reading/http``.
    public var extraKey: String?

    /// The key of the answer, instead of method, path, query and body. The origin of the URL, ``extraKey`` and
    /// ``HostSettings/cachePartition`` are added to it. Default nil. Not for ``Reading/http``.
    public var key: String?

    /// The names of query parameters that the key of the answer leaves out, such as a time or a signature. Default
    /// none. Not for ``Reading/http``.
    public var ignoredParameters: Set<String>

    /// Whether this answer is stored. Called on a background queue after the answer has been mapped. Default nil: each
    /// answer is stored.
    public var isStorable: (@Sendable (NetworkResponse) -> Bool)?

    /// Creates a policy. The defaults are those of the properties.
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

    /// Neither reads nor stores.
    public static let never = CachePolicy(.network, storesInMemory: false, storesOnDisk: false)

    /// The rules of HTTP, in memory and on disk.
    public static let http = CachePolicy(.http)

    /// `CFBundleShortVersionString` of the main bundle, for ``appVersion``; nil for a program without it.
    public static let currentAppVersion =
        Bundle.main.object(forInfoDictionaryKey: "CFBundleShortVersionString") as? String

    /// Everything but the predicate, which has no comparison.
    var identity: [String?] {
        let numbers = ["\(reading)", "\(storage.rawValue)", maximumAge.map { "\($0)" }, "\(version)"]
        return numbers + [sensitiveData, appVersion, extraKey, key] + ignoredParameters.sorted()
    }

    var storage: CacheStorage {
        var storage: CacheStorage = []
        if storesInMemory { storage.insert(.memory) }
        if storesOnDisk { storage.insert(.disk) }
        return storage
    }

    /// Whether the policy reads or stores.
    var isActive: Bool { reading != .network || !storage.isEmpty }
}

/// The places where answers are stored.
struct CacheStorage: OptionSet, Sendable {
    let rawValue: Int

    static let memory = CacheStorage(rawValue: 1)
    static let disk = CacheStorage(rawValue: 2)
    static let all: CacheStorage = [.memory, .disk]
}
