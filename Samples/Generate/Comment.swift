import Foundation

/// A comment made of strings from a document. No other code writes comments, so no string can end its comment.
struct Comment {
    /// The lines without `//`, without control characters and without marks that change the text direction.
    private(set) var lines: [String] = []

    /// - Parameter texts: The paragraphs of the comment.
    init(_ texts: String?..., isDeprecated: Bool = false) {
        for case let text? in texts { append(text) }
        if isDeprecated { append("Deprecated.") }
    }

    /// Appends a paragraph unless the comment already contains it.
    mutating func append(_ text: String) {
        let all = text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline).map(Self.line)
        let begin = all.drop(while: \.isEmpty)
        let whole = begin.lastIndex { !$0.isEmpty }.map { Array(begin[...$0]) } ?? []
        let paragraph = whole.indices.filter { !whole[$0].isEmpty || !whole[$0 - 1].isEmpty }.map { whole[$0] }
        if paragraph.isEmpty || paragraphs.contains(paragraph) { return }
        paragraphs.append(paragraph)
        lines += (lines.isEmpty ? [] : [""]) + paragraph
    }

    /// - Parameter mark: The beginning of each line, such as `///` for documentation.
    func source(_ mark: String = "///") -> [String] { lines.map { $0.isEmpty ? mark : "\(mark) \($0)" } }

    private var paragraphs: [[String]] = []

    private static func line(_ text: Substring) -> String {
        let scalars = text.unicodeScalars.filter { !$0.properties.isBidiControl }.map {
            [.control, .lineSeparator, .paragraphSeparator].contains($0.properties.generalCategory) ? " " : $0
        }
        var line = String(String.UnicodeScalarView(scalars))
        while line.last?.isWhitespace == true { line.removeLast() }
        return line
    }
}
