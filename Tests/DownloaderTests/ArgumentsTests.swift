import Foundation
import SampleSupport
import Testing

@testable import Downloader

@Suite("Arguments")
struct ArgumentsTests {
    private static let url = "http://localhost/a"

    private func parse(_ line: String, lists: [String: String] = [:]) throws(Misuse) -> Arguments.Command {
        try Arguments.parse(line.split(separator: " ").map(String.init)) { name in
            guard let text = lists[name] else { throw CocoaError(.fileReadNoSuchFile) }
            return text
        }
    }

    private func arguments(_ line: String, lists: [String: String] = [:]) throws -> Arguments {
        guard case .download(let arguments) = try parse(line, lists: lists) else {
            throw Misuse("help was not asked for")
        }
        return arguments
    }

    @Test("TRF-1: without options: four files at once into the working directory, over one connection each")
    func defaults() throws {
        let arguments = try arguments(Self.url)
        #expect(arguments.addresses == [Self.url])
        #expect(arguments.jobCount == 4 && arguments.directory == "." && arguments.segmentCount == 1)
        #expect(arguments.byteLimit == nil && arguments.sha256 == nil)
    }

    @Test("TRF-1: options stand anywhere, and bring their value along or behind them")
    func options() throws {
        let sha256 = String(repeating: "aB", count: 32)
        let apart = try arguments("-j 2 -o out --segments 3 \(Self.url) --limit 1.5M --sha256 \(sha256)")
        let attached = try arguments("-j2 -oout --segments=3 --limit=1.5M --sha256=\(sha256) -- \(Self.url)")
        #expect(apart == attached)
        #expect(apart.jobCount == 2 && apart.directory == "out" && apart.segmentCount == 3)
        #expect(apart.byteLimit == 1_572_864 && apart.sha256 == sha256.lowercased())
    }

    @Test(
        "TRF-1: a list has a URL a line; comments and blank lines are skipped, and duplicates are taken once"
    )
    func lists() throws {
        let text = "# mirrors\r\nhttp://h/1\n\n  http://h/2#part  \n\t# http://h/3\nhttp://h/1"
        let arguments = try arguments(
            "http://h/0 -i list -i - http://h/0",
            lists: ["list": text, "-": "https://h/4\n"]
        )
        #expect(arguments.addresses == ["http://h/0", "http://h/1", "http://h/2#part", "https://h/4"])
    }

    @Test("TRF-1: help is help whatever else there is", arguments: ["--help", "-h", "-j 0 --help", "x -h"])
    func help(line: String) throws {
        #expect(try parse(line) == .help)
    }

    @Test(
        "TRF-1: a mistake is one line that names the argument",
        arguments: [
            ("", "no URL is given"), ("-i none", "-i none: "), ("-i empty", "no URL is given"), ("-j", "-j needs"),
            ("-j 0 \(url)", "-j 0: needs a number from 1"), ("-j x \(url)", "-j x: "), ("-j 257 \(url)", "-j 257: "),
            ("-j 99999999999999999999 \(url)", "-j 99999999999999999999: "),
            ("--segments 17 \(url)", "--segments 17: "),
            ("--segments -1 \(url)", "--segments -1: "), ("--limit 0 \(url)", "--limit 0: needs bytes a second"),
            ("--limit= \(url)", "--limit : "), ("--sha256 abc \(url)", "--sha256 abc: needs 64"),
            ("-o", "-o needs a directory"),
            ("--sha256 \(String(repeating: "é", count: 32)) \(url)", "--sha256 é"),
            ("--sha256 \(String(repeating: "0", count: 64)) \(url) http://h/b", "--sha256 is for one URL, and 2"),
            ("-x \(url)", "-x: is not an option"), ("--jobs=3 \(url)", "--jobs=3: is not an option"),
            ("-", "-: is not"),
            ("--limitless 3 \(url)", "--limitless: is not an option"), ("ftp://h/a", "ftp://h/a: is neither"),
            ("file:///etc/passwd", "file:///etc/passwd: is neither"), ("a.txt", "a.txt: is not a URL"),
            ("http://a/x.zip http://b/y/x.zip", "http://b/y/x.zip: would be saved as x.zip, as would http://a/x.zip"),
            ("http://", "http://: "), ("http:///a", "http:///a: names no server"),
            ("http://[ \(url)", "http://[: is not a URL"),
            ("-i bad", "-i bad, line 2: gopher://h: is neither"), ("-- -j", "-j: is not a URL"),
        ]
    )
    func misuse(line: String, message: String) {
        let error = #expect(throws: Misuse.self) {
            try parse(line, lists: ["empty": "# nothing\n", "bad": "http://h\ngopher://h"])
        }
        #expect(
            error?.message.hasPrefix(message) == true && error?.message.contains("\n") == false,
            "\(line): \(error as Any)"
        )
    }
}
