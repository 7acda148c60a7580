import Foundation

/// What a later process must know about an upload to resume it.
struct UploadRecord: Codable, Equatable, Sendable {
    /// The digest of what names the upload.
    var identity: String
    /// The state of the bytes that are uploaded.
    var source: UploadSource.Fingerprint
    /// The URL of the upload; `nil` before its creation.
    var address: URL?
    /// See ``UploadPlan/mayBeComplete``.
    var mayBeComplete = false
    /// The signed-in user, as this process knows it.
    var user: String?
}

/// The file with the record of an upload, open and locked against other processes.
///
/// It has two slots. Each record is written over the older one, so a kill during a write leaves the newer one. A slot
/// has the digest of its record, because a slot that was written in part can look like a record. The server knows the
/// offset, so the file changes only a few times. It has the URL of the upload, but no credential of the request.
///
/// One task uses it, one call at a time. ``close(removing:)`` is called last.
final class UploadJournal: @unchecked Sendable {
    // Sendable because its user makes one call at a time.

    /// A record with its number. The next record has the next number.
    struct Entry: Codable {
        var number: Int
        var record: UploadRecord
    }

    /// A record has several hundred bytes, and the URL of the upload.
    private static let slotSize = 32_768
    /// The time in seconds for which the journals of other uploads are kept after their last use.
    private static let lifetime: TimeInterval = 30 * 24 * 3_600
    private static let suffix = ".upload"

    static var defaultDirectory: URL {
        NetworkCache.defaultDirectory.appendingPathComponent("uploads", isDirectory: true)
    }

    let path: String
    private var descriptor: Int32
    private var entry: Entry?
    var record: UploadRecord? { entry?.record }

    /// Returns the path of the journal of an upload.
    ///
    /// - Parameter identity: The digest of what names the upload in every process.
    static func path(of identity: String, _ settings: ResumableUpload) -> String {
        let directory = settings.directory ?? defaultDirectory
        return (settings.journal ?? directory.appendingPathComponent(identity + suffix, isDirectory: false)).path
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
            var bytes = [UInt8](repeating: 0, count: 2 * Self.slotSize)
            let count = pread(opened, &bytes, bytes.count, 0)
            entry = Self.newest(in: Array(bytes.prefix(max(0, count))))
            // The date of the last use.
            futimens(opened, nil)
            Self.cleanUpOnce(folder, at: now)
            return
        }
        throw NetworkError(code: .refused, message: "other processes upload this to the same address")
    }

    /// Returns the newest record of a journal's bytes.
    static func newest(in bytes: [UInt8]) -> Entry? {
        let entries = [bytes.prefix(slotSize), bytes.dropFirst(slotSize)].compactMap { slot -> Entry? in
            let parts = slot.split(separator: UInt8(ascii: "\n"), maxSplits: 2)
            guard parts.count > 1, digest(Data(parts[1])) == Data(parts[0]) else { return nil }
            return try? JSONDecoder().decode(Entry.self, from: Data(parts[1]))
        }
        return entries.max { $0.number < $1.number }
    }

    private static func digest(_ json: Data) -> Data { SHA256.digest(of: json).base64EncodedData() }

    /// Stores a record, and returns when the disk has it.
    func save(_ record: UploadRecord) throws(NetworkError) {
        guard record != self.record else { return }
        let new = Entry(number: entry.map { $0.number &+ 1 } ?? 0, record: record)
        guard let json = try? JSONEncoder().encode(new) else { return }
        let line = Self.digest(json) + Data("\n".utf8) + json + Data("\n".utf8)
        guard line.count <= Self.slotSize else {
            throw .file("the journal of the upload cannot be written to \(path)", EFBIG)
        }
        let offset = off_t((new.number & 1) * Self.slotSize)
        let count = line.withUnsafeBytes { pwrite(descriptor, $0.baseAddress, $0.count, offset) }
        guard count == line.count, RegularFile.sync(descriptor) == 0 else {
            throw .file("the journal of the upload cannot be written to \(path)", count >= 0 ? ENOSPC : errno)
        }
        entry = new
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
        for name in DownloadLocation.namesToCleanUp(in: folder, for: suffix) where name.hasSuffix(suffix) {
            DownloadLocation.removeUnlocked("\(folder)/\(name)", before: now - lifetime)
        }
    }
}
