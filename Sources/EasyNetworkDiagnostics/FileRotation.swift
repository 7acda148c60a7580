import EasyNetwork
import Foundation

/// When a log or a recording begins a new file, and how many files there are.
///
/// ```swift
/// let rotation = FileRotation(maximumBytes: 1_000_000, maximumAge: 86_400, maximumCount: 7)
/// let logger = try NetworkLogger(file: URL(fileURLWithPath: "network.log"), rotation: rotation)
/// ```
///
/// The file keeps its name, and older ones have numbers: `network.log`, `network.1.log`, `network.2.log`. A file that
/// is there when a program starts becomes the first of the older ones. All of them may be read and written by their
/// owner only. A file belongs to one log or recording of one process at a time.
public struct FileRotation: Hashable, Sendable {
    /// The bytes of a file. A line or an entry that is longer has a file of its own. Default 10,000,000.
    public var maximumBytes: Int

    /// The seconds after which the next line or entry begins a new file, counted from the beginning of the file.
    /// Default nil: no limit.
    public var maximumAge: TimeInterval?

    /// The number of files, with the one that is written; less than 1 counts as 1. The oldest is removed. Default 5.
    public var maximumCount: Int

    /// Creates a rotation. The defaults are those of the properties.
    public init(maximumBytes: Int = 10_000_000, maximumAge: TimeInterval? = nil, maximumCount: Int = 5) {
        self.maximumBytes = maximumBytes
        self.maximumAge = maximumAge
        self.maximumCount = maximumCount
    }

    /// - Parameter count: the bytes of the file with what comes.
    func isOver(_ count: Int, age: TimeInterval) -> Bool {
        count > maximumBytes || maximumAge.map { age >= $0 } ?? false
    }
}

/// The files of a log or a recording.
struct RotatedFiles: Sendable {
    let path: String
    /// Nil for a single file, which is overwritten.
    let rotation: FileRotation?

    private var count: Int { max(1, rotation?.maximumCount ?? 1) }

    /// - Throws: ``/EasyNetwork/NetworkError/Code/cannotWriteFile``.
    init(_ file: URL, _ rotation: FileRotation?) throws(NetworkError) {
        guard file.isFileURL else {
            throw NetworkError(code: .cannotWriteFile, message: "\(file.withoutSecrets) is no address of a file")
        }
        (path, self.rotation) = (file.path, rotation)
    }

    /// The name of an older file: `network.1.log`.
    func name(_ number: Int) -> String {
        let slash = path.lastIndex(of: "/") ?? path.startIndex
        guard let dot = path[slash...].lastIndex(of: "."), dot > path.index(slash, offsetBy: 1, limitedBy: dot) ?? dot
        else { return "\(path).\(number)" }
        return "\(path[..<dot]).\(number)\(path[dot...])"
    }

    /// Moves a file of an earlier program aside, and removes those that are too many.
    func begin() -> Bool {
        guard rotation != nil else { return true }
        var number = count
        while number < .max, unlink(name(number)) == 0 { number += 1 }
        var status = stat()
        // A device or a pipe stays.
        guard lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG, status.st_size > 0 else { return true }
        return moveAside()
    }

    /// Gives each file the next number.
    ///
    /// - Returns: false when a file cannot be moved; `errno` says why.
    func moveAside() -> Bool {
        guard count > 1 else { return unlink(path) == 0 || errno == ENOENT }
        // Up to the first number that is free: a step that fails is done again without moving the others once more.
        var last = 1
        var status = stat()
        while last < count - 1, lstat(name(last), &status) == 0 { last += 1 }
        for number in stride(from: last, to: 0, by: -1) {
            let old = number > 1 ? name(number - 1) : path
            guard rename(old, name(number)) == 0 || errno == ENOENT else { return false }
        }
        return true
    }

    /// Opens the file for its owner alone. A symbolic link in its place is not followed.
    ///
    /// - Parameter flags: besides those that create it.
    /// - Returns: the descriptor, and whether it is a file and no device or pipe; nil when it cannot be opened, and
    ///   `errno` says why.
    func open(_ flags: Int32) -> (descriptor: Int32, isFile: Bool)? {
        let descriptor = Foundation.open(path, flags | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { return nil }
        // Before the first secret is in it. A device or a pipe keeps its mode.
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
