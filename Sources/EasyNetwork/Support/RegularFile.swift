import Foundation

/// Opens files whose names come from outside, where anything can be, and syncs files and directories to the disk.
package enum RegularFile {
    /// Opens a regular file without ever waiting. Opening a pipe would block until another process opens its other end.
    ///
    /// - Parameters:
    ///   - flags: The flags of open(2). The method adds flags that keep the call from waiting.
    ///   - followsLinks: Whether a symbolic link at the path is followed. Defaults to `false`: a link is an error.
    /// - Throws: The system's error; `EISDIR` for anything that is not a regular file.
    package static func open(
        _ path: String,
        _ flags: Int32,
        followsLinks: Bool = false
    ) throws(POSIXError) -> (descriptor: Int32, status: stat) {
        let flags = flags | O_CLOEXEC | O_NONBLOCK | (followsLinks ? 0 : O_NOFOLLOW)
        // Only its owner can read and write a file that is created.
        let descriptor = Foundation.open(path, flags, 0o600)
        guard descriptor >= 0 else { throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO) }
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            close(descriptor)
            throw POSIXError(.EISDIR)
        }
        return (descriptor, status)
    }

    /// Syncs the contents of a file, or the names in a directory, to the disk.
    ///
    /// - Parameter isLast: Whether all that was synced before must be on the disk when the method returns. If false, it
    ///   need only reach the disk before anything that is synced later, which is several times as fast on Darwin.
    ///   Defaults to `true`.
    /// - Returns: 0, or −1 for an error.
    package static func sync(_ descriptor: Int32, isLast: Bool = true) -> Int32 {
        #if canImport(Darwin)
        // On Darwin, fsync leaves the data in the drive's cache. Some file systems do not support these commands.
        if fcntl(descriptor, isLast ? F_FULLFSYNC : F_BARRIERFSYNC) == 0 { return 0 }
        #endif
        return fsync(descriptor)
    }
}

extension stat {
    /// The time of the last change.
    var modified: timespec {
        #if canImport(Darwin)
        st_mtimespec
        #else
        st_mtim
        #endif
    }
}
