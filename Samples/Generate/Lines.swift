/// Lines of Swift.
enum Lines {
    /// Sections with blank lines between them, in braces.
    ///
    /// - Parameter head: up to the opening brace and what belongs on its line.
    static func block(_ head: String, _ sections: [[String]]) -> [String] {
        let lines = sections.filter { !$0.isEmpty }.joined(separator: [""])
        return [head] + lines.map { $0.isEmpty ? "" : "    " + $0 } + ["}"]
    }
}
