/// One line of a terminal that shows how far something is.
struct ProgressBar: Equatable {
    var name: String
    /// From 0 to 1; nil when nobody knows.
    var fraction: Double?
    var completedBytes: Int64
    var totalBytes: Int64?
    var bytesPerSecond: Double
    var secondsLeft: Double?

    /// Exactly so many columns: what has no room is left out, the least important first.
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
        // Less than this says nothing.
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
            name: "\(board.doneCount) of \(board.transfers.count) files",
            fraction: board.fraction,
            completedBytes: board.completedBytes,
            totalBytes: board.totalBytes,
            bytesPerSecond: board.bytesPerSecond,
            secondsLeft: board.secondsLeft
        )
    }
}
