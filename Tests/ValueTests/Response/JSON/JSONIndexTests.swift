import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("JSONIndex")
struct JSONIndexTests {
    private func read(_ text: String) throws -> JSONIndex {
        try JSONIndex(Data(text.utf8))
    }

    private func refusal(_ bytes: [UInt8]) -> JSONSyntaxError? {
        do throws(JSONSyntaxError) {
            _ = try JSONIndex(Data(bytes))
            return nil
        } catch {
            return error
        }
    }

    // MARK: Grammar

    @Test(
        "RSP-9: what RFC 8259 allows is read",
        arguments: [
            "0", "-0", "7", "-12", "0.5", "-0.0", "1e5", "1E5", "1e+5", "1e-5", "12.50e07", "0e0", "true", "false",
            "null",
            "\"\"", "\"a\"", "[]", "{}", " [ ] ", "\t\r\n{ \t\r\n}\t\r\n", "[1,2]", "[ 1 , 2 ]", "{\"a\":1}",
            "{ \"a\" : 1 }",
            "{\"a\":1,\"b\":{}}", "{\"\":\"\"}", "[[],{},[[]]]", "[null,true,false]", #""\"\\\/\b\f\n\r\t""#,
            #""\u0000""#,
            #""\u00e9\u00E9""#, #""\uD83D\uDE00""#, #""\ud83d\ude00\ud83d\ude00""#, #""\uFFFF\uFFFE\uFDD0""#,
            "\"\u{7F}\"",
            "\"\u{80}\u{7FF}\u{800}\u{FFFF}\u{10000}\u{10FFFF}\u{FFFD}\u{2028}\"", "{\"a\":1,\"a\":2}",
        ]
    )
    func right(_ text: String) throws {
        let index = try read(text)
        expect(index.next(0), equals: (index.kind(0).isContainer ? index.end(0) : 1))
        expect(JSONTree(index), equals: JSONTree.foundation(Data(text.utf8)))
    }

    @Test(
        "RSP-9: what RFC 8259 does not allow is refused",
        arguments: [
            "", " ", "\n", "\0", "-", "+1", "00", "01", "-01", "1.", ".5", "-.5", "1.e5", "1e", "1e+", "1E-", "1e5.5",
            "1 2",
            "0x1", "1_000", "1,", ",", "NaN", "Infinity", "-Infinity", "nul", "nulll", "True", "tru", "falsee", "'a'",
            "a",
            "[", "]", "{", "}", "[1", "[1,", "[1,]", "[,]", "[,1]", "[1 2]", "[1,,2]", "[1}", "{\"a\":1]", "{\"a\":1,}",
            "{,}",
            "{\"a\"}", "{\"a\":}", "{\"a\" 1}", "{\"a\":1 \"b\":2}", "{a:1}", "{1:1}", "{null:1}", "{\"a\":1,,\"b\":2}",
            "{:1}", "{\"a\"::1}", "[]]", "[][]", "{}{}", "[] 1", "/**/[]", "[]//", "[1]\0", "[1\0]", "\0[1]", "#",
            "[\u{A0}]",
            "[\u{B}]", "[\u{C}]", "[\u{2028}]", "[\u{FEFF}1]", "\u{FEFF}", "\u{FEFF}\u{FEFF}1", "\"", "\"a", "\"\\\"",
            "\"\\",
            #""\a""#, #""\'""#, #""\x41""#, #""\U0041""#, #""\0""#, #""\u""#, #""\u1""#, #""\u12""#, #""\u123""#,
            #""\u123g""#,
            #""\u+123""#, #""\u 123""#, #""\u{41}""#, #""\ud800""#, #""\udc00""#, #""\udc00\ud800""#,
            #""\ud800\ud800""#,
            #""\ud800a""#, #""\ud800\n""#, #""\ud800\u0041""#, #""\ud800\u""#, #""\ud800\udc0""#, #""\ud800\\udc00""#,
            "\"\0\"", "\"\n\"", "\"\t\"", "\"\r\"", "\"\u{1F}\"", "\"abcdefg\u{1F}\"", "{\"a\n\":1}", "1e400", "-1e400",
            "[1e99999999999999999999]",
        ]
    )
    func wrong(_ text: String) {
        #expect(throws: JSONSyntaxError.self) { try read(text) }
    }

