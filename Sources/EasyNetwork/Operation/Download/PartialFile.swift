import Foundation

/// The calls to the system that a test can make fail.
struct FileCalls: Sendable {
    var write: @Sendable (Int32, UnsafeRawPointer, Int, Int64) -> Int = { pwrite($0, $1, $2, off_t($3)) }
    var lock: @Sendable (Int32) -> Int32 = { flock($0, LOCK_EX | LOCK_NB) }
    /// Returns the free bytes in the file system of a directory; `nil` if that is unknown.
    var freeBytes: @Sendable (String) -> Int64? = { path in
        var found = statvfs()
        guard statvfs(path, &found) == 0 else { return nil }
        let (bytes, isOverflow) = Int64(clamping: found.f_bavail)
            .multipliedReportingOverflow(by: Int64(clamping: found.f_frsize))
        return isOverflow ? nil : bytes
    }
}

/// The received part of a file, open and locked against other processes.
///
/// One ``DownloadWriter`` uses it, one call at a time.
final class PartialFile: @unchecked Sendable {
    // Sendable because only `descriptor` changes, in `close()`, which is called last.
    let location: DownloadLocation
    private var descriptor: Int32
    private let calls: FileCalls

    /// Opens or creates the part, and locks it. Any other item at its path is removed without being opened.
    ///
    /// - Throws: ``NetworkError/Code/cannotWriteFile``, or ``NetworkError/Code/refused`` if another process holds the
    ///   part.
    init(_ location: DownloadLocation, calls: FileCalls = FileCalls()) throws(NetworkError) {
        self.location = location
        self.calls = calls
        // Another process can move the part between opening and locking.
        for _ in 0..<8 {
            // Don't check the owner of a new file, because on some file systems every file belongs to another user.
            var descriptor = open(location.part, O_RDWR | O_CREAT | O_EXCL | Self.flags, 0o666)
            let isNew = descriptor >= 0
            if isNew { DownloadLocation.letFileBeWrittenWhileLocked(location.part) }
            var isReadOnly = false
            if !isNew, errno == EEXIST {
                descriptor = open(location.part, O_RDWR | Self.flags)
                // Another user's part can be locked, too.
                isReadOnly = descriptor < 0 && errno == EACCES
                if isReadOnly { descriptor = open(location.part, O_RDONLY | Self.flags) }
                // The part has just been removed, or is a link or a socket.
                if descriptor < 0, errno == ENOENT { continue }
                if descriptor < 0, errno == ELOOP || errno == ENXIO, unlink(location.part) == 0 { continue }
            }
            guard descriptor >= 0 else {
                throw .file("no file can be created in \(location.directory)")
            }
            // If the file system has no locks, other processes are not excluded.
            guard calls.lock(descriptor) == 0 || ![EWOULDBLOCK, EINTR].contains(errno) else {
                Foundation.close(descriptor)
                let reason = "another process already downloads to \(location.shown), and its part cannot be shared"
                throw NetworkError(code: .refused, message: reason)
            }
            let isInPlace = Self.isSame(descriptor, location.part)
            // A kill during the move leaves the part with a second name. Writing to it would change the finished file.
            let isPart = isNew || (!isReadOnly && Self.ownStatus(descriptor).map { $0.st_nlink <= 1 } == true)
            if isInPlace, isPart {
                // An initializer that throws before this does not run `deinit`, which would close the descriptor again.
                self.descriptor = descriptor
                return
            }
            let isGone = !isInPlace || unlink(location.part) == 0
            let number = errno
            Foundation.close(descriptor)
            guard isGone else {
                throw .file("\(location.part) is not this user's part of a download, and cannot be removed", number)
            }
        }
        throw NetworkError(code: .refused, message: "other processes download to \(location.shown)")
    }

    deinit {
        if descriptor >= 0 { close() }
    }

    private static let flags = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK

    /// The size in bytes.
    var size: Int64 {
        var found = stat()
        return fstat(descriptor, &found) == 0 ? Int64(found.st_size) : 0
    }

