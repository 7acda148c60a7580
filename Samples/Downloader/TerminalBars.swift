/// The lower end of a terminal: a bar for each file that comes in, and one for all. What is over scrolls away above.
struct TerminalBars {
    private static let interval = 0.1

    private var lineCount = 0
    private var lastTime: Double?

    /// - Parameters:
    ///   - news: lines that stay.
    ///   - isForced: whether it is drawn although it was less than a tenth of a second ago.
    ///   - now: seconds of any clock that does not go back.
    /// - Returns: what is to be written; nil when it is too early.
    mutating func frame(_ board: Board, news: [String], size: Terminal.Size, now: Double, isForced: Bool) -> String? {
        if let lastTime, now < lastTime + Self.interval, !isForced { return nil }
        lastTime = now
        // A full last column would wrap, and the lowest row is for the cursor.
        let columns = max(size.columns - 1, 1)
        let running = board.running
        let shown = running.prefix(max(size.rows - 3, 1)).map { ProgressBar($0).line(columns: columns) }
        let bars = running.isEmpty ? [] : shown + [ProgressBar(board).line(columns: columns)]
        // Up to the first bar, and away with all below.
        let clearing = lineCount > 0 ? "\r\u{1B}[\(lineCount)A\u{1B}[J" : ""
        lineCount = bars.count
        return clearing + (news + bars).map { $0 + "\n" }.joined()
    }
}
