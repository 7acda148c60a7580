import Dispatch
import Foundation

/// The files of entries in a directory, with an index that keeps them within limits, and the queues on which they are
/// used.
///
/// The path of an entry is `ab/abcd…`. Its name is the SHA-256 of its key in 64 hexadecimal digits, and its folder has
/// the first two of them. The file is written as `ab/abcd….<UUID>.tmp` and renamed when it is complete, so that a
/// reader in this process or another finds the whole entry or none. Files with other names are ignored.
///
/// Changes run one after another, in the order in which they were added. Reading does not wait for them.
final class DiskCache: @unchecked Sendable {
    // The class is Sendable because only changes use the index, one at a time.

    /// The precision of the last use of a file, in seconds.
    static let touchInterval: TimeInterval = 60
    /// The age of the index, in seconds, after which the directory is scanned for changes by other processes.
    static let indexLifetime: TimeInterval = 600
    /// The age, in seconds, after which a temporary file is no longer written.
    static let temporaryAge: TimeInterval = 3_600
    private static let nameLength = 64
    /// The size of the first read of a header, which suffices for most headers.
    private static let beginningLength = 4_096
    /// The maximum length of a header. The cache never writes a longer one.
    private static let longestHeader = 16_000_000

    let limits: NetworkCache.Disk
    private let path: String
    private let files: CacheFiles
    /// The files by their last use. Empty before the first scan.
    private var index: RecencyList<Date>
    private var indexedAt = Date.distantPast
    private let changes = DispatchQueue(label: "EasyNetwork.cache.changes", autoreleaseFrequency: .workItem)
    /// The queues for reading. Their number limits the number of threads.
    private let readings = (0..<4).map {
        DispatchQueue(label: "EasyNetwork.cache.readings.\($0)", autoreleaseFrequency: .workItem)
    }

    init(_ limits: NetworkCache.Disk, files: CacheFiles) {
        self.limits = limits
        self.files = files
        path = limits.directory.path
        index = RecencyList(costLimit: limits.bytes ?? .max, countLimit: limits.count ?? .max)
    }

    /// Adds a change. Called under the lock that decides the order of changes.
    func add(_ change: @escaping @Sendable () -> Void) {
        changes.add(change)
    }

    /// Runs a closure that reads a file.
    func read(_ key: String, _ reading: @escaping @Sendable () -> Void) {
        readings[Int(UInt(bitPattern: key.hashValue) % UInt(readings.count))].add(reading)
    }

    /// Returns the name of the file. Keys that are equal in Swift have the same name, whatever their normalization.
    static func name(of key: String) -> String {
        let isASCII = key.utf8.allSatisfy { $0 < 0x80 }
        let text = isASCII ? key : key.precomposedStringWithCanonicalMapping
        return SHA256.digest(of: Data(text.utf8)).hexadecimal
    }

    private func path(of name: String) -> String { "\(path)/\(name.prefix(2))/\(name)" }
}

// MARK: - Reading, on any queue

extension DiskCache {
    func load(_ key: String, now: Date) throws(CacheMiss) -> (entry: CacheEntry, status: CacheFiles.Status) {
        let file: Data
        let status: CacheFiles.Status
        do {
            (file, status) = try files.read(path(of: Self.name(of: key))) { $0 <= limits.longestFile ? $0 : 0 }
        } catch {
            throw error.isOfMissingFile ? .absent : .unreadable
        }
        let entry = try CacheEntry(file: file, key: key)
        if limits.isExpired(status.usedAt, now: now) { throw .expired }
        return (entry, status)
    }

    /// Returns the header of a file, without verifying the checksum, or nil if the file is absent or unusable.
    func header(named name: String) throws -> NetworkCache.Entry? {
        do {
            var (file, _) = try files.read(path(of: name)) { min($0, Self.beginningLength) }
            if let end = NetworkCache.Entry.end(in: file), end > file.count, end <= Self.longestHeader {
                file = try files.read(path(of: name)) { min($0, end) }.0
            }
            let header = NetworkCache.Entry(file: file)
            return header.map { Self.name(of: $0.key) } == name ? header : nil
        } catch let error where error.isOfMissingFile {
            return nil
        }
    }
}

