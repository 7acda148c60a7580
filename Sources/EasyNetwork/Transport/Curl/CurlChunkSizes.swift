#if os(Linux) && canImport(CCurl)
/// Checks the size lines of a chunked body (RFC 9112, section 7.1) as the bytes arrive.
///
/// libcurl ignores the rest of a line after its hexadecimal digits. It takes `0x5` for the last chunk, and ends the
/// body there.
struct CurlChunkSizes {
    private enum State {
        case start, digits, blank, `extension`, lineEnd, data, end
    }

    private var state = State.start
    /// The size of the chunk; within the chunk, the number of bytes left.
    private var count = 0

    /// Checks the next bytes.
    ///
    /// - Returns: False if a line is malformed. Trailers are not checked.
    mutating func accept(_ bytes: UnsafeRawBufferPointer) -> Bool {
        var index = 0
        while index < bytes.count, state != .end {
            if state == .data, count > 0 {
                let taken = min(count, bytes.count - index)
                (count, index) = (count - taken, index + taken)
                continue
            }
            guard accept(bytes[index]) else { return false }
            index += 1
        }
        return true
    }

    private mutating func accept(_ byte: UInt8) -> Bool {
        switch (state, byte) {
        case (.start, _) where byte.isHexDigit, (.digits, _) where byte.isHexDigit:
            guard count <= Int.max >> 4 else { return false }
            (state, count) = (.digits, count << 4 | Int(byte.hexDigitValue))
        // Some servers pad the line with blanks.
        case (.digits, 0x20), (.digits, 0x09), (.blank, 0x20), (.blank, 0x09): state = .blank
        case (.digits, 0x3B), (.blank, 0x3B): state = .extension
        case (.digits, 0x0D), (.blank, 0x0D): state = .lineEnd
        case (.digits, 0x0A), (.blank, 0x0A), (.extension, 0x0A), (.lineEnd, 0x0A): state = count == 0 ? .end : .data
        case (.extension, _): break
        // libcurl rejects any other bytes between a chunk and its line break.
        case (.data, 0x0A): state = .start
        case (.data, _): break
        default: return false
        }
        return true
    }
}
#endif
