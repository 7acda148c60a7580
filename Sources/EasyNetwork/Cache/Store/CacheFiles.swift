import Foundation

/// What the cache does to files: one call, one step, so that a test can fail each.
///
/// Called from the queues of the cache, several at once.
protocol CacheFiles: Sendable {
    /// The names in a directory, without `.` and `..`, in any order.
    func list(_ directory: String) throws(CacheFileError) -> [String]
    /// What lies there; a link is not followed.
    func look(_ path: String) throws(CacheFileError) -> CacheFileStatus
    /// The beginning of a file, all from one and the same: who puts another in its place changes nothing.
    ///
    /// - Parameters:
    ///   - count: how many bytes to read at first.
    ///   - extended: how many to read in all, told the first ones and the size of the file.
    func read(
        _ path: String,
        _ count: Int,
        extended: (_ beginning: Data, _ size: Int) -> Int
    ) throws(CacheFileError) -> (Data, CacheFileStatus)
    /// Makes a file that was not there, that others cannot read, and that was last used at `date`. When it throws, a
    /// part of the file may lie there.
    func create(_ path: String, _ pieces: [Data], usedAt date: Date) throws(CacheFileError)
    /// Puts a file in the place of another, in one step.
    func rename(_ path: String, to newPath: String) throws(CacheFileError)
    func remove(_ path: String) throws(CacheFileError)
    /// Notes that the file was used.
    func touch(_ path: String, usedAt date: Date) throws(CacheFileError)
    /// Makes a directory that others cannot read, and those above it; it may be there already.
    func makeDirectory(_ path: String) throws(CacheFileError)
    /// Keeps a directory out of the backups of Apple's platforms; elsewhere there is nothing to do.
    func excludeFromBackup(_ directory: String)
}

struct CacheFileStatus: Hashable, Sendable {
    var size: Int
    var usedAt: Date
    /// Not a directory, a link, or anything stranger.
    var isFile: Bool
}
