import Foundation

/// Where the part of a download, its journal and at last its file lie.
struct PartPlace: Hashable, Sendable {
    private static let prefix = ".easynetwork-"
    private static let suffix = ".part"
    private static let journalSuffix = ".journal"

    let directory: String
    /// Nil when the server says it.
    let name: String?
    let part: String
    /// The same however the directory is written, links included.
    let key: String
    var journal: String { part + Self.journalSuffix }

    /// - Parameters:
    ///   - destination: a file, or a directory: its path ends with a slash, or one lies there.
    ///   - resource: what is downloaded, for a file whose name is not known yet.
    /// - Throws: ``NetworkError/Code/invalidRequest`` when it is no place for a file.
    init(_ destination: URL, resource: String) throws(NetworkError) {
        let path = destination.standardizedFileURL.path
        // A C string ends at the first zero byte, and so, on Linux, does the path that Foundation gives: the file would have
        // another name.
        let hasZero = destination.absoluteString.contains("%00") || path.utf8.contains(0)
        guard destination.isFileURL, !path.isEmpty, !hasZero else {
            throw NetworkError(
                code: .invalidRequest,
                message: "\(destination.absoluteString) is no place for a file: use a file URL without zero bytes"
            )
        }
        var found = stat()
        let kind = stat(path, &found) == 0 ? found.st_mode & S_IFMT : S_IFREG
        let last = destination.standardizedFileURL.lastPathComponent
        // To take the place of a device, /dev/null for one, would break more than this download.
        guard kind == S_IFDIR || kind == S_IFREG, last.utf8.count <= 255 else {
            let reason = kind == S_IFREG ? "its name has more than 255 bytes" : "what lies there is no regular file"
            throw NetworkError(code: .invalidRequest, message: "\(path) is no place for a file: \(reason)")
        }
        if kind == S_IFDIR || destination.hasDirectoryPath {
            directory = path
            name = nil
        } else {
            directory = destination.standardizedFileURL.deletingLastPathComponent().path
            name = last
        }
        let content = name.map { "file \($0)" } ?? "resource \(resource)"
        let digest = SHA256.digest(of: Data(content.utf8)).prefix(16).hexadecimal
        part = Self.join(directory, Self.prefix + digest + Self.suffix)
        let resolved = realpath(directory, nil)
        defer { free(resolved) }
        key = Self.join(resolved.map { String(cString: $0) } ?? directory, Self.prefix + digest + Self.suffix)
    }

    /// For messages.
    var shown: String { name.map(path) ?? directory }

    func path(named name: String) -> String { Self.join(directory, name) }

    private static func join(_ directory: String, _ name: String) -> String {
        directory.hasSuffix("/") ? directory + name : "\(directory)/\(name)"
    }

    /// - Throws: ``NetworkError/Code/cannotWriteFile``.
    func makeDirectory() throws(NetworkError) {
        do {
            try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
        } catch {
            throw NetworkError(
                code: .cannotWriteFile,
                message: "the directory \(directory) cannot be made: \(error.wording)",
                underlying: error
            )
        }
    }

    // MARK: - The journal

    /// - Returns: nil when there is none of this user that can be read.
    func readRecord() -> PartRecord? {
        let descriptor = open(journal, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
        guard descriptor >= 0 else { return nil }
        let file = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        guard PartFile.ownStatus(descriptor) != nil, let data = try? file.read(upToCount: Self.journalLimit) else {
            return nil
        }
        return try? JSONDecoder().decode(PartRecord.self, from: data)
    }

    /// No journal has more bytes: some hundred for each segment.
    private static let journalLimit = 16_777_216

    /// A journal that cannot be written costs bytes later, and nothing now.
    func write(_ record: PartRecord) {
        guard let data = try? JSONEncoder().encode(record) else { return }
        let new = journal + ".new"
        // What a kill, or somebody else, has left.
        unlink(new)
        let descriptor = open(new, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { return }
        let isWritten = data.withUnsafeBytes { Foundation.write(descriptor, $0.baseAddress, $0.count) } == data.count
        close(descriptor)
        if !isWritten || rename(new, journal) != 0 { unlink(new) }
    }

    func removeJournal() {
        unlink(journal)
    }

    func removeAll() {
        // The part first: a journal without one says nothing.
        unlink(part)
        removeJournal()
    }

    // MARK: - Leftovers

    /// Removes what downloads left in the directory that nobody went on with.
    ///
    /// - Parameter limit: what was changed before is removed, unless somebody has it open.
    func sweep(before limit: Date) {
        guard let names = try? FileManager.default.contentsOfDirectory(atPath: directory) else { return }
        for name in names where name.hasPrefix(Self.prefix) {
            let path = self.path(named: name)
            if name.hasSuffix(Self.suffix) {
                if Self.removeUnlocked(path, before: limit) { unlink(path + Self.journalSuffix) }
            } else if let end = name.range(of: Self.suffix + ".") {
                // A journal goes with its part. One without, as a kill may leave it, says nothing.
                let part = self.path(named: name[..<end.lowerBound] + Self.suffix)
                if access(part, F_OK) != 0, errno == ENOENT { Self.removeUnlocked(path) }
            }
        }
    }

    @discardableResult
    private static func removeUnlocked(_ path: String, before limit: Date = .distantFuture) -> Bool {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
        guard descriptor >= 0 else { return false }
        defer { close(descriptor) }
        guard let found = PartFile.ownStatus(descriptor),
            TimeInterval(found.modifiedSeconds) < limit.timeIntervalSince1970, flock(descriptor, LOCK_EX | LOCK_NB) == 0
        else { return false }
        return unlink(path) == 0
    }
}

extension stat {
    fileprivate var modifiedSeconds: Int {
        #if canImport(Darwin)
        st_mtimespec.tv_sec
        #else
        st_mtim.tv_sec
        #endif
    }
}
