import EasyNetworkTesting
import Foundation
import Testing

@testable import Downloader

@Suite("Screen")
struct ScreenTests {
    /// Collects the output.
    private final class Paper: @unchecked Sendable {
        // Sendable because the lock guards `text`.
        private let lock = NSLock()
        private var text = ""

        func write(_ more: String) {
            lock.withLock { text += more }
        }

        /// The output since the last call.
        func take() -> String {
            lock.withLock {
                defer { text = "" }
                return text
            }
        }
    }

    private let paper = Paper()
    private let clock = ManualClock()

    private func screen(_ addresses: [String], _ size: Terminal.Size?) -> Screen {
        let paper = paper
        return Screen(addresses, clock: clock, size: { size }, write: { paper.write($0) })
    }

    @Test("TRF-1: without a terminal there is a line at the start, at each tenth, and at the end")
    func lines() async {
        let screen = screen(["http://h/a", "http://h/b"], nil)
        await screen.start(0)
        await screen.update(1) { $0.phase = .running }
        await screen.start(1)
        #expect(paper.take() == "start   a\nstart   b\n")
        for count in 1...999 {
            await screen.update(0) { transfer in
                transfer.completedBytes = Int64(count)
                transfer.totalBytes = 1_000
                transfer.bytesPerSecond = 100
                transfer.secondsLeft = 3
            }
            await screen.update(1) { $0.completedBytes = Int64(count) }
        }
        let lines = paper.take().split(separator: "\n")
        #expect(lines.map { $0.prefix(4) } == (1...9).map { "\($0)0% " })
        #expect(lines.first == "10%     a  100 B of 1000 B  100 B/s, 0:03 left")
        await screen.update(0) { transfer in
            transfer.completedBytes = 1_000
            transfer.phase = .done("a (2)")
        }
        await screen.update(1) { $0.phase = .failed("Not found") }
        #expect(paper.take() == "done    a (2)  1000 B\nfailed  b  Not found\n")
    }

    @Test(
        "TRF-1: a resumed file has a line with its position, and a file that starts over has lines again"
    )
    func jumps() async {
        let screen = screen(["http://h/a"], nil)
        for count in [0, 57, 58, 3, 12, 100] as [Int64] {
            await screen.update(0) { transfer in
                transfer.phase = .running
                transfer.completedBytes = count
                transfer.totalBytes = 100
            }
        }
        #expect(paper.take().split(separator: "\n").map { $0.prefix(5) } == ["start", "57%  ", "12%  "])
    }

    @Test("TRF-1: a terminal is redrawn at most ten times a second, and changes in between are not lost")
    func bars() async {
        let screen = screen(["http://h/a", "http://h/b"], Terminal.Size(columns: 100, rows: 24))
        await screen.update(0) { $0.phase = .running }
        let first = paper.take()
        #expect(first.hasPrefix("a ") && first.contains("\n0 of 2 files") && first.split(separator: "\n").count == 2)
        await screen.update(1) { $0.phase = .running }
        await screen.update(0) { $0.phase = .done("a") }
        await screen.draw(isForced: false)
        #expect(paper.take() == "")
        clock.advance(by: 0.1)
        await screen.draw(isForced: false)
        let second = paper.take()
        // The cursor moves up two lines and erases them; a finished line, a bar and the total follow.
        #expect(second.hasPrefix("\r\u{1B}[2A\u{1B}[Jdone    a  0 B\nb ") && second.contains("\n1 of 2 files"))
        clock.advance(by: 1)
        await screen.draw(isForced: false)
        #expect(paper.take() == "", "nothing has changed")
        await screen.update(1) { $0.phase = .interrupted }
        #expect(paper.take() == "\r\u{1B}[2A\u{1B}[Jstopped b  0 B\n")
    }

    @Test("TRF-1: there are never more bars than rows, and no line is wider than the terminal")
    func manyBars() async {
        let addresses = (0..<100).map { "http://h/\($0)" }
        let screen = screen(addresses, Terminal.Size(columns: 40, rows: 10))
        for index in addresses.indices { await screen.update(index) { $0.phase = .running } }
        _ = paper.take()
        await screen.draw(isForced: true)
        let lines = paper.take().split(separator: "\n")
        #expect(lines.count == 8 && lines.dropFirst().allSatisfy { $0.count == 39 })
    }

    @Test("TRF-1: the line of all has the bytes when every length is known, and else the files")
    func total() {
        var board = Board(["http://h/a", "http://h/b"])
        #expect(board.fraction == 0 && board.totalBytes == nil && board.secondsLeft == nil)
        board.transfers[0].completedBytes = 10
        board.transfers[0].totalBytes = 10
        board.transfers[0].phase = .done("a")
        #expect(board.fraction == 0.5 && board.totalBytes == nil)
        board.transfers[1].phase = .running
        board.transfers[1].totalBytes = 90
        board.transfers[1].bytesPerSecond = 45
        #expect(board.fraction == 0.1 && board.totalBytes == 100 && board.secondsLeft == 2 && board.doneCount == 1)
        board.transfers[1].totalBytes = .max
        #expect(board.totalBytes == .max, "lengths that servers claim")
    }

