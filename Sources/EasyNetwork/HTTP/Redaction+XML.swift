import Foundation

extension Redaction {
    /// `<password>abc</password>` becomes `<password>REDACTED</password>`, with all that is inside of it.
    func redactedXML(_ text: String) -> String {
        let bytes = Array(text.utf8)
        var result: [UInt8] = []
        result.reserveCapacity(bytes.count)
        var index = 0
        while index < bytes.count {
            let byte = bytes[index]
            result.append(byte)
            index += 1
            guard byte == UInt8(ascii: "<") else { continue }
            let nameEnd = bytes[index...].firstIndex { $0 <= 0x20 || "/><".utf8.contains($0) } ?? bytes.count
            let name = bytes[index..<nameEnd]
            let local = name.lastIndex(of: UInt8(ascii: ":")).map { name[($0 + 1)...] } ?? name
            guard !name.isEmpty, local.count <= 100, isSecret(local) else { continue }
            let tag = Self.tag(bytes, from: nameEnd)
            result += bytes[index..<tag.end]
            index = tag.end
            guard index < bytes.count, !tag.isEmptyElement else { continue }
            result += Self.mark.utf8
            index = Self.endOfElement(bytes, from: index, Array(name))
        }
        return String(decoding: result, as: UTF8.self)
    }

    /// Where a tag ends, and whether its element does with it.
    ///
    /// A `>` in quotes ends it as well: what is behind it then counts as inside of the element, and is not shown.
    ///
    /// - Parameter start: behind the name.
    private static func tag(_ bytes: [UInt8], from start: Int) -> (end: Int, isEmptyElement: Bool) {
        var quote: UInt8?
        for index in start..<bytes.count {
            let byte = bytes[index]
            if byte == UInt8(ascii: ">") {
                return (index + 1, quote == nil && bytes[index - 1] == UInt8(ascii: "/"))
            }
            if let open = quote {
                if byte == open { quote = nil }
            } else if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "'") {
                quote = byte
            }
        }
        return (bytes.count, false)
    }

    /// The place of the end tag, with elements of the same name, CDATA and comments passed over.
    private static func endOfElement(_ bytes: [UInt8], from start: Int, _ name: [UInt8]) -> Int {
        var index = start
        var depth = 1
        while let open = bytes[index...].firstIndex(of: UInt8(ascii: "<")) {
            let rest = bytes[open...]
            if rest.starts(with: "<![CDATA[".utf8) {
                index = end(of: "]]>", bytes, from: open + 9)
            } else if rest.starts(with: "<!--".utf8) {
                index = end(of: "-->", bytes, from: open + 4)
            } else if isTag(rest.dropFirst(), name) {
                let tag = tag(bytes, from: open + 1 + name.count)
                if !tag.isEmptyElement { depth += 1 }
                index = tag.end
            } else if rest.dropFirst().first == UInt8(ascii: "/"), isTag(rest.dropFirst(2), name) {
                depth -= 1
                if depth == 0 { return open }
                index = open + 2 + name.count
            } else {
                index = open + 1
            }
        }
        return bytes.count
    }

    private static func isTag(_ bytes: ArraySlice<UInt8>, _ name: [UInt8]) -> Bool {
        guard bytes.starts(with: name) else { return false }
        return bytes.dropFirst(name.count).first.map { $0 <= 0x20 || "/>".utf8.contains($0) } ?? false
    }

    /// Behind it, or the end of the text.
    private static func end(of mark: String, _ bytes: [UInt8], from start: Int) -> Int {
        var index = start
        while index + 3 <= bytes.count {
            if bytes[index..<(index + 3)].elementsEqual(mark.utf8) { return index + 3 }
            index += 1
        }
        return bytes.count
    }
}
