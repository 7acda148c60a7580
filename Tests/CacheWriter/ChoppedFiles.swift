#if DEBUG
import Foundation

@testable import EasyNetwork

/// The files of the system, written in so small pieces that most of the time is spent in the middle of one.
struct ChoppedFiles: CacheFiles {
    private static let pieceLength = 2
    private let system = SystemCacheFiles()

    func create(_ path: String, _ pieces: [Data], usedAt date: Date) throws(CacheFileError) {
        let whole = pieces.reduce(Data(), +)
        let chopped = stride(from: 0, to: whole.count, by: Self.pieceLength).map { start in
            whole[start..<min(start + Self.pieceLength, whole.count)]
        }
        try system.create(path, chopped, usedAt: date)
    }

    func read(
        _ path: String,
        _ count: Int,
        extended: (_ beginning: Data, _ size: Int) -> Int
    ) throws(CacheFileError) -> (Data, CacheFileStatus) {
        try system.read(path, count, extended: extended)
    }

    func list(_ directory: String) throws(CacheFileError) -> [String] { try system.list(directory) }
    func look(_ path: String) throws(CacheFileError) -> CacheFileStatus { try system.look(path) }
    func rename(_ path: String, to newPath: String) throws(CacheFileError) { try system.rename(path, to: newPath) }
    func remove(_ path: String) throws(CacheFileError) { try system.remove(path) }
    func touch(_ path: String, usedAt date: Date) throws(CacheFileError) { try system.touch(path, usedAt: date) }
    func makeDirectory(_ path: String) throws(CacheFileError) { try system.makeDirectory(path) }
    func excludeFromBackup(_ directory: String) { system.excludeFromBackup(directory) }
}
#endif
