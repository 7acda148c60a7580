import Foundation

/// Opens files whose names come from outside: anything may be there. Has the disk keep what was written.
package enum RegularFile {
    /// Opens a regular file, and never waits: opening a pipe would block until somebody opens its other end.
    ///
    /// - Parameters:
    ///   - flags: those of open(2), to which the flags that keep it from waiting are added.
    ///   - mode: that of a file which is created. Default: its owner alone can read it.
    ///   - followsLinks: whether a symbolic link in its place is followed. Default false: it is an error.
    /// - Throws: the error of the system; `EISDIR` for anything that is no regular file.
    package static func open(
        _ path: String,
        _ flags: Int32,
        mode: mode_t = 0o600,
        followsLinks: Bool = false
    ) throws(POSIXError) -> (descriptor: Int32, status: stat) {
        let flags = flags | O_CLOEXEC | O_NONBLOCK | (followsLinks ? 0 : O_NOFOLLOW)
        let descriptor = Foundation.open(path, flags, mode)
        guard descriptor >= 0 else { throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO) }
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            close(descriptor)
            throw POSIXError(.EISDIR)
        }
        return (descriptor, status)
    }

    /// Has the disk keep what was written to a file, or which names a directory has.
    ///
    /// - Parameter isLast: whether all that was synced before must be on the disk when it returns. If not, it need only
    ///   be there before what is synced later, which is several times as fast on Darwin. Defaults to true.
    /// - Returns: 0, or −1 for an error.
    package static func sync(_ descriptor: Int32, isLast: Bool = true) -> Int32 {
        #if canImport(Darwin)
        // fsync leaves it in the memory of the drive there; not all file systems know this.
        if fcntl(descriptor, isLast ? F_FULLFSYNC : F_BARRIERFSYNC) == 0 { return 0 }
        #endif
        return fsync(descriptor)
    }
}
