import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("A stream of server-sent events")
struct ServerSentEventParserTests {
    private func events(_ text: String, limit: Int = 1_000, id: String = "") throws -> [ServerSentEvent] {
        try events([Data(text.utf8)], limit: limit, id: id).events
    }

    private func events(
        _ pieces: [Data],
        limit: Int = 1_000,
        id: String = ""
    ) throws -> (events: [ServerSentEvent], parser: ServerSentEventParser) {
        var parser = ServerSentEventParser(maximumByteCount: limit, lastEventID: id)
        var events: [ServerSentEvent] = []
        for piece in pieces {
            parser.append(piece)
            while let event = try parser.next() { events.append(event) }
        }
        return (events, parser)
    }

    // MARK: - The examples of section 9.2.6

    @Test("BEY-3: data over several lines is one text with line feeds between")
    func lines() throws {
        try expect(events("data: YHOO\ndata: +2\ndata: 10\n\n"), equals: [ServerSentEvent(data: "YHOO\n+2\n10")])
    }

    @Test("BEY-3: comments are passed over; an ID stays until another comes, an empty one takes it away")
    func identifiers() throws {
        let text = ": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event\n\n"
        try expect(
            events(text),
            equals: [
                ServerSentEvent(data: "first event", id: "1"), ServerSentEvent(data: "second event"),
                ServerSentEvent(data: " third event"),
            ]
        )
        try expect(events("id: 7\ndata: a\n\ndata: b\n\n").map(\.id), equals: ["7", "7"])
    }

    @Test("BEY-3: a field without value is empty data; an event that is not ended by an empty line is none")
    func emptyData() throws {
        try expect(events("data\n\ndata\ndata\n\ndata:").map(\.data), equals: ["", "\n"])
        try expect(events("data:test\n\ndata: test\n\n").map(\.data), equals: ["test", "test"])
    }

    // MARK: - The rules

    @Test("BEY-3: an event without data is none, and its type is not the next one's; its ID counts")
    func withoutData() throws {
        let (events, parser) = try events([Data("event: x\nid: 9\n\ndata: a\n\n".utf8)])
        expect(events, equals: [ServerSentEvent(data: "a", id: "9")])
        expect(parser.lastEventID, equals: "9")
        let only = try self.events([Data("id: 5\n\nid: 6\n".utf8)]).parser
        expect(only.lastEventID, equals: "5", "the event with 6 did not come to its end")
    }

    @Test("BEY-3: types, unknown fields, fields in other case, names with spaces")
    func fields() throws {
        let text = "event: add\ndata: 1\nfoo: bar\nData: 2\ndata : 3\n\nevent:\ndata: 4\n\n"
        try expect(events(text), equals: [ServerSentEvent(event: "add", data: "1"), ServerSentEvent(data: "4")])
    }

    @Test("BEY-3: an ID with NUL is passed over")
    func nul() throws {
        try expect(events("id: 1\ndata: a\n\nid: 2\u{0}\ndata: b\n\n").map(\.id), equals: ["1", "1"])
    }

    @Test("BEY-3: retry counts when it is digits alone, in milliseconds, without an event too")
    func retry() throws {
        let (events, parser) = try events([Data("retry: 1500\ndata: a\n\ndata: b\n\nretry: 20\n\n".utf8)])
        expect(events.map(\.retry), equals: [1.5, nil])
        expect(parser.retry, equals: 0.02)
        for text in ["retry: 1.5", "retry:", "retry: -1", "retry: 1e3", "retry:  5", "retry: \u{0661}"] {
            let (_, parser) = try self.events([Data((text + "\n").utf8)])
            expect(parser.retry == nil, "\(text)")
        }
        let endless = try self.events([Data(("retry: " + String(repeating: "9", count: 400) + "\n").utf8)]).parser
        expect(endless.retry == nil)
    }

    @Test("BEY-3: one byte order mark at the beginning is passed over, another one is not")
    func byteOrderMark() throws {
        try expect(events("\u{FEFF}data: a\n\n").count, equals: 1)
        try expect(events("\u{FEFF}\u{FEFF}data: a\n\n").isEmpty)
        try expect(events("data: a\n\n\u{FEFF}data: b\n\n").map(\.data), equals: ["a"])
    }

