import Foundation

/// Where the files of entries lie, and what is done to one of them.
///
/// An entry lies at `ab/abcd…`: its name is the SHA-256 of its key in 64 hexadecimal digits, its directory the first two
/// of them. It is written to `ab/abcd….<UUID>.tmp` and gets its name when it is whole, so that whoever reads, in this
/// process or another, finds all of an entry or none. Whatever has other names is somebody else's, and stays.
///
/// It keeps no state: any number may work on one directory.
struct CacheDirectory: Sendable {
    /// A file of an entry.
    struct Found: Sendable {
        var name: String
        var status: CacheFileStatus
    }

    /// Seconds since its last change after which nobody writes to a temporary file any more.
    static let temporaryAge: TimeInterval = 3_600
    private static let nameLength = 64
    /// No header of ours is that long.
    private static let longestHeader = 16_000_000
    /// As much as is read at first, so that most entries need one read only.
    private static let beginningLength = 4_096

    let path: String
    let files: any CacheFiles

    /// Keys that Swift takes for equal have one name, however their accents are written.
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

    /// What a file says of its entry, unchecked.
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

    /// Puts a file in the place of another of that name.
    ///
    /// - Throws: when it could not; then the old file is there as it was.
    func write(_ pieces: [Data], named name: String, usedAt date: Date) throws(CacheFileError) {
        let temporary = "\(filePath(name)).\(UUID().uuidString).tmp"
        do throws(CacheFileError) {
            do throws(CacheFileError) {
                try files.create(temporary, pieces, usedAt: date)
            } catch let error where error.code == ENOENT {
                // There is no directory yet, or somebody took it away.
                try files.makeDirectory(shardPath(name.prefix(2)))
                files.excludeFromBackup(path)
                try files.create(temporary, pieces, usedAt: date)
            }
            try files.rename(temporary, to: filePath(name))
        } catch {
            // What stays nonetheless is swept one day.
            try? files.remove(temporary)
            throw error
        }
    }

    /// Removes a file. One that is not there has been removed.
    func remove(named name: String) throws(CacheFileError) {
        do {
            try files.remove(filePath(name))
        } catch let error where error.code == ENOENT {}
    }

    func touch(named name: String, usedAt date: Date) {
        // When it fails the entry goes a little earlier than it would.
        try? files.touch(filePath(name), usedAt: date)
    }

    /// The files of entries.
    ///
    /// Also removes the temporary files of writers that are no more.
    func scan(now: Date) throws(CacheFileError) -> [Found] {
        var found: [Found] = []
        for shard in try list(path) where shard.utf8.count == 2 && Self.isHexadecimal(shard) {
            for name in try list(shardPath(shard[...])) {
                if name.hasPrefix(shard), name.utf8.count == Self.nameLength, Self.isHexadecimal(name) {
                    if let status = try look(filePath(name)) { found.append(Found(name: name, status: status)) }
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

    /// Nothing where there is no directory, or one that is not ours to look into.
    private func list(_ directory: String) throws(CacheFileError) -> [String] {
        do {
            return try files.list(directory)
        } catch let error where [ENOENT, ENOTDIR].contains(error.code) || directory != path && error.code == EACCES {
            return []
        }
    }

    /// Nil when it is gone, or no file.
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
