import Foundation

/// An XML document as UTF-8 without anything that could lead outside of it, for a parser.
struct XMLDocumentText {
    /// The XML declaration and the document type declaration are blanks, so that places stay what they are.
    let utf8: Data

    /// Where in it a blank stands that the body does not have, in order.
    private let insertions: [Int]

    /// - Parameters:
    ///   - charset: the one that `Content-Type` names, nil when it names none.
    ///   - maximumAttributeCount: how many attributes an element may have.
    ///
    /// A byte order mark beats `Content-Type`, and that beats the XML declaration (RFC 7303, section 3); when nobody says
    /// anything it is UTF-8, or UTF-16 if it begins so (XML 1.0, appendix F).
    init(_ body: Data, charset: String?, maximumAttributeCount: Int) throws(XMLTree.ParseError) {
        let (encoding, bytes, name) = try Self.encoding(of: body, charset)
        guard let text = encoding.decode(bytes) else {
            throw XMLTree.ParseError("the body is no text in the charset \(name.prefix(40))")
        }
        var characters = Array(text.utf8)
        // From these the parser would take it for another encoding, in which a document type would be unseen here.
        guard !characters.contains(0), !characters.starts(with: [0xEF, 0xBB, 0xBF]) else {
            throw XMLTree.ParseError("a character that XML does not have")
        }
        try Self.blankProlog(&characters)
        let ends = try Self.endsOfEmptyInstructions(in: characters, maximumAttributeCount)
        insertions = ends.enumerated().map { $0.offset + $0.element }
        utf8 = Self.separated(characters, at: ends)
    }

    /// What a parser says of ``utf8``, said of the body.
    func placed(_ error: XMLTree.ParseError) -> XMLTree.ParseError {
        guard !insertions.isEmpty, let line = error.line, let column = error.column else { return error }
        let lines = utf8.split(separator: 0x0A, maxSplits: max(0, line - 1), omittingEmptySubsequences: false)
        let start = lines.last?.startIndex ?? 0
        let before = insertions.count { $0 >= start && $0 < start + column }
        return XMLTree.ParseError(error.reason, line: line, column: column - before)
    }

    private static func encoding(
        of body: Data,
        _ charset: String?
    ) throws(XMLTree.ParseError) -> (Charset, Data, String) {
        if body.starts(with: [0xFF, 0xFE, 0, 0]) || body.starts(with: [0, 0, 0xFE, 0xFF]) {
            throw XMLTree.ParseError("the charset utf-32 is not known")
        }
        if let (charset, mark) = Charset.byteOrderMark(of: body) {
            return (charset, body.dropFirst(mark), charset.name)
        }
        if let charset {
            guard let known = Charset(name: charset) else {
                throw XMLTree.ParseError("the charset \"\(charset.prefix(40))\" is not known")
            }
            return (known, body, charset)
        }
        if body.starts(with: [0, 0x3C]) { return (.utf16(bigEndian: true), body, "utf-16be") }
        if body.starts(with: [0x3C, 0]) { return (.utf16(bigEndian: false), body, "utf-16le") }
        guard let declared = declaredEncoding(in: body) else { return (.utf8, body, "utf-8") }
        guard let known = Charset(name: declared) else {
            throw XMLTree.ParseError("the charset \"\(declared.prefix(40))\" is not known")
        }
        // It can be read as far as here, so it is not UTF-16: text that was written with another encoding than it says.
        if case .utf16 = known { return (.utf8, body, "utf-8") }
        return (known, body, declared)
    }

    /// The value of `encoding` in the XML declaration.
    private static func declaredEncoding(in body: Data) -> String? {
        let start = Array(body.prefix(512))
        guard start.starts(with: Array("<?xml".utf8)), let end = find("?>", in: start, from: 0),
            let place = find("encoding", in: Array(start[..<end]), from: 0)
        else { return nil }
        let rest = start[(place + 8)..<end].drop { isSpace($0) }
        guard rest.first == UInt8(ascii: "=") else { return nil }
        let value = rest.dropFirst().drop { isSpace($0) }
        guard let quote = value.first, quote == UInt8(ascii: "\"") || quote == UInt8(ascii: "'"),
            let close = value.dropFirst().firstIndex(of: quote)
        else { return nil }
        return String(decoding: value[(value.startIndex + 1)..<close], as: UTF8.self)
    }

    /// Only what stands before the first element: there is no other place for a document type declaration.
    private static func blankProlog(_ text: inout [UInt8]) throws(XMLTree.ParseError) {
        var index = 0
        var hasDocumentType = false
        if starts(text, at: 0, "<?xml"), text.count > 5, isSpace(text[5]), let end = find("?>", in: text, from: 5) {
            blank(&text, 0..<(end + 2))
            index = end + 2
        }
        while index < text.count {
            if isSpace(text[index]) {
                index += 1
            } else if starts(text, at: index, "<!--") {
                guard let end = find("-->", in: text, from: index + 4) else { return }
                index = end + 3
            } else if starts(text, at: index, "<?") {
                guard let end = find("?>", in: text, from: index + 2) else { return }
                index = end + 2
            } else if starts(text, at: index, "<!DOCTYPE") {
                guard !hasDocumentType else { throw failure("there are two document types", text, index) }
                guard let end = try endOfDocumentType(text, from: index) else { return }
                blank(&text, index..<end)
                hasDocumentType = true
                index = end
            } else {
                return
            }
        }
    }

    /// The index behind its `>`; nil when it has none.
    private static func endOfDocumentType(_ text: [UInt8], from start: Int) throws(XMLTree.ParseError) -> Int? {
        var quote: UInt8?
        for index in start..<text.count {
            let byte = text[index]
            if let open = quote {
                if byte == open { quote = nil }
            } else if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "'") {
                quote = byte
            } else if byte == UInt8(ascii: "[") {
                let reason = "a document type inside the document is refused, as it may define entities"
                throw failure(reason, text, index)
            } else if byte == UInt8(ascii: ">") {
                return index + 1
            }
        }
        return nil
    }

    static func failure(_ reason: String, _ text: [UInt8], _ index: Int) -> XMLTree.ParseError {
        let before = text[..<index]
        let line = before.count { $0 == 0x0A } + 1
        return XMLTree.ParseError(reason, line: line, column: index - (before.lastIndex(of: 0x0A) ?? -1))
    }

    private static func blank(_ text: inout [UInt8], _ range: Range<Int>) {
        for index in range where text[index] != 0x0A && text[index] != 0x0D { text[index] = 0x20 }
    }

    static func starts(_ text: [UInt8], at index: Int, _ word: StaticString) -> Bool {
        index + word.utf8CodeUnitCount <= text.count
            && text[index..<(index + word.utf8CodeUnitCount)].elementsEqual("\(word)".utf8)
    }

    static func find(_ word: StaticString, in text: [UInt8], from start: Int) -> Int? {
        let first = word.utf8Start.pointee
        var index = start
        while index + word.utf8CodeUnitCount <= text.count {
            if text[index] == first, starts(text, at: index, word) { return index }
            index += 1
        }
        return nil
    }

    static func isSpace(_ byte: UInt8) -> Bool {
        byte == 0x20 || byte == 0x09 || byte == 0x0A || byte == 0x0D
    }
}
