/// A text of JSON that grows by one value after the other. Values in dictionaries would take most of the time.
struct JSONText {
    var bytes: [UInt8] = []

    mutating func object(_ key: StaticString? = nil, _ members: (inout JSONText) -> Void) {
        begin(key)
        bytes.append(UInt8(ascii: "{"))
        members(&self)
        bytes.append(UInt8(ascii: "}"))
    }

    mutating func array(_ key: StaticString? = nil, _ elements: (inout JSONText) -> Void = { _ in }) {
        begin(key)
        bytes.append(UInt8(ascii: "["))
        elements(&self)
        bytes.append(UInt8(ascii: "]"))
    }

    mutating func add(_ key: StaticString, _ value: String) {
        begin(key)
        add(quoted: value)
    }

    mutating func add(_ element: String) {
        begin(nil)
        add(quoted: element)
    }

    mutating func add(_ key: StaticString, _ value: some FixedWidthInteger) {
        begin(key)
        bytes += String(value).utf8
    }

    mutating func add(_ key: StaticString, _ value: Double) {
        begin(key)
        bytes += (value.isFinite ? value.description : "null").utf8
    }

    mutating func add(_ key: StaticString, _ value: Bool) {
        begin(key)
        bytes += (value ? "true" : "false").utf8
    }

    /// A value is preceded by a comma unless it is the first of an object or an array.
    private mutating func begin(_ key: StaticString?) {
        if let last = bytes.last, last != UInt8(ascii: "{"), last != UInt8(ascii: "[") {
            bytes.append(UInt8(ascii: ","))
        }
        guard let key else { return }
        bytes.append(UInt8(ascii: "\""))
        bytes += UnsafeBufferPointer(start: key.utf8Start, count: key.utf8CodeUnitCount)
        bytes.append(UInt8(ascii: "\""))
        bytes.append(UInt8(ascii: ":"))
    }

    private mutating func add(quoted text: String) {
        bytes.append(UInt8(ascii: "\""))
        text.utf8Bytes { add(escaped: $0) }
        bytes.append(UInt8(ascii: "\""))
    }

    private mutating func add(escaped text: UnsafeBufferPointer<UInt8>) {
        // Most texts need no escape.
        guard text.hasByte({ $0.isControl | $0.equals("\"") | $0.equals("\\") }) else {
            bytes += text
            return
        }
        for byte in text {
            switch byte {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"):
                bytes.append(UInt8(ascii: "\\"))
                bytes.append(byte)
            case UInt8(ascii: "\n"): bytes += #"\n"#.utf8
            case 0..<0x20: bytes += ((byte < 16 ? #"\u000"# : #"\u00"#) + String(byte, radix: 16)).utf8
            default: bytes.append(byte)
            }
        }
    }
}