    @Test("RSP-9: no control character may stand in a string, wherever it is in it")
    func controlCharacters() {
        for character in UInt8(0)..<0x20 {
            for place in 0..<18 {
                var bytes = Array("\"abcdefghijklmnopqrs\"".utf8)
                bytes[place + 1] = character
                expect(refusal(bytes)?.offset, equals: place + 1)
            }
        }
    }

    /// Table 3-7 of the Unicode standard.
    private static let wrongForms: [[UInt8]] = [
        // Continuations without a first byte, and first bytes that there are not.
        [0x80], [0xBF], [0xC0, 0x80], [0xC1, 0xBF], [0xF5, 0x80, 0x80, 0x80], [0xF8, 0x88, 0x80, 0x80, 0x80],
        [0xFC, 0x84, 0x80, 0x80, 0x80, 0x80], [0xFE], [0xFF],
        // Overlong.
        [0xE0, 0x80, 0x80], [0xE0, 0x9F, 0xBF], [0xF0, 0x80, 0x80, 0x80], [0xF0, 0x8F, 0xBF, 0xBF],
        // Surrogates, and what is beyond U+10FFFF.
        [0xED, 0xA0, 0x80], [0xED, 0xBF, 0xBF], [0xED, 0xA0, 0xBD, 0xED, 0xB8, 0x80], [0xF4, 0x90, 0x80, 0x80],
        // Cut off.
        [0xC2], [0xC2, 0x41], [0xE2], [0xE2, 0x82], [0xE2, 0x41, 0x82], [0xE2, 0x82, 0x41], [0xF0], [0xF0, 0x9F],
        [0xF0, 0x9F, 0x98], [0xF0, 0x41, 0x98, 0x80], [0xF0, 0x9F, 0x41, 0x80], [0xF0, 0x9F, 0x98, 0x41],
        [0xE2, 0xC2, 0x80],
    ]

    @Test("RSP-9: each form of wrong UTF-8 is refused, in a string, in a key and outside", arguments: wrongForms)
    func wrongUTF8(_ wrong: [UInt8]) {
        for count in 0..<9 {
            let before = Array(repeating: UInt8(ascii: "a"), count: count)
            expect(refusal([0x22] + before + wrong + [0x22])?.offset, equals: count + 1)
            expect(refusal([0x7B, 0x22] + before + wrong + [0x22, 0x3A, 0x31, 0x7D])?.offset, equals: count + 2)
        }
        expect(refusal([0x22] + wrong) != nil)
        expect(refusal([0x5B] + wrong + [0x5D]) != nil)
        expect(refusal(wrong) != nil)
    }

