#if os(Linux) && canImport(CCurl)
internal import CCurl
import Foundation

/// Removes the content codings of a body. It is used only on the loop's thread.
///
/// libcurl's own decoders accept a truncated body, and reject a coding that they do not know.
final class CurlDecoder {
    /// One stage for each coding, in the order of their removal. Each decodes the output of the previous stage.
    private let stages: [Stage]
    /// The number of bytes that have been decoded, out of those that libcurl passes on. After a pause, libcurl passes
    /// the same bytes on again, and can split them differently.
    private var position = 0

    /// The maximum number of codings of a body. Each takes memory, and multiplies the size to which a few bytes can
    /// expand.
    private static let codingLimit = 5

    private static let known: [(name: String, bit: UInt32)] = [
        ("deflate", CCODING_DEFLATE), ("gzip", CCODING_GZIP), ("br", CCODING_BROTLI), ("zstd", CCODING_ZSTD),
    ]
    private static let found = ccoding_load()

    /// The codings that can be removed, as a value of `Accept-Encoding`; nil if there are none.
    static let names: String? = {
        let names = known.filter { $0.bit & found != 0 }.map(\.name)
        return names.isEmpty ? nil : names.joined(separator: ", ")
    }()

    /// Creates a decoder for a response.
    ///
    /// - Parameter limit: The maximum number of bytes that a coding before the last can produce; nil for no limit. The
    ///   caller counts the bytes of the last coding.
    /// - Returns: Nil if the body must be passed on unchanged: it has no coding, it has an unknown coding, or it is a
    ///   part of a body that was coded as a whole (RFC 9110, section 14.2).
    init?(_ head: TransportHead, limit: Int?) throws(NetworkError) {
        guard head.statusCode != 206 else { return nil }
        // x-gzip is equivalent to gzip (RFC 9110, section 8.4.1.3).
        let codings = head.headers.contentCodings.map { $0 == "x-gzip" ? "gzip" : $0 }
        guard codings.count <= Self.codingLimit else {
            let message = "the body has \(codings.count) content codings, more than \(Self.codingLimit)"
            throw NetworkError(code: .cannotParseResponse, message: message)
        }
        var stages: [Stage] = []
        for (index, name) in codings.enumerated().reversed() {
            guard let bit = Self.known.first(where: { $0.name == name })?.bit, bit & Self.found != 0,
                let stage = Stage(name, bit, limit: index == 0 ? nil : limit)
            else { return nil }
            stages.append(stage)
        }
        if stages.isEmpty { return nil }
        self.stages = stages
    }

    /// Decodes some of the bytes.
    ///
    /// - Returns: The next piece of the body; nil if all bytes have been decoded.
    func piece(of bytes: UnsafeRawBufferPointer) throws(NetworkError) -> Data? {
        while true {
            // The last stage that has work runs first, because the stages before it have no space for more output.
            var (index, input) = (stages.count - 1, UnsafeRawBufferPointer(rebasing: bytes.dropFirst(position)))
            while index > 0, !stages[index].isOutputFull, stages[index - 1].rest.isEmpty { index -= 1 }
            if index > 0 { input = stages[index - 1].rest }
            guard stages[index].isOutputFull || !input.isEmpty else {
                position -= bytes.count
                return nil
            }
            let count = try stages[index].decode(input)
            if index > 0 { stages[index - 1].skip(count) } else { position += count }
            if index == stages.count - 1, let piece = stages[index].takeOutput() { return piece }
        }
    }

    /// The reason why the bytes so far are not a complete body; nil if they are.
    var problem: NetworkError? {
        stages.first { !$0.isWhole }.map {
            NetworkError(code: .cannotParseResponse, message: "the body ends before its \($0.name) coding does")
        }
    }
}

/// The decoder of one coding.
private final class Stage {
    let name: String
    private let decoder: OpaquePointer
    private let output: UnsafeMutableRawBufferPointer
    /// The part of the output that has not been consumed.
    private var range = 0..<0
    /// Whether the last input can produce more output.
    private(set) var isOutputFull = false
    /// Whether no byte has arrived.
    private var isEmpty = true
    private var limit: DecodedBodyLimit?

    private static let capacity = 65_536

    init?(_ name: String, _ bit: UInt32, limit: Int?) {
        guard let decoder = ccoding_new(bit) else { return nil }
        (self.name, self.decoder) = (name, decoder)
        self.limit = limit.map(DecodedBodyLimit.init)
        output = .allocate(byteCount: Self.capacity, alignment: 1)
    }

    deinit {
        ccoding_free(decoder)
        output.deallocate()
    }

    var rest: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: output[range]) }

    func skip(_ count: Int) {
        range = (range.lowerBound + count)..<range.upperBound
    }

    func takeOutput() -> Data? {
        defer { range = 0..<0 }
        return range.isEmpty ? nil : Data(rest)
    }

    /// Decodes input, and replaces the output.
    ///
    /// - Returns: The number of input bytes that were decoded.
    func decode(_ input: UnsafeRawBufferPointer) throws(NetworkError) -> Int {
        if !input.isEmpty { isEmpty = false }
        var (inputCount, outputCount) = (input.count, Self.capacity)
        let isGood = ccoding_decode(
            decoder,
            input.assumingMemoryBound(to: UInt8.self).baseAddress,
            &inputCount,
            output.assumingMemoryBound(to: UInt8.self).baseAddress,
            &outputCount
        )
        isOutputFull = outputCount == Self.capacity
        // Without this check, a decoder that makes no progress would loop forever.
        guard isGood, inputCount + outputCount > 0 || input.isEmpty else {
            throw NetworkError(code: .cannotParseResponse, message: "the body is not valid \(name)")
        }
        try limit?.take(outputCount)
        range = 0..<outputCount
        return inputCount
    }

    /// Whether the bytes so far are complete. An empty body is complete, because servers name a coding for it, too.
    var isWhole: Bool { isEmpty || ccoding_is_at_end(decoder) }
}
#endif
