import Dispatch
import Foundation

/// A store for responses in memory and on disk, with limits of bytes, number and age.
///
/// ```swift
/// let cache = try NetworkCache(directory: folder, diskBytes: 50_000_000)
/// // At sign-out:
/// try await cache.removeAll()
/// ```
///
/// After any failure of the process, the disk or the file system, an entry is either complete or absent. Each entry has
/// its own file with a checksum, which is renamed when it is complete. A damaged file, or one of another version,
/// counts as absent. Several processes can share a directory. Each keeps the limits for the files that it knows, and
/// scans the directory every ten minutes for changes by others.
///
/// No method blocks: the disk is used only on queues of the cache, beginning with the first use. This cache finds an
/// entry as soon as it is stored. Other caches find it when it has been written; ``flush()`` waits for that. Pending
/// writes are completed even after the last reference to the cache has been released.
public final class NetworkCache: Sendable {
    /// A cache in memory and in ``defaultDirectory``, with the default limits.
    public static let shared = NetworkCache()

    let clock: any NetworkClock
    let coordinator: Locked<CacheCoordinator>
    let disk: DiskCache?
    /// The keys of the stale entries that are being refreshed.
    private let refreshed = Locked<Set<String>>([])

    /// Creates a cache in memory and in ``defaultDirectory``. The least recently used entries are removed first.
    ///
    /// - Parameters:
    ///   - memoryBytes: the maximum size of all entries in memory, with their headers, in bytes. A larger entry is not
    ///     stored in memory. With zero or less, no entry is. Defaults to 20,000,000.
    ///   - memoryCount: the maximum number of entries in memory. Defaults to 1,000.
    ///   - diskBytes: the maximum size of all files in bytes, or `nil` for no limit. With zero or less, the cache is in
    ///     memory only. Defaults to 200,000,000.
    ///   - diskCount: the maximum number of entries on disk, or `nil` for no limit. Defaults to 10,000.
    ///   - diskAge: the maximum time since the last use of an entry on disk in seconds, with a precision of one minute,
    ///     or `nil` for no limit. Defaults to thirty days.
    ///   - clock: the source of dates. Defaults to ``SystemClock``.
    public convenience init(
        memoryBytes: Int = 20_000_000,
        memoryCount: Int = 1_000,
        diskBytes: Int? = 200_000_000,
        diskCount: Int? = 10_000,
        diskAge: TimeInterval? = 2_592_000,
        clock: any NetworkClock = SystemClock()
    ) {
        let disk = Disk(bytes: diskBytes, count: diskCount, age: diskAge)
        self.init(memoryBytes: memoryBytes, memoryCount: memoryCount, disk: disk, clock: clock, files: CacheFiles())
    }

    /// Creates a cache in memory and in a directory. The least recently used entries are removed first.
    ///
    /// - Parameters:
    ///   - directory: a directory without other files; the cache would ignore them. It is created at the first write.
    ///     Only its owner can read its files, and backups exclude it. Several caches, in one process or in many, can
    ///     share a directory.
    ///   - memoryBytes: the maximum size of all entries in memory, with their headers, in bytes. A larger entry is not
    ///     stored in memory. With zero or less, no entry is. Defaults to 20,000,000.
    ///   - memoryCount: the maximum number of entries in memory. Defaults to 1,000.
    ///   - diskBytes: the maximum size of all files in bytes, or `nil` for no limit. With zero or less, the cache is in
    ///     memory only. Defaults to 200,000,000.
    ///   - diskCount: the maximum number of entries on disk, or `nil` for no limit. Defaults to 10,000.
    ///   - diskAge: the maximum time since the last use of an entry on disk in seconds, with a precision of one minute,
    ///     or `nil` for no limit. Defaults to thirty days.
    ///   - clock: the source of dates. Defaults to ``SystemClock``.
    /// - Throws: ``NetworkError/Code/invalidRequest`` if `directory` is not a file URL.
    public convenience init(
        directory: URL,
        memoryBytes: Int = 20_000_000,
        memoryCount: Int = 1_000,
        diskBytes: Int? = 200_000_000,
        diskCount: Int? = 10_000,
        diskAge: TimeInterval? = 2_592_000,
        clock: any NetworkClock = SystemClock()
    ) throws(NetworkError) {
        guard directory.isFileURL, !directory.path.isEmpty else {
            throw .invalidRequest("the directory of a cache must be a file URL, but is \(directory.absoluteString)")
        }
        let disk = Disk(directory: directory.absoluteURL, bytes: diskBytes, count: diskCount, age: diskAge)
        self.init(memoryBytes: memoryBytes, memoryCount: memoryCount, disk: disk, clock: clock, files: CacheFiles())
    }

    /// - Parameter disk: the limits on disk. With zero bytes or less, the cache is in memory only.
    init(memoryBytes: Int, memoryCount: Int, disk limits: Disk, clock: any NetworkClock, files: CacheFiles) {
        self.clock = clock
        let memory = RecencyList<CacheEntry>(costLimit: memoryBytes, countLimit: memoryCount)
        disk = limits.longestFile > 0 ? DiskCache(limits, files: files) : nil
        coordinator = Locked(CacheCoordinator(memory: memory, hasDisk: disk != nil))
    }

    /// - Returns: false if the entry is already being refreshed.
    func beginRefresh(_ key: String) -> Bool {
        refreshed.withLock { $0.insert(key).inserted }
    }

    func endRefresh(_ key: String) {
        _ = refreshed.withLock { $0.remove(key) }
    }
}

extension NetworkCache {
    /// The directory and the limits on disk. Nil means no limit.
    struct Disk: Sendable {
        var directory = NetworkCache.defaultDirectory
        /// The maximum size of all files in bytes.
        var bytes: Int?
        /// The maximum number of entries.
        var count: Int?
        /// The maximum time since the last use in seconds.
        var age: TimeInterval?

        /// The maximum size of a file in bytes. The cache does not write a longer file, and does not read one into
        /// memory.
        var longestFile: Int { bytes ?? 2_000_000_000 }

        func isExpired(_ usedAt: Date, now: Date) -> Bool {
            now.timeIntervalSince(usedAt) > age ?? .infinity
        }
    }

    /// The directory `EasyNetwork/`, followed by the bundle identifier or name of the program, in the folder for
    /// caches. That folder is the system's on Apple's platforms; elsewhere it is `$XDG_CACHE_HOME`, or `~/.cache` if
    /// the variable is not an absolute path.
    public static var defaultDirectory: URL {
        let program = Bundle.main.bundleIdentifier ?? ProcessInfo.processInfo.processName
        let name = program.replacingOccurrences(of: "/", with: "_")
        let folder = "EasyNetwork/" + (["", ".", ".."].contains(name) ? "program" : name)
        return cachesDirectory.appendingPathComponent(folder, isDirectory: true)
    }

    private static var cachesDirectory: URL {
        #if canImport(Darwin)
        let folders = FileManager.default.urls(for: .cachesDirectory, in: .userDomainMask)
        return folders.first ?? FileManager.default.temporaryDirectory
        #else
        if let path = ProcessInfo.processInfo.environment["XDG_CACHE_HOME"], path.hasPrefix("/") {
            return URL(fileURLWithPath: path, isDirectory: true)
        }
        return FileManager.default.homeDirectoryForCurrentUser.appendingPathComponent(".cache", isDirectory: true)
        #endif
    }
}
