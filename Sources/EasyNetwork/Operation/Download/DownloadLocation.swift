import Foundation

/// The paths of a download: its file, and, in the same directory, its part and its journal.
struct DownloadLocation: Hashable, Sendable {
    private static let prefix = ".easynetwork-"
    private static let suffix = ".part"

    let directory: String
    /// The name of the file; `nil` if the server names it.
    let name: String?
    let part: String
    /// A path that identifies the part, however the path of the directory is written, including symbolic links.
    let key: String
    var journal: String { part + ".journal" }

    /// Creates the paths of a download.
    ///
    /// - Parameters:
    ///   - destination: a file, or a directory: its path ends with a slash, or a directory exists there.
    ///   - resource: the digest of the URL, for a file whose name is not known yet.
    /// - Throws: ``NetworkError/Code/invalidRequest`` if no file can be stored there.
    init(_ destination: URL, resource: String) throws(NetworkError) {
        let path = destination.standardizedFileURL.path
        // A C string ends at the first zero byte, as Foundation's path does on Linux. The file would have another name.
        let hasZero = destination.absoluteString.contains("%00") || path.utf8.contains(0)
        guard destination.isFileURL, !path.isEmpty, !hasZero else {
            let message = "\(destination.absoluteString) cannot be a destination: use a file URL without zero bytes"
            throw .invalidRequest(message)
        }
        var found = stat()
        let kind = stat(path, &found) == 0 ? found.st_mode & S_IFMT : S_IFREG
        let last = destination.standardizedFileURL.lastPathComponent
        // Replacing a device such as /dev/null would break more than this download.
        guard kind == S_IFDIR || kind == S_IFREG, last.utf8.count <= 255 else {
            let reason = kind == S_IFREG ? "its name has more than 255 bytes" : "it is not a regular file"
            throw .invalidRequest("\(path) cannot be a destination: \(reason)")
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

    /// The path for messages.
    var shown: String { name.map(path) ?? directory }

    func path(named name: String) -> String { Self.join(directory, name) }

    private static func join(_ directory: String, _ name: String) -> String {
        directory.hasSuffix("/") ? directory + name : "\(directory)/\(name)"
    }

    func removePart() {
        // Remove the part first, because a journal without a part is ignored.
        unlink(part)
        unlink(journal)
    }

    // MARK: - The file

    /// Moves the complete part to its destination in one step. The destination has either the complete old file or the
    /// complete new one.
    ///
    /// - Parameter replacing: see ``DownloadOperation/replacesExistingFile``.
    /// - Returns: the path of the file that is the result.
    /// - Throws: ``NetworkError/Code/cannotWriteFile``. The old file then still exists.
    func movePart(named name: String, replacing: Bool?) throws(NetworkError) -> String {
        let path = path(named: name)
        protectPartAsDirectory()
        if replacing ?? (self.name != nil) {
            guard rename(part, path) == 0 else { throw .file("the download cannot be moved to \(path)") }
            return path
        }
        let limit = replacing == nil ? 10_000 : 1
        for number in 1...limit {
            let path = number == 1 ? path : self.path(named: SafeFileName.numbered(name, number))
            if try linkPart(to: path) { return path }
        }
        guard replacing == false else {
            throw .file("\(limit) files with the name of the download exist in \(directory)", EEXIST)
        }
        // Keep the existing file.
        guard access(path, F_OK) == 0 else { throw .file("\(path) is a link to a missing file") }
        unlink(part)
        return path
    }

    /// Moves the part to a path where no file exists.
    ///
    /// - Returns: `false` if a file exists there.
    private func linkPart(to path: String) throws(NetworkError) -> Bool {
        if link(part, path) == 0 {
            unlink(part)
            return true
        }
        guard errno != EEXIST else { return false }
        // Some file systems have no hard links. An empty file then takes the name, and the part replaces it.
        let descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o666)
        guard descriptor >= 0 else {
            if errno == EEXIST { return false }
            throw .file("the download cannot be moved to \(path)")
        }
        close(descriptor)
        guard rename(part, path) == 0 else {
            let number = errno
            unlink(path)
            throw .file("the download cannot be moved to \(path)", number)
        }
        return true
    }

    // MARK: - Data protection

    /// Lets a part or its journal be written while the device is locked, whatever the protection of its directory is.
    static func letFileBeWrittenWhileLocked(_ path: String) {
        #if canImport(Darwin)
        let attributes = [FileAttributeKey.protectionKey: FileProtectionType.completeUntilFirstUserAuthentication]
        try? FileManager.default.setAttributes(attributes, ofItemAtPath: path)
        #endif
    }

    /// Gives the part the protection of its directory, as any new file there has it.
    private func protectPartAsDirectory() {
        #if canImport(Darwin)
        let protection = try? FileManager.default.attributesOfItem(atPath: directory)[.protectionKey]
        guard let protection = protection as? FileProtectionType else { return }
        try? FileManager.default.setAttributes([.protectionKey: protection], ofItemAtPath: part)
        #endif
    }

    // MARK: - Cleanup

    /// The time in seconds for which the parts of other downloads are kept.
    private static let partLifetime: TimeInterval = 7 * 24 * 3_600
    private static let cleaned = Locked<Set<String>>([])

    /// Removes old parts of other downloads from the directory, except open ones. Runs once for each directory in a
    /// process.
    func cleanUpOnce(at now: Date) {
        let limit = now - Self.partLifetime
        for name in Self.namesToCleanUp(in: directory, for: Self.suffix) where name.hasPrefix(Self.prefix) {
            let path = self.path(named: name)
            if name.hasSuffix(Self.suffix) {
                if Self.removeUnlocked(path, before: limit) { unlink(path + ".journal") }
            } else if let end = name.range(of: Self.suffix + ".") {
                // Remove a journal whose part is missing, as a kill can leave it.
                let part = self.path(named: name[..<end.lowerBound] + Self.suffix)
                if access(part, F_OK) != 0, errno == ENOENT { Self.removeUnlocked(path) }
            }
        }
    }

    /// Returns the names in a directory, once in a process for each suffix of the files to remove.
    static func namesToCleanUp(in directory: String, for suffix: String) -> [String] {
        guard cleaned.withLock({ $0.insert(directory + "/" + suffix).inserted }) else { return [] }
        return (try? FileManager.default.contentsOfDirectory(atPath: directory)) ?? []
    }

    @discardableResult
    static func removeUnlocked(_ path: String, before limit: Date = .distantFuture) -> Bool {
        guard let (descriptor, _) = try? RegularFile.open(path, O_RDONLY) else { return false }
        defer { close(descriptor) }
        guard let found = PartialFile.ownStatus(descriptor),
            TimeInterval(found.modified.tv_sec) < limit.timeIntervalSince1970, flock(descriptor, LOCK_EX | LOCK_NB) == 0
        else { return false }
        return unlink(path) == 0
    }
}
