@testable import TestSupport

/// Makes JSON text and damages it.
enum RandomJSON {
    /// An array or an object, with blanks here and there.
    static func document(_ generator: inout SeededGenerator) -> String {
        Bool.random(using: &generator) ? array(&generator, 4) : object(&generator, 4)
    }

    private static func value(_ generator: inout SeededGenerator, _ depth: Int) -> String {
        switch Int.random(in: depth > 0 ? 0..<10 : 2..<10, using: &generator) {
        case 0: array(&generator, depth - 1)
        case 1: object(&generator, depth - 1)
        case 2: "null"
        case 3: Bool.random(using: &generator) ? "true" : "false"
        case 4...6: number(&generator)
        default: string(&generator)
        }
    }

    private static func array(_ generator: inout SeededGenerator, _ depth: Int) -> String {
        var elements: [String] = []
        for _ in 0..<Int.random(in: 0..<6, using: &generator) {
            elements.append(blank(&generator) + value(&generator, depth) + blank(&generator))
        }
        return "[" + (elements.isEmpty ? blank(&generator) : elements.joined(separator: ",")) + "]"
    }

    private static func object(_ generator: inout SeededGenerator, _ depth: Int) -> String {
        var members: [String] = []
        for _ in 0..<Int.random(in: 0..<6, using: &generator) {
            let key = blank(&generator) + string(&generator) + blank(&generator)
            members.append(key + ":" + blank(&generator) + value(&generator, depth) + blank(&generator))
        }
        return "{" + (members.isEmpty ? blank(&generator) : members.joined(separator: ",")) + "}"
    }

    private static func blank(_ generator: inout SeededGenerator) -> String {
        guard Int.random(in: 0..<4, using: &generator) == 0 else { return "" }
        return ["  ", "\n", "\t", "\r\n", " "].randomElement(using: &generator) ?? ""
    }

    private static let characters = [
        "a", "b", "id", "name", "0", " ", "/", "é", "e\u{301}", "€", "😀", "\u{7F}", "\u{2028}", #"\""#, #"\\"#, #"\/"#,
        #"\n"#,
        #"\t"#, #"\u0000"#, #"\u00e9"#, #"\u20AC"#, #"\uD83D\uDE00"#, "a long part of a string that needs no look",
    ]

    private static func string(_ generator: inout SeededGenerator) -> String {
        var text = "\""
        for _ in 0..<Int.random(in: 0..<5, using: &generator) {
            text += characters.randomElement(using: &generator) ?? ""
        }
        return text + "\""
    }

    private static func digits(_ generator: inout SeededGenerator, upTo count: Int) -> String {
        var text = ""
        for _ in 0..<Int.random(in: 1...count, using: &generator) {
            text += String(Int.random(in: 0...9, using: &generator))
        }
        return text
    }

    /// A number whose magnitude is no more than 10^300.
    static func number(_ generator: inout SeededGenerator) -> String {
        let edges = [
            "9223372036854775807", "9223372036854775808", "18446744073709551615", "9007199254740993", "5e-324", "0",
        ]
        if Int.random(in: 0..<10, using: &generator) == 0 { return edges.randomElement(using: &generator) ?? "0" }
        var text = Bool.random(using: &generator) ? "-" : ""
        let whole = digits(&generator, upTo: [2, 10, 20, 30].randomElement(using: &generator) ?? 1)
        let significant = whole.drop { $0 == "0" }
        text += significant.isEmpty ? "0" : String(significant)
        if Bool.random(using: &generator) { text += "." + digits(&generator, upTo: 20) }
        if Int.random(in: 0..<3, using: &generator) == 0 {
            text += ["e", "E", "e+"].randomElement(using: &generator) ?? ""
            text += text.hasSuffix("+") ? "" : ["-", ""].randomElement(using: &generator) ?? ""
            text += String(Int.random(in: 0...270, using: &generator))
        }
        return text
    }

    // No U+FEFF, which Foundation on Linux drops at the beginning of a string.
    private static let parts = [
        "\"", "\\", "\\u", "\\ud800", "[", "]", "{", "}", ",", ":", "-", "0", "1", ".", "e", "E+", "+", "true", "nul",
        " ", "\n", "\0",
        "\u{1}", "é", "NaN", "/", "'", "\u{C}",
    ]

    /// Changes one to three places.
    static func damage(_ bytes: inout [UInt8], _ generator: inout SeededGenerator) {
        for _ in 0..<Int.random(in: 1...3, using: &generator) where !bytes.isEmpty {
            let place = Int.random(in: 0..<bytes.count, using: &generator)
            let end = min(place + Int.random(in: 1...4, using: &generator), bytes.count)
            let part = Array((parts.randomElement(using: &generator) ?? "").utf8)
            switch Int.random(in: 0..<8, using: &generator) {
            case 0: bytes[place] = UInt8.random(in: 0...255, using: &generator)
            case 1: bytes[place] ^= 1 << UInt8.random(in: 0..<8, using: &generator)
            case 2: bytes.removeSubrange(place..<end)
            case 3: bytes.replaceSubrange(place..<end, with: part)
            case 4: bytes.insert(contentsOf: bytes[place..<end], at: place)
            case 5: bytes.removeSubrange(place...)
            default: bytes.insert(contentsOf: part, at: place)
            }
        }
    }
}
