import Foundation

/// A word of a ``JSONIndex``: the kind of a value, and its place.
struct JSONWord {
    enum Kind: UInt64 {
        case null, bool
        /// A number without a fraction and an exponent.
        case integer
        /// A number with a fraction or an exponent.
        case number
        /// A string of ASCII without escapes.
        case ascii
        /// Any other string.
        case text
        case array, object
    }

    /// The maximum length of the text in bytes, plus one.
    static let maximumLength = 1 << 31
    /// The maximum length of one string in bytes, and of one container in values, plus one.
    static let maximumCount = 1 << 29

    /// The bits from the top: 3 bits for the kind, 1 bit for the mark, 29 bits for the count, 31 bits for the place.
    private(set) var bits: UInt64

    @inline(__always)
    init(_ kind: Kind, count: Int, place: Int) {
        bits = kind.rawValue << 61 | UInt64(count) << 31 | UInt64(place)
    }

    @inline(__always)
    var kind: Kind {
        // Each value of the three bits is a kind.
        Kind(rawValue: bits >> 61).unsafelyUnwrapped
    }

    @inline(__always)
    var isContainer: Bool { bits >> 62 == 3 }

    /// The length in bytes, the number of elements of an array, or the number of members of an object.
    @inline(__always)
    var count: Int { Int(truncatingIfNeeded: bits >> 31) & (Self.maximumCount - 1) }

    /// The offset of the first byte, or the position after a container.
    @inline(__always)
    var place: Int { Int(truncatingIfNeeded: bits) & (Self.maximumLength - 1) }

    /// For an object, whether two keys could be equal (rarely true if they are not); for a string, whether it has
    /// escapes.
    @inline(__always)
    var isMarked: Bool { bits & 1 << 60 != 0 }

    mutating func mark() { bits |= 1 << 60 }
}

/// The functions that read a ``JSONIndex``.
///
/// A reader retains nothing, because counting references would cost more than reading. Only code that holds the index
/// itself uses a reader, and does not pass it on.
struct JSONReader {
    let words: UnsafeMutableBufferPointer<JSONWord>
    /// The first byte of the text. The words contain only offsets within the text, where the scanner has seen the
    /// values.
    let text: UnsafeRawPointer

    @inline(__always)
    func kind(_ position: Int) -> JSONWord.Kind { words[position].kind }

    @inline(__always)
    func isNull(_ position: Int) -> Bool { kind(position) == .null }

    /// Returns the number of elements of an array, or of members of an object.
    @inline(__always)
    func count(_ position: Int) -> Int { words[position].count }

    /// Returns the position after the container.
    @inline(__always)
    func end(_ container: Int) -> Int { words[container].place }

    /// Returns the position of the next value, after this one and all its contents.
    @inline(__always)
    func next(_ position: Int) -> Int {
        let word = words[position]
        return word.isContainer ? word.place : position + 1
    }

    /// Returns the bytes of a string without its quotes, or of a number.
    @inline(__always)
    func bytes(_ position: Int) -> UnsafeRawBufferPointer {
        let word = words[position]
        return UnsafeRawBufferPointer(start: text + word.place, count: word.count)
    }

    /// Calls a closure with the position of each element of an array, or of each key of an object.
    @inline(__always)
    func forEach(in container: Int, _ body: (Int) throws -> Void) rethrows {
        let (end, isObject) = (end(container), kind(container) == .object)
        var position = container + 1
        while position < end {
            try body(position)
            position = next(isObject ? position + 1 : position)
        }
    }
}

// MARK: - Scalars

extension JSONReader {
    @inline(__always)
    func bool(_ position: Int) -> Bool? {
        kind(position) == .bool ? count(position) == 4 : nil
    }

    /// Returns the value of a string, or nil for another value.
    func string(_ position: Int) -> String? {
        switch kind(position) {
        case .ascii: String(decoding: bytes(position), as: UTF8.self)
        case .text: string(ofText: position)
        default: nil
        }
    }

    private func string(ofText position: Int) -> String {
        let bytes = bytes(position)
        guard words[position].isMarked else { return String(decoding: bytes, as: UTF8.self) }
        return String(unsafeUninitializedCapacity: bytes.count) { JSONScanner.unescape(bytes, into: $0) }
    }

    func isNumber(_ position: Int) -> Bool { kind(position) == .integer || kind(position) == .number }

    /// Returns the digits of a number as they were written, or nil for another value.
    func digits(_ position: Int) -> String? {
        isNumber(position) ? String(decoding: bytes(position), as: UTF8.self) : nil
    }

    /// Returns a number without a fraction and an exponent that fits into the type, or nil for another value.
    @inline(__always)
    func integer<T: FixedWidthInteger>(_ position: Int, as type: T.Type = T.self) -> T? {
        guard kind(position) == .integer else { return nil }
        let bytes = bytes(position)
        guard bytes.count <= 19 else { return T(String(decoding: bytes, as: UTF8.self)) }
        let isNegative = bytes[0] == UInt8(ascii: "-")
        // Up to 19 digits fit into 64 bits.
        var value: UInt64 = 0
        for index in (isNegative ? 1 : 0)..<bytes.count { value = value &* 10 &+ UInt64(bytes[index] &- 0x30) }
        return isNegative ? T(exactly: 0 - Int64(value)) : T(exactly: value)
    }

    /// Returns an integer of up to 64 bits only if a Double represents it exactly; otherwise the result of
    /// ``double(_:)``.
    func exactDouble(_ position: Int) -> Double? {
        kind(position) == .integer ? integer(position, as: Int64.self).flatMap(Double.init(exactly:)) : double(position)
    }

    /// Returns the Double nearest to any number, infinite if the number is too large, or nil for another value.
    func double(_ position: Int) -> Double? {
        isNumber(position) ? JSONScanner.double(bytes(position)) : nil
    }
}
