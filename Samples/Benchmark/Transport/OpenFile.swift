#if os(Linux) || os(macOS)
import Foundation

/// A file as the system knows it: a descriptor, which is closed when nobody holds this any more.
final class OpenFile: Sendable {
    private let descriptor: Int32

    /// Opens a file that is to be written from its beginning.
    convenience init(writing file: URL) throws {
        try self.init(file, O_WRONLY | O_CREAT | O_TRUNC)
    }

    convenience init(reading file: URL) throws {
        try self.init(file, O_RDONLY)
    }

    private init(_ file: URL, _ flags: Int32) throws {
        descriptor = open(file.path, flags | O_CLOEXEC, 0o600)
        if descriptor < 0 { throw POSIXError.last }
    }

    deinit {
        close(descriptor)
    }

    /// Writes all of it behind what was written before.
    func write(_ bytes: UnsafeRawBufferPointer) throws {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = systemWrite(descriptor, rest)
            guard count > 0 else { throw POSIXError.last }
            rest = rest.dropFirst(count)
        }
    }

    /// - Returns: how many bytes were read; 0 at the end of the file.
    func read(into bytes: UnsafeMutableRawBufferPointer, from position: Int) throws -> Int {
        let count = pread(descriptor, bytes.baseAddress, bytes.count, off_t(position))
        guard count >= 0 else { throw POSIXError.last }
        return count
    }
}

// libc's function has the name of the member.
private func systemWrite(_ descriptor: Int32, _ bytes: Slice<UnsafeRawBufferPointer>) -> Int {
    let bytes = UnsafeRawBufferPointer(rebasing: bytes)
    return write(descriptor, bytes.baseAddress, bytes.count)
}

extension POSIXError {
    /// Why the last call to the system failed.
    static var last: POSIXError { POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO) }
}
#endif
