import Foundation

extension HTTPHeaders {
    /// The fields of an answer as a session has them: in a dictionary, a repeated field joined by commas. They are put in
    /// the order of their names.
    ///
    /// `Set-Cookie` is taken apart again: read as one field, it would be one cookie with the attributes of them all (RFC
    /// 6265, section 3). Foundation's `HTTPCookie` gives cookies and not their fields, and goes by rules of its own.
    init(joined fields: [AnyHashable: Any]) {
        self.init()
        for (name, value) in fields.map({ ("\($0.key)", "\($0.value)") }).sorted(by: { $0.0 < $1.0 }) {
            if name.isEqualIgnoringASCIICase(to: "Set-Cookie") {
                for cookie in Self.cookies(in: value) { add(cookie, for: name) }
            } else {
                add(value, for: name)
            }
        }
    }

    /// Cuts at each comma that a cookie's name and an equals sign follow. A comma in a date is followed by neither, and
    /// in a value a comma is not allowed (RFC 6265, section 4.1.1).
    private static func cookies(in joined: String) -> [String] {
        func isBlank(_ byte: UInt8) -> Bool { byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") }
        // As browsers take them (RFC 6265bis, section 5.6), but for blanks and quotes.
        func isOfName(_ byte: UInt8) -> Bool { byte > 0x20 && byte != 0x7F && !"=,;\"".utf8.contains(byte) }
        var cookies: [String] = []
        var rest = joined.utf8[...]
        var from = rest.startIndex
        while let comma = rest[from...].firstIndex(of: UInt8(ascii: ",")) {
            from = rest.index(after: comma)
            let next = rest[from...].drop(while: isBlank)
            let name = next.prefix(while: isOfName)
            guard !name.isEmpty, next[name.endIndex...].first == UInt8(ascii: "=") else { continue }
            cookies.append(String(decoding: rest[..<comma], as: UTF8.self))
            rest = next
            from = next.startIndex
        }
        return cookies + [String(decoding: rest, as: UTF8.self)]
    }
}
