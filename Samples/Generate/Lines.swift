/// Lines of Swift code.
enum Lines {
    /// Returns a block of sections in braces, with blank lines between them.
    ///
    /// - Parameter head: The text up to and including the opening brace, and anything else on that line.
    static func block(_ head: String, _ sections: [[String]]) -> [String] {
        let lines = sections.filter { !$0.isEmpty }.joined(separator: [""])
        return [head] + lines.map { $0.isEmpty ? "" : "    " + $0 } + ["}"]
    }
}
