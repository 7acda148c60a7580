import Foundation

#if canImport(Compression)
import Compression
#elseif os(Linux) && canImport(CCurl)
internal import CCurl
#endif

/// A gzip compressor (RFC 1952) that works piece by piece. The output depends only on the input: the header contains
/// neither a time nor a file name.
final class GzipCompressor: @unchecked Sendable {
    // The class is Sendable because one task uses a compressor, from the first byte to the last.

    #if canImport(Compression)
    private final class Output {
        // The header: DEFLATE, no optional fields, no time, made on Unix.
        var bytes = Data([0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 3])
    }

    private let output: Output
    private let filter: OutputFilter
    private var checksum = CRC32()
    /// The number of input bytes, modulo 2³².
    private var count: UInt32 = 0

    static func check() throws(NetworkError) {}

    init() throws(NetworkError) {
        let output = Output()
        self.output = output
        do {
            // The framework's zlib writes raw DEFLATE, without gzip's header and trailer.
            filter = try OutputFilter(.compress, using: .zlib) { output.bytes += $0 ?? Data() }
        } catch {
            throw Self.failure(error.localizedDescription)
        }
    }

    /// - Parameter isLast: whether nothing follows the bytes. Defaults to `false`.
    /// - Returns: the compressed bytes that are complete so far, often none; with `isLast`, all that remain.
    func compress(_ data: Data, isLast: Bool = false) throws(NetworkError) -> Data {
        checksum.append(data)
        count &+= UInt32(truncatingIfNeeded: data.count)
        do {
            // The filter would take empty data for the end.
            if !data.isEmpty { try filter.write(data) }
            if isLast { try filter.finalize() }
        } catch {
            throw Self.failure(error.localizedDescription)
        }
        var result = exchange(&output.bytes, with: Data())
        for number in isLast ? [checksum.value, count] : [] {
            withUnsafeBytes(of: number.littleEndian) { result.append(contentsOf: $0) }
        }
        return result
    }
    #elseif os(Linux) && canImport(CCurl)
    private let writer: OpaquePointer
    private let output: UnsafeMutablePointer<UInt8>

    private static let capacity = 65_536
    private static let isFound = cgzip_load()

    /// - Throws: if there is no compressor.
    static func check() throws(NetworkError) {
        guard isFound else { throw failure("zlib (libz.so.1) was not found; install it") }
    }

    init() throws(NetworkError) {
        try Self.check()
        guard let writer = cgzip_new() else { throw Self.failure("no memory is left") }
        self.writer = writer
        output = .allocate(capacity: Self.capacity)
    }

    deinit {
        cgzip_free(writer)
        output.deallocate()
    }

    /// - Parameter isLast: whether nothing follows the bytes. Defaults to `false`.
    /// - Returns: the compressed bytes that are complete so far, often none; with `isLast`, all that remain.
    func compress(_ data: Data, isLast: Bool = false) throws(NetworkError) -> Data {
        var result = Data()
        let isWritten = data.withUnsafeBytes { bytes in
            let input = bytes.assumingMemoryBound(to: UInt8.self).baseAddress
            var position = 0
            while true {
                var inputCount = bytes.count - position
                var outputCount = Self.capacity
                let isGood = cgzip_write(writer, input.map { $0 + position }, &inputCount, output, &outputCount, isLast)
                position += inputCount
                result.append(output, count: outputCount)
                // Stop if zlib makes no progress: the loop would run forever.
                guard isGood, inputCount + outputCount > 0 || position == bytes.count else { return false }
                if position == bytes.count, outputCount < Self.capacity { return true }
            }
        }
        guard isWritten else { throw Self.failure("zlib failed") }
        return result
    }
    #else
    static func check() throws(NetworkError) {
        throw failure("this platform has no compressor")
    }

    init() throws(NetworkError) {
        try Self.check()
    }

    func compress(_ data: Data, isLast: Bool = false) throws(NetworkError) -> Data { data }
    #endif

    private static func failure(_ reason: String) -> NetworkError {
        .invalidRequest("the body cannot be compressed: \(reason)")
    }
}
