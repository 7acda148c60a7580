import Foundation

/// The file operations of the cache. A test can make each of them fail with a subclass.
///
/// Errors of the system are `POSIXError`s. `FileManager` has no exclusive creation, no replacement by rename(2), and no
/// error numbers.
package class CacheFiles: @unchecked Sendable {
    // The class is Sendable because it has no state. Several queues call it at the same time.

    /// The length of a file in bytes, and the date of its last use.
    package typealias Status = (size: Int, usedAt: Date)

    package init() {}

    /// Returns the names in a directory, without `.` and `..`, in any order.
    package func list(_ directory: String) throws -> [String] {
        try WorkQueue.loop?.willUseFile(directory, toWrite: false)
        // The errors of FileManager are not the same on all platforms.
        close(try Self.check(open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)))
        return try FileManager.default.contentsOfDirectory(atPath: directory)
    }

    /// Returns the status of a regular file, or nil for a directory, a link, a pipe and the like.
    package func look(_ path: String) throws -> Status? {
        var found = stat()
        try Self.check(lstat(path, &found))
        return found.st_mode & S_IFMT == S_IFREG ? Self.status(found) : nil
    }

    /// Reads the first bytes of a regular file, which can be replaced at the same time.
    ///
    /// - Parameter count: returns the number of bytes to read, given the size of the file.
    package func read(_ path: String, count: (_ size: Int) -> Int) throws -> (Data, Status) {
        try WorkQueue.loop?.willUseFile(path, toWrite: false)
        // Don't follow links, because the cache creates none.
        let (descriptor, found) = try RegularFile.open(path, O_RDONLY)
        let file = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        let status = Self.status(found)
        return (try file.read(upToCount: count(status.size)) ?? Data(), status)
    }

    /// Creates a file that only its owner can read, and that was last used at `date`. Fails if the file exists. After
    /// an error, a part of the file can exist.
    package func create(_ path: String, _ pieces: [Data], usedAt date: Date) throws {
        try WorkQueue.loop?.willUseFile(path, toWrite: true)
        let descriptor = try Self.check(open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600))
        let file = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        for piece in pieces { try file.write(contentsOf: piece) }
        try Self.check(futimens(descriptor, [timespec(date), timespec(date)]))
        // A network file system reports a full disk here.
        try file.close()
    }

    /// Replaces a file in one step.
    package func rename(_ path: String, to newPath: String) throws {
        try WorkQueue.loop?.willUseFile(path, toWrite: true)
        try Self.check(Foundation.rename(path, newPath))
    }

    /// Makes the disk keep a file or a directory, see ``RegularFile/sync(_:isLast:)``.
    package func sync(_ path: String, isLast: Bool) throws {
        // A linked file can have become a pipe, on which `open` must not wait.
        let descriptor = try Self.check(open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK))
        defer { close(descriptor) }
        try Self.check(RegularFile.sync(descriptor, isLast: isLast))
    }

    /// Gives a file a second name, or copies it if linking fails.
    package func link(_ path: String, to newPath: String) throws {
        guard Foundation.link(path, newPath) != 0 else { return }
        try FileManager.default.copyItem(atPath: path, toPath: newPath)
    }

    func remove(_ path: String) throws {
        try Self.check(unlink(path))
    }

    package func touch(_ path: String, usedAt date: Date) throws {
        try Self.check(utimensat(AT_FDCWD, path, [timespec(date), timespec(date)], AT_SYMLINK_NOFOLLOW))
    }

    /// Creates a directory that only its owner can read, and its parents, unless it exists. Files in it can be read and
    /// written while a device is locked, once the device has been unlocked.
    package func makeDirectory(_ path: String) throws {
        var attributes: [FileAttributeKey: Any] = [.posixPermissions: 0o700]
        #if canImport(Darwin)
        // Files inherit the protection class of their directory.
        attributes[.protectionKey] = FileProtectionType.completeUntilFirstUserAuthentication
        #endif
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true, attributes: attributes)
    }

    @discardableResult
    private static func check(_ result: Int32) throws -> Int32 {
        guard result < 0 else { return result }
        throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO)
    }

    private static func status(_ found: stat) -> Status {
        let time = found.modified
        let seconds = TimeInterval(time.tv_sec) + TimeInterval(time.tv_nsec) / 1_000_000_000
        return (Int(clamping: found.st_size), Date(timeIntervalSince1970: seconds))
    }
}

extension timespec {
    /// Creates the nearest date that a file system can store.
    fileprivate init(_ date: Date) {
        let seconds = date.timeIntervalSince1970
        let bounded = seconds > 0 ? min(seconds, TimeInterval(UInt32.max)) : 0
        let nanoseconds = (bounded - bounded.rounded(.down)) * 1_000_000_000
        self.init(tv_sec: Int(clamping: Int64(bounded)), tv_nsec: Int(nanoseconds))
    }
}
