import Foundation

/// A pattern of a schema. The patterns of JavaScript and of Foundation are nearly the same.
struct Pattern {
    private let expression: NSRegularExpression

    /// The largest number of progress reports by Foundation, each after tens of thousands of steps. A pattern like
    /// `^(a+)+$` can need more steps than there is time for.
    private static let maximumSteps = 20
    private static let maximumLength = 10_000

    /// Returns `nil` for a pattern that Foundation cannot read.
    init?(_ text: String) {
        guard text.utf8.count <= Self.maximumLength, let expression = try? NSRegularExpression(pattern: text) else {
            return nil
        }
        self.expression = expression
    }

    /// Returns whether the pattern occurs in the text, or `nil` if that takes too long to find out, and the number of
    /// steps.
    func matches(_ text: String) -> (result: Bool?, steps: Int) {
        var (steps, result): (Int, Bool?) = (0, false)
        let range = NSRange(location: 0, length: text.utf16.count)
        expression.enumerateMatches(in: text, options: .reportProgress, range: range) { match, _, stop in
            steps += 1
            if match != nil { result = true } else if steps > Self.maximumSteps { result = nil }
            stop.pointee = ObjCBool(result != false)
        }
        return (result, steps)
    }
}

/// Creates a string that matches a simple pattern of characters, sets, groups and counts.
struct PatternText {
    private var rest: Substring.UnicodeScalarView
    private var isReadable = true

    private static let (maximumDepth, maximumLength) = (20, 1_000)

    /// Returns a string that matches the pattern, or `nil` if the pattern is not simple.
    static func text(of pattern: String) -> String? {
        var reader = PatternText(rest: Substring(pattern).unicodeScalars)
        let text = reader.alternatives(depth: 0)
        return reader.isReadable && reader.rest.isEmpty ? text : nil
    }

    /// Returns the string for the first alternative.
    private mutating func alternatives(depth: Int) -> String {
        let text = sequence(depth: depth)
        while take("|") { _ = sequence(depth: depth) }
        return text
    }

    private mutating func sequence(depth: Int) -> String {
        var result = ""
        while isReadable, let next = rest.first, next != "|", next != ")" {
            rest.removeFirst()
            let text = atom(next, depth: depth)
            let count = count()
            guard depth < Self.maximumDepth, result.utf8.count + text.utf8.count * count <= Self.maximumLength else {
                isReadable = false
                break
            }
            result += String(repeating: text, count: count)
        }
        return result
    }

    private mutating func atom(_ scalar: Unicode.Scalar, depth: Int) -> String {
        switch scalar {
        case "^", "$": return ""
        case ".": return "a"
        case "\\": return escape()
        case "[": return set()
        case "(":
            if take("?"), !take(":") { isReadable = false }
            let text = alternatives(depth: depth + 1)
            if !take(")") { isReadable = false }
            return text
        case "*", "+", "?", "{":
            isReadable = false
            return ""
        default: return String(scalar)
        }
    }

    private mutating func escape() -> String {
        guard let scalar = rest.popFirst() else {
            isReadable = false
            return ""
        }
        switch scalar {
        case "d": return "1"
        case "w", "D", "S": return "a"
        case "s": return " "
        case "b": return ""
        case "W": return "-"
        case "a"..."z", "A"..."Z", "0"..."9":
            isReadable = false
            return ""
        default: return String(scalar)
        }
    }

    /// Returns the first character of a set, or some other character for a negated set.
    private mutating func set() -> String {
        let isNegative = take("^")
        var first: String?
        while let scalar = rest.popFirst(), scalar != "]" {
            let text = scalar == "\\" ? escape() : String(scalar)
            if first == nil { first = text }
        }
        return isNegative ? "a" : first ?? ""
    }

    /// Returns the smallest count of the preceding item.
    private mutating func count() -> Int {
        defer { _ = take("?") }
        if take("*") || take("?") { return 0 }
        if take("+") || rest.first != "{" { return 1 }
        let text = String(rest.dropFirst().prefix { $0 != "}" })
        rest = rest.dropFirst(text.unicodeScalars.count + 2)
        guard let count = Int(text.prefix { $0 != "," }), (0...Self.maximumLength).contains(count) else {
            isReadable = false
            return 0
        }
        return count
    }

    private mutating func take(_ scalar: Unicode.Scalar) -> Bool {
        guard rest.first == scalar else { return false }
        rest.removeFirst()
        return true
    }
}
