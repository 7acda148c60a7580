import Foundation

/// An index over the bytes of JSON text (RFC 8259): for each value one word with its kind and its place, in the order of
/// the text. No value is an object of its own.
///
/// ```
/// {"id": 7, "tags": ["a", "b"]}     object(2 members, ends at 7)  ascii "id"  integer 7  ascii "tags"
///                                   array(2 elements, ends at 7)  ascii "a"  ascii "b"
/// ```
///
/// Whatever is read from it is known to be right: the grammar, escapes, surrogates and UTF-8 are checked when it is made.
/// A position is the number of a word; the whole is at position 0.
final class JSONIndex: @unchecked Sendable {
    // Sendable because nothing changes after `init`.

    /// The kind of a value.
    enum Kind: UInt64 {
        case null, bool
        /// A number without fraction and exponent.
        case integer
        /// A number with a fraction or an exponent.
        case number
        /// A string of ASCII without escapes.
        case ascii
        /// Any other string.
        case text
        case array, object
    }

    /// How deeply arrays and objects may be nested, as in Foundation.
    static let maximumDepth = 512
    /// The maximum length of the text in bytes, plus one.
    static let maximumLength = 1 << 31
    /// The maximum length of one string in bytes, and of one container in values, plus one.
    static let maximumCount = 1 << 29

    /// The text in UTF-8.
    let bytes: Data
    /// A copy of the text, as each look into a Data costs more than to read a number; empty if the text is large.
    private let copy: UnsafeRawBufferPointer
    /// From the top: 3 bits of the kind; 1 bit whether keys may repeat, or a string has escapes; 29 bits of length in bytes, or of
    /// elements of an array, or of members of an object; 31 bits of the place of the first byte, or of the position
    /// behind a container.
    let words: UnsafeMutableBufferPointer<UInt64>

    /// Reads the text.
    ///
    /// UTF-16 and UTF-32, which older standards allowed (RFC 4627, section 3), are converted first. A byte order mark is
    /// skipped.
    init(_ body: Data) throws(JSONSyntaxError) {
        let (bytes, start) = try Self.utf8(body)
        guard bytes.count < Self.maximumLength else {
            throw JSONSyntaxError(reason: "it is longer than 2 GB", offset: 0, line: 1, column: 1)
        }
        self.bytes = bytes
        let result = bytes.withUnsafeBytes { bytes -> Result<UnsafeMutableBufferPointer<UInt64>, JSONSyntaxError> in
            var scanner = JSONScanner(bytes: bytes, offset: start)
            do throws(JSONScanner.Failure) {
                return .success(try scanner.scan())
            } catch {
                return .failure(JSONSyntaxError(error, in: bytes, from: start))
            }
        }
        words = try result.get()
        let length = bytes.count > 1 << 20 ? 0 : bytes.count
        let copy = UnsafeMutableRawBufferPointer.allocate(byteCount: length, alignment: 8)
        // Not `copyBytes`, which is generic and takes as long as the index of a small text.
        bytes.withUnsafeBytes { copy.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0.prefix(length))) }
        self.copy = UnsafeRawBufferPointer(copy)
    }

    deinit {
        words.deallocate()
        copy.deallocate()
    }

    /// The text in UTF-8, and where it begins there.
    private static func utf8(_ body: Data) throws(JSONSyntaxError) -> (bytes: Data, start: Int) {
        // The first character is ASCII, so zeros show the encoding.
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
        // Foundation drops a part of a character at the end.
        guard body.count % (isWide ? 4 : 2) == 0, let text = String(data: body.dropFirst(mark), encoding: encoding)
        else {
            throw JSONSyntaxError(reason: "it is neither UTF-8 nor UTF-16 nor UTF-32", offset: 0, line: 1, column: 1)
        }
        return (Data(text.utf8), 0)
    }
}

// MARK: - Structure

extension JSONIndex {
    /// The kind of the value.
    @inline(__always)
    func kind(_ position: Int) -> Kind {
        // Each of the eight values of three bits is a kind.
        Kind(rawValue: words[position] >> 61).unsafelyUnwrapped
    }

    @inline(__always)
    func isNull(_ position: Int) -> Bool { words[position] >> 61 == 0 }

    /// The number of elements of an array, or of members of an object.
    @inline(__always)
    func count(_ position: Int) -> Int {
        Self.count(words[position])
    }

    /// The position behind the container.
    @inline(__always)
    func end(_ container: Int) -> Int { place(container) }

    /// The position of the value that follows this one with all that is in it.
    @inline(__always)
    func next(_ position: Int) -> Int {
        words[position] >> 62 == 3 ? place(position) : position + 1
    }

    @inline(__always)
    private func place(_ position: Int) -> Int { Self.place(words[position]) }

    @inline(__always)
    static func count(_ word: UInt64) -> Int { Int(truncatingIfNeeded: word >> 31) & (maximumCount - 1) }

