/// The results of all files.
struct Summary {
    let board: Board
    let seconds: Double
    let isInterrupted: Bool

    var exitStatus: Int32 {
        if isComplete { return 0 }
        return isInterrupted ? 130 : 1
    }

    private var isComplete: Bool { board.doneCount == board.transfers.count }

    var lines: [String] {
        let files = "\(board.doneCount) of \(board.transfers.count) files"
        // The rate counts only the bytes that this run has loaded.
        let rate = seconds > 0 ? ", \(Amounts.rate(Double(board.loadedBytes) / seconds))" : ""
        var lines = ["\(files), \(Amounts.bytes(board.completedBytes)) in \(Amounts.duration(seconds))\(rate)"]
        for transfer in board.transfers {
            if case .failed(let message) = transfer.phase {
                lines.append("failed: \(transfer.address): \(PlainText.line(message))")
            }
        }
        if isInterrupted && !isComplete {
            lines.append("Interrupted. Run the same command again to resume.")
        }
        return lines
    }

    /// The last line about a file; `nil` while it is waiting or running.
    static func line(_ transfer: Transfer) -> String? {
        switch transfer.phase {
        case .waiting, .running: nil
        case .done: "done    \(transfer.name)  \(Amounts.bytes(transfer.completedBytes))"
        case .failed(let message): "failed  \(transfer.name)  \(PlainText.line(message))"
        case .interrupted: "stopped \(transfer.name)  \(Amounts.bytes(transfer.completedBytes))"
        }
    }
}
