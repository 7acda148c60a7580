#if os(Linux) && canImport(CCurl)
import Foundation

/// The bytes of a request's body, read piece by piece; used on the loop's thread only.
final class CurlBody {
    /// How many bytes are sent, whatever becomes of the file meanwhile.
    let count: Int
    private let data: Data
    private let descriptor: Int32?
    private var position = 0

    init(_ data: Data) {
        self.data = data
        count = data.count
        descriptor = nil
    }

    init(file: URL) throws(NetworkError) {
        // Without O_NONBLOCK, opening a pipe would wait for its other end.
        let descriptor = open(file.path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else {
            let reason = String(cString: strerror(errno))
            throw NetworkError(code: .invalidRequest, message: "the body's file \(file.path) cannot be read: \(reason)")
        }
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            close(descriptor)
            throw NetworkError(code: .invalidRequest, message: "the body's file \(file.path) is not a regular file")
        }
        self.descriptor = descriptor
        data = Data()
        count = Int(status.st_size)
    }

    deinit {
        if let descriptor { close(descriptor) }
    }

    /// Fills the buffer with the next bytes.
    ///
    /// - Returns: how many; 0 after the last.
    func read(into buffer: UnsafeMutableRawBufferPointer) throws(NetworkError) -> Int {
        let wanted = min(buffer.count, count - position)
        guard wanted > 0 else { return 0 }
        if let descriptor {
            let got = pread(descriptor, buffer.baseAddress, wanted, off_t(position))
            guard got > 0 else {
                let reason = got == 0 ? "it became shorter while it was sent" : String(cString: strerror(errno))
                throw NetworkError(code: .invalidRequest, message: "the body's file cannot be read: \(reason)")
            }
            position += got
            return got
        }
        let start = data.startIndex + position
        data.copyBytes(to: buffer, from: start..<(start + wanted))
        position += wanted
        return wanted
    }

    /// - Returns: false when there is no such place.
    func seek(to offset: Int) -> Bool {
        guard (0...count).contains(offset) else { return false }
        position = offset
        return true
    }
}
#endif
