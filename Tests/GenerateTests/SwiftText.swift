import Testing

/// What of a text in Swift is code: without comments and the contents of literals.
struct SwiftText {
    private(set) var code = ""
    /// What no text that Generate writes has.
    private(set) var faults: [String] = []
    private var rest: Substring.UnicodeScalarView

    init(_ text: String) {
        rest = Substring(text).unicodeScalars
        code(isInterpolation: false)
        for scalar in text.unicodeScalars where scalar != "\n" {
            switch scalar.properties.generalCategory {
            case .control, .lineSeparator, .paragraphSeparator:
                faults.append("has U+\(String(scalar.value, radix: 16))")
            default: if scalar.properties.isBidiControl { faults.append("turns the direction of the text") }
            }
        }
    }

    private mutating func code(isInterpolation: Bool) {
        var depth = 0
        while let scalar = rest.popFirst() {
            switch scalar {
            case "\"":
                code += "\"\""
                literal()
                continue
            case "/" where rest.first == "/":
                rest = rest.drop { $0 != "\n" && $0 != "\r" }
                continue
            case "/" where rest.first == "*", "#" where rest.first == "\"": faults.append("has another way to quote")
            case "(": depth += 1
            case ")":
                if isInterpolation, depth == 0 { return }
                depth -= 1
            default: break
            }
            code.unicodeScalars.append(scalar)
        }
        if isInterpolation { faults.append("ends in an interpolation") }
    }

    private mutating func literal() {
        while let scalar = rest.popFirst(), scalar != "\"" {
            if scalar == "\n" || scalar == "\r" || rest.isEmpty { return faults.append("ends a line in a literal") }
            guard scalar == "\\", let next = rest.popFirst() else { continue }
            if next == "(" {
                code += "("
                code(isInterpolation: true)
                code += ")"
            }
        }
    }

    /// Lines without blanks around them, and without those that are empty.
    var lines: [String] {
        code.split(separator: "\n").map { $0.split(separator: " ").joined(separator: " ") }.filter { !$0.isEmpty }
    }
}
