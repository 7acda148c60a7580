#if os(Linux) && canImport(CCurl)
import Foundation

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
        var rest = Reader(rest: text[...])
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

    /// Reads text from its beginning. About twenty lines are read for each message over HTTP/2.
    private struct Reader {
        var rest: Slice<UnsafeRawBufferPointer>

        mutating func skip(_ text: StaticString) -> Bool {
            guard text.withUTF8Buffer({ rest.starts(with: $0) }) else { return false }
            rest = rest.dropFirst(text.utf8CodeUnitCount)
            return true
        }

        /// Reads digits; nil if there are none, or more than the 18 for which an `Int` has room.
        mutating func number() -> Int? {
            let digits = rest.prefix(while: \.isDigit)
            rest = rest[digits.endIndex...]
            return (1...18).contains(digits.count) ? digits.reduce(0) { 10 * $0 + Int($1 - UInt8(ascii: "0")) } : nil
        }
    }
}
#endif
