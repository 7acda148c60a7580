#if os(Linux) && canImport(CCurl)
import Foundation

/// The bytes of a request's body, read piece by piece; used on the loop's thread only.
protocol CurlBody: AnyObject {
    /// How many bytes are sent, whatever becomes of their source meanwhile; nil when nobody knows.
    var count: Int? { get }
    /// Whether all of them have been read.
    var isAtEnd: Bool { get }

    /// Fills the buffer with the next bytes.
    ///
    /// - Returns: how many; 0 after the last; nil when there are none yet.
    func read(into buffer: UnsafeMutableRawBufferPointer) throws(NetworkError) -> Int?

    /// Begins again.
    ///
    /// - Returns: false when that cannot be.
    func rewind() -> Bool
}

final class CurlDataBody: CurlBody {
    private let data: Data
    private var position = 0

    init(_ data: Data) {
        self.data = data
    }

    var count: Int? { data.count }
    var isAtEnd: Bool { position == data.count }

    func read(into buffer: UnsafeMutableRawBufferPointer) -> Int? {
        let wanted = min(buffer.count, data.count - position)
        let start = data.startIndex + position
        data.copyBytes(to: buffer, from: start..<(start + wanted))
        position += wanted
        return wanted
    }

    func rewind() -> Bool {
        position = 0
        return true
    }
}

final class CurlFileBody: CurlBody {
    private let descriptor: Int32
    private let length: Int
    private var position = 0

    init(_ file: URL) throws(NetworkError) {
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
        length = Int(status.st_size)
    }

    deinit {
        close(descriptor)
    }

    var count: Int? { length }
    var isAtEnd: Bool { position == length }

    func read(into buffer: UnsafeMutableRawBufferPointer) throws(NetworkError) -> Int? {
        let wanted = min(buffer.count, length - position)
        guard wanted > 0 else { return 0 }
        let got = pread(descriptor, buffer.baseAddress, wanted, off_t(position))
        guard got > 0 else {
            let reason = got == 0 ? "it became shorter while it was sent" : String(cString: strerror(errno))
            throw NetworkError(code: .invalidRequest, message: "the body's file cannot be read: \(reason)")
        }
        position += got
        return got
    }

    func rewind() -> Bool {
        position = 0
        return true
    }
}
#endif