    @Test("RSP-9: every scalar of Unicode can stand in a string, as it is and escaped")
    func scalars() throws {
        let step: UInt32 = TestLoad.isFull ? 13 : 97
        for value in stride(from: UInt32(0x20), through: 0x10FFFF, by: Int(step)) {
            guard let scalar = Unicode.Scalar(value) else { continue }
            let text = String(scalar)
            let escaped = text.utf16.map { String(format: "\\u%04x", $0) }.joined()
            let index = try read("[\"\(escaped)\"\("\"\\".contains(text) ? "" : ",\"\(text)\"")]")
            expect(index.string(1)?.unicodeScalars.elementsEqual([scalar]), equals: true)
            expect(index.count(0) == 1 || index.string(2)?.unicodeScalars.elementsEqual([scalar]) == true)
        }
    }

    @Test("RSP-9: UTF-8 with a byte order mark, UTF-16 and UTF-32 with and without one are read")
    func encodings() throws {
        for text in ["7", "\"é\"", "{\"a\":[1,\"😀\"]}", "[]", "12"] {
            let expected = try JSONTree(read(text))
            try expect(JSONTree(read("\u{FEFF}" + text)), equals: expected)
            let encodings: [String.Encoding] = [
                .utf16LittleEndian, .utf16BigEndian, .utf32LittleEndian, .utf32BigEndian,
            ]
            for encoding in encodings {
                for mark in ["", "\u{FEFF}"] {
                    let bytes = try #require((mark + text).data(using: encoding))
                    try expect(JSONTree(JSONIndex(bytes)), equals: expected, "\(text) in \(encoding)")
                    let slice = (Data([1, 2, 3]) + bytes).dropFirst(3)
                    try expect(JSONTree(JSONIndex(slice)), equals: expected, "\(text) in \(encoding)")
                }
            }
        }
        // Half a code unit, half a pair, and marks alone.
        expect(refusal([0x5B, 0, 0x5D, 0, 0x20]) != nil)
        expect(refusal([0x22, 0, 0x3D, 0xD8, 0x22, 0]) != nil)
        for mark in [[0xEF, 0xBB, 0xBF], [0xFF, 0xFE], [0xFE, 0xFF], [0xFF, 0xFE, 0, 0], [0, 0, 0xFE, 0xFF]]
            as [[UInt8]]
        {
            expect(refusal(mark) != nil)
            expect(refusal(Array(mark.dropLast())) != nil)
        }
    }

    @Test("RSP-9: 512 levels are read, as by Foundation, and more are an error, also 100,000")
    func depth() throws {
        for depth in [1, 511, 512, 513, 100_000] {
            let texts = [
                String(repeating: "[", count: depth) + String(repeating: "]", count: depth),
                String(repeating: "{\"a\":", count: depth) + "1" + String(repeating: "}", count: depth),
            ]
            for text in texts {
                let isRight = (try? read(text)) != nil
                expect(isRight, equals: (depth <= 512))
                expect(isRight, equals: (JSONTree.foundation(Data(text.utf8)) != nil))
            }
            #expect(throws: JSONSyntaxError.self) { try read(String(repeating: "[", count: depth)) }
            #expect(throws: JSONSyntaxError.self) { try read(String(repeating: "{\"a\":", count: depth)) }
        }
        expect(refusal(Array(repeating: 0x5B, count: 600))?.offset, equals: 512)
    }

    @Test("RSP-9: many containers beside each other are not deep")
    func wide() throws {
        let text = "[" + String(repeating: "[[]],{\"a\":{}},", count: 1_000) + "0]"
        try expect(read(text).count(0), equals: 2_001)
    }

    // MARK: Errors

    @Test(
        "RSP-9: an error tells line, column and path",
        arguments: [
            ("", 1, 1, "", "expected a value, but the text ends"),
            ("[1,\n 2,\n x]", 3, 2, "[2]", #"expected a value, found "x""#),
            ("{\"é😀\": 1,\n\"b\" 2}", 2, 5, "", #"expected a colon, found "2""#),
            ("{\"é😀\": x}", 1, 8, "é😀", #"expected a value, found "x""#),
            ("{\"users\":[{},{\"name\":tru}]}", 1, 22, "users[1].name", #"expected a value, found "t""#),
            ("[[[],[1 2]]]", 1, 9, "[0][1]", #"expected a comma or ], found "2""#),
            ("{\"a\":{\"b\":1 \"c\":2}}", 1, 13, "a", #"expected a comma or }, found "\"""#),
            ("[01]", 1, 3, "[0]", "a number must not begin with 0"),
            ("[\"\\q\"]", 1, 4, "[0]", #"unknown escape, found "q""#),
            ("\u{FEFF}[x]", 1, 2, "[0]", #"expected a value, found "x""#),
            ("[1]\r\n]", 2, 1, "", #"expected the end of the text, found "]""#),
        ]
    )
    func errors(_ text: String, _ line: Int, _ column: Int, _ path: String, _ reason: String) throws {
        let error = try #require(refusal(Array(text.utf8)))
        expect(error.line, equals: line)
        expect(error.column, equals: column)
        expect(error.path, equals: path)
        expect(error.reason.replacing("\\u{22}", with: "\\\"").hasPrefix(reason))
        expect(error.phrase.contains("at line \(line), column \(column)"))
        expect(path.isEmpty || error.phrase.hasSuffix(", in \(path)"))
        expect(error.localizedDescription.hasSuffix("."))
    }

    @Test("RSP-9: the message of an error with long or wrong text stays short and is one line")
    func shortErrors() throws {
        let key = String(repeating: "k\\n", count: 10_000)
        let text = String(repeating: "{\"\(key)\":", count: 100) + "\u{202E}\u{301}"
        let message = try #require(refusal(Array(text.utf8))).phrase
        expect(message.count < 400)
        expect(!message.contains { $0.isNewline })
    }

    // MARK: Values

    @Test(
        "RSP-9: numbers have the same bits as with Foundation",
        arguments: [
            "0", "-0", "0.0", "-0.0", "0e5", "-0e-5", "1", "-1", "127", "128", "-128", "-129", "255", "256", "32767",
            "32768",
            "2147483647", "2147483648", "-2147483648", "-2147483649", "4294967295", "4294967296", "9007199254740991",
            "9007199254740992", "9007199254740993", "-9007199254740993", "9007199254740993.0", "9007199254740992e1",
            "99999999999999999", "999999999999999999", "-999999999999999999", "1000000000000000000",
            "9223372036854775807",
            "9223372036854775808", "-9223372036854775808", "-9223372036854775809", "18446744073709551615",
            "18446744073709551616", "9999999999999999999", "99999999999999999999", "123456789012345678901234567890",
            "0.1", "0.2", "0.3", "1.1", "100.0", "1e22", "1e23", "1e-22", "1e-23", "123e20", "9007199254740993e-22",
            "1.7976931348623157e308", "1.7976931348623158e308", "-1.7976931348623157e308", "2.2250738585072014e-308",
            "2.2250738585072011e-308", "4.9406564584124654e-324", "5e-324", "3e-324", "2e-324", "1e-400", "-1e-400",
            "0e999999",
            "0.000000000000000000000000000001", "3.14159265358979323846264338327950288",
            "1.00000000000000011102230246251565",
            "1e0000000000000000000022", "1E+5", "1.5E-5", "0.0000001e7", "12345678901234567e-17",
            "179769313486231580793e285",
        ]
    )
    func numbers(_ text: String) throws {
        try check(text)
    }

    @Test("RSP-9: numbers of 400 digits have the same bits as with Foundation")
    func longNumbers() throws {
        let digits = String(repeating: "1234567890", count: 40)
        for text in [
            "0.\(digits)", "-0.\(digits)", "1\(digits)e-300", "0.\(digits)e100", "1e-\(digits)",
            "\(digits.prefix(300))",
        ] {
            try check(text)
        }
        #expect(throws: JSONSyntaxError.self) { try read(digits) }
        #expect(throws: JSONSyntaxError.self) { try read("1e\(digits)") }
    }

    private func check(_ text: String) throws {
        let index = try read(text)
        expect(index.digits(0), equals: text)
        let value = try #require(index.double(0))
        expect(value.bitPattern, equals: Double(text)?.bitPattern)
        // Foundation refuses what is too small for a Double, which here is 0.
        if let decoded = try? JSONDecoder().decode(Double.self, from: Data(text.utf8)) {
            expect(value.bitPattern, equals: decoded.bitPattern)
        }
        let isInteger = !text.contains { ".eE".contains($0) }
        expect(index.kind(0), equals: (isInteger ? .integer : .number))
        func integers<T: FixedWidthInteger>(_ type: T.Type) {
            expect(index.integer(0, as: T.self), equals: (isInteger ? T(text) : nil))
        }
        integers(Int.self)
        integers(Int8.self)
        integers(Int16.self)
        integers(Int32.self)
        integers(Int64.self)
        integers(UInt.self)
        integers(UInt8.self)
        integers(UInt16.self)
        integers(UInt32.self)
        integers(UInt64.self)
        expect(index.bool(0) == nil)
        expect(index.string(0) == nil)
    }

    @Test("RSP-9: random numbers have the same bits as with Foundation")
    func randomNumbers() throws {
        let seed = UInt64.random(in: 0...UInt64.max)
        var generator = SeededGenerator(seed: seed)
        for _ in 0..<TestLoad.count(20_000, part: 5_000) {
            let text = RandomJSON.number(&generator)
            let index = try read(text)
            expect(index.double(0)?.bitPattern, equals: Double(text)?.bitPattern, "seed \(seed): \(text)")
            expect(
                index.integer(0) as Int?,
                equals: (index.kind(0) == .integer ? Int(text) : nil),
                "seed \(seed): \(text)"
            )
            let value = Double(bitPattern: generator.next())
            guard value.isFinite else { continue }
            try expect(read("\(value)").double(0)?.bitPattern, equals: value.bitPattern, "seed \(seed): \(value)")
        }
    }

    @Test("RSP-9: strings with every escape, at every place of a word of eight bytes")
    func escapes() throws {
        let escapes = [
            #"\""#: "\"", #"\\"#: "\\", #"\/"#: "/", #"\b"#: "\u{8}", #"\f"#: "\u{C}", #"\n"#: "\n", #"\r"#: "\r",
            #"\t"#: "\t",
            #"\u0000"#: "\0", #"\u001F"#: "\u{1F}", #"\u0041"#: "A", #"\u00e9"#: "é", #"\u20AC"#: "€",
            #"\uD83D\uDE00"#: "😀",
            "é": "é", "€": "€", "😀": "😀", "": "",
        ]
        for before in 0..<17 {
            for after in 0..<10 {
                for (escape, character) in escapes {
                    let (head, tail) = (String(repeating: "a", count: before), String(repeating: "b", count: after))
                    let index = try read("[\"\(head)\(escape)\(tail)\",\"\(head)\(escape)\(escape)\"]")
                    expect(index.string(1), equals: head + character + tail)
                    expect(index.string(2), equals: head + character + character)
                    expect(index.kind(1), equals: (escape.isEmpty ? .ascii : .text))
                }
            }
        }
    }

    @Test("RSP-9: a value is read as what it is only")
    func kinds() throws {
        let index = try read(#"[null,true,false,1,1.0,"a","é",[],{}]"#)
        expect(
            (1...9).map { index.kind($0) },
            equals: [
                .null, .bool, .bool, .integer, .number, .ascii, .text, .array, .object,
            ]
        )
        expect((1...9).map { index.isNull($0) }, equals: [true] + Array(repeating: false, count: 8))
        expect((1...9).map { index.bool($0) }, equals: [nil, true, false, nil, nil, nil, nil, nil, nil])
        expect((1...9).map { index.integer($0) as Int? }, equals: [nil, nil, nil, 1, nil, nil, nil, nil, nil])
        expect((1...9).map { index.double($0) }, equals: [nil, nil, nil, 1, 1, nil, nil, nil, nil])
        expect((1...9).map { index.string($0) }, equals: [nil, nil, nil, nil, nil, "a", "é", nil, nil])
        expect((1...9).map { index.digits($0) }, equals: [nil, nil, nil, "1", "1.0", nil, nil, nil, nil])
    }

    // MARK: Keys

    @Test("RSP-9: keys are found in any order, again, and from any hint")
    func keys() throws {
        let names = ["id", "name", "x", "", "nested", "list", "a longer name of a key", "na", "é", "tab\t"]
        for count in 0...names.count {
            let members = names.prefix(count).enumerated().map { index, name in
                "\"\(name.replacing("\t", with: "\\t"))\":\(index % 3 == 0 ? "[[\(index)],{\"id\":-1}]" : "\(index)")"
            }
            let index = try read("[{" + members.joined(separator: ",") + "},{\"other\":1}]")
            func number(_ position: Int?) -> Int? {
                position.map { index.integer(index.kind($0) == .array ? $0 + 2 : $0) } ?? nil
            }
            let orders = [Array(names.indices), names.indices.reversed(), [3, 3, 0, 9, 9, 1, 5, 2, 2, 8, 7, 4, 6]]
            for order in orders {
                var hint = 2
                for place in order {
                    let found = index.value(of: names[place], in: 1, from: &hint)
                    expect(number(found), equals: (place < count ? place : nil))
                    expect(index.value(of: "missing", in: 1, from: &hint) == nil)
                    expect(index.value(of: "other", in: 1, from: &hint) == nil)
                }
            }
            // Each key, and the end, is a place to begin at.
            var key = 2
            while key <= index.end(1) {
                for place in names.indices {
                    var hint = key
                    expect(
                        number(index.value(of: names[place], in: 1, from: &hint)),
                        equals: (place < count ? place : nil)
                    )
                }
                if key == index.end(1) { break }
                key = index.next(key + 1)
            }
        }
    }

    @Test("RSP-9: of a repeated key the last one counts, from any hint")
    func repeatedKeys() throws {
        let many = (0..<100).map { "\"key\($0)\":0" }.joined(separator: ",")
        for between in ["", "\"b\":[\"a\",{\"a\":9}],", "\"c\":0,\"d\":0,", many + ","] {
            for twin in ["a", "\\u0061"] {
                let index = try read("{\"z\":0,\"a\":1,\(between)\"\(twin)\":2,\"y\":0,\"a\":3,\"x\":0}")
                for before in ["z", "a", "y", "x", "b", "missing"] {
                    var hint = 1
                    _ = index.value(of: before, in: 0, from: &hint)
                    let last = try #require(index.value(of: "a", in: 0, from: &hint))
                    expect(index.integer(last), equals: 3)
                }
            }
        }
    }

    @Test("RSP-9: keys that are canonically equivalent are the same key, as for a Dictionary")
    func equivalentKeys() throws {
        let (composed, decomposed) = ("caf\u{E9}", "cafe\u{301}")
        for written in [composed, decomposed, "caf\\u00e9", "cafe\\u0301"] {
            let index = try read("{\"cafe\":0,\"\(written)\":1,\"\(decomposed)\":2}")
            for name in [composed, decomposed] {
                var hint = 1
                let found = try #require(index.value(of: name, in: 0, from: &hint))
                expect(index.integer(found), equals: 2)
            }
        }
    }

    // MARK: Size

    @Test("RSP-9: in large texts every word knows its place")
    func largeTexts() throws {
        let long = String(repeating: "x", count: 1 << 20)
        let element = "\"\(long)\",{\"\(long)\":[1,2.5]}"
        let index = try read("[" + Array(repeating: element, count: 9).joined(separator: ",") + "]")
        var position = 1
        for _ in 0..<9 {
            expect(index.string(position), equals: long)
            position = index.next(position)
            expect(index.string(position + 1), equals: long)
            expect(index.double(position + 4), equals: 2.5)
            position = index.next(position)
        }
        expect(position, equals: index.end(0))
        let numbers = try read("[" + String(repeating: "7,", count: 300_000) + "[]]")
        expect(numbers.count(0), equals: 300_001)
        expect(numbers.end(0), equals: 300_002)
        expect(numbers.integer(300_000), equals: 7)
    }

    /// A debug build takes minutes for them.
    @Test("RSP-9: strings and numbers of hundreds of megabytes are read or refused", .enabled(if: TestLoad.isHuge))
    func hugeTexts() throws {
        func text(_ head: String, _ character: String, _ count: Int, _ tail: String) -> Data {
            var bytes = Data(repeating: Array(character.utf8)[0], count: head.utf8.count + count)
            bytes.replaceSubrange(0..<head.utf8.count, with: Data(head.utf8))
            return bytes + Data(tail.utf8)
        }
        let index = try JSONIndex(text("[\"", "x", 1 << 28 + 5, "\",[7]]"))
        expect(index.count(1), equals: 1 << 28 + 5)
        expect(index.integer(3), equals: 7)
        #expect(throws: JSONSyntaxError.self) { try JSONIndex(text("[\"", "x", 1 << 29, "\",[7]]")) }
        #expect(throws: JSONSyntaxError.self) { try JSONIndex(text("[0.", "0", 1 << 29, ",[7]]")) }
    }

    // MARK: Damage

    @Test("RSP-9: no part of fifty documents up to some place is right, and nothing is read behind the end")
    func truncations() throws {
        let page = Int(sysconf(Int32(_SC_PAGESIZE)))
        let room = 8 * page
        let flags = MAP_PRIVATE | MAP_ANON
        let start = try #require(mmap(nil, room + page, PROT_READ | PROT_WRITE, flags, -1, 0))
        try #require(start != MAP_FAILED)
        defer { munmap(start, room + page) }
        // Whoever reads behind the text ends the program.
        try #require(mprotect(start + room, page, PROT_NONE) == 0)
        for seed in UInt64(0)..<50 {
            var generator = SeededGenerator(seed: seed)
            let document = Data(RandomJSON.document(&generator).utf8)
            try #require(document.count <= room)
            for count in 0...document.count {
                let place = start + room - count
                document.copyBytes(to: place.assumingMemoryBound(to: UInt8.self), count: count)
                let text = Data(bytesNoCopy: place, count: count, deallocator: .none)
                let tree = (try? JSONIndex(text)).map { JSONTree($0) }
                expect(
                    (tree == nil),
                    equals: (count < document.count),
                    "seed \(seed), \(count) of \(document.count) bytes"
                )
            }
            // A number or a literal that ends with the text.
            for scalar in ["1", "-1.5e10", "true", "null", "\"\\u00e9é\""] {
                for count in 1...scalar.utf8.count {
                    let place = start + room - count
                    Data(scalar.utf8).copyBytes(to: place.assumingMemoryBound(to: UInt8.self), count: count)
                    _ = (try? JSONIndex(Data(bytesNoCopy: place, count: count, deallocator: .none))).map {
                        JSONTree($0)
                    }
                }
            }
        }
    }

    @Test("RSP-9: random documents and damaged ones are read or refused as by Foundation")
    func differential() {
        let seed = UInt64.random(in: 0...UInt64.max)
        for round in 0..<UInt64(TestLoad.count(20_000, part: 3_000, huge: 1_000_000)) {
            var generator = SeededGenerator(seed: seed &+ round)
            var bytes = Array(RandomJSON.document(&generator).utf8)
            if round % 4 != 0 { RandomJSON.damage(&bytes, &generator) }
            let data = Data(bytes)
            let found: JSONTree?
            do throws(JSONSyntaxError) {
                found = JSONTree(try JSONIndex(data))
            } catch {
                if error.isKnownDifference(in: bytes) { continue }
                found = nil
            }
            expect(
                found,
                equals: JSONTree.foundation(data),
                "seed \(seed &+ round): \(String(decoding: bytes, as: UTF8.self))"
            )
        }
    }
}

extension JSONWord.Kind {
    fileprivate var isContainer: Bool { self == .array || self == .object }
}

extension JSONSyntaxError {
    /// What JSONSerialization accepts although it is no JSON, or nothing that a Double holds.
    fileprivate func isKnownDifference(in bytes: [UInt8]) -> Bool {
        // It reads some numbers of many digits or with large exponents as infinite, and JSONDecoder refuses them.
        if reason == "a number is too large" { return true }
        // It drops half a code unit at the end of UTF-16.
        if bytes.count % 2 != 0, bytes.prefix(4).contains(0) { return true }
        // A comma before the end of an array or object.
        let before = bytes[..<min(offset, bytes.count)].last { ![0x20, 0x09, 0x0A, 0x0D].contains($0) }
        return before == UInt8(ascii: ",") && offset < bytes.count && "]}".utf8.contains(bytes[offset])
    }
}
