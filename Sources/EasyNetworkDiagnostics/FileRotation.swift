import EasyNetwork
import Foundation

/// A rule for when a log or recording starts a new file, and how many files are kept.
///
/// ```swift
/// let rotation = FileRotation(maximumBytes: 1_000_000, maximumAge: 86_400, maximumCount: 7)
/// let logger = try NetworkLogger(file: URL(fileURLWithPath: "network.log"), rotation: rotation)
/// ```
///
/// The current file keeps its name, and older files have numbers: `network.log`, `network.1.log`, `network.2.log`. If
/// the file already exists when a log or recording is created, it becomes the first of the older files. Only the owner
/// can read and write the files. A file belongs to one log or recording of one process at a time.
public struct FileRotation: Hashable, Sendable {
    /// The maximum bytes of a file. A line or an entry that is longer has a file of its own. Defaults to 10,000,000.
    public var maximumBytes: Int

    /// The age of a file in seconds after which the next line or entry starts a new file. Defaults to `nil`: no limit.
    public var maximumAge: TimeInterval?

    /// The maximum number of files, including the current one; less than 1 counts as 1. The oldest file is removed.
    /// Defaults to 5.
    public var maximumCount: Int

    /// Creates a rotation. Each parameter defaults to the property's default.
    public init(maximumBytes: Int = 10_000_000, maximumAge: TimeInterval? = nil, maximumCount: Int = 5) {
        self.maximumBytes = maximumBytes
        self.maximumAge = maximumAge
        self.maximumCount = maximumCount
    }

    /// - Parameter count: the bytes of the file, including the next line or entry.
    func isOver(_ count: Int, age: TimeInterval) -> Bool {
        count > maximumBytes || maximumAge.map { age >= $0 } ?? false
    }
}

/// The files of a log or a recording.
struct RotatedFiles: Sendable {
    let path: String
    /// The rotation; `nil` for a single file, which is overwritten.
    let rotation: FileRotation?

    private var count: Int { max(1, rotation?.maximumCount ?? 1) }

    /// - Throws: ``/EasyNetwork/NetworkError/Code/cannotWriteFile`` if the URL is not a file URL.
    init(_ file: URL, _ rotation: FileRotation?) throws(NetworkError) {
        guard file.isFileURL else {
            let message = "a log or recording needs a file URL, but got \(file.withoutSecrets)"
            throw NetworkError(code: .cannotWriteFile, message: message)
        }
        (path, self.rotation) = (file.path, rotation)
    }

    /// Returns the name of an older file, such as `network.1.log`.
    func name(_ number: Int) -> String {
        let slash = path.lastIndex(of: "/") ?? path.startIndex
        guard let dot = path[slash...].lastIndex(of: "."), dot > path.index(slash, offsetBy: 1, limitedBy: dot) ?? dot
        else { return "\(path).\(number)" }
        return "\(path[..<dot]).\(number)\(path[dot...])"
    }

    /// Moves the file of an earlier process aside, and removes files beyond the maximum number.
    func begin() -> Bool {
        guard rotation != nil else { return true }
        var number = count
        while number < .max, unlink(name(number)) == 0 { number += 1 }
        var status = stat()
        // A device or a pipe is not moved.
        guard lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG, status.st_size > 0 else { return true }
        return moveAside()
    }

    /// Gives each file the next number.
    ///
    /// - Returns: false if a file cannot be moved. `errno` then contains the reason.
    func moveAside() -> Bool {
        guard count > 1 else { return unlink(path) == 0 || errno == ENOENT }
        // Files after the first gap are not moved, so repeating a failed move doesn't renumber the other files again.
        var last = 1
        var status = stat()
        while last < count - 1, lstat(name(last), &status) == 0 { last += 1 }
        for number in stride(from: last, to: 0, by: -1) {
            let old = number > 1 ? name(number - 1) : path
            guard rename(old, name(number)) == 0 || errno == ENOENT else { return false }
        }
        return true
    }

    /// Opens the file with permissions for its owner only. A symbolic link at the path is not followed.
    ///
    /// - Parameter flags: flags in addition to the ones that create the file.
    /// - Returns: the descriptor, and whether it is a regular file, not a device or pipe. `nil` if the file cannot be
    ///   opened; `errno` then contains the reason.
    func open(_ flags: Int32) -> (descriptor: Int32, isFile: Bool)? {
        let descriptor = Foundation.open(path, flags | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { return nil }
        // The permissions are set before the file contains secrets. A device or a pipe keeps its mode.
        var status = stat()
        let isFile = fstat(descriptor, &status) == 0 && status.st_mode & S_IFMT == S_IFREG
        if isFile, fchmod(descriptor, 0o600) != 0 || ftruncate(descriptor, 0) != 0 {
            let reason = errno
            close(descriptor)
            errno = reason
            return nil
        }
        return (descriptor, isFile)
    }
}
