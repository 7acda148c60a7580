import Foundation

extension Redaction {
    /// `"password": "abc"` becomes `"password": "REDACTED"`; numbers, objects and arrays do too, null, true and false
    /// stay.
    ///
    /// - Parameter level: 0, the default, for JSON; 1 for JSON inside its strings, with `\"` for a quote; 2 for JSON
    ///   inside those, with `\\\"`.
    func redactedJSON(_ text: String, level: Int = 0) -> String {
        let bytes = Array(text.utf8)
        let escape = String(repeating: "\\", count: 1 << level - 1)
        var result: [UInt8] = []
        result.reserveCapacity(bytes.count)
        var index = 0
        var backslashes = 0
        while index < bytes.count {
            let byte = bytes[index]
            guard byte == UInt8(ascii: "\""), level == 0 || Self.level(ofQuoteAfter: backslashes) == level else {
                backslashes = byte == UInt8(ascii: "\\") ? backslashes + 1 : 0
                result.append(byte)
                index += 1
                continue
            }
            backslashes = 0
            let end = Self.endOfString(bytes, from: index, level)
            result += bytes[index..<end]
            let name = bytes[(index + 1)..<end]
            index = end
            guard let value = Self.startOfValue(bytes, after: end), isSecretKey(name, level) else { continue }
            result += bytes[end..<value]
            index = Self.endOfJSON(bytes, from: value, level)
            let kept = ["null", "true", "false", ""]
            if kept.contains(where: { bytes[value..<index].elementsEqual($0.utf8) }) {
                result += bytes[value..<index]
            } else {
                result += "\(escape)\"\(Self.mark)\(escape)\"".utf8
            }
        }
        return String(decoding: result, as: UTF8.self)
    }

    /// In how many strings, one inside the other, a quote is with so many backslashes before it. Each of them has its
    /// quotes and its backslashes escaped: `"`, `\"`, `\\\"`, while `\\"` ends a string that ends with a backslash.
    private static func level(ofQuoteAfter backslashes: Int) -> Int {
        (~backslashes).trailingZeroBitCount
    }

    private func isSecretKey(_ name: ArraySlice<UInt8>, _ level: Int) -> Bool {
        guard name.contains(UInt8(ascii: "\\")) else { return isSecret(name) }
        return isSecret((0...level).reduce(name) { name, _ in Self.unescaped(name)[...] })
    }

    /// Behind the colon and white space; nil when this string is no key.
    private static func startOfValue(_ bytes: [UInt8], after end: Int) -> Int? {
        guard let colon = bytes[end...].firstIndex(where: { $0 > 0x20 }), bytes[colon] == UInt8(ascii: ":") else {
            return nil
        }
        return bytes[(colon + 1)...].firstIndex { $0 > 0x20 } ?? bytes.count
    }

    /// Behind its closing quote, or before that of a string around it.
    ///
    /// - Parameter start: the opening quote.
    private static func endOfString(_ bytes: [UInt8], from start: Int, _ level: Int) -> Int {
        var backslashes = 0
        for index in (start + 1)..<max(start + 1, bytes.count) {
            switch bytes[index] {
            case UInt8(ascii: "\\"):
                backslashes += 1
            case UInt8(ascii: "\""):
                let found = Self.level(ofQuoteAfter: backslashes)
                if found <= level { return found == level ? index + 1 : index }
                backslashes = 0
            default:
                backslashes = 0
            }
        }
        return bytes.count
    }

    private static func endOfJSON(_ bytes: [UInt8], from start: Int, _ level: Int) -> Int {
        var index = start
        var depth = 0
        var backslashes = 0
        while index < bytes.count {
            let byte = bytes[index]
            switch byte {
            case UInt8(ascii: "\""):
                let found = Self.level(ofQuoteAfter: backslashes)
                // The string around it ends here.
                if found < level { return index }
                guard found == level || level == 0 else { break }
                index = endOfString(bytes, from: index, level)
                if depth == 0 { return index }
                backslashes = 0
                continue
            case UInt8(ascii: "{"), UInt8(ascii: "["): depth += 1
            case UInt8(ascii: "}"), UInt8(ascii: "]"):
                if depth == 0 { return index }
                depth -= 1
                if depth == 0 { return index + 1 }
            case UInt8(ascii: ","), 0...0x20:
                if depth == 0 { return index }
            default: break
            }
            backslashes = byte == UInt8(ascii: "\\") ? backslashes + 1 : 0
            index += 1
        }
        return bytes.count
    }

    /// A key with its `\u0074` and other escapes taken off.
    private static func unescaped(_ name: ArraySlice<UInt8>) -> [UInt8] {
        var result: [UInt8] = []
        var index = name.startIndex
        while index < name.endIndex {
            guard name[index] == UInt8(ascii: "\\"), index + 1 < name.endIndex else {
                result.append(name[index])
                index += 1
                continue
            }
            let digits = name[(index + 1)..<name.endIndex].dropFirst().prefix(4)
            if name[index + 1] == UInt8(ascii: "u"), digits.count == 4,
                let code = UInt8(String(decoding: digits, as: UTF8.self), radix: 16)
            {
                result.append(code)
                index += 6
            } else {
                if name[index + 1] == UInt8(ascii: "\\") { result.append(name[index]) }
                index += 2
            }
        }
        return result
    }
}
