import EasyNetwork
import Foundation

/// Parses requests from a stream of bytes, in pieces of any size (RFC 9112).
///
/// After each ``append(_:)``, call ``next()`` until it returns `nil`. The parser is strict, so that a test shows a
/// client's errors: lines end with CR LF, field names are tokens, and there is one length. It reads each byte a
/// constant number of times, even if the bytes arrive one by one.
struct RequestParser {
    /// The largest size of a head, and of the trailers, in bytes.
    static let headLimit = 1_048_576
    /// The largest size of the line with a chunk's size, including extensions, in bytes.
    static let chunkLineLimit = 16_384

    /// A complete request.
    struct Message: Equatable {
        var method: String
        var target: String
        /// The minor version of HTTP/1.x: 0 or 1.
        var minorVersion: Int
        var headers = HTTPHeaders()
        var body = Data()

        /// Whether the connection stays open for further requests. Always `false` for HTTP/1.0.
        var keepsAlive: Bool { minorVersion > 0 && !headers.hasToken("close", in: "Connection") }
    }

    enum ParserEvent: Equatable {
        /// The client waits for `100 Continue` before it sends the body (RFC 9110, section 10.1.1).
        case continueExpected
        case request(Message)
    }

    /// The error in an invalid request, and the status of the response to it. The rest of the stream is unreadable.
    struct Failure: Error, Equatable {
        var statusCode = 400
        var reason: String
    }

    enum Phase {
        case requestLine
        case fields
        case fixedBody(left: Int)
        case chunkSize
        case chunkData(left: Int)
        case chunkEnd
        case trailers
        case failed(Failure)
    }

    var phase = Phase.requestLine
    var message = Message(method: "", target: "", minorVersion: 1)
    var fields: [HTTPHeaders.Field] = []
    private var headCount = 0

    private var input: [UInt8] = []
    /// The offset of the first unused byte.
    private var start = 0
    /// The offset up to which there is no line end.
    private var scanned = 0

    /// Whether the head has been read and the body has not.
    var isInBody: Bool {
        switch phase {
        case .fixedBody, .chunkSize, .chunkData, .chunkEnd, .trailers: true
        case .requestLine, .fields, .failed: false
        }
    }

    /// The number of unused bytes.
    var bufferedCount: Int { input.count - start }

    mutating func append(_ bytes: some Sequence<UInt8>) {
        input.append(contentsOf: bytes)
    }

    /// Returns the next event in the bytes so far, or `nil` if more bytes are needed. After an error, each later call
    /// throws it again.
    mutating func next() throws(Failure) -> ParserEvent? {
        if case .failed(let failure) = phase { throw failure }
        do {
            let event = try step()
            discardUsed()
            return event
        } catch {
            phase = .failed(error)
            input = []
            (start, scanned) = (0, 0)
            throw error
        }
    }

    private mutating func step() throws(Failure) -> ParserEvent? {
        while true {
            switch phase {
            case .requestLine:
                // Check the first byte separately, because another protocol might never send a line end.
                if bufferedCount > 0, input[start] != 0x0D, !HTTPSyntax.isTokenByte(input[start]) {
                    throw Failure(reason: "the request line is not HTTP")
                }
                guard let line = try takeHeadLine() else { return nil }
                // RFC 9112, section 2.2: ignore empty lines before a request.
                if line.isEmpty {
                    headCount = 0
                } else {
                    try readRequestLine(line)
                    phase = .fields
                }
            case .fields:
                guard let line = try takeHeadLine() else { return nil }
                if !line.isEmpty {
                    fields.append(try Self.field(line))
                } else {
                    try finishHead()
                    if isContinueExpected { return .continueExpected }
                }
            case .fixedBody(let left):
                let rest = takeBody(atMost: left)
                if rest == 0 { return finish() }
                phase = .fixedBody(left: rest)
                return nil
            case .chunkSize:
                guard let line = try takeLine(limit: Self.chunkLineLimit, status: 400) else { return nil }
                let size = try Self.chunkSize(line)
                headCount = 0
                phase = size == 0 ? .trailers : .chunkData(left: size)
            case .chunkData(let left):
                let rest = takeBody(atMost: left)
                phase = rest == 0 ? .chunkEnd : .chunkData(left: rest)
                if rest > 0 { return nil }
            case .chunkEnd:
                guard let line = try takeLine(limit: 0, status: 400) else { return nil }
                guard line.isEmpty else { throw Failure(reason: "a chunk is longer than its size") }
                phase = .chunkSize
            case .trailers:
                guard let line = try takeHeadLine() else { return nil }
                if line.isEmpty { return finish() }
                _ = try Self.field(line)
            case .failed(let failure):
                throw failure
            }
        }
    }

