import Foundation

/// What a later process must know about an upload to resume it.
struct UploadRecord: Codable, Equatable, Sendable {
    /// The signed-in user, in one process. The next process does not know the number.
    struct User: Codable, Equatable, Sendable {
        var launch: String
        var version: Int
    }

    static let currentVersion = 1

    var version = UploadRecord.currentVersion
    /// The state of the bytes that are uploaded.
    var source: UploadSource.Fingerprint
    /// The URL of the upload; `nil` before its creation.
    var address: URL?
    /// See ``UploadPlan/mayBeComplete``.
    var mayBeComplete = false
    var user: User?
}

/// The file with the record of an upload, open and locked against other processes.
///
/// Each change adds a line, so a kill leaves the lines before it. The last complete line counts. The server knows the
/// offset, so the file changes only a few times. It has the URL of the upload, but no credential of the request.
///
/// One task uses it, one call at a time. ``close(removing:)`` is called last.
final class UploadJournal: @unchecked Sendable {
    // Sendable because its user makes one call at a time.

    // Several lines of a few hundred bytes.
    private static let byteLimit = 65_536
    /// The time in seconds for which the journals of other uploads are kept after their last use.
    private static let lifetime: TimeInterval = 30 * 24 * 3_600
    private static let suffix = ".upload"
    private static let cleaned = Locked<Set<String>>([])

    static var defaultDirectory: URL {
        NetworkCache.defaultDirectory.appendingPathComponent("uploads", isDirectory: true)
    }

    let path: String
    private var descriptor: Int32
    private(set) var record: UploadRecord?

    /// Returns the path of the journal of an upload.
    ///
    /// - Parameter identity: A string that names the upload in every process. Only its digest is stored.
    static func path(of identity: String, in directory: URL?) -> String {
        let name = SHA256.digest(of: Data(identity.utf8)).prefix(16).hexadecimal
        return (directory ?? defaultDirectory).appendingPathComponent(name + suffix, isDirectory: false).path
    }

    /// Opens or creates the journal, and locks it.
    ///
    /// - Throws: ``NetworkError/Code/refused`` if another process has the journal; ``NetworkError/Code/cannotWriteFile``.
    init(_ path: String, at now: Date) throws(NetworkError) {
        self.path = path
        let folder = (path as NSString).deletingLastPathComponent
        try? FileManager.default.createDirectory(
            atPath: folder,
            withIntermediateDirectories: true,
            attributes: [.posixPermissions: 0o700]
        )
        // Another process can remove the file between opening and locking.
        for _ in 0..<8 {
            let flags = O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK
            let opened = Foundation.open(path, flags, 0o600)
            guard opened >= 0 else { throw .file("the journal of the upload cannot be opened at \(path)") }
            guard PartialFile.ownStatus(opened) != nil else {
                Foundation.close(opened)
                throw .file("\(path) is not this user's journal of an upload", EACCES)
            }
            // If the file system has no locks, other processes are not excluded.
            guard flock(opened, LOCK_EX | LOCK_NB) == 0 || ![EWOULDBLOCK, EINTR].contains(errno) else {
                Foundation.close(opened)
                throw NetworkError(code: .refused, message: "another process already uploads this to the same address")
            }
            guard PartialFile.isSame(opened, path) else {
                Foundation.close(opened)
                continue
            }
            descriptor = opened
            DownloadLocation.letFileBeWrittenWhileLocked(path)
            record = Self.read(opened)
            // The date of the last use.
            futimens(opened, nil)
            Self.cleanUpOnce(folder, at: now)
            return
        }
        throw NetworkError(code: .refused, message: "other processes upload this to the same address")
    }

    private static func read(_ descriptor: Int32) -> UploadRecord? {
        var bytes = [UInt8](repeating: 0, count: byteLimit)
        let count = pread(descriptor, &bytes, bytes.count, 0)
        // The text after the last line break is a line that a kill has cut off.
        let lines = bytes.prefix(max(0, count)).split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
        for line in lines.dropLast().reversed() {
            guard let record = try? JSONDecoder().decode(UploadRecord.self, from: Data(line)) else { continue }
            return record.version == UploadRecord.currentVersion ? record : nil
        }
        return nil
    }

    /// Adds a record, and returns when the disk has it.
    func save(_ record: UploadRecord) throws(NetworkError) {
        guard record != self.record else { return }
        guard var line = try? JSONEncoder().encode(record) else { return }
        // The line break at the beginning ends a line that a kill has cut off.
        line = Data("\n".utf8) + line + Data("\n".utf8)
        let end = PartialFile.ownStatus(descriptor)?.st_size ?? 0
        if end > Self.byteLimit / 2 { ftruncate(descriptor, 0) }
        let offset = end > Self.byteLimit / 2 ? 0 : end
        let count = line.withUnsafeBytes { pwrite(descriptor, $0.baseAddress, $0.count, offset) }
        guard count == line.count, RegularFile.sync(descriptor) == 0 else {
            throw .file("the journal of the upload cannot be written to \(path)", count >= 0 ? ENOSPC : errno)
        }
        self.record = record
    }

    /// Closes the journal.
    ///
    /// - Parameter removing: Whether to remove it, because nothing is left to resume.
    func close(removing: Bool) {
        if removing || record == nil { unlink(path) }
        // Unlock explicitly. Otherwise the lock lasts as long as a copy of the descriptor in a child process.
        flock(descriptor, LOCK_UN)
        Foundation.close(descriptor)
        descriptor = -1
    }

    /// Removes old journals from the folder, except open ones. Runs once for each folder in a process.
    private static func cleanUpOnce(_ folder: String, at now: Date) {
        guard cleaned.withLock({ $0.insert(folder).inserted }),
            let names = try? FileManager.default.contentsOfDirectory(atPath: folder)
        else { return }
        for name in names where name.hasSuffix(suffix) {
            DownloadLocation.removeUnlocked("\(folder)/\(name)", before: now - lifetime)
        }
    }
}
