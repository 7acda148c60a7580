import Foundation

/// The operations of the cache on files, each of which a test can make fail.
///
/// Called from several queues at once.
protocol CacheFiles: Sendable {
    /// The names in a directory, without `.` and `..`, in any order.
    func list(_ directory: String) throws(CacheFileError) -> [String]
    /// The status of a file; a link is not followed.
    func look(_ path: String) throws(CacheFileError) -> CacheFileStatus
    /// Reads the beginning of a file, which may be replaced at the same time.
    ///
    /// - Parameters:
    ///   - count: the number of bytes to read first.
    ///   - extended: returns the number of bytes to read in all.
    func read(
        _ path: String,
        _ count: Int,
        extended: (_ beginning: Data, _ size: Int) -> Int
    ) throws(CacheFileError) -> (Data, CacheFileStatus)
    /// Creates a file that only its owner can read, and that was last used at `date`. Fails if the file exists. After an
    /// error a part of the file may exist.
    func create(_ path: String, _ pieces: [Data], usedAt date: Date) throws(CacheFileError)
    /// Replaces a file in one step.
    func rename(_ path: String, to newPath: String) throws(CacheFileError)
    func remove(_ path: String) throws(CacheFileError)
    /// Sets the time of the last use.
    func touch(_ path: String, usedAt date: Date) throws(CacheFileError)
    /// Creates a directory that only its owner can read, and the ones above it, unless it exists.
    func makeDirectory(_ path: String) throws(CacheFileError)
    /// Excludes a directory from backups on Apple's platforms.
    func excludeFromBackup(_ directory: String)
}

struct CacheFileStatus: Hashable, Sendable {
    var size: Int
    var usedAt: Date
    /// False for a directory, a link, a pipe and the like.
    var isFile: Bool
}

/// The files of the system. `FileManager` has no exclusive creation, no replacement by rename(2), and no error numbers.
struct SystemCacheFiles: CacheFiles {
    func list(_ directory: String) throws(CacheFileError) -> [String] {
        // The errors of FileManager are not the same on all platforms.
        let descriptor = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        try Self.check(.list, descriptor)
        close(descriptor)
        do {
            return try FileManager.default.contentsOfDirectory(atPath: directory)
        } catch {
            throw CacheFileError(operation: .list, code: EIO)
        }
    }

    func look(_ path: String) throws(CacheFileError) -> CacheFileStatus {
        var found = stat()
        try Self.check(.look, lstat(path, &found))
        return CacheFileStatus(found)
    }

    func read(
        _ path: String,
        _ count: Int,
        extended: (_ beginning: Data, _ size: Int) -> Int
    ) throws(CacheFileError) -> (Data, CacheFileStatus) {
        // The cache makes no links, and opening a pipe would wait for its writer.
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
        try Self.check(.read, descriptor)
        defer { close(descriptor) }
        var found = stat()
        try Self.check(.read, fstat(descriptor, &found))
        let status = CacheFileStatus(found)
        guard status.isFile else { throw CacheFileError(operation: .read, code: EISDIR) }
        let beginning = try Self.read(max(0, min(count, status.size)), from: descriptor)
        let rest = min(extended(beginning, status.size), status.size) - beginning.count
        guard rest > 0 else { return (beginning, status) }
        return (beginning + (try Self.read(rest, from: descriptor)), status)
    }

    func create(_ path: String, _ pieces: [Data], usedAt date: Date) throws(CacheFileError) {
        let descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        try Self.check(.create, descriptor)
        do throws(CacheFileError) {
            for piece in pieces { try Self.write(piece, to: descriptor) }
            let times = [timespec(date), timespec(date)]
            try Self.check(.touch, futimens(descriptor, times))
        } catch {
            close(descriptor)
            throw error
        }
        // A network file system reports a full disk here.
        try Self.check(.write, close(descriptor))
    }

    func rename(_ path: String, to newPath: String) throws(CacheFileError) {
        try Self.check(.rename, Foundation.rename(path, newPath))
    }

    func remove(_ path: String) throws(CacheFileError) {
        try Self.check(.remove, unlink(path))
    }

    func touch(_ path: String, usedAt date: Date) throws(CacheFileError) {
        let times = [timespec(date), timespec(date)]
        try Self.check(.touch, utimensat(AT_FDCWD, path, times, AT_SYMLINK_NOFOLLOW))
    }

    func makeDirectory(_ path: String) throws(CacheFileError) {
        if mkdir(path, 0o700) == 0 || errno == EEXIST { return }
        guard errno == ENOENT else { throw CacheFileError(operation: .makeDirectory, code: errno) }
        try makeDirectory(URL(fileURLWithPath: path, isDirectory: true).deletingLastPathComponent().path)
        // Another process may have created it.
        if mkdir(path, 0o700) != 0, errno != EEXIST { throw CacheFileError(operation: .makeDirectory, code: errno) }
    }

    func excludeFromBackup(_ directory: String) {
        #if canImport(Darwin)
        var url = URL(fileURLWithPath: directory, isDirectory: true)
        var values = URLResourceValues()
        values.isExcludedFromBackup = true
        try? url.setResourceValues(values)
        #endif
    }
}

extension SystemCacheFiles {
    private static func check(_ operation: CacheFileError.Operation, _ result: Int32) throws(CacheFileError) {
        guard result < 0 else { return }
        throw CacheFileError(operation: operation, code: errno)
    }

    /// The next bytes; fewer at the end of the file.
    private static func read(_ count: Int, from descriptor: Int32) throws(CacheFileError) -> Data {
        var data = Data(count: count)
        let result = data.withUnsafeMutableBytes { buffer -> Result<Int, CacheFileError> in
            var length = 0
            while let rest = buffer.baseAddress?.advanced(by: length), length < count {
                let step = Foundation.read(descriptor, rest, count - length)
                if step == 0 { break }
                if step > 0 { length += step }
                if step < 0, errno != EINTR { return .failure(CacheFileError(operation: .read, code: errno)) }
            }
            return .success(length)
        }
        return data.prefix(try result.get())
    }

    private static func write(_ piece: Data, to descriptor: Int32) throws(CacheFileError) {
        let result = piece.withUnsafeBytes { buffer -> Result<Void, CacheFileError> in
            var length = 0
            while let rest = buffer.baseAddress?.advanced(by: length), length < buffer.count {
                let step = Foundation.write(descriptor, rest, buffer.count - length)
                if step >= 0 { length += step }
                if step < 0, errno != EINTR { return .failure(CacheFileError(operation: .write, code: errno)) }
            }
            return .success(())
        }
        try result.get()
    }
}

extension CacheFileStatus {
    init(_ found: stat) {
        #if canImport(Darwin)
        let time = found.st_mtimespec
        #else
        let time = found.st_mtim
        #endif
        let seconds = TimeInterval(time.tv_sec) + TimeInterval(time.tv_nsec) / 1_000_000_000
        self.init(
            size: Int(clamping: found.st_size),
            usedAt: Date(timeIntervalSince1970: seconds),
            isFile: found.st_mode & S_IFMT == S_IFREG
        )
    }
}

extension timespec {
    /// The nearest date that a file system can store.
    fileprivate init(_ date: Date) {
        let seconds = date.timeIntervalSince1970
        let bounded = seconds > 0 ? min(seconds, TimeInterval(UInt32.max)) : 0
        let nanoseconds = (bounded - bounded.rounded(.down)) * 1_000_000_000
        self.init(tv_sec: Int(clamping: Int64(bounded)), tv_nsec: Int(nanoseconds))
    }
}
