import Foundation

/// The files of entries in a directory.
///
/// The path of an entry is `ab/abcd…`: its name is the SHA-256 of its key in 64 hexadecimal digits, its folder the first
/// two of them. The file is written as `ab/abcd….<UUID>.tmp` and renamed when it is whole, so that a reader in this process
/// or another finds the whole entry or none. Files with other names are ignored.
///
/// Has no state: several values and processes may use one directory.
struct CacheDirectory: Sendable {
    /// The age, in seconds, after which a temporary file is no longer written.
    static let temporaryAge: TimeInterval = 3_600
    private static let nameLength = 64
    /// The cache writes no longer header.
    private static let longestHeader = 16_000_000
    /// The size of the first read, which suffices for most entries.
    private static let beginningLength = 4_096

    let path: String
    let files: any CacheFiles

    /// The name of the file. Keys that are equal in Swift have one name, whatever their normalization.
    static func name(of key: String) -> String {
        let isASCII = key.utf8.allSatisfy { $0 < 0x80 }
        let text = isASCII ? key : key.precomposedStringWithCanonicalMapping
        return SHA256.digest(of: Data(text.utf8)).hexadecimal
    }

    func read(
        _ key: String,
        _ limits: NetworkCache.Disk,
        now: Date
    ) throws(CacheFailure) -> (entry: CacheEntry, status: CacheFileStatus) {
        let (file, status) = try Self.system { () throws(CacheFileError) in
            try files.read(filePath(Self.name(of: key)), Self.beginningLength) { beginning, size in
                size <= limits.longestFile && CacheFileFormat.isPlausible(beginning, size: size) ? size : 0
            }
        }
        let entry = try CacheFileFormat.decode(file, key: key)
        if limits.isExpired(status.usedAt, now: now) { throw .expired }
        return (entry, status)
    }

    /// Reads the header of a file without a check of the checksum.
    func readHeader(named name: String) throws(CacheFailure) -> (header: CacheHeader, bodyCount: Int) {
        let (file, _) = try Self.system { () throws(CacheFileError) in
            try files.read(filePath(name), Self.beginningLength) { beginning, size in
                let end = (try? CacheFileFormat.headerEnd(beginning)) ?? 0
                return end <= Self.longestHeader && CacheFileFormat.isPlausible(beginning, size: size) ? end : 0
            }
        }
        let found = try CacheFileFormat.decodeHeader(file)
        guard Self.name(of: found.header.key) == name else { throw .foreign }
        return found
    }

    /// Writes or replaces a file. After an error the old file is unchanged.
    func write(_ pieces: [Data], named name: String, usedAt date: Date) throws(CacheFileError) {
        let temporary = "\(filePath(name)).\(UUID().uuidString).tmp"
        do throws(CacheFileError) {
            do throws(CacheFileError) {
                try files.create(temporary, pieces, usedAt: date)
            } catch let error where error.code == ENOENT {
                // The directory does not exist, or no longer.
                try files.makeDirectory(shardPath(name.prefix(2)))
                files.excludeFromBackup(path)
                try files.create(temporary, pieces, usedAt: date)
            }
            try files.rename(temporary, to: filePath(name))
        } catch {
            // If this fails, `scan` removes the file later.
            try? files.remove(temporary)
            throw error
        }
    }

    /// Removes a file, which need not exist.
    func remove(named name: String) throws(CacheFileError) {
        do {
            try files.remove(filePath(name))
        } catch let error where error.code == ENOENT {}
    }

    func touch(named name: String, usedAt date: Date) {
        // A failure only makes the entry look older.
        try? files.touch(filePath(name), usedAt: date)
    }

    /// Lists the files of entries, and removes old temporary files.
    func scan(now: Date) throws(CacheFileError) -> [(name: String, status: CacheFileStatus)] {
        var found: [(name: String, status: CacheFileStatus)] = []
        for shard in try list(path) where shard.utf8.count == 2 && Self.isHexadecimal(shard) {
            for name in try list(shardPath(shard[...])) {
                if name.hasPrefix(shard), name.utf8.count == Self.nameLength, Self.isHexadecimal(name) {
                    if let status = try look(filePath(name)) { found.append((name, status)) }
                } else if Self.isTemporary(name, in: shard) {
                    let path = "\(shardPath(shard[...]))/\(name)"
                    guard let status = try look(path) else { continue }
                    if now.timeIntervalSince(status.usedAt) > Self.temporaryAge { try? files.remove(path) }
                }
            }
        }
        return found
    }

    private func filePath(_ name: String) -> String { "\(shardPath(name.prefix(2)))/\(name)" }

    private func shardPath(_ shard: Substring) -> String { "\(path)/\(shard)" }

    /// Empty for a directory that does not exist or cannot be read.
    private func list(_ directory: String) throws(CacheFileError) -> [String] {
        do {
            return try files.list(directory)
        } catch let error where [ENOENT, ENOTDIR].contains(error.code) || directory != path && error.code == EACCES {
            return []
        }
    }

    /// Nil for a file that does not exist or is not a regular one.
    private func look(_ path: String) throws(CacheFileError) -> CacheFileStatus? {
        do {
            let status = try files.look(path)
            return status.isFile ? status : nil
        } catch let error where error.code == ENOENT {
            return nil
        }
    }

    private static func isHexadecimal(_ text: String) -> Bool {
        text.utf8.allSatisfy {
            UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 || UInt8(ascii: "a")...UInt8(ascii: "f") ~= $0
        }
    }

    /// `abcd….<UUID>.tmp` in `ab`.
    private static func isTemporary(_ name: String, in shard: String) -> Bool {
        let parts = name.split(separator: ".", omittingEmptySubsequences: false).map(String.init)
        return parts.count == 3 && parts[2] == "tmp" && UUID(uuidString: parts[1]) != nil
            && parts[0].hasPrefix(shard) && parts[0].utf8.count == nameLength && isHexadecimal(parts[0])
    }

    private static func system<Value>(
        _ step: () throws(CacheFileError) -> Value
    ) throws(CacheFailure) -> Value {
        do {
            return try step()
        } catch let error where error.code == ENOENT || error.code == ENOTDIR {
            throw .absent
        } catch {
            throw .system(error)
        }
    }
}
