import Foundation

/// The calls to the system that a test lets fail.
struct PartCalls: Sendable {
    var write: @Sendable (Int32, UnsafeRawPointer, Int, Int64) -> Int = { pwrite($0, $1, $2, off_t($3)) }
    var lock: @Sendable (Int32) -> Int32 = { flock($0, LOCK_EX | LOCK_NB) }
    /// How many bytes the file system of a directory has left; nil when it does not say.
    var freeBytes: @Sendable (String) -> Int64? = { path in
        var found = statvfs()
        guard statvfs(path, &found) == 0 else { return nil }
        let (bytes, isOverflow) = Int64(clamping: found.f_bavail)
            .multipliedReportingOverflow(by: Int64(clamping: found.f_frsize))
        return isOverflow ? nil : bytes
    }
}

/// The part of a file that has come, open and locked: nobody else writes to it, in this process or another.
///
/// Used on the queue of its download only.
final class PartFile: @unchecked Sendable {
    // Sendable because nothing in it changes but `descriptor`, by `close()`, which is called last, on the same queue.
    let place: PartPlace
    private var descriptor: Int32
    private let calls: PartCalls

    /// Opens the part, or makes it, and locks it. What lies there and is no part of this user is removed, and not opened.
    ///
    /// - Throws: ``NetworkError/Code/cannotWriteFile``; ``NetworkError/Code/refused`` when somebody else has it.
    init(_ place: PartPlace, calls: PartCalls) throws(NetworkError) {
        self.place = place
        self.calls = calls
        // Who had it may rename it between the opening and the locking: then it is another file's by now.
        for _ in 0..<8 {
            // The owner of a file that was made here is not asked: some file systems call everything another user's.
            var descriptor = open(place.part, O_RDWR | O_CREAT | O_EXCL | Self.flags, 0o666)
            let isNew = descriptor >= 0
            var isReadOnly = false
            if !isNew, errno == EEXIST {
                descriptor = open(place.part, O_RDWR | Self.flags)
                // Another user's may be locked, too.
                isReadOnly = descriptor < 0 && errno == EACCES
                if isReadOnly { descriptor = open(place.part, O_RDONLY | Self.flags) }
                // It went meanwhile, or is a link or a socket.
                if descriptor < 0, errno == ENOENT { continue }
                if descriptor < 0, errno == ELOOP || errno == ENXIO, unlink(place.part) == 0 { continue }
            }
            guard descriptor >= 0 else {
                let number = errno
                let hint = number == ENOENT ? " (DownloadOptions.createsDirectories makes it)" : ""
                throw .file("no file can be made in \(place.directory)\(hint)", number)
            }
            self.descriptor = descriptor
            // Not every file system has locks; one of these keeps out nobody but who is in this process.
            guard calls.lock(descriptor) == 0 || ![EWOULDBLOCK, EINTR].contains(errno) else {
                Foundation.close(descriptor)
                throw NetworkError(
                    code: .refused,
                    message: "another process downloads to \(place.shown); its part cannot be shared"
                )
            }
            let isInPlace = Self.isSame(descriptor, place.part)
            // To write to a file with a second name, as a part has that was killed while it landed, would change what has
            // landed.
            let isPart = isNew || (!isReadOnly && Self.ownStatus(descriptor).map { $0.st_nlink <= 1 } == true)
            if isInPlace, isPart { return }
            let isGone = !isInPlace || unlink(place.part) == 0
            let number = errno
            Foundation.close(descriptor)
            guard isGone else { throw .file("\(place.part) is no part of this user, and cannot be removed", number) }
        }
        throw NetworkError(code: .refused, message: "others download to \(place.shown); their part cannot be shared")
    }

    private static let flags = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK

    /// In bytes; nil when the file is no regular one.
    var size: Int64? {
        var found = stat()
        guard fstat(descriptor, &found) == 0, found.st_mode & S_IFMT == S_IFREG else { return nil }
        return Int64(found.st_size)
    }

    /// Whether it lies where it was made.
    var isInPlace: Bool { Self.isSame(descriptor, place.part) }

    func write(_ data: Data, at offset: Int64) throws(NetworkError) {
        let failure = data.withUnsafeBytes { buffer -> NetworkError? in
            var count = 0
            while let rest = buffer.baseAddress?.advanced(by: count), count < buffer.count {
                let step = calls.write(descriptor, rest, buffer.count - count, offset + Int64(count))
                if step > 0 { count += step }
                if step == 0 || (step < 0 && errno != EINTR) {
                    return .file("the download cannot be written to \(place.directory)", step == 0 ? ENOSPC : errno)
                }
            }
            return nil
        }
        if let failure { throw failure }
    }

    func truncate(to size: Int64 = 0) throws(NetworkError) {
        guard ftruncate(descriptor, off_t(size)) == 0 else {
            throw .file("the part in \(place.directory) cannot be cut to \(size) bytes")
        }
    }

    /// - Throws: ``NetworkError/Code/cannotWriteFile`` when the disk has not so much room.
    func check(room wanted: Int64) throws(NetworkError) {
        guard let free = calls.freeBytes(place.directory), free < wanted else { return }
        throw .file("the download needs \(wanted) more bytes in \(place.directory), and \(free) are free", ENOSPC)
    }

    /// Returns when the disk has what was written. Another descriptor, so that it may take its time on another thread.
    func makeSync() -> (@Sendable () -> Bool)? {
        let copy = fcntl(descriptor, F_DUPFD_CLOEXEC, 0)
        guard copy >= 0 else { return nil }
        return {
            defer { Foundation.close(copy) }
            return fsync(copy) == 0
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
            guard count > 0 || errno == EINTR else { throw .file("the part in \(place.directory) cannot be read") }
            offset += Int64(max(0, count))
        }
        return nil
    }

    func close() {
        // The lock lasts as long as one copy of the descriptor: one that the disk takes its time with, or, until it
        // becomes another program, a child of the process has.
        flock(descriptor, LOCK_UN)
        Foundation.close(descriptor)
        descriptor = -1
    }

    /// The status of an open file; nil for what is no regular file, and for that of another user.
    static func ownStatus(_ descriptor: Int32) -> stat? {
        var found = stat()
        guard fstat(descriptor, &found) == 0, found.st_mode & S_IFMT == S_IFREG, found.st_uid == geteuid() else {
            return nil
        }
        return found
    }

    private static func isSame(_ descriptor: Int32, _ path: String) -> Bool {
        var open = stat()
        var there = stat()
        return fstat(descriptor, &open) == 0 && lstat(path, &there) == 0 && open.st_ino == there.st_ino
            && open.st_dev == there.st_dev
    }
}

extension NetworkError {
    /// What the system refused to do with a file.
    ///
    /// - Parameter number: why; default that of the last call.
    static func file(_ message: String, _ number: Int32 = errno) -> NetworkError {
        let code = POSIXErrorCode(rawValue: number)
        return NetworkError(
            code: .cannotWriteFile,
            message: "\(message): \(String(cString: strerror(number)))",
            underlying: code.map { POSIXError($0) }
        )
    }
}
