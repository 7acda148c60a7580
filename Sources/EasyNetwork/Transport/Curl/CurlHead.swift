#if os(Linux) && canImport(CCurl)
/// The head of an answer as it comes in, line by line: a value.
///
/// libcurl hands over every line: those of 1xx answers, which are passed over, of the final answer, and trailers.
struct CurlHead {
    /// How many bytes of header lines an answer may have, 1xx answers and trailers included.
    static let byteLimit = 262_144
    /// How many header fields an answer may have, 1xx answers and trailers included.
    static let fieldLimit = 2_000

    /// What the final answer is spoken in, such as `HTTP/2`; empty before.
    private(set) var networkProtocol = ""
    private(set) var isComplete = false

    private var byteCount = 0
    private var fieldCount = 0
    private var statusCode: Int?
    private var fields: [HTTPHeaders.Field] = []

    /// The fields that came after the body.
    var trailers: HTTPHeaders { isComplete ? HTTPHeaders(fields) : HTTPHeaders() }

    /// - Parameter line: with its line break.
    /// - Returns: the final head, once, with its last line.
    mutating func add(_ line: UnsafeRawBufferPointer) throws(NetworkError) -> TransportHead? {
        byteCount += line.count
        guard byteCount <= Self.byteLimit else {
            throw Self.malformed("the header fields are longer than \(Self.byteLimit) bytes")
        }
        var content = line[...]
        while let last = content.last, last == 0x0D || last == 0x0A { content.removeLast() }
        guard let statusCode else {
            try readStatusLine(content)
            return nil
        }
        if content.isEmpty { return end(statusCode) }
        fieldCount += 1
        guard fieldCount <= Self.fieldLimit else { throw Self.malformed("more than \(Self.fieldLimit) header fields") }
        try addField(content)
        return nil
    }

    private mutating func end(_ status: Int) -> TransportHead? {
        if isComplete { return nil }
        let headers = HTTPHeaders(fields)
        fields = []
        // 101 ends what HTTP there is on the connection; nobody asked for it, so it is the answer.
        if (100..<200).contains(status) && status != 101 {
            statusCode = nil
            return nil
        }
        isComplete = true
        return TransportHead(statusCode: status, headers: headers)
    }

    private mutating func addField(_ content: Slice<UnsafeRawBufferPointer>) throws(NetworkError) {
        if Self.isBlank(content[content.startIndex]), let last = fields.indices.last {
            // A folded line goes on with the value before it (RFC 9112, section 5.2).
            fields[last].value += " " + Self.text(content)
            return
        }
        guard let colon = content.firstIndex(of: UInt8(ascii: ":")) else {
            throw Self.malformed("a header line without colon: \(Self.text(content.prefix(80)))")
        }
        let name = Self.text(content[..<colon])
        fields.append(HTTPHeaders.Field(name: name, value: Self.text(content[(colon + 1)...])))
    }

    private mutating func readStatusLine(_ line: Slice<UnsafeRawBufferPointer>) throws(NetworkError) {
        let version = line.prefix { $0 != UInt8(ascii: " ") }
        let digits = line[version.endIndex...].dropFirst().prefix(3)
        guard digits.count == 3, let status = Int(String(decoding: digits, as: UTF8.self)) else {
            throw Self.malformed("no status line: \(Self.text(line.prefix(80)))")
        }
        networkProtocol = Self.text(version)
        statusCode = status
    }

    private static func isBlank(_ byte: UInt8) -> Bool {
        byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t")
    }

    /// Without the blanks around it. Bytes that are no UTF-8 are ISO 8859-1, as fields once were.
    private static func text(_ bytes: Slice<UnsafeRawBufferPointer>) -> String {
        var bytes = bytes.drop(while: isBlank)
        while let last = bytes.last, isBlank(last) { bytes.removeLast() }
        // Nearly all are ASCII, and checking is the most of the work.
        if bytes.allSatisfy({ $0 < 0x80 }) {
            return String(decoding: UnsafeRawBufferPointer(rebasing: bytes), as: UTF8.self)
        }
        return String(validating: bytes, as: UTF8.self)
            ?? String(String.UnicodeScalarView(bytes.map { Unicode.Scalar($0) }))
    }

    private static func malformed(_ message: String) -> NetworkError {
        NetworkError(code: .badServerResponse, message: message)
    }
}
#endif
