#if os(Linux) && canImport(CCurl)
import Foundation

/// The head of a response, parsed line by line.
///
/// libcurl passes on every line: of 1xx responses, which are ignored, of the final response, and of trailers.
struct CurlHead {
    /// A complete head. It is compared with the next one, because most responses repeat most lines of the previous one.
    final class Parsed {
        let head: TransportHead
        /// The protocol, such as `HTTP/2`.
        let networkProtocol: String
        let isHTTP2: Bool
        let isChunked: Bool
        let hasContentCoding: Bool
        let hasTransferCoding: Bool
        /// The status line, a line for each field, and the blank line, with their line breaks.
        fileprivate let lines: [[UInt8]]

        fileprivate init(_ head: TransportHead, _ networkProtocol: String, lines: [[UInt8]]) {
            (self.head, self.networkProtocol, self.lines) = (head, networkProtocol, lines)
            isHTTP2 = networkProtocol.hasPrefix("HTTP/2")
            isChunked = head.headers["Transfer-Encoding"]?.lowercased().contains("chunked") == true
            (hasContentCoding, hasTransferCoding) = (head.hasContentCoding, head.hasTransferCoding)
        }
    }

    /// The bytes of a line, or of a part of it.
    private typealias Bytes = Slice<UnsafeBufferPointer<UInt8>>

    /// The maximum number of bytes of a response's header lines, including 1xx responses and trailers.
    static let byteLimit = 262_144
    /// The maximum number of a response's header fields, including 1xx responses and trailers.
    static let fieldLimit = 2_000

    /// The protocol of the final response, such as `HTTP/2`; empty before it.
    private(set) var networkProtocol = ""
    private(set) var isComplete = false

    private(set) var byteCount = 0
    private var fieldCount = 0
    private var statusCode: Int?
    private var fields: [HTTPHeaders.Field] = []
    private var lines: [[UInt8]] = []
    /// The head of an earlier response, and later this one; nil if its lines cannot be compared with its fields.
    private(set) var known: Parsed?
    /// The number of lines so far that equal the first known lines, which are then not copied; nil after a line
    /// differs.
    private var repeatedCount: Int?
    /// Whether a line continues the one before.
    private var isFolded = false

    init(like known: Parsed? = nil) {
        self.known = known
        repeatedCount = known == nil ? nil : 0
    }

    /// The trailer fields, which follow the body.
    var trailers: HTTPHeaders { isComplete ? HTTPHeaders(fields) : HTTPHeaders() }

    /// Adds a line.
    ///
    /// - Parameter line: The bytes with their line break.
    /// - Returns: The final head, once, when its last line is added.
    mutating func add(_ line: UnsafeRawBufferPointer) throws(NetworkError) -> Parsed? {
        byteCount += line.count
        guard byteCount <= Self.byteLimit else {
            throw Self.malformed("the header fields are longer than \(Self.byteLimit) bytes")
        }
        guard let known, let count = repeatedCount else { return try parse(line) }
        guard Self.isEqual(known.lines[count], line) else {
            copyRepeated(known, count)
            return try parse(line)
        }
        if count == 0 { networkProtocol = known.networkProtocol }
        repeatedCount = count + 1
        guard count + 1 == known.lines.count else { return nil }
        // The earlier head was checked, and all lines equal its lines.
        (repeatedCount, isComplete) = (nil, true)
        statusCode = known.head.statusCode
        try countFields(known.head.headers.count)
        return known
    }

    private static func isEqual(_ known: [UInt8], _ line: UnsafeRawBufferPointer) -> Bool {
        guard let start = line.baseAddress else { return known.isEmpty }
        return known.count == line.count && memcmp(known, start, line.count) == 0
    }

    private mutating func countFields(_ count: Int) throws(NetworkError) {
        fieldCount += count
        guard fieldCount <= Self.fieldLimit else { throw Self.malformed("over \(Self.fieldLimit) header fields") }
    }

    /// Copies the first known lines, which this head repeats.
    private mutating func copyRepeated(_ known: Parsed, _ count: Int) {
        repeatedCount = nil
        guard count > 0 else { return }
        statusCode = known.head.statusCode
        // Growing the arrays line by line would be most of the work.
        lines.reserveCapacity(14)
        lines += known.lines[..<count]
        fields.reserveCapacity(12)
        fields += known.head.headers[..<(count - 1)]
        fieldCount += count - 1
    }

