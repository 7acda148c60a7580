import Dispatch
import Foundation

/// Answers that are kept, in memory and on disk, within limits of bytes, number and age.
///
/// ```swift
/// let cache = NetworkCache(memory: .init(bytes: 50_000_000), disk: nil)
/// // … at sign-out:
/// try await cache.removeAll()
/// ```
///
/// An entry is whole or absent, whatever happens to process, disk and files: each lies in a file of its own with a
/// checksum, which gets its name when it is complete. What is damaged, of another version or somebody else's counts as
/// absent. Several processes may share a directory; each keeps the limits for what it knows of, and looks every ten
/// minutes for what the others did.
///
/// Nothing blocks the caller: the disk is read and written on queues of the cache, and not touched before the first
/// use. What was stored is found at once, by this cache; by others when it is written, for which ``flush()`` waits.
/// Writes that wait are done even when the last reference to the cache has gone.
public final class NetworkCache: Sendable {
    /// In memory and in ``defaultDirectory``, with the default limits.
    public static let shared = NetworkCache()

    let clock: any NetworkClock
    let ledger: Locked<CacheLedger>
    let disk: DiskQueue?
    /// The keys of stale entries that are being refreshed.
    private let refreshed = Locked<Set<String>>([])

    /// - Parameters:
    ///   - memory: what is kept in memory. Default 20 MB and 1,000 entries.
    ///   - disk: what is kept on disk; nil for nothing. Default 200 MB, 10,000 entries and thirty days, in
    ///     ``defaultDirectory``.
    ///   - clock: the time. Default the machine's.
    public convenience init(memory: Memory = Memory(), disk: Disk? = Disk(), clock: any NetworkClock = SystemClock()) {
        self.init(memory: memory, disk: disk, clock: clock, files: SystemCacheFiles())
    }

    init(memory: Memory, disk: Disk?, clock: any NetworkClock, files: any CacheFiles) {
        self.clock = clock
        let memory = MemoryCache(costLimit: memory.bytes, countLimit: memory.count)
        ledger = Locked(CacheLedger(memory: memory, hasDisk: disk != nil))
        self.disk = disk.map { limits in
            DiskQueue(CacheDirectory(path: limits.directory.path, files: files), limits)
        }
    }

    /// - Returns: false when somebody else is at it.
    func beginRefresh(_ key: String) -> Bool {
        refreshed.withLock { $0.insert(key).inserted }
    }

    func endRefresh(_ key: String) {
        _ = refreshed.withLock { $0.remove(key) }
    }
}
