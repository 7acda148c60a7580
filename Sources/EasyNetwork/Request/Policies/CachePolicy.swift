import Foundation

/// How a request uses the cache: whether it reads, where its answer is stored, and what makes a stored one valid.
///
/// ```swift
/// // Five minutes old at most, of this version of the schema, and this user's.
/// var cache: CachePolicy? {
///     CachePolicy(.cacheElseNetwork, maximumAge: 300, version: 2, sensitiveData: userID)
/// }
/// ```
///
/// An answer is stored when it has been accepted and mapped. With ``Reading/http`` the headers of request and answer
/// decide (RFC 9111); with all others this policy alone. A request whose body is a file, a stream or a multipart form is
/// cached only under a ``key`` of its own.
public struct CachePolicy: Sendable {
    /// Whether the cache is asked, and when the network.
    public enum Reading: Hashable, Sendable {
        /// The network alone. What is stored is for those that read.
        case network
        /// The cached answer at once, if there is a valid one, and then the network's: see ``RequestOperation/cached``,
        /// ``RequestOperation/values``, and ``EasyNetworkService/responses(to:)``.
        case cacheThenNetwork
        /// The cached answer if there is a valid one, else the network's.
        case cacheElseNetwork
        /// The cached answer, else ``NetworkError/Code/notCached``. Nothing is sent.
        case cacheOnly
        /// As HTTP has it (RFC 9111, for a private cache): GET only, fresh answers from the cache, stale ones
        /// revalidated, stale ones meanwhile or instead of an error where the server allows it (RFC 5861).
        case http
    }

    public var reading: Reading

    /// Where answers are stored. Default ``CacheStorage/all`` unless the policy is ``never``.
    public var storage: CacheStorage

    /// In seconds since the answer came; an answer from the future is too old as well. Default nil: no limit but the
    /// cache's. Not for ``Reading/http``.
    public var maximumAge: TimeInterval?

    /// An answer stored with another version is not valid. Default 0. Not for ``Reading/http``.
    public var version: Int

    /// An answer stored with another value is not valid: a user's name, a token. What is stored is its SHA-256 digest. To
    /// keep the answers of several users side by side take ``extraKey`` or ``HostSettings/cachePartition``. Default nil.
    /// Not for ``Reading/http``.
    public var sensitiveData: String?

    /// An answer stored by another version of the app is not valid; see ``currentAppVersion``. Default nil: that of any
    /// is. Not for ``Reading/http``.
    public var appVersion: String?

    /// Added to what the answer is found by. Not for ``Reading/http``. Default nil.
    public var extraKey: String?

    /// What the answer is found by, instead of method, path, query and body; the origin of the URL, ``extraKey`` and ``HostSettings/cachePartition`` are
    /// added to this one too. Not for ``Reading/http``. Default nil.
    public var key: String?

    /// Names of query parameters that what the answer is found by leaves out: a time, a signature. Not for
    /// ``Reading/http``. Default none.
    public var ignoredParameters: Set<String>

    /// Whether this answer is stored. Asked on a background queue once the answer has been mapped. Default nil: each is.
    public var isStorable: (@Sendable (NetworkResponse) -> Bool)?

    public init(
        _ reading: Reading,
        storage: CacheStorage = .all,
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
        self.storage = storage
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
    public static let never = CachePolicy(.network, storage: [])

    /// HTTP's own rules, in memory and on disk.
    public static let http = CachePolicy(.http)

    /// `CFBundleShortVersionString` of the main bundle, for ``appVersion``; nil for a program that has none.
    public static let currentAppVersion =
        Bundle.main.object(forInfoDictionaryKey: "CFBundleShortVersionString") as? String

    /// All of it but the predicate, for which there is no comparison.
    struct Identity: Hashable, Sendable {
        let reading: Reading
        let storage: CacheStorage
        let maximumAge: TimeInterval?
        let version: Int
        let texts: [String?]
    }

    var identity: Identity {
        Identity(
            reading: reading,
            storage: storage,
            maximumAge: maximumAge,
            version: version,
            texts: [sensitiveData, appVersion, extraKey, key] + ignoredParameters.sorted()
        )
    }

    /// Whether it does anything at all.
    var isActive: Bool { reading != .network || !storage.isEmpty }
}

/// Where answers are stored.
public struct CacheStorage: OptionSet, Hashable, Sendable {
    public let rawValue: Int

    public init(rawValue: Int) {
        self.rawValue = rawValue
    }

    /// As long as the program runs.
    public static let memory = CacheStorage(rawValue: 1)
    /// In files. What is read from there is kept in memory too, if that is asked for.
    public static let disk = CacheStorage(rawValue: 2)
    public static let all: CacheStorage = [.memory, .disk]
}
