/// A progress bar in one line of a terminal.
struct ProgressBar: Equatable {
    var name: String
    /// From 0 to 1; `nil` if unknown.
    var fraction: Double?
    var completedBytes: Int64
    var totalBytes: Int64?
    var bytesPerSecond: Double
    var secondsLeft: Double?

    /// The bar in exactly `columns` columns. Without enough room, the least important details are left out first.
    func line(columns: Int) -> String {
        let percent = fraction.map { "\(Amounts.percent($0))%" } ?? "?"
        let total = totalBytes.map { " of " + Amounts.bytes($0) } ?? ""
        let details = [
            Self.right(percent, 4), Self.right(Amounts.bytes(completedBytes) + total, 20),
            Self.right(Amounts.rate(bytesPerSecond), 10), Self.right(Amounts.clock(secondsLeft), 7),
        ]
        let nameColumns = min(max(columns / 4, 12), 32)
        var count = details.count
        while count > 0, nameColumns + details.prefix(count).reduce(0, { $0 + $1.count + 1 }) > columns { count -= 1 }
        let end = details.prefix(count).map { " " + $0 }.joined()
        let room = columns - nameColumns - end.count
        // A shorter bar would be useless.
        let bar = count == details.count && room >= 8 ? " " + bar(columns: room - 1) : ""
        return PlainText.fit(name, columns: columns - bar.count - end.count) + bar + end
    }

    private func bar(columns: Int) -> String {
        let inner = columns - 2
        let filled = Int((fraction ?? 0) * Double(inner))
        return "[" + String(repeating: "#", count: filled) + String(repeating: "-", count: inner - filled) + "]"
    }

    private static func right(_ text: String, _ width: Int) -> String {
        String(repeating: " ", count: max(width - text.count, 0)) + text
    }
}

extension ProgressBar {
    init(_ transfer: Transfer) {
        self.init(
            name: transfer.name,
            fraction: transfer.fraction,
            completedBytes: transfer.completedBytes,
            totalBytes: transfer.totalBytes,
            bytesPerSecond: transfer.bytesPerSecond,
            secondsLeft: transfer.secondsLeft
        )
    }

    init(_ board: Board) {
        self.init(
            name: "\(board.doneCount) of \(board.transfers.count)"
                + (board.failedCount == 0 ? " files" : ", \(board.failedCount) failed"),
            fraction: board.fraction,
            completedBytes: board.completedBytes,
            totalBytes: board.totalBytes,
            bytesPerSecond: board.bytesPerSecond,
            secondsLeft: board.secondsLeft
        )
    }
}

/// The bars at the bottom of a terminal: one for each running file and one for the total. Lines of finished files scroll
/// up.
struct TerminalBars {
    private static let interval = 0.1

    private var lineCount = 0
    private var lastTime: Double?

    /// - Parameters:
    ///   - news: Lines that stay above the bars.
    ///   - isForced: Whether to draw even if less than a tenth of a second has passed since the last drawing.
    ///   - now: The seconds of a monotonic clock.
    /// - Returns: The text to write; `nil` if it is too early.
    mutating func frame(_ board: Board, news: [String], size: Terminal.Size, now: Double, isForced: Bool) -> String? {
        if let lastTime, now < lastTime + Self.interval, !isForced { return nil }
        lastTime = now
        // Text in the last column would wrap. The last row is for the cursor.
        let columns = max(size.columns - 1, 1)
        let running = board.running
        let shown = running.prefix(max(size.rows - 3, 1)).map { ProgressBar($0).line(columns: columns) }
        let bars = board.hasEnded ? [] : shown + [ProgressBar(board).line(columns: columns)]
        // Move up to the first bar and clear everything below.
        let clearing = lineCount > 0 ? "\r\u{1B}[\(lineCount)A\u{1B}[J" : ""
        lineCount = bars.count
        return clearing + (news + bars).map { $0 + "\n" }.joined()
    }
}

/// Progress as lines for a file or a pipe: one when a download starts, and one for each tenth of it.
struct ProgressLines {
    /// The number of tenths that have a line, by the index of the file.
    private var tenths: [Int: Int] = [:]

    /// - Returns: The line; `nil` if there is nothing new.
    mutating func line(_ transfer: Transfer, index: Int) -> String? {
        guard transfer.phase == .running else { return nil }
        guard let before = tenths[index] else {
            tenths[index] = 0
            return "start   \(transfer.name)"
        }
        guard let fraction = transfer.fraction, let total = transfer.totalBytes else { return nil }
        let percent = Amounts.percent(fraction)
        let tenth = percent / 10
        // The number can decrease, because a file that has changed on the server starts over.
        tenths[index] = tenth
        guard tenth > before, tenth < 10 else { return nil }
        let bytes = "\(Amounts.bytes(transfer.completedBytes)) of \(Amounts.bytes(total))"
        let rate = "\(Amounts.rate(transfer.bytesPerSecond)), \(Amounts.clock(transfer.secondsLeft)) left"
        return "\(percent)%     \(transfer.name)  \(bytes)  \(rate)"
    }
}
