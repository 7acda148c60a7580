#if os(Linux) || os(macOS)
import Foundation

/// The descriptor of an open file, which is closed when the object is released.
final class OpenFile: Sendable {
    private let descriptor: Int32

    /// Opens a file for writing from its beginning.
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

    /// Appends all bytes.
    func write(_ bytes: UnsafeRawBufferPointer) throws {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = systemWrite(descriptor, rest)
            guard count > 0 else { throw POSIXError.last }
            rest = rest.dropFirst(count)
        }
    }

    /// - Returns: the number of bytes; 0 at the end of the file.
    func read(into bytes: UnsafeMutableRawBufferPointer, from position: Int) throws -> Int {
        let count = pread(descriptor, bytes.baseAddress, bytes.count, off_t(position))
        guard count >= 0 else { throw POSIXError.last }
        return count
    }
}

// The function of libc has the name of the member.
private func systemWrite(_ descriptor: Int32, _ bytes: Slice<UnsafeRawBufferPointer>) -> Int {
    let bytes = UnsafeRawBufferPointer(rebasing: bytes)
    return write(descriptor, bytes.baseAddress, bytes.count)
}

extension POSIXError {
    /// The error of the last system call.
    static var last: POSIXError { POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO) }
}
#endif
