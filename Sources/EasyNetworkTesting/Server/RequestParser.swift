import EasyNetwork
import Foundation

/// Reads requests out of a stream of bytes, however it is cut up (RFC 9112).
///
/// Bytes go in by ``append(_:)``; ``next()`` is then asked until it has nothing more. It is strict, since a test wants
/// to hear of a client's mistakes: line ends are CRLF, field names are tokens, a length is told once. Each byte is looked
/// at a fixed number of times, even when they come one by one.
struct RequestParser {
    /// The longest head, and the longest row of trailers, in bytes.
    static let headLimit = 1_048_576
    /// The longest line that tells a chunk's size, extensions included, in bytes.
    static let chunkLineLimit = 16_384

    /// A request, complete.
    struct Message: Equatable {
        var method: String
        var target: String
        /// 0 or 1, of HTTP/1.x.
        var minorVersion: Int
        var headers = HTTPHeaders()
        var body = Data()

        /// Whether the client lets the connection stay open. One of HTTP/1.0 never does here.
        var keepsAlive: Bool { minorVersion > 0 && !headers.hasToken("close", in: "Connection") }
    }

    enum Event: Equatable {
        /// The client waits for a word before it sends the body (RFC 9110, section 10.1.1).
        case continueExpected
        case request(Message)
    }

    /// Why the bytes are no request, and the status that says so. The stream cannot be read any further.
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
    /// Where the bytes begin that were not used yet.
    private var start = 0
    /// Up to where no line end was found.
    private var scanned = 0

    /// Whether the head has been read and the body has not.
    var isInBody: Bool {
        switch phase {
        case .fixedBody, .chunkSize, .chunkData, .chunkEnd, .trailers: true
        case .requestLine, .fields, .failed: false
        }
    }

    /// How many bytes wait to be read.
    var bufferedCount: Int { input.count - start }

    mutating func append(_ bytes: some Sequence<UInt8>) {
        input.append(contentsOf: bytes)
    }

    /// The next event in the bytes so far; nil when more are needed. After an error the same error again.
    mutating func next() throws(Failure) -> Event? {
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

    private mutating func step() throws(Failure) -> Event? {
        while true {
            switch phase {
            case .requestLine:
                // Something else than HTTP may never send a line end, so the first byte is looked at by itself.
                if bufferedCount > 0, input[start] != 0x0D, !HTTPSyntax.isTokenByte(input[start]) {
                    throw Failure(reason: "the request line is not HTTP")
                }
                guard let line = try takeHeadLine() else { return nil }
                // RFC 9112, section 2.2: empty lines before a request are passed over.
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

    /// Whether to send 100: the client asks for it and has sent nothing of the body on its own.
    private var isContinueExpected: Bool {
        if case .fixedBody(left: 0) = phase { return false }
        return message.minorVersion > 0 && bufferedCount == 0 && message.headers.hasToken("100-continue", in: "Expect")
    }

    private mutating func finish() -> Event {
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

    /// The next line without its CRLF; nil when its end is not there yet.
    ///
    /// - Parameter limit: the longest line allowed, the CRLF not counted.
    private mutating func takeLine(limit: Int, status: Int) throws(Failure) -> ArraySlice<UInt8>? {
        let tooLong = Failure(statusCode: status, reason: "a line of the message is too long")
        guard let end = indexOfLineFeed() else {
            scanned = input.count
            // One more than the limit, as the carriage return may be the last byte here.
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
        // memchr and not `firstIndex(of:)`, which is slow without optimization.
        return input.withUnsafeBytes { bytes in
            guard let base = bytes.baseAddress, from < bytes.count,
                let found = memchr(base + from, 0x0A, bytes.count - from)
            else { return nil }
            return UnsafeRawPointer(found) - base
        }
    }

    /// Moves what is there into the body, and returns how much is still missing.
    private mutating func takeBody(atMost left: Int) -> Int {
        let count = min(left, bufferedCount)
        input.withUnsafeBytes { message.body.append(contentsOf: $0[start..<start + count]) }
        start += count
        return left - count
    }

    /// Frees the used bytes: at once when all are used, else when they outnumber the rest, which keeps the moving of
    /// bytes in proportion to their number.
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