    private mutating func parse(_ line: UnsafeRawBufferPointer) throws(NetworkError) -> Parsed? {
        let bytes = line.assumingMemoryBound(to: UInt8.self)
        var count = bytes.count
        while count > 0, bytes[count - 1] == 0x0D || bytes[count - 1] == 0x0A { count -= 1 }
        let content = bytes[..<count]
        guard let statusCode else {
            try checkEnd(of: content)
            try readStatusLine(content)
            lines.append(Array(line))
            return nil
        }
        if count == 0 { return isComplete ? nil : try end(statusCode, line) }
        try countFields(1)
        // After a line that differs, the next ones are often equal again.
        if let known, !isComplete, !isFolded, lines.count < known.lines.count - 1,
            Self.isEqual(known.lines[lines.count], line)
        {
            lines.append(known.lines[lines.count])
            fields.append(known.head.headers[fields.count])
            return nil
        }
        try checkEnd(of: content)
        try addField(content)
        if !isComplete { lines.append(Array(line)) }
        return nil
    }

    /// Throws if other parsers might take a byte of the line for its end (RFC 9110, section 5.5).
    private func checkEnd(of line: Bytes) throws(NetworkError) {
        if Self.index(of: 0x0D, in: line) != nil || Self.index(of: 0, in: line) != nil {
            throw Self.malformed("a line of the head contains a carriage return or NUL")
        }
    }

    private mutating func end(_ status: Int, _ line: UnsafeRawBufferPointer) throws(NetworkError) -> Parsed? {
        // 101 ends HTTP on the connection. The client did not request it, so it is the final response.
        if (100..<200).contains(status) && status != 101 {
            (statusCode, fields, lines, isFolded) = (nil, [], [], false)
            repeatedCount = known == nil ? nil : 0
            return nil
        }
        let head = TransportHead(statusCode: status, headers: HTTPHeaders(fields.take()))
        try head.checkLength()
        let parsed = Parsed(head, networkProtocol, lines: lines.take() + [Array(line)])
        (known, isComplete) = (isFolded ? nil : parsed, true)
        return parsed
    }

    private mutating func addField(_ content: Bytes) throws(NetworkError) {
        if content[content.startIndex].isBlank {
            guard let last = fields.indices.last else {
                throw Self.malformed("a folded line has no field before it")
            }
            guard !fields[last].isFraming else { throw Self.malformed("the field \(fields[last].name) is folded") }
            // A folded line continues the previous value (RFC 9112, section 5.2).
            let rest = Self.text(content)
            if !rest.isEmpty { fields[last].raw += (fields[last].raw.isEmpty ? "" : " ") + rest }
            isFolded = true
            return
        }
        guard let colon = Self.index(of: UInt8(ascii: ":"), in: content) else {
            throw Self.malformed("a header line has no colon: \(Self.text(content.prefix(80)).fieldText)")
        }
        let name = Self.text(content[..<colon])
        let field = HTTPHeaders.Field(name: name, value: Self.text(content[(colon + 1)...]))
        guard HTTPSyntax.isToken(name.utf8), name.utf8.count == colon - content.startIndex || !field.isFraming else {
            let start = Self.text(content.prefix(80)).fieldText
            throw Self.malformed("the name in a header line is not a token: \(start)")
        }
        fields.append(field)
    }

    private mutating func readStatusLine(_ line: Bytes) throws(NetworkError) {
        let version = line.prefix { $0 != UInt8(ascii: " ") }
        // A status has three digits. A blank precedes the reason, but some servers omit it (RFC 9112, section 4).
        let digits = line[version.endIndex...].dropFirst().prefix { $0 != UInt8(ascii: " ") }
        guard version.starts(with: "HTTP/".utf8), version.dropFirst(5).first?.isDigit == true,
            digits.count == 3, digits.allSatisfy(\.isDigit)
        else {
            throw Self.malformed("the first line is not a status line: \(Self.text(line.prefix(80)).fieldText)")
        }
        networkProtocol = Self.text(version)
        statusCode = digits.reduce(0) { 10 * $0 + Int($1 - UInt8(ascii: "0")) }
    }

    private static func index(of byte: UInt8, in bytes: Bytes) -> Int? {
        guard let start = bytes.base.baseAddress, let found = memchr(start + bytes.startIndex, Int32(byte), bytes.count)
        else { return nil }
        return UnsafeRawPointer(found) - UnsafeRawPointer(start)
    }

    /// Returns the string with its bytes, without the blanks around it.
    private static func text(_ bytes: Bytes) -> String {
        var (start, end) = (bytes.startIndex, bytes.endIndex)
        while start < end, bytes[start].isBlank { start += 1 }
        while start < end, bytes[end - 1].isBlank { end -= 1 }
        let bytes = UnsafeBufferPointer(rebasing: bytes[start..<end])
        // Nearly all values are ASCII. Decoding ASCII is much faster than decoding text that must be validated.
        if bytes.reduce(0, |) < 0x80 { return String(decoding: bytes, as: UTF8.self) }
        return String(fieldBytes: bytes)
    }

    private static func malformed(_ message: String) -> NetworkError {
        NetworkError(code: .badServerResponse, message: message)
    }
}
#endif
