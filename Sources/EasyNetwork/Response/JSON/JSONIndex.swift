import Foundation

/// An index over the bytes of a JSON text (RFC 8259). It has one word for each value, with its kind and its place, in
/// the order of the text. No value is a separate object.
///
/// ```
/// {"id": 7, "tags": ["a", "b"]}     object(2 members, ends at 7)  ascii "id"  integer 7  ascii "tags"
///                                   array(2 elements, ends at 7)  ascii "a"  ascii "b"
/// ```
///
/// All values that are read from the index are valid: the grammar, escapes, surrogates and UTF-8 are checked when it is
/// created. A position is the number of a word. The whole document is at position 0, and a null that is not in the text
/// follows it.
final class JSONIndex: @unchecked Sendable {
    // The class is Sendable because nothing changes after `init`.

    /// The maximum nesting of arrays and objects, as in Foundation.
    static let maximumDepth = 512

    /// The reader of the words and the text.
    let reader: JSONReader
    /// The owner of a large text. A small text is copied instead, which costs less than sharing it.
    private let owner: NSData?

    /// Indexes the text.
    ///
    /// UTF-16 and UTF-32, which older standards allowed (RFC 4627, section 3), are converted first. A byte order mark
    /// is skipped.
    init(_ body: Data) throws(JSONSyntaxError) {
        let (bytes, start) = try Self.utf8(body)
        guard bytes.count < JSONWord.maximumLength else {
            throw JSONSyntaxError(reason: "the text is longer than 2 GB", offset: 0, line: 1, column: 1)
        }
        let words = try bytes.withUnsafeBytes { bytes in
            var scanner = JSONScanner(bytes: bytes, start: start)
            return Result { () throws(JSONSyntaxError) in try scanner.scan() }
        }.get()
        owner = bytes.count > 1 << 20 ? bytes as NSData : nil
        if let owner {
            reader = JSONReader(words: words, text: owner.bytes)
        } else {
            let copy = UnsafeMutableRawPointer.allocate(byteCount: bytes.count, alignment: 8)
            // Don't use `copyBytes`: it is generic, and takes as long as the index of a small text.
            bytes.withUnsafeBytes { UnsafeMutableRawBufferPointer(start: copy, count: $0.count).copyMemory(from: $0) }
            reader = JSONReader(words: words, text: copy)
        }
    }

    deinit {
        reader.words.deallocate()
        if owner == nil { reader.text.deallocate() }
    }

    /// Returns the text in UTF-8, and the offset at which it begins.
    private static func utf8(_ body: Data) throws(JSONSyntaxError) -> (bytes: Data, start: Int) {
        // The first character is ASCII, so zeros reveal the encoding.
        let isUTF8 = body.withUnsafeBytes { 1..<0x80 ~= $0.first ?? 0 && $0.dropFirst().first != 0 }
        if isUTF8 { return (body, 0) }
        let head = Array(body.prefix(4))
        let first = head.first ?? 0
        let encoding: String.Encoding
        var mark = 0
        switch (first, head.dropFirst().first, head.dropFirst(2).first, head.dropFirst(3).first) {
        case (0xEF, 0xBB, 0xBF, _): return (body, 3)
        case (0, 0, 0xFE, 0xFF): (encoding, mark) = (.utf32BigEndian, 4)
        case (0xFF, 0xFE, 0, 0): (encoding, mark) = (.utf32LittleEndian, 4)
        case (0xFE, 0xFF, _, _): (encoding, mark) = (.utf16BigEndian, 2)
        case (0xFF, 0xFE, _, _): (encoding, mark) = (.utf16LittleEndian, 2)
        case (0, 0, 0, .some(1...)): encoding = .utf32BigEndian
        case (1..., 0, 0, 0): encoding = .utf32LittleEndian
        case (0, .some(1...), 0, .some(1...)), (0, .some(1...), nil, nil): encoding = .utf16BigEndian
        case (1..., 0, .some(1...), 0), (1..., 0, nil, nil): encoding = .utf16LittleEndian
        default: return (body, 0)
        }
        let isWide = encoding == .utf32BigEndian || encoding == .utf32LittleEndian
        // Check the length: Foundation drops an incomplete character at the end.
        guard body.count % (isWide ? 4 : 2) == 0, let text = String(data: body.dropFirst(mark), encoding: encoding)
        else {
            throw JSONSyntaxError(reason: "the text is not UTF-8, UTF-16 or UTF-32", offset: 0, line: 1, column: 1)
        }
        return (Data(text.utf8), 0)
    }
}
