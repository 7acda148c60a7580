import Foundation

/// One walk over the markup, for what the parser must not get. It goes where the parser goes as long as that finds no
/// error; what comes behind one is never looked at.
extension XMLDocumentText {
    /// The places of the `?>` of processing instructions that have a name and no content. At one of these Foundation's
    /// parser on Linux stops the process.
    ///
    /// `<?xml?>` is not among them: the parser refuses it.
    ///
    /// - Throws: for an element with more than so many attributes. libxml2 compares each with all before it, so that
    ///   their square is what they cost.
    static func endsOfEmptyInstructions(
        in text: [UInt8],
        _ maximumAttributeCount: Int
    ) throws(XMLTree.ParseError) -> [Int] {
        var ends: [Int] = []
        var index = 0
        // Markup without an end is an error, which the parser has better words for.
        while let start = text[index...].firstIndex(of: UInt8(ascii: "<")) {
            if starts(text, at: start, "<!--") {
                guard let end = find("-->", in: text, from: start + 4) else { return ends }
                index = end + 3
            } else if starts(text, at: start, "<![CDATA[") {
                guard let end = find("]]>", in: text, from: start + 9) else { return ends }
                index = end + 3
            } else if starts(text, at: start, "<?") {
                guard let end = find("?>", in: text, from: start + 2) else { return ends }
                let content = text[(start + 2)..<end]
                if !content.contains(where: isSpace), !content.elementsEqual("xml".utf8) { ends.append(end) }
                index = end + 2
            } else {
                index = try endOfTag(text, from: start, maximumAttributeCount)
            }
        }
        return ends
    }

    /// The text with a blank at each of these places.
    static func separated(_ text: [UInt8], at places: [Int]) -> Data {
        guard !places.isEmpty else { return Data(text) }
        var result = Data()
        result.reserveCapacity(text.count + places.count)
        var start = 0
        for place in places {
            result += text[start..<place]
            result.append(0x20)
            start = place
        }
        return result + text[start...]
    }

    /// The index behind its `>`, or the end of the text. An attribute is a value in quotes.
    private static func endOfTag(
        _ text: [UInt8],
        from start: Int,
        _ maximumAttributeCount: Int
    ) throws(XMLTree.ParseError) -> Int {
        var quote: UInt8?
        var attributeCount = 0
        for index in start..<text.count {
            let byte = text[index]
            if let open = quote {
                if byte == open { quote = nil }
            } else if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "'") {
                quote = byte
                attributeCount += 1
                guard attributeCount <= maximumAttributeCount else {
                    let reason = "an element has more than \(maximumAttributeCount) attributes"
                    throw failure(reason, text, index)
                }
            } else if byte == UInt8(ascii: ">") {
                return index + 1
            }
        }
        return text.count
    }
}
