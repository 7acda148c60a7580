import Foundation

/// Splits bytes into lines, wherever the chunks begin and end.
///
/// A line ends with a line feed, or with a carriage return and a line feed, which are not part of the line. Bytes that
/// are not UTF-8 become U+FFFD.
struct LineSplitter {
    private static let lineFeed = UInt8(ascii: "\n")
    private static let carriageReturn = UInt8(ascii: "\r")

    private let maximumByteCount: Int
    private let endsAtCarriageReturn: Bool
    private var bytes: [UInt8] = []
    /// The start of the next line.
    private var start = 0
    /// The index before which no line ends, so that no byte is searched twice.
    private var searched = 0
    /// Whether the last line ended with a carriage return, so that a line feed can follow.
    private var passesLineFeed = false

    /// Creates a splitter.
    ///
    /// - Parameters:
    ///   - maximumByteCount: The maximum length of a line without its end, in bytes.
    ///   - endsAtCarriageReturn: Whether a carriage return alone also ends a line, without waiting for the next byte.
    init(maximumByteCount: Int, endsAtCarriageReturn: Bool = false) {
        self.maximumByteCount = max(0, maximumByteCount)
        self.endsAtCarriageReturn = endsAtCarriageReturn
    }

    mutating func append(_ data: Data) {
        // The array moves no more bytes than it removes.
        if start > bytes.count / 2 {
            bytes.removeFirst(start)
            searched -= start
            start = 0
        }
        bytes.append(contentsOf: data)
    }

    /// Returns the next complete line; nil if there is none.
    ///
    /// - Throws: ``NetworkError/Code/bodyTooLong`` for a line that is too long, complete or not.
    mutating func next() throws(NetworkError) -> String? {
        if passesLineFeed, start < bytes.count {
            passesLineFeed = false
            if bytes[start] == Self.lineFeed { start += 1 }
            searched = max(searched, start)
        }
        guard let end = firstEnd() else {
            searched = bytes.count
            try check(withoutCarriageReturn(bytes.count))
            return nil
        }
        let isLineFeed = bytes[end] == Self.lineFeed
        passesLineFeed = !isLineFeed
        let line = start..<(isLineFeed ? withoutCarriageReturn(end) : end)
        try check(line.upperBound)
        start = end + 1
        searched = start
        return String(decoding: bytes[line], as: UTF8.self)
    }

    /// Returns the text after the end of the last line; nil if there is none.
    mutating func last() throws(NetworkError) -> String? {
        guard start < bytes.count else { return nil }
        try check(bytes.count)
        defer { start = bytes.count }
        return String(decoding: bytes[start...], as: UTF8.self)
    }

    private func firstEnd() -> Int? {
        bytes.withUnsafeBytes { bytes in
            guard endsAtCarriageReturn else {
                guard let base = bytes.baseAddress,
                    let end = memchr(base + searched, Int32(Self.lineFeed), bytes.count - searched)
                else { return nil }
                return UnsafeRawPointer(end) - base
            }
            return bytes[searched...].firstIndex { $0 == Self.lineFeed || $0 == Self.carriageReturn }
        }
    }

    private func withoutCarriageReturn(_ end: Int) -> Int {
        end > start && bytes[end - 1] == Self.carriageReturn ? end - 1 : end
    }

    private func check(_ end: Int) throws(NetworkError) {
        guard end - start > maximumByteCount else { return }
        throw NetworkError(code: .bodyTooLong, message: "a line is longer than \(maximumByteCount) bytes")
    }
}