    /// Whether the file is still at the path of the part.
    var isInPlace: Bool { Self.isSame(descriptor, location.part) }

    func write(_ data: Data, at offset: Int64) throws(NetworkError) {
        let failure = data.withUnsafeBytes { buffer -> NetworkError? in
            var count = 0
            while let rest = buffer.baseAddress?.advanced(by: count), count < buffer.count {
                let step = calls.write(descriptor, rest, buffer.count - count, offset + Int64(count))
                if step > 0 { count += step }
                if step == 0 || (step < 0 && errno != EINTR) {
                    return .file("the download cannot be written to \(location.directory)", step == 0 ? ENOSPC : errno)
                }
            }
            return nil
        }
        if let failure { throw failure }
    }

    func truncate(to size: Int64 = 0) throws(NetworkError) {
        guard ftruncate(descriptor, off_t(size)) == 0 else {
            throw .file("the part in \(location.directory) cannot be truncated to \(size) bytes")
        }
    }

    /// - Throws: ``NetworkError/Code/cannotWriteFile`` if the disk has less free space.
    func check(room wanted: Int64) throws(NetworkError) {
        guard let free = calls.freeBytes(location.directory), free < wanted else { return }
        throw .file("the download needs \(wanted) more bytes in \(location.directory), but \(free) are free", ENOSPC)
    }

    /// - Returns: a closure that makes the disk store all written bytes, and returns whether it succeeded. The closure
    ///   has its own descriptor, because it can take long on another thread.
    func makeSync() -> (@Sendable () -> Bool)? {
        let copy = fcntl(descriptor, F_DUPFD_CLOEXEC, 0)
        guard copy >= 0 else { return nil }
        return {
            defer { Foundation.close(copy) }
            return RegularFile.sync(copy) == 0
        }
    }

    func digest(isWanted: () -> Bool) throws(NetworkError) -> Data? {
        var hash = SHA256()
        var buffer = Data(count: 1_048_576)
        var offset: Int64 = 0
        while isWanted() {
            let count = buffer.withUnsafeMutableBytes { bytes in
                let count = pread(descriptor, bytes.baseAddress, bytes.count, off_t(offset))
                if count > 0 { hash.update(UnsafeRawBufferPointer(rebasing: bytes[..<count])) }
                return count
            }
            if count == 0 { return hash.finalize() }
            guard count > 0 || errno == EINTR else { throw .file("the part in \(location.directory) cannot be read") }
            offset += Int64(max(0, count))
        }
        return nil
    }

    func close() {
        // Unlock explicitly. Otherwise the lock lasts as long as any copy of the descriptor, such as a sync's or a
        // child process's.
        flock(descriptor, LOCK_UN)
        Foundation.close(descriptor)
        descriptor = -1
    }

    /// Returns the status of an open file; `nil` unless it is a regular file of this user.
    static func ownStatus(_ descriptor: Int32) -> stat? {
        var found = stat()
        guard fstat(descriptor, &found) == 0, found.st_mode & S_IFMT == S_IFREG, found.st_uid == geteuid() else {
            return nil
        }
        return found
    }

    static func isSame(_ descriptor: Int32, _ path: String) -> Bool {
        var open = stat()
        var there = stat()
        return fstat(descriptor, &open) == 0 && lstat(path, &there) == 0 && open.st_ino == there.st_ino
            && open.st_dev == there.st_dev
    }
}

extension NetworkError {
    /// Returns the error for a failed system call on a file.
    ///
    /// - Parameter number: the error number. Defaults to the last call's `errno`.
    package static func file(_ message: String, _ number: Int32 = errno) -> NetworkError {
        let code = POSIXErrorCode(rawValue: number)
        return NetworkError(
            code: .cannotWriteFile,
            message: "\(message): \(String(cString: strerror(number)))",
            underlying: code.map { POSIXError($0) }
        )
    }
}