    @Test("BEY-3: bytes that are no UTF-8 are replaced; combining characters hide no colon, space or end")
    func text() throws {
        let bytes = Data("data: a".utf8) + [0xFF] + Data("b\n\n".utf8)
        try expect(events([bytes]).events.map(\.data), equals: ["a\u{FFFD}b"])
        try expect(events("data:\u{301}a\ndata: \u{301}b\n\n").map(\.data), equals: ["\u{301}a\n\u{301}b"])
    }

    @Test("BEY-3: CR alone ends a line: the event is there with its last byte")
    func carriageReturns() throws {
        try expect(events("data: a\r\rdata: b\r\n\r\n").map(\.data), equals: ["a", "b"])
    }

    @Test("BEY-3: an event that is too long is an error, whether in one line or in many; comments do not add up")
    func limit() throws {
        try expect(events(String(repeating: ": comment\n", count: 100) + "data: a\n\n", limit: 20).count, equals: 1)
        for text in [
            "data: 12345678901234567890", String(repeating: "data: 1\n", count: 20),
            "event: 1234567890\ndata: 12345678901\n",
        ] {
            let error = #expect(throws: NetworkError.self) { try events(text, limit: 20) }
            expect(error?.code, equals: .bodyTooLong)
        }
    }

    @Test("BEY-3: the ID of the connection before stays until the server gives another")
    func continued() throws {
        try expect(events("data: a\n\nid: 2\ndata: b\n\n", id: "1").map(\.id), equals: ["1", "2"])
        var (_, parser) = try events([Data("retry: 20\nid: 1\ndata: a\n\nid: 2\nevent: x\ndata: cut".utf8)])
        parser.restart()
        parser.append(Data("\u{FEFF}data: b\n\n".utf8))
        let next = try parser.next()
        expect(next, equals: ServerSentEvent(data: "b", id: "1"))
        expect(parser.retry, equals: 0.02, "it counts until the server sends another")
    }

    // MARK: - Anything, cut anywhere

    /// A simple reference implementation for a complete stream.
    private func reference(_ bytes: [UInt8]) -> [ServerSentEvent] {
        var scalars = Array(String(decoding: bytes, as: UTF8.self).unicodeScalars)
        if scalars.first == "\u{FEFF}" { scalars.removeFirst() }
        var lines: [[Unicode.Scalar]] = [[]]
        for (index, scalar) in scalars.enumerated() {
            if scalar == "\n", index > 0, scalars[index - 1] == "\r" { continue }
            if scalar == "\n" || scalar == "\r" { lines.append([]) } else { lines[lines.count - 1].append(scalar) }
        }
        var events: [ServerSentEvent] = []
        var (type, data, id) = ("", [String](), "")
        for line in lines.dropLast() {
            guard !line.isEmpty else {
                if !data.isEmpty {
                    events.append(
                        ServerSentEvent(
                            event: type.isEmpty ? "message" : type,
                            data: data.joined(separator: "\n"),
                            id: id
                        )
                    )
                }
                (type, data) = ("", [])
                continue
            }
            let colon = line.firstIndex(of: ":") ?? line.count
            var value = Array(line.dropFirst(colon + 1))
            if value.first == " " { value.removeFirst() }
            let text = value.reduce(into: "") { $0.unicodeScalars.append($1) }
            switch line[..<colon].reduce(into: "", { $0.unicodeScalars.append($1) }) {
            case "event": type = text
            case "data": data.append(text)
            case "id" where !value.contains("\u{0}"): id = text
            default: break
            }
        }
        return events
    }

    @Test("BEY-3: wherever the stream is cut, the events are the same", arguments: 0..<300 as Range<UInt64>)
    func random(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let words =
            [
                "data", "data:", "data: ", "id: ", "event: ", "\n", "\r", "\r\n", "\n\n", ":", " ", "x", "ü", "\u{0}",
                "\u{FEFF}", "\u{301}",
            ].map { Array($0.utf8) } + [[0xFF], [0xE2, 0x82]]
        let bytes = (0..<Int.random(in: 0...120, using: &random)).flatMap { _ in
            words.randomElement(using: &random) ?? []
        }
        var pieces: [Data] = []
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = Int.random(in: 0...12, using: &random)
            pieces.append(Data(rest.prefix(count)))
            rest = rest.dropFirst(count)
        }
        try expect(events(pieces, limit: 10_000).events, equals: reference(bytes), "seed \(seed)")
    }
}
