import Dispatch
import Foundation

/// The entries on disk: a directory, an index that keeps it within limits, and the queues on which it is used.
///
/// Changes run one after the other, in the order in which they were added. Reading does not wait for them.
final class DiskCache: @unchecked Sendable {
    // Sendable because the index is used by changes only, one at a time.

    /// The precision of the last use of a file, in seconds.
    static let touchInterval: TimeInterval = 60
    /// The age of the index, in seconds, after which the directory is scanned for changes by other processes.
    static let indexLifetime: TimeInterval = 600

    let directory: CacheDirectory
    let limits: NetworkCache.Disk
    /// The files by their last use. Nil before the first scan.
    private var index: RecencyList<Date>?
    private var indexedAt = Date.distantPast
    private let changes = DispatchQueue(label: "EasyNetwork.cache.changes", autoreleaseFrequency: .workItem)
    /// Several, to limit the number of threads.
    private let readings = (0..<4).map {
        DispatchQueue(label: "EasyNetwork.cache.readings.\($0)", autoreleaseFrequency: .workItem)
    }

    init(directory: CacheDirectory, limits: NetworkCache.Disk) {
        self.directory = directory
        self.limits = limits
    }

    /// Adds a change. Called under the lock that decides the order of changes.
    func add(_ change: @escaping @Sendable () -> Void) {
        changes.async(execute: change)
    }

    func read(_ key: String, _ reading: @escaping @Sendable () -> Void) {
        readings[Int(UInt(bitPattern: key.hashValue) % UInt(readings.count))].async(execute: reading)
    }
}

// Changes.
extension DiskCache {
    /// Writes or replaces an entry, and makes room for it.
    ///
    /// After an error the old entry, which is out of date, has been removed too; if that failed, it is whole.
    func store(_ entry: CacheEntry, now: Date) throws(CacheFailure) {
        do throws(CacheFailure) {
            try refreshIndex(now: now)
            let pieces = try CacheFileFormat.encode(entry)
            let size = pieces.reduce(0) { $0 + $1.count }
            guard size <= limits.bytes ?? .max, limits.count ?? .max > 0 else { throw .tooLarge }
            let name = CacheDirectory.name(of: entry.header.key)
            do throws(CacheFileError) {
                try directory.write(pieces, named: name, usedAt: now)
            } catch {
                throw .system(error)
            }
            _ = index?.insert(now, cost: size, for: name)
            trim(now: now)
        } catch {
            try? remove(entry.header.key)
            throw error
        }
    }

    func remove(_ key: String) throws(CacheFailure) {
        try remove(named: CacheDirectory.name(of: key))
    }

    func remove(named name: String) throws(CacheFailure) {
        do throws(CacheFileError) {
            try directory.remove(named: name)
        } catch {
            throw .system(error)
        }
        _ = index?.remove(name)
    }

    /// Removes an unusable file, unless it has been replaced.
    func discard(_ key: String, now: Date) {
        do {
            _ = try directory.read(key, limits, now: now)
        } catch .damaged, .foreign, .otherVersion, .expired {
            try? remove(key)
        } catch {}
    }

    /// Notes the use of an entry.
    func use(_ key: String, _ status: CacheFileStatus, now: Date) {
        let name = CacheDirectory.name(of: key)
        // After a failure the next change tries again.
        try? refresh(now: now)
        if index?[name] != nil { _ = index?.insert(now, cost: status.size, for: name) }
        // Also replaces a date in the future.
        if abs(now.timeIntervalSince(status.usedAt)) >= Self.touchInterval { directory.touch(named: name, usedAt: now) }
    }

    /// Scans the directory, unless the index is recent, and removes the files that exceed the limits.
    func refresh(now: Date) throws(CacheFailure) {
        try refreshIndex(now: now)
        trim(now: now)
    }

    var usage: (bytes: Int, count: Int) { (Int(clamping: index?.cost ?? 0), index?.count ?? 0) }

    /// The names of all files, also those of other processes, in no order.
    func names(now: Date) throws(CacheFailure) -> [String] {
        index = nil
        try refreshIndex(now: now)
        return index.map { Array($0.keys) } ?? []
    }

    private func refreshIndex(now: Date) throws(CacheFailure) {
        guard index == nil || abs(now.timeIntervalSince(indexedAt)) > Self.indexLifetime else { return }
        var found: [(name: String, status: CacheFileStatus)]
        do throws(CacheFileError) {
            found = try directory.scan(now: now)
        } catch {
            throw .system(error)
        }
        found.sort { ($0.status.usedAt, $0.name) < ($1.status.usedAt, $1.name) }
        var index = RecencyList<Date>()
        for (name, status) in found {
            // A date in the future would never become old.
            _ = index.insert(min(status.usedAt, now), cost: status.size, for: name)
        }
        self.index = index
        indexedAt = now
    }

    private func trim(now: Date) {
        while let oldest = index?.oldest(),
            index?.cost ?? 0 > limits.bytes ?? .max || index?.count ?? 0 > limits.count ?? .max
                || limits.isExpired(oldest.value, now: now)
        {
            _ = index?.remove(oldest.key)
            // The next scan finds a file that could not be removed.
            try? directory.remove(named: oldest.key)
        }
    }
}