    @inline(__always)
    static func place(_ word: UInt64) -> Int { Int(truncatingIfNeeded: word) & (maximumLength - 1) }

    /// That keys of an object may repeat, or that a string has escapes.
    static let mark: UInt64 = 1 << 60

    /// Whether two keys of the object may be equal; seldom true if they are not.
    @inline(__always)
    func mayRepeatKeys(_ object: Int) -> Bool { words[object] & Self.mark != 0 }

    /// Gives the bytes of a string without its quotes, or of a number.
    @inline(__always)
    func withBytes<Result>(_ position: Int, _ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        let place = place(position)
        let count = count(position)
        return withText { body(UnsafeRawBufferPointer(rebasing: $0[place..<(place + count)])) }
    }

    @inline(__always)
    func withText<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        copy.isEmpty ? bytes.withUnsafeBytes(body) : body(copy)
    }

    /// The position of the value of a key.
    ///
    /// - Parameters:
    ///   - hint: the position of the key that is looked at first, then those behind it, then those before. It is moved
    ///     behind what was found, since keys are mostly read in the order in which they were written.
    ///   - last: whether the last one of repeated keys counts, instead of the first one. Default false.
    func value(of key: String, in object: Int, from hint: inout Int, last: Bool = false) -> Int? {
        let found = key.utf8.withContiguousStorageIfAvailable { search(key, $0, in: object, from: &hint, last: last) }
        if let found { return found }
        // On Apple's platforms a text that came as an NSString.
        var native = key
        return native.withUTF8 { search(key, $0, in: object, from: &hint, last: last) }
    }

    /// - Parameter name: the bytes of the key.
    @inline(__always)
    private func search(
        _ key: String,
        _ name: UnsafeBufferPointer<UInt8>,
        in object: Int,
        from hint: inout Int,
        last: Bool
    ) -> Int? {
        withText { bytes in
            guard let text = bytes.baseAddress, let base = name.baseAddress, name.count < Self.maximumCount else {
                return nil
            }
            // The word of a key without its place.
            let wanted = Kind.ascii.rawValue << 61 | UInt64(name.count) << 31
            let (first, end, mayRepeat) = (object + 1, end(object), mayRepeatKeys(object))
            let start = mayRepeat ? first : hint
            var (place, limit) = (start, end)
            var found: Int?
            // From the hint on, then before it.
            for _ in 0..<2 {
                while place < limit {
                    let word = words[place]
                    let isFound =
                        if word & ~UInt64(Self.maximumLength - 1) == wanted {
                            memcmp(text + Self.place(word), base, name.count) == 0
                        } else {
                            // As texts, of which composed and decomposed letters are equal.
                            word >> 61 == Kind.text.rawValue && self.text(place) == key
                        }
                    if isFound {
                        found = place + 1
                        hint = next(place + 1)
                        if !mayRepeat || !last { return found }
                    }
                    place = next(place + 1)
                }
                (place, limit) = (first, start)
            }
            return found
        }
    }
}

// MARK: - Scalars

extension JSONIndex {
    @inline(__always)
    func bool(_ position: Int) -> Bool? {
        kind(position) == .bool ? count(position) == 4 : nil
    }

    /// The text of a string; nil for another value.
    func string(_ position: Int) -> String? {
        switch kind(position) {
        case .ascii: withBytes(position) { String(decoding: $0, as: UTF8.self) }
        case .text: text(position)
        default: nil
        }
    }

    private func text(_ position: Int) -> String {
        withBytes(position) { bytes in
            guard words[position] & Self.mark != 0 else { return String(decoding: bytes, as: UTF8.self) }
            return String(unsafeUninitializedCapacity: bytes.count) { JSONScanner.unescape(bytes, into: $0) }
        }
    }

    /// The digits of a number, as they were written; nil for another value.
    func digits(_ position: Int) -> String? {
        switch kind(position) {
        case .integer, .number: withBytes(position) { String(decoding: $0, as: UTF8.self) }
        default: nil
        }
    }

    /// A number without fraction and exponent that fits into the type; nil for another value.
    @inline(__always)
    func integer<T: FixedWidthInteger>(_ position: Int, as type: T.Type = T.self) -> T? {
        guard kind(position) == .integer else { return nil }
        return withBytes(position) { bytes in
            guard bytes.count <= 19 else { return T(String(decoding: bytes, as: UTF8.self)) }
            let isNegative = bytes.first == UInt8(ascii: "-")
            // Up to 19 digits fit.
            var value: UInt64 = 0
            for byte in bytes.dropFirst(isNegative ? 1 : 0) { value = value &* 10 &+ UInt64(byte &- 0x30) }
            return isNegative ? T(exactly: 0 - Int64(value)) : T(exactly: value)
        }
    }

    /// The nearest Double of any number, infinite if it is too large; nil for another value.
    func double(_ position: Int) -> Double? {
        switch kind(position) {
        case .integer, .number: withBytes(position) { JSONScanner.double($0) }
        default: nil
        }
    }
}