// MARK: - Changes

extension DiskCache {
    /// Writes or replaces an entry, and makes room for it.
    ///
    /// After an error, the old entry, which is out of date, has been removed, too. If the removal failed, the old entry
    /// is complete.
    func store(_ entry: CacheEntry, now: Date) throws {
        let name = Self.name(of: entry.header.key)
        do {
            try refreshIndex(now: now)
            let pieces = try entry.encoded()
            let size = pieces.reduce(0) { $0 + $1.count }
            guard size <= index.costLimit, index.countLimit > 0 else { throw POSIXError(.EFBIG) }
            try write(pieces, named: name, usedAt: now)
            index.insert(now, cost: size, for: name)
            trim(now: now)
        } catch {
            try? remove(named: name)
            throw error
        }
    }

    /// Writes or removes an entry, and removes the variants that are no longer listed. After a failure there is no
    /// entry with the key.
    ///
    /// - Parameter isMerged: whether the entry lists the variants of the file that it replaces.
    /// - Returns: the entry as it was written, with these variants.
    func replace(_ key: String, by entry: CacheEntry?, isMerged: Bool, now: Date) -> CacheEntry? {
        var written = entry
        let name = Self.name(of: key)
        // An entry of an explicit policy has no variants.
        let old = entry != nil && entry?.header.nominated == nil ? nil : try? header(named: name)
        if !isMerged, let entry, let old, old.nominated != entry.header.nominated || old.variants != nil {
            let (merged, demoted, _) = entry.replacing(try? load(key, now: now).entry)
            if let demoted { try? store(demoted, now: now) }
            written = merged
        }
        if let written { try? store(written, now: now) } else { try? remove(named: name) }
        let kept = written?.header.variantKeys ?? []
        for variant in (old?.variantKeys ?? []) + (entry?.header.variantKeys ?? []) where !kept.contains(variant) {
            try? remove(named: Self.name(of: variant))
        }
        return written
    }

    private func write(_ pieces: [Data], named name: String, usedAt date: Date) throws {
        let temporary = "\(path(of: name)).\(UUID().uuidString).tmp"
        do {
            do {
                try files.create(temporary, pieces, usedAt: date)
            } catch let error where error.isOfMissingFile {
                // The directory does not exist, or has been removed.
                try files.makeDirectory("\(path)/\(name.prefix(2))")
                excludeFromBackup()
                try files.create(temporary, pieces, usedAt: date)
            }
            try files.rename(temporary, to: path(of: name))
        } catch {
            // If this fails, a scan removes the file later.
            try? files.remove(temporary)
            throw error
        }
    }

    private func excludeFromBackup() {
        #if canImport(Darwin)
        var url = limits.directory
        var values = URLResourceValues()
        values.isExcludedFromBackup = true
        try? url.setResourceValues(values)
        #endif
    }

    /// Removes a file, if it exists.
    func remove(named name: String) throws {
        do { try files.remove(path(of: name)) } catch let error where error.isOfMissingFile {}
        index.remove(name)
    }

    /// Removes the selected files, and unusable ones.
    ///
    /// - Parameter isRemoved: selects the files; nil for all files.
    /// - Throws: the first failure. All other files are removed.
    func removeAll(where isRemoved: ((NetworkCache.Entry) -> Bool)?, now: Date) throws {
        var failure: (any Error)?
        for name in try names(now: now) {
            do {
                if let isRemoved, let header = try header(named: name), !isRemoved(header) { continue }
                try remove(named: name)
            } catch {
                failure = failure ?? error
            }
        }
        if let failure { throw failure }
    }

    /// Removes an unusable file, unless it has been replaced.
    func discard(_ key: String, now: Date) {
        do {
            _ = try load(key, now: now)
        } catch .damaged, .expired {
            try? remove(named: Self.name(of: key))
        } catch {}
    }

