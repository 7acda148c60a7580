import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("LineSplitter")
struct LineSplitterTests {
    private func lines(
        _ pieces: [String],
        limit: Int = 100,
        endsAtCarriageReturn: Bool = false
    ) throws -> [String] {
        var splitter = LineSplitter(maximumByteCount: limit, endsAtCarriageReturn: endsAtCarriageReturn)
        return try lines(pieces.map { Data($0.utf8) }, &splitter)
    }

    private func lines(_ pieces: [Data], _ splitter: inout LineSplitter) throws -> [String] {
        var lines: [String] = []
        for piece in pieces {
            splitter.append(piece)
            while let line = try splitter.next() { lines.append(line) }
        }
        if let line = try splitter.last() { lines.append(line) }
        return lines
    }

    @Test("BEY-3: LF and CRLF end a line, empty lines count, and the text after the last end is a line")
    func ends() throws {
        try expect(lines(["a\nb\r\n\n\r\nc"]), equals: ["a", "b", "", "", "c"])
        try expect(lines(["a\n"]), equals: ["a"])
        try expect(lines([""]), equals: [])
        try expect(lines(["a\r", "\nb\r", "c\n"]), equals: ["a", "b\rc"])
        try expect(lines(["a\r\r\n"]), equals: ["a\r"])
    }

    @Test("BEY-3: a CR alone ends a line where asked to, and at once, without a look at what follows")
    func carriageReturn() throws {
        try expect(lines(["a\rb\r\nc\n\rd"], endsAtCarriageReturn: true), equals: ["a", "b", "c", "", "d"])
        var splitter = LineSplitter(maximumByteCount: 9, endsAtCarriageReturn: true)
        splitter.append(Data("a\r".utf8))
        let first = try splitter.next()
        expect(first, equals: "a")
        splitter.append(Data("\n".utf8))
        let none = try splitter.next()
        expect(none == nil)
        splitter.append(Data("b\n".utf8))
        let second = try splitter.next()
        expect(second, equals: "b")
    }

    @Test("BEY-3: bytes that are no UTF-8 are replaced, and a character may be cut anywhere")
    func text() throws {
        var splitter = LineSplitter(maximumByteCount: 100)
        let bytes = Array("\u{1F980}ü".utf8) + [0xFF, 0x0A, 0xC3, 0x0A]
        try expect(lines(bytes.map { Data([$0]) }, &splitter), equals: ["\u{1F980}ü\u{FFFD}", "\u{FFFD}"])
    }

    @Test(
        "BEY-3: a line that is too long is an error, whether it is whole, unfinished or the last; its end does not count"
    )
    func limit() throws {
        try expect(lines(["12345\r\n1234", "5\r", "\n12345"], limit: 5), equals: ["12345", "12345", "12345"])
        for pieces in [["123456\n"], ["1\n123456"], ["123", "456"], ["12345\r6\n"], ["123456\r\n"]] {
            let error = #expect(throws: NetworkError.self, "\(pieces)") { try lines(pieces, limit: 5) }
            expect(error?.code, equals: .bodyTooLong)
            expect(error?.message?.contains("5 bytes"), equals: true)
        }
    }

    /// A simple reference implementation for complete input.
    private func reference(_ bytes: [UInt8], endsAtCarriageReturn: Bool) -> [String] {
        var lines: [[UInt8]] = [[]]
        var index = 0
        while index < bytes.count {
            let isPair = bytes[index] == 13 && index + 1 < bytes.count && bytes[index + 1] == 10
            if bytes[index] == 10 || isPair || (bytes[index] == 13 && endsAtCarriageReturn) {
                lines.append([])
                index += isPair ? 2 : 1
            } else {
                lines[lines.count - 1].append(bytes[index])
                index += 1
            }
        }
        if lines.last?.isEmpty == true { lines.removeLast() }
        return lines.map { String(decoding: $0, as: UTF8.self) }
    }

    @Test("BEY-3: wherever the bytes are cut, the lines are the same", arguments: 0..<300 as Range<UInt64>)
    func random(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let alphabet: [UInt8] = [10, 10, 13, 13, 97, 98, 0xC3, 0xBC, 0xFF, 0]
        let bytes = (0..<Int.random(in: 0...200, using: &random)).map { _ in
            alphabet.randomElement(using: &random) ?? 0
        }
        var pieces: [Data] = []
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = Int.random(in: 0...9, using: &random)
            pieces.append(Data(rest.prefix(count)))
            rest = rest.dropFirst(count)
        }
        for endsAtCarriageReturn in [false, true] {
            var splitter = LineSplitter(maximumByteCount: 1_000, endsAtCarriageReturn: endsAtCarriageReturn)
            let lines = try lines(pieces, &splitter)
            expect(lines, equals: reference(bytes, endsAtCarriageReturn: endsAtCarriageReturn), "seed \(seed)")
        }
    }

    @Test("BEY-3: a long line in many pieces, and many lines in one piece, are looked at once")
    func cost() throws {
        var splitter = LineSplitter(maximumByteCount: 3_000_000)
        // Takes hours if each piece makes the splitter rescan the line.
        for _ in 0..<300_000 {
            splitter.append(Data("123456789".utf8))
            let line = try splitter.next()
            try #require(line == nil)
        }
        splitter.append(Data(("\n" + String(repeating: "a\n", count: 300_000)).utf8))
        var count = 0
        while try splitter.next() != nil { count += 1 }
        expect(count, equals: 300_001)
    }
}