    /// Whether to send 100: the client expects it and has sent no byte of the body.
    private var isContinueExpected: Bool {
        if case .fixedBody(left: 0) = phase { return false }
        return message.minorVersion > 0 && bufferedCount == 0 && message.headers.hasToken("100-continue", in: "Expect")
    }

    private mutating func finish() -> ParserEvent {
        defer {
            phase = .requestLine
            message = Message(method: "", target: "", minorVersion: 1)
            headCount = 0
        }
        return .request(message)
    }

    // MARK: Bytes

    private mutating func takeHeadLine() throws(Failure) -> ArraySlice<UInt8>? {
        let left = Self.headLimit - headCount
        guard let line = try takeLine(limit: left - 2, status: 431) else { return nil }
        headCount += line.count + 2
        return line
    }

    /// Returns the next line without its CR LF, or `nil` if its end has not arrived.
    ///
    /// - Parameter limit: The largest length of the line, without the CR LF.
    private mutating func takeLine(limit: Int, status: Int) throws(Failure) -> ArraySlice<UInt8>? {
        let tooLong = Failure(statusCode: status, reason: "a line of the message is too long")
        guard let end = indexOfLineFeed() else {
            scanned = input.count
            // Compare with the limit plus one, because the last byte can be the carriage return.
            if bufferedCount > limit + 1 { throw tooLong }
            return nil
        }
        let line = input[start..<end]
        start = end + 1
        scanned = start
        guard line.count <= limit + 1 else { throw tooLong }
        guard line.last == 0x0D else { throw Failure(reason: "a line does not end in CR LF") }
        return line.dropLast()
    }

    private func indexOfLineFeed() -> Int? {
        let from = max(scanned, start)
        // `firstIndex(of:)` is slow without optimization.
        return input.withUnsafeBytes { bytes in
            guard let base = bytes.baseAddress, from < bytes.count,
                let found = memchr(base + from, 0x0A, bytes.count - from)
            else { return nil }
            return UnsafeRawPointer(found) - base
        }
    }

    /// Moves bytes into the body, and returns the number of missing bytes.
    private mutating func takeBody(atMost left: Int) -> Int {
        let count = min(left, bufferedCount)
        input.withUnsafeBytes { message.body.append(contentsOf: $0[start..<start + count]) }
        start += count
        return left - count
    }

    /// Removes the used bytes if all are used or if they outnumber the rest, so that the cost of moving bytes stays
    /// linear.
    private mutating func discardUsed() {
        if start == input.count {
            input.removeAll(keepingCapacity: input.capacity <= 262_144)
        } else if start > 4096, start > input.count - start {
            input.removeSubrange(..<start)
        } else {
            return scanned = max(scanned, start)
        }
        scanned = max(scanned - start, 0)
        start = 0
    }
}

extension RequestParser {
    /// Reads the method, target and version, separated by one space each (RFC 9112, section 3).
    mutating func readRequestLine(_ line: ArraySlice<UInt8>) throws(Failure) {
        let parts = line.split(separator: 0x20, omittingEmptySubsequences: false)
        guard parts.count == 3 else { throw Failure(reason: "the request line does not have three parts") }
        guard HTTPSyntax.isToken(parts[0]) else { throw Failure(reason: "the method is not a token") }
        guard !parts[1].isEmpty, parts[1].allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else {
            throw Failure(reason: "the target is empty or has bytes that must be escaped")
        }
        let version = parts[2]
        guard version.count == 8, version.starts(with: "HTTP/".utf8),
            let major = Self.digit(version[version.startIndex + 5]), version[version.startIndex + 6] == 0x2E,
            let minor = Self.digit(version[version.startIndex + 7])
        else { throw Failure(reason: "the version is not an HTTP version") }
        guard major == 1 else { throw Failure(statusCode: 505, reason: "only HTTP/1 is supported") }
        message = Message(method: Self.text(parts[0]), target: Self.text(parts[1]), minorVersion: min(minor, 1))
        fields = []
    }

