#if os(Linux)
import CCurl
import Foundation

/// Plain libcurl: downloads are written with `write(2)` and uploads read with `pread(2)`, both on the thread of the
/// loop.
final class BareCurlCarrier: Carrier {
    struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    private let loop: BareCurl

    /// - Returns: nil without memory.
    init?() {
        guard let loop = BareCurl() else { return nil }
        self.loop = loop
    }

    func download(_ url: URL, to file: URL) throws {
        let file = try OpenFile(writing: file)
        // The handle does not retain the file.
        try withExtendedLifetime(file) {
            try run(url) { easy in
                _ = ccurl_set_pointer(easy, CCURLOPT_WRITEDATA, Unmanaged.passUnretained(file).toOpaque())
                _ = ccurl_set_transfer_function(easy, CCURLOPT_WRITEFUNCTION) { bytes, size, count, context in
                    guard let bytes, let context else { return 0 }
                    let file = Unmanaged<OpenFile>.fromOpaque(context).takeUnretainedValue()
                    let count = size * count
                    // A different number than that of the bytes ends the transfer.
                    return (try? file.write(UnsafeRawBufferPointer(start: bytes, count: count))) == nil ? 0 : count
                }
            }
        }
    }

    func upload(_ file: URL, to url: URL) throws -> Data {
        let source = Source(try OpenFile(reading: file))
        let answer = BareCurlBody()
        try withExtendedLifetime((source, answer)) {
            try run(url) { easy in
                answer.take(from: easy)
                _ = ccurl_set_long(easy, CCURLOPT_UPLOAD, 1)
                _ = ccurl_set_offset(easy, CCURLOPT_INFILESIZE_LARGE, Int64(LocalServer.bigCount))
                _ = ccurl_set_pointer(easy, CCURLOPT_READDATA, Unmanaged.passUnretained(source).toOpaque())
                _ = ccurl_set_transfer_function(easy, CCURLOPT_READFUNCTION) { bytes, size, count, context in
                    guard let bytes, let context else { return Int(CCURL_READFUNC_ABORT) }
                    let source = Unmanaged<Source>.fromOpaque(context).takeUnretainedValue()
                    let room = UnsafeMutableRawBufferPointer(start: bytes, count: size * count)
                    return (try? source.read(into: room)) ?? Int(CCURL_READFUNC_ABORT)
                }
            }
        }
        return answer.data
    }

    /// Runs a handle to its end.
    private func run(_ url: URL, _ prepare: (UnsafeMutableRawPointer) -> Void) throws {
        guard let easy = BareCurl.makeHandle(url) else { throw Failure(description: "no memory") }
        defer { ccurl_easy_cleanup(easy) }
        // The buffer size of the transport, so that the comparison is about the code around libcurl.
        _ = ccurl_set_long(easy, CCURLOPT_BUFFERSIZE, 65_536)
        _ = ccurl_set_long(easy, CCURLOPT_FAILONERROR, 1)
        prepare(easy)
        var result: ccurl_code?
        loop.run(CollectionOfOne(easy)) { _, ending in
            result = ending
            return false
        }
        guard let result else { throw Failure(description: "the loop of libcurl failed") }
        if result != CCURLE_OK { throw Failure(description: String(cString: ccurl_easy_strerror(result))) }
    }
}

/// A file that is read from its beginning to its end.
private final class Source {
    private let file: OpenFile
    private var position = 0

    init(_ file: OpenFile) {
        self.file = file
    }

    func read(into bytes: UnsafeMutableRawBufferPointer) throws -> Int {
        let count = try file.read(into: bytes, from: position)
        position += count
        return count
    }
}
#endif
