/// A part of a string with names in braces, such as `/users/{id}`.
package enum TemplatePart: Sendable {
    case literal(String)
    case parameter(String)

    package static func parts(of text: some StringProtocol) -> [TemplatePart] {
        var parts: [TemplatePart] = []
        var rest = text[...]
        while let open = rest.firstIndex(of: "{"), let close = rest[open...].firstIndex(of: "}") {
            if open > rest.startIndex { parts.append(.literal(String(rest[..<open]))) }
            parts.append(.parameter(String(rest[rest.index(after: open)..<close])))
            rest = rest[rest.index(after: close)...]
        }
        if !rest.isEmpty { parts.append(.literal(String(rest))) }
        return parts
    }
}
