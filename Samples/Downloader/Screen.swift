import EasyNetwork
import Foundation

/// Shows how far the files are: bars on a terminal, and else lines.
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

    /// A job has got its turn. News of it may have overtaken this.
    func start(_ index: Int) {
        update(index) { transfer in
            if transfer.phase == .waiting { transfer.phase = .running }
        }
    }

    /// A file is there. Two URLs may name the same one: then the first that came is the one that lies there.
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

    /// To be called every now and then: what came too early for the last drawing is drawn.
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