    @Test("TRF-1: the total line leaves out failed files, whether or not their lengths are known")
    func totalAfterFailures() {
        var board = Board(["http://h/a", "http://h/b", "http://h/c"])
        board.transfers[0].phase = .running
        board.transfers[0].completedBytes = 25
        board.transfers[0].totalBytes = 100
        board.transfers[0].bytesPerSecond = 25
        board.transfers[1].phase = .failed("404 Not Found")
        board.transfers[2].completedBytes = 500
        board.transfers[2].totalBytes = 1_000
        board.transfers[2].phase = .failed("SHA-256")
        #expect(board.totalBytes == 100 && board.completedBytes == 25 && board.fraction == 0.25)
        #expect(board.secondsLeft == 3 && board.failedCount == 2 && !board.hasEnded)
        #expect(ProgressBar(board).name == "0 of 3, 2 failed")
        board.transfers[0].phase = .failed("404 Not Found")
        #expect(board.hasEnded && board.fraction == nil && board.totalBytes == 0)
    }

    @Test("TRF-1: the total line stays while the next file waits for a failed one")
    func totalBetweenFiles() async {
        let screen = screen(["http://h/a", "http://h/b"], Terminal.Size(columns: 100, rows: 24))
        await screen.update(0) { $0.phase = .running }
        _ = paper.take()
        clock.advance(by: 0.1)
        await screen.update(0) { $0.phase = .failed("404 Not Found") }
        #expect(paper.take().hasPrefix("\r\u{1B}[2A\u{1B}[Jfailed  a  404 Not Found\n0 of 2, 1 failed"))
    }

    @Test("TRF-1: the summary has files, bytes, seconds, rate and what failed; the exit status tells of it")
    func summary() {
        var board = Board(["http://h/a", "http://h/b"])
        board.transfers[0].progress(
            completedBytes: 2_048,
            earlierBytes: 1_024,
            totalBytes: 2_048,
            bytesPerSecond: 7,
            secondsLeft: 1
        )
        board.transfers[0].phase = .done("a")
        board.transfers[1].phase = .failed("404 Not Found")
        let failed = Summary(board: board, seconds: 2, isInterrupted: false)
        #expect(failed.exitStatus == 1)
        #expect(
            failed.lines == ["1 of 2 files, 2.0 KiB in 2.0 s, 512 B/s", "failed: http://h/b: 404 Not Found"]
        )
        board.transfers[1].phase = .interrupted
        let interrupted = Summary(board: board, seconds: 0, isInterrupted: true)
        #expect(interrupted.exitStatus == 130)
        #expect(
            interrupted.lines
                == ["1 of 2 files, 2.0 KiB in 0.0 s", "Interrupted. Run the same command again to resume."]
        )
        board.transfers[1].phase = .done("b")
        #expect(Summary(board: board, seconds: 1, isInterrupted: true).exitStatus == 0)
    }

    @Test("TRF-1: bytes of this run are told apart from earlier ones, also when the file starts over")
    func loaded() {
        var transfer = Transfer("http://h/a")
        #expect(transfer.loadedBytes == 0)
        let counts: [(Int64, Int64, Int64)] = [(600, 600, 0), (800, 600, 200), (0, 0, 0), (300, 0, 300)]
        for (count, earlier, loaded) in counts {
            transfer.progress(
                completedBytes: count,
                earlierBytes: earlier,
                totalBytes: 1_000,
                bytesPerSecond: 0,
                secondsLeft: nil
            )
            #expect(transfer.phase == .running && transfer.completedBytes == count && transfer.loadedBytes == loaded)
        }
        var quick = Transfer("http://h/b")
        quick.progress(completedBytes: 500, totalBytes: 500, bytesPerSecond: 9, secondsLeft: 0)
        #expect(quick.loadedBytes == 500)
        quick.finish("b", size: 500)
        #expect(quick.phase == .done("b") && quick.loadedBytes == 500)
    }

    @Test("TRF-2: of two files with one name the second one is a failure that names the first, and not a loss")
    func sameName() async {
        let screen = screen(["http://h/1", "http://h/2"], nil)
        let file = URL(fileURLWithPath: "/there/is/no/a.txt")
        await screen.finish(0, file)
        await screen.finish(1, file)
        let phases = await screen.board.transfers.map(\.phase)
        #expect(phases == [.done("a.txt"), .failed("a.txt is the name of another file: http://h/1")])
        #expect(paper.take().split(separator: "\n").count == 2)
    }
}
