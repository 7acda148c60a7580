import Foundation

/// A type that a JSON number, string or Bool is decoded into.
protocol JSONScalar: Decodable {
    /// Reads the value in its usual form. Nil for a rarer form, and for another value.
    static func read(_ reader: JSONReader, _ position: Int) -> Self?
    /// Reads the value in a rarer form.
    static func convert(_ reader: JSONReader, _ position: Int) -> Self?
}

extension JSONScalar {
    static func convert(_ reader: JSONReader, _ position: Int) -> Self? { nil }
}

extension Bool: JSONScalar {
    @inline(__always)
    static func read(_ reader: JSONReader, _ position: Int) -> Bool? { reader.bool(position) }
}

extension String: JSONScalar {
    @inline(__always)
    static func read(_ reader: JSONReader, _ position: Int) -> String? { reader.string(position) }
}

extension Double: JSONScalar {
    @inline(__always)
    static func read(_ reader: JSONReader, _ position: Int) -> Double? {
        reader.double(position).flatMap { $0.isFinite && $0 != 0 ? $0 : nil }
    }

    static func convert(_ reader: JSONReader, _ position: Int) -> Double? { reader.zero(position) }
}

extension Float: JSONScalar {
    static func read(_ reader: JSONReader, _ position: Int) -> Float? {
        guard let double = reader.double(position) else { return nil }
        // Halfway between two Floats, and where Float has fewer digits, converting the Double would round twice.
        let isRisky = double.bitPattern & 0x1FFF_FFFF == 0x1000_0000 || double.magnitude < 0x1p-126
        let float = isRisky ? reader.digits(position).flatMap(Float.init) ?? .nan : Float(double)
        return float.isFinite && float != 0 ? float : nil
    }

    static func convert(_ reader: JSONReader, _ position: Int) -> Float? { reader.zero(position) }
}

extension JSONScalar where Self: FixedWidthInteger {
    @inline(__always)
    static func read(_ reader: JSONReader, _ position: Int) -> Self? { reader.integer(position) }

    /// Converts `34.0` and `3.4e1`, and -0 for unsigned integers.
    static func convert(_ reader: JSONReader, _ position: Int) -> Self? {
        guard let double = reader.double(position), let value = Self(exactly: double) else { return nil }
        // Below 2⁵³, each integer has its own Double.
        if double.magnitude < 0x1p53 { return value }
        guard let decimal = reader.digits(position).flatMap({ Decimal(string: $0) })?.description else { return nil }
        let parts = decimal.drop { $0 == "-" }.split(separator: ".")
        guard UInt64(parts.joined()) != nil, let magnitude = UInt64(parts[0]), let value = Self(exactly: magnitude)
        else { return nil }
        return decimal.first == "-" ? 0 - value : value
    }
}

extension Int: JSONScalar {}
extension Int8: JSONScalar {}
extension Int16: JSONScalar {}
extension Int32: JSONScalar {}
extension Int64: JSONScalar {}
extension UInt: JSONScalar {}
extension UInt8: JSONScalar {}
extension UInt16: JSONScalar {}
extension UInt32: JSONScalar {}
extension UInt64: JSONScalar {}
@available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *) extension Int128: JSONScalar {}
@available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *) extension UInt128: JSONScalar {}

// MARK: - Forms

extension JSONReader {
    /// Returns zero if zero was written, and not a number that is too small.
    fileprivate func zero<T: BinaryFloatingPoint>(_ position: Int) -> T? {
        guard isNumber(position) else { return nil }
        let bytes = bytes(position)
        let digits = bytes.prefix { $0 | 0x20 != UInt8(ascii: "e") }
        guard !digits.contains(where: { UInt8(ascii: "1")...UInt8(ascii: "9") ~= $0 }) else { return nil }
        return bytes[0] == UInt8(ascii: "-") ? -0.0 : 0
    }

    /// Returns a number of up to 18 bytes whose power of ten is −22 to 0, or nil for any other value, including zero.
    func shortDecimal(_ position: Int) -> Decimal? {
        guard isNumber(position), count(position) <= 18,
            let (digits, exponent) = JSONScanner.parts(of: bytes(position)), digits != 0, -22...0 ~= exponent
        else { return nil }
        let mantissa = Int64(digits)
        let value = Decimal(bytes(position)[0] == UInt8(ascii: "-") ? -mantissa : mantissa)
        return exponent == 0 ? value : Decimal(sign: .plus, exponent: exponent, significand: value)
    }

    /// Returns the date of a string of the form `2024-02-29T12:00:00Z`, or nil for any other string, including other
    /// dates.
    func fixedDate(_ position: Int) -> Date? {
        guard kind(position) == .ascii, count(position) == 20 else { return nil }
        let bytes = bytes(position)
        func number(_ start: Int, _ count: Int, _ end: UInt8) -> Int? {
            var value = 0
            for index in start..<(start + count) {
                guard bytes[index].isDigit else { return nil }
                value = value * 10 + Int(bytes[index] &- 0x30)
            }
            return bytes[start + count] == end ? value : nil
        }
        // Before 1583, Foundation uses another calendar.
        guard let year = number(0, 4, UInt8(ascii: "-")), year >= 1583, let month = number(5, 2, UInt8(ascii: "-")),
            let day = number(8, 2, UInt8(ascii: "T")), let hour = number(11, 2, UInt8(ascii: ":")),
            let minute = number(14, 2, UInt8(ascii: ":")), let second = number(17, 2, UInt8(ascii: "Z")), second < 60
        else { return nil }
        return CivilDate(year: year, month: month, day: day, hour: hour, minute: minute, second: second).date
    }
}
