import Foundation

@testable import EasyNetwork

/// The files of the system, with steps that a test can block or make fail.
final class FaultyCacheFiles: CacheFiles, @unchecked Sendable {
    // Sendable because its state is in locks.

    enum Operation: Hashable, Sendable {
        case list, look, read, create, write, rename, remove, touch, makeDirectory
    }

    /// Returns the number of an error, or nil to continue.
    typealias Hook = @Sendable (Operation, String) -> Int32?

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

    private func step(_ operation: Operation, _ path: String) throws {
        counts.withLock { $0[operation, default: 0] += 1 }
        if let code = hook.withLock({ $0 })?(operation, path) {
            throw POSIXError(POSIXErrorCode(rawValue: code) ?? .EIO)
        }
    }

    override func list(_ directory: String) throws -> [String] {
        try step(.list, directory)
        return try super.list(directory)
    }

    override func look(_ path: String) throws -> Status? {
        try step(.look, path)
        return try super.look(path)
    }

    override func read(_ path: String, count: (_ size: Int) -> Int) throws -> (Data, Status) {
        try step(.read, path)
        return try super.read(path, count: count)
    }

    /// A failed write leaves half of the file.
    override func create(_ path: String, _ pieces: [Data], usedAt date: Date) throws {
        try step(.create, path)
        do {
            try step(.write, path)
        } catch {
            let all = pieces.reduce(Data(), +)
            try super.create(path, [all.prefix(all.count / 2)], usedAt: date)
            throw error
        }
        try super.create(path, pieces, usedAt: date)
    }

    override func rename(_ path: String, to newPath: String) throws {
        try step(.rename, path)
        try super.rename(path, to: newPath)
    }

    override func remove(_ path: String) throws {
        try step(.remove, path)
        try super.remove(path)
    }

    override func touch(_ path: String, usedAt date: Date) throws {
        try step(.touch, path)
        try super.touch(path, usedAt: date)
    }

    override func makeDirectory(_ path: String) throws {
        try step(.makeDirectory, path)
        try super.makeDirectory(path)
    }
}
