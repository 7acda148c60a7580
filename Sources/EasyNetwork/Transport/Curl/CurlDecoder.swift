#if os(Linux) && canImport(CCurl)
internal import CCurl
import Foundation

/// Removes a content coding; used on the loop's thread only.
///
/// libcurl's own decoders accept a body that is cut short and refuse a coding that they do not know.
final class CurlDecoder {
    private let name: String
    private let decoder: OpaquePointer
    private let output: UnsafeMutablePointer<UInt8>
    /// How many of the bytes that libcurl passes on again after a pause have been decoded.
    private var decodedCount = 0
    /// Whether there may be more output for the last input.
    private var isOutputFull = false
    /// Whether no byte has come.
    private var isEmpty = true

    private static let capacity = 65_536

    private static let known: [(name: String, bit: UInt32)] = [
        ("deflate", CCODING_DEFLATE), ("gzip", CCODING_GZIP), ("br", CCODING_BROTLI), ("zstd", CCODING_ZSTD),
    ]
    private static let found = ccoding_load()

    /// The codings that can be removed, for `Accept-Encoding`; nil for none.
    static let names: String? = {
        let names = known.filter { $0.bit & found != 0 }.map(\.name)
        return names.isEmpty ? nil : names.joined(separator: ", ")
    }()

    /// - Returns: nil if the body is to be passed on as is: it has no coding, several, or an unknown one; or it is a
    ///   part of what was coded as a whole (RFC 9110, section 14.2).
    init?(_ head: TransportHead) {
        guard head.statusCode != 206 else { return nil }
        let fields = head.headers.values(for: "Content-Encoding")
        if fields.isEmpty { return nil }
        let codings =
            fields
            .flatMap { $0.split(separator: ",") }
            .map { $0.trimmingCharacters(in: .whitespaces).lowercased() }
            .filter { !$0.isEmpty && $0 != "identity" }
        // RFC 9110, section 8.4.1.3.
        guard codings.count == 1, let name = codings.first.map({ $0 == "x-gzip" ? "gzip" : $0 }),
            let bit = Self.known.first(where: { $0.name == name })?.bit, bit & Self.found != 0,
            let decoder = ccoding_new(bit)
        else { return nil }
        self.name = name
        self.decoder = decoder
        output = .allocate(capacity: Self.capacity)
    }

    deinit {
        ccoding_free(decoder)
        output.deallocate()
    }

    /// - Parameter count: How many bytes libcurl passes on.
    /// - Returns: how many of them were decoded before a pause. libcurl may cut them into other pieces.
    func resume(_ count: Int) -> Int {
        let position = min(decodedCount, count)
        decodedCount -= position
        return position
    }

    /// - Parameter position: How many of the bytes, which libcurl will pass on again, have been decoded.
    func pause(at position: Int) {
        decodedCount += position
    }

    /// Decodes some of the bytes from a position on.
    ///
    /// - Returns: the next piece of the body; nil when all bytes are decoded.
    func piece(of bytes: UnsafeRawBufferPointer, from position: inout Int) throws(NetworkError) -> Data? {
        if !bytes.isEmpty { isEmpty = false }
        let input = bytes.assumingMemoryBound(to: UInt8.self).baseAddress
        while position < bytes.count || isOutputFull {
            var inputCount = bytes.count - position
            var outputCount = Self.capacity
            let isGood = ccoding_decode(decoder, input.map { $0 + position }, &inputCount, output, &outputCount)
            isOutputFull = outputCount == Self.capacity
            // A decoder that makes no progress would loop for ever.
            guard isGood, inputCount + outputCount > 0 || position == bytes.count else {
                throw NetworkError(code: .cannotParseResponse, message: "the body is not \(name)")
            }
            position += inputCount
            if outputCount > 0 { return Data(bytes: output, count: outputCount) }
        }
        return nil
    }

    /// The reason why the bytes so far are not a whole body; nil if they are. No byte at all is: servers name a coding
    /// for empty bodies too.
    var problem: NetworkError? {
        guard !isEmpty, !ccoding_is_at_end(decoder) else { return nil }
        return NetworkError(code: .cannotParseResponse, message: "the body ends before its \(name) does")
    }
}
#endif