    /// Reads a name, a colon and a value (RFC 9112, section 5). Rejects folded lines.
    static func field(_ line: ArraySlice<UInt8>) throws(Failure) -> HTTPHeaders.Field {
        guard let colon = line.firstIndex(of: UInt8(ascii: ":")), HTTPSyntax.isToken(line[..<colon]) else {
            throw Failure(reason: "a header line has no valid name")
        }
        let isBlank = { (byte: UInt8) in byte == 0x20 || byte == 0x09 }
        var value = line[(colon + 1)...].drop(while: isBlank)
        while let last = value.last, isBlank(last) { value.removeLast() }
        guard HTTPSyntax.isFieldValue(value) else { throw Failure(reason: "a header has a control character in it") }
        return HTTPHeaders.Field(name: text(line[..<colon]), value: String(fieldBytes: value))
    }

    /// Finds the framing of the body (RFC 9112, section 6).
    mutating func finishHead() throws(Failure) {
        message.headers = HTTPHeaders(fields)
        fields = []
        let hosts = message.headers.values(for: "Host").count
        guard hosts == 1 || hosts == 0 && message.minorVersion == 0 else {
            throw Failure(reason: "the request must have exactly one Host header, but has \(hosts)")
        }
        let lengths = message.headers.values(for: "Content-Length")
        let codings = message.headers.values(for: "Transfer-Encoding")
        if !codings.isEmpty {
            guard lengths.isEmpty, message.minorVersion > 0 else {
                throw Failure(reason: "Transfer-Encoding comes with Content-Length or in HTTP/1.0")
            }
            guard codings.count == 1, codings[0].isEqualIgnoringASCIICase(to: "chunked") else {
                throw Failure(statusCode: 501, reason: "the only supported transfer coding is chunked")
            }
            phase = .chunkSize
        } else if let length = lengths.first {
            guard lengths.count == 1, !length.isEmpty, length.utf8.allSatisfy({ Self.digit($0) != nil }),
                let count = Int(length)
            else { throw Failure(reason: "the Content-Length is not one number") }
            phase = .fixedBody(left: count)
        } else {
            phase = .fixedBody(left: 0)
        }
    }

    /// Reads hexadecimal digits and optional extensions, which are ignored (RFC 9112, section 7.1).
    static func chunkSize(_ line: ArraySlice<UInt8>) throws(Failure) -> Int {
        let digits = line.prefix { ($0 | 0x20 >= 0x61 && $0 | 0x20 <= 0x66) || digit($0) != nil }
        let rest = line.dropFirst(digits.count).drop { $0 == 0x20 || $0 == 0x09 }
        guard let size = Int(text(digits), radix: 16), rest.isEmpty || rest.first == UInt8(ascii: ";"),
            HTTPSyntax.isFieldValue(rest)
        else { throw Failure(reason: "a chunk has no valid size") }
        return size
    }

    private static func digit(_ byte: UInt8) -> Int? {
        byte >= 0x30 && byte <= 0x39 ? Int(byte) - 0x30 : nil
    }

    /// Returns a token or a target, which are ASCII, as a string.
    private static func text(_ bytes: ArraySlice<UInt8>) -> String {
        String(decoding: bytes, as: UTF8.self)
    }
}

extension HTTPHeaders {
    /// Returns whether one of the field's comma-separated values is this token, in any case.
    func hasToken(_ token: String, in name: String) -> Bool {
        values(for: name).contains { value in
            value.split(separator: ",").contains { item in
                item.trimmingCharacters(in: .whitespaces).isEqualIgnoringASCIICase(to: token)
            }
        }
    }
}
