#if os(Linux) && canImport(CCurl)
import Foundation

/// The head of a response, parsed line by line.
///
/// libcurl passes on every line: of 1xx responses, which are ignored, of the final response, and of trailers.
struct CurlHead {
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
    /// The head of an earlier response, and later this one. Most lines are repeated, and need not be parsed again.
    private(set) var known: TransportHead
    /// The number of lines so far that equal the first known fields, which are then not copied; nil after a line
    /// differs.
    private var knownCount: Int? = 0
    /// Whether a value differs from its bytes when read as text. Such a value cannot be compared with later lines.
    private var hasKeptBytes = false

    /// A head without lines, which no response has.
    static let none = TransportHead(statusCode: 0)

    init(like known: TransportHead = Self.none) {
        self.known = known
    }

    /// The trailer fields, which follow the body.
    var trailers: HTTPHeaders { isComplete ? HTTPHeaders(fields) : HTTPHeaders() }

    /// Whether no line has arrived.
    var isEmpty: Bool { byteCount == 0 }

    /// Adds a line.
    ///
    /// - Parameter line: The bytes with their line break.
    /// - Returns: The final head, once, when its last line is added.
    mutating func add(_ line: UnsafeRawBufferPointer) throws(NetworkError) -> TransportHead? {
        byteCount += line.count
        guard byteCount <= Self.byteLimit else {
            throw Self.malformed("the header fields are longer than \(Self.byteLimit) bytes")
        }
        let bytes = line.assumingMemoryBound(to: UInt8.self)
        var count = bytes.count
        while count > 0, bytes[count - 1] == 0x0D || bytes[count - 1] == 0x0A { count -= 1 }
        let content = bytes[..<count]
        guard let statusCode else {
            try checkEnd(of: content)
            try readStatusLine(content)
            return nil
        }
        if count == 0 { return try end(statusCode) }
        fieldCount += 1
        guard fieldCount <= Self.fieldLimit else { throw Self.malformed("over \(Self.fieldLimit) header fields") }
        // The earlier response was checked. Its lines are compared first.
        let index = knownCount ?? fields.count
        if known.headers.isField(at: index, .init(rebasing: content)) {
            if knownCount == nil { fields.append(known.headers[index]) } else { knownCount = index + 1 }
            return nil
        }
        try checkEnd(of: content)
        try addField(content)
        return nil
    }

    /// Throws if other parsers might take a byte of the line for its end (RFC 9110, section 5.5).
    private func checkEnd(of line: Bytes) throws(NetworkError) {
        if Self.index(of: 0x0D, in: line) != nil || Self.index(of: 0, in: line) != nil {
            throw Self.malformed("a line of the head contains a carriage return or NUL")
        }
    }

    private mutating func end(_ status: Int) throws(NetworkError) -> TransportHead? {
        if isComplete { return nil }
        if known.statusCode == status, known.headers.count == knownCount {
            (knownCount, isComplete) = (nil, true)
            return known
        }
        copyKnown()
        // 101 ends HTTP on the connection. The client did not request it, so it is the final response.
        if (100..<200).contains(status) && status != 101 {
            (statusCode, fields, knownCount) = (nil, [], 0)
            return nil
        }
        let head = TransportHead(statusCode: status, headers: HTTPHeaders(fields.take()))
        try head.checkLength()
        (known, isComplete) = (hasKeptBytes ? Self.none : head, true)
        return head
    }

    private mutating func addField(_ content: Bytes) throws(NetworkError) {
        copyKnown()
        if Self.isBlank(content[content.startIndex]) {
            guard let last = fields.indices.last else {
                throw Self.malformed("a folded line has no field before it")
            }
            guard !fields[last].isFraming else { throw Self.malformed("the field \(fields[last].name) is folded") }
            // A folded line continues the previous value (RFC 9112, section 5.2).
            let rest = text(content)
            if !rest.isEmpty { fields[last].raw += (fields[last].raw.isEmpty ? "" : " ") + rest }
            return
        }
        guard let colon = Self.index(of: UInt8(ascii: ":"), in: content) else {
            throw Self.malformed("a header line has no colon: \(text(content.prefix(80)).fieldText)")
        }
        let name = text(content[..<colon])
        let field = HTTPHeaders.Field(name: name, value: text(content[(colon + 1)...]))
        guard HTTPSyntax.isToken(name.utf8), name.utf8.count == colon - content.startIndex || !field.isFraming else {
            throw Self.malformed("the name in a header line is not a token: \(text(content.prefix(80)).fieldText)")
        }
        fields.append(field)
    }

    /// Copies the known fields that the previous lines repeat.
    private mutating func copyKnown() {
        guard let count = knownCount else { return }
        // Growing the array field by field would be most of the work.
        fields.reserveCapacity(12)
        fields += known.headers[..<count]
        knownCount = nil
    }

    private mutating func readStatusLine(_ line: Bytes) throws(NetworkError) {
        let version = line.prefix { $0 != UInt8(ascii: " ") }
        // A status has three digits. A blank precedes the reason, but some servers omit it (RFC 9112, section 4).
        let digits = line[version.endIndex...].dropFirst().prefix { $0 != UInt8(ascii: " ") }
        guard version.starts(with: "HTTP/".utf8), version.dropFirst(5).first?.isDigit == true,
            digits.count == 3, digits.allSatisfy(\.isDigit)
        else {
            throw Self.malformed("the first line is not a status line: \(text(line.prefix(80)).fieldText)")
        }
        networkProtocol = text(version)
        statusCode = digits.reduce(0) { 10 * $0 + Int($1 - UInt8(ascii: "0")) }
    }

    private static func index(of byte: UInt8, in bytes: Bytes) -> Int? {
        guard let start = bytes.base.baseAddress, let found = memchr(start + bytes.startIndex, Int32(byte), bytes.count)
        else { return nil }
        return UnsafeRawPointer(found) - UnsafeRawPointer(start)
    }

    private static func isBlank(_ byte: UInt8) -> Bool {
        byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t")
    }

    /// Returns the string with its bytes, without the blanks around it.
    private mutating func text(_ bytes: Bytes) -> String {
        var (start, end) = (bytes.startIndex, bytes.endIndex)
        while start < end, Self.isBlank(bytes[start]) { start += 1 }
        while start < end, Self.isBlank(bytes[end - 1]) { end -= 1 }
        let bytes = UnsafeBufferPointer(rebasing: bytes[start..<end])
        // Nearly all values are ASCII. Decoding ASCII is much faster than decoding text that must be validated.
        if bytes.reduce(0, |) < 0x80 { return String(decoding: bytes, as: UTF8.self) }
        let text = String(fieldBytes: bytes)
        if text.hasKeptBytes { hasKeptBytes = true }
        return text
    }

    private static func malformed(_ message: String) -> NetworkError {
        NetworkError(code: .badServerResponse, message: message)
    }
}
#endif
