import Foundation

/// The entries on disk: the directory, and the index by which it is kept within its limits.
///
/// A value that works on files; the one queue on which changes are made owns it. Reading needs ``directory`` only, and
/// may go on meanwhile.
struct DiskCache: Sendable {
    /// Seconds between two uses of an entry of which its file need not know both.
    static let touchInterval: TimeInterval = 60
    /// Seconds after which the directory is looked through again for what other processes did to it.
    static let indexLifetime: TimeInterval = 600

    let directory: CacheDirectory
    let limits: NetworkCache.Disk
    /// Nil before the directory was looked through.
    private var index: DiskIndex?
    private var indexedAt = Date.distantPast

    init(directory: CacheDirectory, limits: NetworkCache.Disk) {
        self.directory = directory
        self.limits = limits
    }

    /// Puts an entry in the place of the one of its key, and makes room for it.
    ///
    /// - Throws: when it could not. Then there is none of its key, as the old one holds no longer; if even that could
    ///   not be removed, it is whole.
    mutating func store(_ entry: CacheEntry, now: Date) throws(CacheFailure) {
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
            index?.note(name, bytes: size, usedAt: now)
            trim(now: now)
        } catch {
            try? remove(entry.header.key)
            throw error
        }
    }

    mutating func remove(_ key: String) throws(CacheFailure) {
        try remove(named: CacheDirectory.name(of: key))
    }

    mutating func remove(named name: String) throws(CacheFailure) {
        do throws(CacheFileError) {
            try directory.remove(named: name)
        } catch {
            throw .system(error)
        }
        index?.remove(name)
    }

    /// Removes what nobody can use, unless something better came in its place meanwhile.
    mutating func discard(_ key: String, now: Date) {
        do {
            _ = try directory.read(key, limits, now: now)
        } catch .damaged, .foreign, .otherVersion, .expired {
            try? remove(key)
        } catch {}
    }

    /// Notes that an entry was read.
    mutating func use(_ key: String, _ status: CacheFileStatus, now: Date) {
        let name = CacheDirectory.name(of: key)
        // When it fails, the next change tries again.
        try? refresh(now: now)
        index?.use(name, bytes: status.size, at: now)
        // A date to come is mended too.
        if abs(now.timeIntervalSince(status.usedAt)) >= Self.touchInterval { directory.touch(named: name, usedAt: now) }
    }

    /// Looks through the directory, unless that was done not long ago, and removes what exceeds the limits.
    mutating func refresh(now: Date) throws(CacheFailure) {
        try refreshIndex(now: now)
        trim(now: now)
    }

    var usage: (bytes: Int, count: Int) { index?.usage ?? (0, 0) }

    /// The names of all entries, in no order; those of other processes too.
    mutating func names(now: Date) throws(CacheFailure) -> [String] {
        index = nil
        try refreshIndex(now: now)
        return index?.names ?? []
    }

    private mutating func refreshIndex(now: Date) throws(CacheFailure) {
        guard index == nil || abs(now.timeIntervalSince(indexedAt)) > Self.indexLifetime else { return }
        do throws(CacheFileError) {
            index = DiskIndex(try directory.scan(now: now), now: now)
        } catch {
            throw .system(error)
        }
        indexedAt = now
    }

    private mutating func trim(now: Date) {
        let limits = limits
        while let name = index?.takeExcess(limits, now: now) {
            // What cannot be removed is found again when the directory is next looked through.
            try? directory.remove(named: name)
        }
    }
}
