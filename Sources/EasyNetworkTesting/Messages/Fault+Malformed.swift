extension MockResponse.Fault {
    private static func malformed(_ malformation: Malformation) -> MockResponse.Fault {
        MockResponse.Fault(kind: .malformed(malformation))
    }

    /// Sends this line, in UTF-8, in place of the status line; the rest of the answer follows as it should. The fault
    /// of ``InMemoryTransport`` is an end with `NetworkError.Code.badServerResponse`.
    public static func statusLine(_ line: String) -> MockResponse.Fault { malformed(.statusLine(line)) }

    /// A status line that is none: `?!@ garbage`.
    public static let garbageStatusLine = statusLine("?!@ garbage")

    /// Ends the status line with the status code, without the space that has to follow it (RFC 9112, section 4). A
    /// status without a known reason phrase goes out with the space alone, which is allowed and needs no fault.
    public static let noReasonPhrase = malformed(.noReasonPhrase)

    /// Ends the lines of the head with LF in place of CR LF. A reader may take them (RFC 9112, section 2.2).
    public static let lineFeedsOnly = malformed(.lineFeedsOnly)

    /// Sends the head in Latin-1 in place of UTF-8: a character up to U+00FF is one byte, any other a question mark.
    public static let latin1Headers = malformed(.latin1Headers)

    /// Adds that many header fields, `X-Field-1: 1` and so on.
    ///
    /// - Parameter count: default 10,000.
    public static func manyHeaders(_ count: Int = 10_000) -> MockResponse.Fault {
        malformed(.manyHeaders(max(count, 0)))
    }

    /// Adds one header field, `X-Long`, whose value is the letter x that many times.
    ///
    /// - Parameter count: bytes of the value; default 1 MiB.
    public static func longHeader(_ count: Int = 1_048_576) -> MockResponse.Fault {
        malformed(.longHeader(max(count, 0)))
    }

    /// Sends a `Content-Length` that is wrong by so much, also for a body that would go out in chunks.
    ///
    /// - Parameter difference: bytes. Above 0 the length is too long, and the connection is closed after the body;
    ///   use ``stall(at:)`` in the body to keep the client waiting for the rest. Below 0 it is too short, down to a
    ///   length of 0, and the rest of the body follows on the connection as if it were the next answer.
    public static func contentLength(offBy difference: Int) -> MockResponse.Fault {
        malformed(.contentLength(offBy: difference))
    }

    /// Sends that many bytes of the body in chunks, then the line `zz` where the size of a chunk has to be, and closes.
    ///
    /// - Parameter count: bytes of the body; default 0.
    public static func badChunk(after count: Int = 0) -> MockResponse.Fault {
        malformed(.badChunk(after: max(count, 0)))
    }
}
