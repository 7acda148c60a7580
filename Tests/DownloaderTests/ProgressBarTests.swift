import Testing

@testable import Downloader

@Suite("ProgressBar")
struct ProgressBarTests {
    private var bar: ProgressBar {
        ProgressBar(
            name: "report.pdf",
            fraction: 0.455,
            completedBytes: 1_000_000,
            totalBytes: 2_200_000,
            bytesPerSecond: 102_400,
            secondsLeft: 11.7
        )
    }

    @Test("TRF-1: a bar has name, share, bytes, rate and the time that is left")
    func line() {
        let bar = bar.line(columns: 100)
        let expected =
            "report.pdf                [############---------------]  45%   977 KiB of 2.1 MiB  100 KiB/s    0:12"
        #expect(bar == expected)
    }

    @Test("TRF-1: a bar takes exactly the columns that it has, and leaves out the least important first")
    func widths() throws {
        var short = bar
        short.name = "日本語のとても長い名前のファイル-2024.tar.gz"
        for bar in [bar, short] {
            for columns in 1...300 {
                let line = bar.line(columns: columns)
                try #require(PlainText.columns(line) == columns)
                try #require(line.contains("[") == (columns >= 70) && line.contains("0:12") == (columns >= 59))
                try #require(line.contains("45%") == (columns >= 17))
            }
        }
    }

    @Test("TRF-1: unknown values are shown as unknown")
    func unknown() {
        let bar = ProgressBar(
            name: "a",
            fraction: nil,
            completedBytes: 5,
            totalBytes: nil,
            bytesPerSecond: 0,
            secondsLeft: nil
        )
        let line = bar.line(columns: 100)
        #expect(line.contains("[-") && !line.contains("#") && line.contains("   ?") && line.hasSuffix("-:--"))
    }

    @Test("TRF-1: a name of a server cannot write to the terminal what is no name")
    func plainText() {
        #expect(PlainText.line("a\u{1B}[2Jb\r\nc\u{202E}d\u{9B}") == "a [2Jb  c d ")
        var transfer = Transfer("http://h/%1B%5B2J/x%1By?z")
        #expect(transfer.name == "x%1By")
        transfer.phase = .done("a\u{1B}b")
        #expect(transfer.name == "a b")
        transfer.phase = .failed("no\nway\u{7}")
        #expect(Summary.line(transfer) == "failed  x%1By  no way ")
    }

    @Test(
        "TRF-1: a long name is cut in its middle",
        arguments: [
            ("abcdefgh", 5, "ab~gh"), ("abc", 5, "abc  "), ("日本語日本語", 6, "日~語 "), ("abc", 1, "~"), ("abc", 0, ""),
        ]
    )
    func fit(text: String, columns: Int, expected: String) {
        #expect(PlainText.fit(text, columns: columns) == expected)
    }
}
