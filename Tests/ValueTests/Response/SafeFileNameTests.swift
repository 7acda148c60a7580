import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("SafeFileName")
struct SafeFileNameTests {
    @Test(
        "TRF-2: a name is never a path, hidden, or the folder itself",
        arguments: [
            ("a.txt", "a.txt"), ("../../etc/passwd", "passwd"), ("/a/b", "b"), (#"C:\x\..\a.exe"#, "a.exe"),
            (#"a/b\c"#, "c"), (#"a\b/c"#, "c"), ("a/\u{301}b", "\u{301}b"), (".bashrc", "bashrc"), ("...a", "a"),
            (" . .a", "a"), ("\u{200B}.a", "a"), ("\u{202E}.a", "a"), (".\u{301}a", "\u{301}a"), ("a/.b", "b"),
            ("C:a", "C-a"), ("a:b:c", "a-b-c"), ("\u{3000}a\u{A0}", "a"), ("CON", "CON"), ("a<b>|?*\"", "a<b>|?*\""),
        ]
    )
    func oneVisibleFile(proposed: String, name: String) {
        expect(SafeFileName.name(proposed), equals: name)
    }

    @Test(
        "TRF-2: a text without a usable name gives nil",
        arguments: [
            "", ".", "..", "...", " ", ". .", "/", "a/", #"a\"#, "a/..", "\0", "\r\n", "\u{202E}", "\u{200B}", "./",
            #"..\.."#,
        ]
    )
    func nothing(proposed: String) {
        expect(SafeFileName.name(proposed) == nil)
    }

    @Test(
        "TRF-2: a name has no unprintable scalars, and no end that file systems drop",
        arguments: [
            ("a\0b\r\n\t\u{7F}\u{85}c", "abc"), ("a\u{2028}\u{2029}b", "ab"), ("cod\u{202E}txt.exe", "codtxt.exe"),
            ("\u{2066}a\u{2069}\u{200E}\u{200F}\u{61C}", "a"), ("a. . ", "a"), ("a.txt...", "a.txt"),
            ("👩‍👩‍👧.png", "👩‍👩‍👧.png"), ("☕️", "☕️"),
        ]
    )
    func printable(proposed: String, name: String) {
        expect(SafeFileName.name(proposed), equals: name)
    }

    @Test("TRF-2: a name has at most 255 bytes, ends with a whole character, and keeps its extension")
    func length() throws {
        let family = "👩‍👩‍👧"
        let long = try #require(SafeFileName.name(String(repeating: family, count: 20) + ".tar.gz"))
        // Each family has 18 bytes, and 248 bytes are available.
        expect(long, equals: String(repeating: family, count: 13) + ".tar.gz")
        expect(SafeFileName.name(String(repeating: "a", count: 255)), equals: String(repeating: "a", count: 255))
        let cut = try #require(SafeFileName.name(String(repeating: "a", count: 256) + ".txt"))
        expect(cut, equals: String(repeating: "a", count: 251) + ".txt")
        let noExtension = "a." + String(repeating: "b", count: 300)
        expect(SafeFileName.name(noExtension), equals: String(noExtension.prefix(255)))
        // A single character with too many accents is cut within the character.
        let accents = try #require(SafeFileName.name("e" + String(repeating: "\u{301}", count: 300) + ".txt"))
        expect(accents, equals: "e" + String(repeating: "\u{301}", count: 125) + ".txt")
        // Removing one flag at a time would take quadratic time.
        let flags = try #require(SafeFileName.name(String(repeating: "🇩🇪", count: 100_000)))
        expect(flags, equals: String(repeating: "🇩🇪", count: 31))
        // The cut would leave a blank at the end.
        expect(SafeFileName.name(String(repeating: "a", count: 254) + " b"), equals: String(repeating: "a", count: 254))
    }

    @Test(
        "TRF-2: a URL names a file with the last part of its path",
        arguments: [
            ("http://h/a/b.txt?c=d/e#f/g", "b.txt"), ("http://h/a%20b%C3%A9.txt", "a bé.txt"), ("http://h", "download"),
            ("http://h/", "download"), ("http://h/?a=b.txt", "download"), ("http://h/a/b/", "b"),
            ("http://h/x/..%2F..%2Fetc%2Fpasswd", "passwd"), ("http://h/%2F", "download"),
            ("http://h/%2E%2E", "download"),
            ("http://h/.htaccess", "htaccess"), ("http://h/a%00b", "ab"), ("http://h/caf%E9.txt", "caf%E9.txt"),
            ("http://h/a%3Ab", "a-b"),
        ]
    )
    func url(address: String, name: String) throws {
        expect(SafeFileName.name(for: try #require(URL(string: address))), equals: name)
    }

    @Test(
        "TRF-2: a number stands before the extension, also before one of two parts",
        arguments: [
            ("a.txt", "a (2).txt"), ("a.tar.gz", "a (2).tar.gz"), ("A.TAR.GZ", "A (2).TAR.GZ"),
            ("a.sql.zst", "a (2).sql.zst"),
            ("a", "a (2)"), ("a.b.txt", "a.b (2).txt"), ("1.2.gz", "1.2 (2).gz"), ("Dr. No", "Dr. No (2)"),
            ("a.tar", "a (2).tar"), ("tar.gz", "tar (2).gz"), ("é.日本", "é.日本 (2)"), ("a.", "a. (2)"),
        ]
    )
    func numbered(name: String, expected: String) {
        expect(SafeFileName.numbered(name, 2), equals: expected)
    }

    @Test("TRF-2: a numbered name has at most 255 bytes too")
    func numberedLength() {
        let name = String(repeating: "é", count: 124) + ".tar.gz"
        expect(name.utf8.count, equals: 255)
        expect(SafeFileName.numbered(name, 10), equals: String(repeating: "é", count: 121) + " (10).tar.gz")
        expect(SafeFileName.numbered(name, .max).utf8.count <= 255)
    }

    @Test("TRF-2: the name of any text has these properties, and is its own safe name")
    func anyText() throws {
        let seed = UInt64.random(in: .min ... .max)
        var generator = SeededGenerator(seed: seed)
        let pieces =
            [
                "/", "\\", ".", "..", " ", "\0", "\n", ":", "\u{202E}", "\u{200B}", "\u{301}", "é", "👩‍👩‍👧", "a", ".tar",
                ".gz",
            ]
            + [String(repeating: "x", count: 120), String(repeating: "\u{301}", count: 60)]
        for _ in 0..<2_000 {
            let count = Int.random(in: 0..<12, using: &generator)
            let text = (0..<count).compactMap { _ in pieces.randomElement(using: &generator) }.joined()
            guard let name = SafeFileName.name(text) else { continue }
            let scalars = name.unicodeScalars
            let isSafe =
                !name.isEmpty && name.utf8.count <= 255 && scalars.first != "." && scalars.last != "."
                && scalars.last != " "
                && !scalars.contains { "/\\:\0\n\u{202E}".unicodeScalars.contains($0) }
            try #require(isSafe && SafeFileName.name(name) == name, "seed \(seed): \(text.debugDescription)")
        }
    }
}
