import Dispatch
import Foundation

/// Stores responses in memory and on disk, within limits of bytes, number and age.
///
/// ```swift
/// let cache = try NetworkCache(directory: folder, diskBytes: 50_000_000)
/// // At sign-out:
/// try await cache.removeAll()
/// ```
///
/// An entry is whole or absent after any failure of the process, the disk or the file system: each has its own file
/// with a checksum, which is renamed when it is complete. A damaged file, or one of another version, counts as absent.
/// Several processes may share a directory; each keeps the limits for the files that it knows, and scans the directory
/// every ten minutes for changes by others.
///
/// No method blocks: the disk is used on queues of the cache, and not before the first use. This cache finds an entry
/// as soon as it is stored; others find it when it is written, for which ``flush()`` waits. Pending writes are
/// completed even after the last reference to the cache has been released.
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
    ///   - memoryBytes: the bytes of all entries in memory, with their headers. A larger entry is not stored in memory;
    ///     with zero or less none is. Default 20,000,000.
    ///   - memoryCount: the number of entries in memory. Default 1,000.
    ///   - diskBytes: the bytes of all files; nil for no limit. With zero or less the cache is in memory only. Default
    ///     200,000,000.
    ///   - diskCount: the number of entries on disk; nil for no limit. Default 10,000.
    ///   - diskAge: the seconds since the last use of an entry on disk, to the minute; nil for no limit. Default thirty
    ///     days.
    ///   - clock: the source of dates. Default the machine's.
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
    ///   - directory: a directory without other files, which the cache would leave alone. It is created at the first
    ///     write; only its owner can read its files, and backups exclude it. Several caches, in one process or in many,
    ///     may share a directory.
    ///   - memoryBytes: the bytes of all entries in memory, with their headers. A larger entry is not stored in memory;
    ///     with zero or less none is. Default 20,000,000.
    ///   - memoryCount: the number of entries in memory. Default 1,000.
    ///   - diskBytes: the bytes of all files; nil for no limit. With zero or less the cache is in memory only. Default
    ///     200,000,000.
    ///   - diskCount: the number of entries on disk; nil for no limit. Default 10,000.
    ///   - diskAge: the seconds since the last use of an entry on disk, to the minute; nil for no limit. Default thirty
    ///     days.
    ///   - clock: the source of dates. Default the machine's.
    /// - Throws: ``NetworkError/Code/invalidRequest`` when `directory` is not a file URL.
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
            throw .invalidRequest("the directory of a cache has to be a file URL: \(directory.absoluteString)")
        }
        let disk = Disk(directory: directory.absoluteURL, bytes: diskBytes, count: diskCount, age: diskAge)
        self.init(memoryBytes: memoryBytes, memoryCount: memoryCount, disk: disk, clock: clock, files: CacheFiles())
    }

    /// - Parameter disk: with a limit of zero bytes or less the cache is in memory only.
    init(memoryBytes: Int, memoryCount: Int, disk limits: Disk, clock: any NetworkClock, files: CacheFiles) {
        self.clock = clock
        let memory = RecencyList<CacheEntry>(costLimit: memoryBytes, countLimit: memoryCount)
        disk = limits.longestFile > 0 ? DiskCache(limits, files: files) : nil
        coordinator = Locked(CacheCoordinator(memory: memory, hasDisk: disk != nil))
    }

    /// - Returns: false when the entry is being refreshed already.
    func beginRefresh(_ key: String) -> Bool {
        refreshed.withLock { $0.insert(key).inserted }
    }

    func endRefresh(_ key: String) {
        _ = refreshed.withLock { $0.remove(key) }
    }
}

extension NetworkCache {
    /// The directory and limits on disk; nil means no limit.
    struct Disk: Sendable {
        var directory = NetworkCache.defaultDirectory
        /// The bytes of all files.
        var bytes: Int?
        /// The number of entries.
        var count: Int?
        /// The seconds since the last use.
        var age: TimeInterval?

        /// The cache writes no longer file, and does not read one into memory.
        var longestFile: Int { bytes ?? 2_000_000_000 }

        func isExpired(_ usedAt: Date, now: Date) -> Bool {
            now.timeIntervalSince(usedAt) > age ?? .infinity
        }
    }

    /// The folder `EasyNetwork/` with the bundle identifier or name of the program in the folder for caches: the one of
    /// the system on Apple's platforms; elsewhere `$XDG_CACHE_HOME`, or `~/.cache` if that is not an absolute path.
    public static var defaultDirectory: URL {
        let program = Bundle.main.bundleIdentifier ?? ProcessInfo.processInfo.processName
        let name = program.replacingOccurrences(of: "/", with: "_")
        return
            cachesDirectory
            .appendingPathComponent("EasyNetwork", isDirectory: true)
            .appendingPathComponent(["", ".", ".."].contains(name) ? "program" : name, isDirectory: true)
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
