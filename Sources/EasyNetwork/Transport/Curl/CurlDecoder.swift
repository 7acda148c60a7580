#if os(Linux) && canImport(CCurl)
internal import CCurl
import Foundation

/// Takes off a content coding; used on the loop's thread only.
///
/// libcurl could, too, but it takes a body that is cut short for a whole one, and refuses a coding that it does not know.
final class CurlDecoder {
    private let name: String
    private let decoder: OpaquePointer
    private let output: UnsafeMutablePointer<UInt8>
    /// How many of the bytes that libcurl hands over again after a pause have been decoded.
    private var decodedCount = 0
    /// Whether there may be more of what was decoded last.
    private var isOutputFull = false
    /// Whether nothing has come.
    private var isEmpty = true

    private static let capacity = 65_536

    private static let known: [(name: String, bit: UInt32)] = [
        ("deflate", CCODING_DEFLATE), ("gzip", CCODING_GZIP), ("br", CCODING_BROTLI), ("zstd", CCODING_ZSTD),
    ]
    private static let found = ccoding_load()

    /// What can be taken off, for `Accept-Encoding`; nil for nothing.
    static let names: String? = {
        let names = known.filter { $0.bit & found != 0 }.map(\.name)
        return names.isEmpty ? nil : names.joined(separator: ", ")
    }()

    /// - Returns: nil when the body is to be handed over as it comes: it has no coding, several, or one that is not known;
    ///   or it is a part of what was coded as a whole (RFC 9110, section 14.2).
    init?(_ head: TransportHead) {
        guard head.statusCode != 206 else { return nil }
        let codings = head.headers.values(for: "Content-Encoding")
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

    /// - Parameter count: how many bytes libcurl hands over.
    /// - Returns: how many of them have been decoded before a pause. libcurl may cut them into other pieces then.
    func resume(_ count: Int) -> Int {
        let position = min(decodedCount, count)
        decodedCount -= position
        return position
    }

    /// - Parameter position: after how many of the bytes that libcurl hands over, and will again.
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
            // One that goes no further would be asked for ever.
            guard isGood, inputCount + outputCount > 0 || position == bytes.count else {
                throw NetworkError(code: .cannotParseResponse, message: "the body is no \(name)")
            }
            position += inputCount
            if outputCount > 0 { return Data(bytes: output, count: outputCount) }
        }
        return nil
    }

    /// - Returns: why what has come is not a whole body; nil when it is one. Nothing at all is: servers name a coding for
    ///   empty bodies, too.
    var problem: NetworkError? {
        guard !isEmpty, !ccoding_is_at_end(decoder) else { return nil }
        return NetworkError(code: .cannotParseResponse, message: "the body ends before its \(name) does")
    }
}
#endif
