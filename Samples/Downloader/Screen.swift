import EasyNetwork
import Foundation

/// Shows the progress of the files: bars on a terminal, otherwise lines.
actor Screen {
    private(set) var board: Board
    private var bars = TerminalBars()
    private var lines = ProgressLines()
    private var news: [String] = []
    private var isChanged = false

    private let clock: any NetworkClock
    private let size: @Sendable () -> Terminal.Size?
    private let write: @Sendable (String) -> Void

    init(
        _ addresses: [String],
        clock: any NetworkClock = SystemClock(),
        size: @escaping @Sendable () -> Terminal.Size? = { Terminal.size },
        write: @escaping @Sendable (String) -> Void = Terminal.write
    ) {
        board = Board(addresses)
        self.clock = clock
        self.size = size
        self.write = write
    }

    func update(_ index: Int, _ change: @Sendable (inout Transfer) -> Void) {
        let before = board.transfers[index].phase
        change(&board.transfers[index])
        let transfer = board.transfers[index]
        isChanged = true
        if size() == nil, let line = lines.line(transfer, index: index) { news.append(line) }
        if transfer.phase != before, let line = Summary.line(transfer) { news.append(line) }
        draw(isForced: false)
    }

    /// Marks a job as running, unless its progress has arrived already.
    func start(_ index: Int) {
        update(index) { transfer in
            if transfer.phase == .waiting { transfer.phase = .running }
        }
    }

    /// Marks a file as complete. If two URLs name the same file, the first one wins and the second one fails.
    func finish(_ index: Int, _ file: URL) {
        let name = file.lastPathComponent
        let other = board.transfers.first { $0.phase == .done(name) }
        let size = (try? file.resourceValues(forKeys: [.fileSizeKey]))?.fileSize
        update(index) { transfer in
            if let other {
                transfer.phase = .failed("\(name) is the name of another file: \(other.address)")
            } else {
                transfer.finish(name, size: size.map(Int64.init))
            }
        }
    }

    /// Draws the changes since the last drawing. The program calls this method at regular intervals.
    func draw(isForced: Bool) {
        guard isChanged || isForced else { return }
        if let size = size() {
            let now = clock.now
            guard let frame = bars.frame(board, news: news, size: size, now: now, isForced: isForced) else { return }
            write(frame)
        } else {
            for line in news { write(line + "\n") }
        }
        news = []
        isChanged = false
    }
}

/// Standard output.
enum Terminal {
    struct Size: Equatable, Sendable {
        var columns: Int
        var rows: Int
    }

    /// The size of the terminal; `nil` for a file or a pipe.
    static var size: Size? {
        guard isatty(STDOUT_FILENO) == 1 else { return nil }
        var window = winsize()
        guard ioctl(STDOUT_FILENO, UInt(TIOCGWINSZ), &window) == 0, window.ws_col > 0, window.ws_row > 0 else {
            return Size(columns: 80, rows: 24)
        }
        return Size(columns: Int(window.ws_col), rows: Int(window.ws_row))
    }

    /// Writes without delay. `print` would buffer the text for a pipe.
    static func write(_ text: String) {
        // An error means that the reader has closed the pipe.
        try? FileHandle.standardOutput.write(contentsOf: Data(text.utf8))
    }

    static func writeError(_ text: String) {
        try? FileHandle.standardError.write(contentsOf: Data(text.utf8))
    }
}
