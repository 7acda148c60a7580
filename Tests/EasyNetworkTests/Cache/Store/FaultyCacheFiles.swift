import Foundation

@testable import EasyNetwork

/// The files of the system, with steps that a test can block or make fail.
final class FaultyCacheFiles: CacheFiles {
    typealias Operation = CacheFileError.Operation
    /// Returns the number of an error, or nil to continue.
    typealias Hook = @Sendable (Operation, String) -> Int32?

    private let system = SystemCacheFiles()
    private let hook = Locked<Hook?>(nil)
    private let counts = Locked<[Operation: Int]>([:])

    /// Sets the hook for the following steps.
    func fail(_ hook: Hook?) {
        self.hook.exchange(hook)
    }

    /// Makes all steps with some operations fail.
    func fail(_ operations: Set<Operation>, _ code: Int32 = EIO) {
        fail { operation, _ in operations.contains(operation) ? code : nil }
    }

    /// The number of attempts of a step.
    func count(_ operation: Operation) -> Int { counts.withLock { $0[operation] ?? 0 } }

    var isUntouched: Bool { counts.withLock { $0.isEmpty } }

    private func step(_ operation: Operation, _ path: String) throws(CacheFileError) {
        counts.withLock { $0[operation, default: 0] += 1 }
        if let code = hook.withLock({ $0 })?(operation, path) {
            throw CacheFileError(operation: operation, code: code)
        }
    }

    func list(_ directory: String) throws(CacheFileError) -> [String] {
        try step(.list, directory)
        return try system.list(directory)
    }

    func look(_ path: String) throws(CacheFileError) -> CacheFileStatus {
        try step(.look, path)
        return try system.look(path)
    }

    func read(
        _ path: String,
        _ count: Int,
        extended: (_ beginning: Data, _ size: Int) -> Int
    ) throws(CacheFileError) -> (Data, CacheFileStatus) {
        try step(.read, path)
        return try system.read(path, count, extended: extended)
    }

    /// A failed write leaves half of the file.
    func create(_ path: String, _ pieces: [Data], usedAt date: Date) throws(CacheFileError) {
        try step(.create, path)
        do {
            try step(.write, path)
        } catch {
            let all = pieces.reduce(Data(), +)
            try system.create(path, [all.prefix(all.count / 2)], usedAt: date)
            throw error
        }
        try system.create(path, pieces, usedAt: date)
    }

    func rename(_ path: String, to newPath: String) throws(CacheFileError) {
        try step(.rename, path)
        try system.rename(path, to: newPath)
    }

    func remove(_ path: String) throws(CacheFileError) {
        try step(.remove, path)
        try system.remove(path)
    }

    func touch(_ path: String, usedAt date: Date) throws(CacheFileError) {
        try step(.touch, path)
        try system.touch(path, usedAt: date)
    }

    func makeDirectory(_ path: String) throws(CacheFileError) {
        try step(.makeDirectory, path)
        try system.makeDirectory(path)
    }

    func excludeFromBackup(_ directory: String) {
        system.excludeFromBackup(directory)
    }
}
