import Foundation

/// Documentation comments from a document's descriptions.
enum Comment {
    /// - Returns: lines without `///`.
    static func lines(_ texts: String?..., isDeprecated: Bool = false) -> [String] {
        var paragraphs: [[String]] = []
        for case let text? in texts {
            let lines = text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline).map(line)
            let begin = lines.drop(while: \.isEmpty)
            let whole = begin.lastIndex { !$0.isEmpty }.map { Array(begin[...$0]) } ?? []
            let end = whole.indices.filter { !whole[$0].isEmpty || !whole[$0 - 1].isEmpty }.map { whole[$0] }
            if !end.isEmpty, !paragraphs.contains(end) { paragraphs.append(end) }
        }
        if isDeprecated { paragraphs.append(["Deprecated."]) }
        return Array(paragraphs.joined(separator: [""]))
    }

    /// A line without control characters and without blanks at its end.
    private static func line(_ text: Substring) -> String {
        let scalars = text.unicodeScalars.map { $0.properties.generalCategory == .control ? " " : $0 }
        var line = String(String.UnicodeScalarView(scalars))
        while line.last?.isWhitespace == true { line.removeLast() }
        return line
    }
}
