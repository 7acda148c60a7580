import Foundation

/// Reads the elements of DER (X.690, section 10) one after the other: tag, length, contents.
///
/// As strict as certificates need: tags of one byte, lengths that are definite, as short as can be and of at most four
/// bytes. Whatever else the bytes hold, they are refused, never followed.
struct DERReader {
    enum Tag {
        static let integer: UInt8 = 0x02
        static let bitString: UInt8 = 0x03
        static let objectIdentifier: UInt8 = 0x06
        static let sequence: UInt8 = 0x30

        /// `[number] IMPLICIT` of a type that is not built of others.
        static func primitive(_ number: UInt8) -> UInt8 { 0x80 | number }
        /// `[number] EXPLICIT`.
        static func constructed(_ number: UInt8) -> UInt8 { 0xA0 | number }
    }

    struct Element: Equatable {
        var tag: UInt8
        var contents: Data
        /// Tag, length and contents.
        var encoding: Data
    }

    private var rest: Data

    init(_ bytes: Data) {
        rest = bytes
    }

    var isAtEnd: Bool { rest.isEmpty }

    /// The next element and goes on behind it; nil, and stays, at the end and when it is malformed or of another tag.
    mutating func next(_ tag: UInt8) -> Element? {
        guard rest.first == tag, let element = next() else { return nil }
        return element
    }

    /// The next element, whatever its tag; nil, and stays, at the end and when it is malformed.
    mutating func next() -> Element? {
        guard let tag = rest.first, tag & 0x1F != 0x1F else { return nil }
        var behind = rest.dropFirst()
        guard let length = Self.length(&behind), length <= behind.count else { return nil }
        let contents = behind.prefix(length)
        let element = Element(tag: tag, contents: contents, encoding: rest[..<contents.endIndex])
        rest = rest[contents.endIndex...]
        return element
    }

    private static func length(_ bytes: inout Data) -> Int? {
        guard let first = bytes.popFirst() else { return nil }
        guard first >= 0x80 else { return Int(first) }
        let count = Int(first & 0x7F)
        guard (1...4).contains(count), count <= bytes.count, bytes.first != 0 else { return nil }
        let value = bytes.prefix(count).reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
        bytes = bytes.dropFirst(count)
        // An Int has 32 bits on some watches.
        return value >= 0x80 ? Int(exactly: value) : nil
    }
}
