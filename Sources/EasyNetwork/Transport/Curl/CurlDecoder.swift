#if os(Linux) && canImport(CCurl)
internal import CCurl
import Foundation

/// Removes the content codings of a body; used on the loop's thread only.
///
/// libcurl's own decoders accept a body that is cut short and refuse a coding that they do not know.
final class CurlDecoder {
    /// One for each coding, in the order of their removal: each decodes the output of the one before.
    private let stages: [Stage]
    /// How many of the bytes that libcurl passes on again after a pause have been decoded.
    private var decodedCount = 0

    /// The most codings of a body. Each of them takes memory, and multiplies what a few bytes can become.
    private static let codingLimit = 5

    private static let known: [(name: String, bit: UInt32)] = [
        ("deflate", CCODING_DEFLATE), ("gzip", CCODING_GZIP), ("br", CCODING_BROTLI), ("zstd", CCODING_ZSTD),
    ]
    private static let found = ccoding_load()

    /// The codings that can be removed, for `Accept-Encoding`; nil for none.
    static let names: String? = {
        let names = known.filter { $0.bit & found != 0 }.map(\.name)
        return names.isEmpty ? nil : names.joined(separator: ", ")
    }()

    /// - Parameter limit: The most bytes that a coding before the last may become; nil for any number. The caller counts
    ///   those of the last.
    /// - Returns: nil if the body is to be passed on as is: it has no coding, or an unknown one; or it is a part of what
    ///   was coded as a whole (RFC 9110, section 14.2).
    init?(_ head: TransportHead, limit: Int?) throws(NetworkError) {
        guard head.statusCode != 206 else { return nil }
        // RFC 9110, section 8.4.1.3.
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
        while true {
            // The last stage that has work goes first, as those before it have no place for more output.
            var (index, input) = (stages.count - 1, UnsafeRawBufferPointer(rebasing: bytes[position...]))
            while index > 0, !stages[index].isOutputFull, stages[index - 1].rest.isEmpty { index -= 1 }
            if index > 0 { input = stages[index - 1].rest }
            guard stages[index].isOutputFull || !input.isEmpty else { return nil }
            let count = try stages[index].decode(input)
            if index > 0 { stages[index - 1].skip(count) } else { position += count }
            if index == stages.count - 1, let piece = stages[index].takeOutput() { return piece }
        }
    }

    /// The reason why the bytes so far are not a whole body; nil if they are.
    var problem: NetworkError? {
        stages.first { !$0.isWhole }.map {
            NetworkError(code: .cannotParseResponse, message: "the body ends before its \($0.name) does")
        }
    }
}

/// The decoder of one coding.
private final class Stage {
    let name: String
    private let decoder: OpaquePointer
    private let output: UnsafeMutableRawBufferPointer
    /// The part of the output that has not been used.
    private var range = 0..<0
    /// Whether there may be more output for the last input.
    private(set) var isOutputFull = false
    /// Whether no byte has come.
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

    /// Replaces the output.
    ///
    /// - Returns: how many bytes of the input were decoded.
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
        // A decoder that makes no progress would loop forever.
        guard isGood, inputCount + outputCount > 0 || input.isEmpty else {
            throw NetworkError(code: .cannotParseResponse, message: "the body is not \(name)")
        }
        try limit?.take(outputCount)
        range = 0..<outputCount
        return inputCount
    }

    /// Whether the bytes so far are a whole. No byte at all is: servers name a coding for empty bodies too.
    var isWhole: Bool { isEmpty || ccoding_is_at_end(decoder) }
}
#endif
