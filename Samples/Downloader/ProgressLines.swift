/// Progress as lines, for a file or a pipe: when a file begins, and at each tenth of it.
struct ProgressLines {
    /// By the index of the file: how many tenths have a line.
    private var tenths: [Int: Int] = [:]

    /// - Returns: nil when there is nothing new to say.
    mutating func line(_ transfer: Transfer, index: Int) -> String? {
        guard transfer.phase == .running else { return nil }
        guard let before = tenths[index] else {
            tenths[index] = 0
            return "start   \(transfer.name)"
        }
        guard let fraction = transfer.fraction, let total = transfer.totalBytes else { return nil }
        let percent = Amounts.percent(fraction)
        let tenth = percent / 10
        // It can also go back: a file that has changed on the server begins anew.
        tenths[index] = tenth
        guard tenth > before, tenth < 10 else { return nil }
        let bytes = "\(Amounts.bytes(transfer.completedBytes)) of \(Amounts.bytes(total))"
        let rate = "\(Amounts.rate(transfer.bytesPerSecond)), \(Amounts.clock(transfer.secondsLeft)) left"
        return "\(percent)%     \(transfer.name)  \(bytes)  \(rate)"
    }
}
