import EasyNetwork

/// A JSON string that is built value by value. Building dictionaries of values first would take most of the time.
struct JSONText {
    var bytes: [UInt8] = []
    /// Whether the next value needs a comma before it. False at the start of an object or array.
    private var needsComma = false

    mutating func object(_ key: StaticString? = nil, _ members: (inout JSONText) -> Void) {
        enclose(key, in: "{", "}", members)
    }

    mutating func array(_ key: StaticString? = nil, _ elements: (inout JSONText) -> Void = { _ in }) {
        enclose(key, in: "[", "]", elements)
    }

    mutating func add(_ key: StaticString, _ value: String) {
        begin(key)
        bytes.append(quoted: value)
    }

    /// Adds a value with a key that is not a constant.
    mutating func add(key: String, _ value: (inout JSONText) -> Void) {
        begin(nil)
        bytes.append(quoted: key)
        bytes.append(UInt8(ascii: ":"))
        needsComma = false
        value(&self)
        needsComma = true
    }

    mutating func add(_ element: some FixedWidthInteger) {
        begin(nil)
        bytes += String(element).utf8
    }

    mutating func add(_ element: String) {
        begin(nil)
        bytes.append(quoted: element)
    }

    /// Adds JSON as an element.
    mutating func add(_ element: JSONText) {
        begin(nil)
        bytes += element.bytes
    }

    mutating func add(_ key: StaticString, _ value: some FixedWidthInteger) {
        begin(key)
        bytes += String(value).utf8
    }

    mutating func add(_ key: StaticString, _ value: Double) {
        begin(key)
        // Foundation's formatting is far slower. With so few digits, the result is the same shortest representation.
        let thousandths = (value * 1_000).rounded()
        guard let number = Int32(exactly: thousandths), Double(number) / 1_000 == value else {
            bytes += (value.isFinite ? value.description : "null").utf8
            return
        }
        add(thousandths: number)
    }

    mutating func add(_ key: StaticString, _ value: Bool) {
        begin(key)
        bytes += (value ? "true" : "false").utf8
    }

    private mutating func enclose(
        _ key: StaticString?,
        in first: Unicode.Scalar,
        _ last: Unicode.Scalar,
        _ values: (inout JSONText) -> Void
    ) {
        begin(key)
        bytes.append(UInt8(ascii: first))
        needsComma = false
        values(&self)
        bytes.append(UInt8(ascii: last))
        needsComma = true
    }

    private mutating func begin(_ key: StaticString?) {
        if needsComma { bytes.append(UInt8(ascii: ",")) }
        needsComma = true
        guard let key else { return }
        bytes.append(UInt8(ascii: "\""))
        bytes += UnsafeBufferPointer(start: key.utf8Start, count: key.utf8CodeUnitCount)
        bytes.append(UInt8(ascii: "\""))
        bytes.append(UInt8(ascii: ":"))
    }

    /// Adds a number of thousandths as `-1.0` or `12.345`.
    private mutating func add(thousandths number: Int32) {
        withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 12) { text in
            var (rest, places, start) = (number.magnitude, 3, text.count)
            func write(_ byte: UInt8) {
                start -= 1
                text[start] = byte
            }
            while places > 1, rest % 10 == 0 { (rest, places) = (rest / 10, places - 1) }
            repeat {
                if places == 0 { write(UInt8(ascii: ".")) }
                write(UInt8(ascii: "0") + UInt8(rest % 10))
                (rest, places) = (rest / 10, places - 1)
            } while rest > 0 || places >= 0
            if number < 0 { write(UInt8(ascii: "-")) }
            bytes += UnsafeBufferPointer(rebasing: text[start...])
        }
    }
}
