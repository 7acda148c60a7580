#if os(Linux) && canImport(CCurl)

/// A report of libcurl about HTTP/2, parsed from text that is written for people. Text in an unknown form is ignored.
enum CurlReport: Equatable {
    /// The server has not processed this exchange's stream. It rejected the stream, or ended the connection before it
    /// (RFC 9113, section 8.7), or the stream was never sent. From libcurl 8.3 on.
    case refused
    /// The maximum number of concurrent streams that the server accepts. From libcurl 8.11 on; earlier versions read
    /// the limit before they report.
    case streamLimit(Int)
    /// The number of this exchange's stream. Only before libcurl 8.3.
    case stream(Int)
    /// The server ends the connection, and processes no stream after this one (RFC 9113, section 6.8).
    case lastStream(Int)

    init?(_ text: UnsafeRawBufferPointer) {
        var rest = Slice(base: text, bounds: 0..<text.count)
        if rest.skip("[HTTP/2] [") {
            guard rest.number() != nil, rest.skip("] ") else { return nil }
            if rest.skip("RESET: REFUSED_STREAM") {
                self = .refused
            } else if rest.skip("MAX_CONCURRENT_STREAMS: "), let limit = rest.number() {
                self = .streamLimit(limit)
            } else {
                return nil
            }
        } else if rest.skip("Using Stream ID: "), let stream = rest.number() {
            self = .stream(stream)
        } else if rest.skip("received GOAWAY, error=") || rest.skip("recveived GOAWAY, error=") {
            // libcurl prints the error as a signed number.
            _ = rest.skip("-")
            guard rest.number() != nil, rest.skip(", last_stream="), let last = rest.number() else { return nil }
            self = .lastStream(last)
        } else {
            return nil
        }
    }
}

extension Slice<UnsafeRawBufferPointer> {
    fileprivate mutating func skip(_ text: String) -> Bool {
        guard starts(with: text.utf8) else { return false }
        removeFirst(text.utf8.count)
        return true
    }

    /// Reads digits; nil if there are none, or too many for an `Int`.
    fileprivate mutating func number() -> Int? {
        let digits = prefix(while: \.isDigit)
        removeFirst(digits.count)
        return Int(String(decoding: digits, as: UTF8.self))
    }
}
#endif