    /// Notes the use of an entry.
    func use(_ key: String, _ status: CacheFiles.Status, now: Date) {
        let name = Self.name(of: key)
        // After a failure, the next change scans again.
        try? refresh(now: now)
        if index[name] != nil { index.insert(now, cost: status.size, for: name) }
        // Replace a date in the future, too. A failure only makes the entry look older.
        if abs(now.timeIntervalSince(status.usedAt)) >= Self.touchInterval {
            try? files.touch(path(of: name), usedAt: now)
        }
    }
}

// MARK: - The index

extension DiskCache {
    var usage: (bytes: Int, count: Int) { (index.cost, index.count) }

    /// Returns the names of all files, including those of other processes, in no order.
    func names(now: Date) throws -> [String] {
        indexedAt = .distantPast
        try refreshIndex(now: now)
        return Array(index.keys)
    }

    /// Scans the directory, unless the index is recent, and removes the files that exceed the limits.
    func refresh(now: Date) throws {
        try refreshIndex(now: now)
        trim(now: now)
    }

    private func refreshIndex(now: Date) throws {
        guard abs(now.timeIntervalSince(indexedAt)) > Self.indexLifetime else { return }
        let found = try scan(now: now).sorted { ($0.status.usedAt, $0.name) < ($1.status.usedAt, $1.name) }
        index = RecencyList(costLimit: index.costLimit, countLimit: index.countLimit)
        // A date in the future would never become old.
        for (name, status) in found { index.insert(min(status.usedAt, now), cost: status.size, for: name) }
        indexedAt = now
    }

    private func trim(now: Date) {
        while let oldest = index.oldest(), index.isOverfull || limits.isExpired(oldest.value, now: now) {
            index.remove(oldest.key)
            // If the file cannot be removed, the next scan finds it.
            try? files.remove(path(of: oldest.key))
        }
    }

    /// Lists the files of entries, and removes old temporary files.
    func scan(now: Date) throws -> [(name: String, status: CacheFiles.Status)] {
        var found: [(name: String, status: CacheFiles.Status)] = []
        for shard in try list(path) where shard.utf8.count == 2 && Self.isHexadecimal(shard) {
            for file in try list("\(path)/\(shard)") where file.hasPrefix(shard) {
                let name = file.prefix(Self.nameLength)
                guard name.utf8.count == Self.nameLength, Self.isHexadecimal(name),
                    let status = try look("\(path)/\(shard)/\(file)")
                else { continue }
                if name == file {
                    found.append((file, status))
                } else if Self.isTemporary(file), now.timeIntervalSince(status.usedAt) > Self.temporaryAge {
                    try? files.remove("\(path)/\(shard)/\(file)")
                }
            }
        }
        return found
    }

    /// Returns the names in a directory; empty if the directory does not exist or cannot be read.
    private func list(_ directory: String) throws -> [String] {
        do {
            return try files.list(directory)
        } catch let error where error.isOfMissingFile || directory != path && (error as? POSIXError)?.code == .EACCES {
            return []
        }
    }

    /// Returns the status of a file, or nil if it does not exist or is not a regular file.
    private func look(_ path: String) throws -> CacheFiles.Status? {
        do { return try files.look(path) } catch let error where error.isOfMissingFile { return nil }
    }

    private static func isHexadecimal(_ text: some StringProtocol) -> Bool {
        text.utf8.allSatisfy { $0.isHexDigit && $0 == $0.lowercasedASCII }
    }

    /// Returns whether a UUID and `tmp` follow the name of an entry.
    private static func isTemporary(_ file: String) -> Bool {
        let parts = file.dropFirst(nameLength).split(separator: ".", omittingEmptySubsequences: false)
        return parts.count == 3 && parts[0].isEmpty && UUID(uuidString: String(parts[1])) != nil && parts[2] == "tmp"
    }
}

extension Error {
    /// Whether the file, or a directory above it, does not exist.
    fileprivate var isOfMissingFile: Bool {
        let code = (self as? POSIXError)?.code
        return code == .ENOENT || code == .ENOTDIR
    }
}
