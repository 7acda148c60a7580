import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

/// Each behaviour beside Foundation's decoder, with the same strategies.
@Suite("JSONIndexDecoder")
struct JSONIndexDecoderTests {
    /// What came of it: the value, or the case, the path and the type of the error.
    private func outcome<T>(_ body: () throws -> T) -> String {
        func place(_ context: DecodingError.Context, _ key: (any CodingKey)? = nil) -> String {
            (context.codingPath + (key.map { [$0] } ?? [])).map { "\($0.stringValue)/\($0.intValue ?? -1)" }
                .joined(separator: " ")
        }
        do {
            let value = try body()
            // The order of a dictionary's keys differs.
            return (value as? [String: String])?.sorted { $0.key < $1.key }.description ?? "\(value)"
        } catch DecodingError.keyNotFound(let key, let context) {
            return "no key at \(place(context, key))"
        } catch DecodingError.typeMismatch(let type, let context) {
            return "mismatch of \(type) at \(place(context))"
        } catch DecodingError.valueNotFound(let type, let context) {
            return "no value of \(type) at \(place(context))"
        } catch DecodingError.dataCorrupted(let context) {
            return "corrupted at \(place(context))"
        } catch {
            return "\(error)"
        }
    }

    private func expectSame<T: Decodable>(
        _ type: T.Type,
        _ texts: String...,
        at location: SourceLocation = #_sourceLocation,
        _ configure: (JSONDecoder) -> Void = { _ in }
    ) {
        for text in texts {
            let decoder = JSONDecoder()
            configure(decoder)
            let body = Data(text.utf8)
            let own = outcome { try JSONIndexDecoder.decode(type, from: body, as: decoder) }
            let foundation = outcome { try decoder.decode(type, from: body) }
            #expect(own == foundation, "\(type) of \(text)", sourceLocation: location)
        }
    }

    @Test("RSP-9: numbers are those of JSONDecoder, and errors where they do not fit")
    func numbers() {
        let texts = [
            "0", "-0", "-0.0", "1", "-1", "1.0", "1.5", "3.4e1", "127", "128", "-128", "-129", "255", "256", "65536",
            "2147483647", "2147483648", "4294967296", "9007199254740992", "9007199254740993", "9007199254740993.0",
            "9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809", "1e18",
            "1e19",
            "18446744073709551615", "18446744073709551616", "12345678901234567890.5", "0.1", "1e-400", "0e10", "1e39",
            "5e-324", "1e-45", "16777217", "0.30000001192092896", "1.7976931348623157e308", "null", "true", "\"1\"",
            "[]",
            "{}", "123456789012345678901234567890", String(repeating: "9", count: 300), "0.000000000000000000000000001",
        ]
        for text in texts {
            expectSame(Int.self, text)
            expectSame(Int8.self, text)
            expectSame(Int16.self, text)
            expectSame(Int32.self, text)
            expectSame(Int64.self, text)
            expectSame(UInt.self, text)
            expectSame(UInt8.self, text)
            expectSame(UInt16.self, text)
            expectSame(UInt32.self, text)
            expectSame(UInt64.self, text)
            expectSame(Double.self, text)
            expectSame(Float.self, text)
            expectSame(Decimal.self, text)
            expectSame(Bool.self, text)
            expectSame(String.self, text)
            expectSame([Int?].self, "[null, \(text)]")
            expectSame([Double].self, "[1, \(text)]")
            expectSame([String: Int].self, #"{"a": \#(text)}"#)
        }
        if #available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *) {
            expectSame([Int128].self, "[1, -170141183460469231731687303715884105728]", "[1.0]", "[\"1\"]", "[null]")
        }
    }

    @Test("RSP-9: numbers that are no JSON are read from the texts of the strategy")
    func floats() {
        expectSame([Double].self, #"["+", "-", "1"]"#, #"["+"]"#, #"["-"]"#, #"["\u002b"]"#) {
            $0.nonConformingFloatDecodingStrategy =
                .convertFromString(positiveInfinity: "+", negativeInfinity: "-", nan: "nan")
        }
        expectSame([Float].self, #"["+", "-"]"#) {
            $0.nonConformingFloatDecodingStrategy =
                .convertFromString(positiveInfinity: "+", negativeInfinity: "-", nan: "nan")
        }
        expectSame([Double].self, #"["+"]"#)
    }

    @Test("RSP-9: dates and data follow each strategy")
    func datesAndData() {
        let texts = ["[0]", "[1.5, null]", #"["x"]"#, "[true]", #"["2024-02-29T12:00:00Z"]"#, "[[]]", "[1e300]"]
        let dates: [JSONDecoder.DateDecodingStrategy] = [
            .deferredToDate, .secondsSince1970, .millisecondsSince1970, .rfc3339,
            .custom { Date(timeIntervalSinceReferenceDate: Double($0.codingPath.count)) },
            .custom { throw DecodingError.dataCorrupted(.init(codingPath: $0.codingPath, debugDescription: "no")) },
        ]
        for text in texts {
            for strategy in dates { expectSame([Date].self, text) { $0.dateDecodingStrategy = strategy } }
            expectSame([Date?].self, text)
        }
        let times = [
            "2024-02-29T12:00:00Z", "1583-01-01T00:00:00Z", "1400-03-01T00:00:00Z", "0001-01-01T00:00:00Z",
            "2024-02-29T12:00:00+01:00", "9999-12-31T23:59:59Z",
        ]
        for time in times { expectSame([Date].self, "[\"\(time)\"]") { $0.dateDecodingStrategy = .iso8601 } }
        expectSame([Date].self, "[1]", "[null]") { $0.dateDecodingStrategy = .iso8601 }
        let formatter = DateFormatter()
        formatter.dateFormat = "yyyy"
        expectSame([Date].self, #"["2024"]"#, #"["x"]"#, "[1]") { $0.dateDecodingStrategy = .formatted(formatter) }
        for text in [#"["AQID"]"#, #"["@"]"#, #"["\u0041QID"]"#, "[null]", "[1]", "[[1, 2]]", "[[256]]"] {
            expectSame([Data].self, text)
            expectSame([Data].self, text) { $0.dataDecodingStrategy = .deferredToData }
            expectSame([Data].self, text) { $0.dataDecodingStrategy = .custom { Data([UInt8($0.codingPath.count)]) } }
        }
        expectSame([URL].self, #"["https://a.example/b"]"#, #"[""]"#, "[null]", "[1]")
    }

    private struct Names: Decodable {
        let userName: String
        let lineA2: Int?
    }

    @Test("RSP-9: keys are converted as by JSONDecoder, those of dictionaries with texts are not")
    func keys() {
        let names = [
            "user_name", "userName", "user__name", "USER_NAME", "User_Name", "_user_name", "user_name_", "__", "", "_",
            "user_naMe", "user_n1a", "a1b_c1d", "oauth2_token", "2fa_code", "line_a2", "foo-bar_baz", "größe_ä",
            "id_URL",
            "a_b_c_d", "a_1_b", "Émile_zola", "a_\\u0062",
        ]
        for name in names {
            let text = #"{"\#(name)": "1", "b": "2"}"#
            expectSame([String: String].self, text) { $0.keyDecodingStrategy = .convertFromSnakeCase }
            let decoder = JSONDecoder()
            decoder.keyDecodingStrategy = .convertFromSnakeCase
            let own = try? JSONIndexDecoder.decode(Keys.self, from: Data(text.utf8), as: decoder)
            let foundation = try? decoder.decode(Keys.self, from: Data(text.utf8))
            expect(own, equals: foundation)
            // Each key is found by the name that Foundation gave it.
            expect(own?.found, equals: 2, "\(name)")
        }
        let texts = [
            #"{"user_name": "a", "line_a2": 1}"#, #"{"line_a2": 1, "userName": "b", "user_name": "a"}"#,
            #"{"user_name": 1}"#, "{}", #"{"user_name": "a", "line_a2": "x"}"#, #"{"lineA2": null, "user_name": null}"#,
        ]
        for text in texts {
            expectSame(Names.self, text)
            expectSame(Names.self, text) { $0.keyDecodingStrategy = .convertFromSnakeCase }
            expectSame([String: Names].self, #"{"a_b": \#(text)}"#) { $0.keyDecodingStrategy = .convertFromSnakeCase }
            expectSame([Names].self, "[\(text)]") {
                $0.keyDecodingStrategy = .custom { path in
                    Key(path.count == 2 && path.last?.stringValue == "user_name" ? "userName" : path[0].stringValue)
                }
            }
        }
        expectSame([String: Names].self, "[]", "null") { $0.keyDecodingStrategy = .convertFromSnakeCase }
    }

    private struct Key: CodingKey {
        let stringValue: String
        var intValue: Int? { nil }
        init(_ name: String) { stringValue = name }
        init?(stringValue: String) { self.stringValue = stringValue }
        init?(intValue: Int) { nil }
    }

    private struct Keys: Decodable, Equatable {
        let names: [String]
        let found: Int
        init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: Key.self)
            names = container.allKeys.map(\.stringValue).sorted()
            found = container.allKeys.count { container.contains($0) }
        }
    }

    private enum Unit: String, Decodable, Hashable, CodingKeyRepresentable { case a, b }

    @Test("RSP-9: dictionaries, repeated keys, wide objects and enums are those of JSONDecoder")
    func dictionaries() {
        expectSame([Int: Int].self, #"{"1": 2}"#, #"{"x": 2}"#, #"{"1": "x"}"#, "[1, 2]", "[]")
        expectSame([Unit: Int].self, #"{"a": 2}"#, #"{"c": 2}"#, "[\"a\", 2]")
        expectSame([String: Int].self, #"{"a": 1, "a": 2}"#, #"{"é": 1, "e\u0301": 2}"#, #"{"a": 1, "\u0061": 2}"#)
        expectSame([Unit].self, #"["a", "b"]"#, #"["c"]"#, "[1]", "[null]")
        expectSame(Names.self, #"{"x": 0, "userName": "a", "x": 0, "userName": "b"}"#)
        let many = (0..<100).map { #""k\#($0)": \#($0)"# }.joined(separator: ",")
        expectSame(Names.self, #"{\#(many), "userName": "a", "lineA2": 1}"#)
        expectSame(Names.self, #"{"userName": "a", \#(many), "userName": "b", "lineA2": 1}"#)
    }

    /// Reads in unusual ways, and writes down what comes.
    private struct Log: Decodable, CustomStringConvertible {
        var description = ""
        private class Base: Decodable {
            let path: String
            required init(from decoder: any Decoder) throws {
                let isNull = try decoder.singleValueContainer().decodeNil()
                path = "\(decoder.codingPath.map(\.stringValue)) \(isNull)"
            }
        }

        init(from decoder: any Decoder) throws {
            func note<T>(_ body: () throws -> T) {
                description += JSONIndexDecoderTests().outcome(body) + "; "
            }
            description += "\(decoder.userInfo.count) "
            let container = try decoder.container(keyedBy: Key.self)
            for name in ["missing", "list", "object", "text"] {
                let key = Key(name)
                note { container.contains(key) }
                note { try container.decodeNil(forKey: key) }
                note { try container.decode(Int.self, forKey: key) }
                note { try container.decodeIfPresent(Int.self, forKey: key) }
                note { try container.decodeIfPresent([Int].self, forKey: key) }
                note { try container.nestedContainer(keyedBy: Key.self, forKey: key).allKeys.count }
                note { try Base(from: container.superDecoder(forKey: key)).path }
                guard var list = try? container.nestedUnkeyedContainer(forKey: key) else { continue }
                note { "\(list.count ?? -1) \(list.codingPath.map(\.stringValue))" }
                note { try list.decode(String.self) }
                note { try list.decode(Int.self) }
                note { try list.decodeNil() }
                note { try list.decodeIfPresent(Int.self) }
                note { try list.nestedContainer(keyedBy: Key.self).decode(Int.self, forKey: Key("x")) }
                note { try list.nestedUnkeyedContainer().codingPath.map(\.stringValue) }
                note { try Base(from: list.superDecoder()).path }
                note { "\(list.currentIndex) \(list.isAtEnd)" }
                note { try list.decode(Int.self) }
                note { try list.decodeNil() }
                note { try list.decode([Int].self) }
                note { try list.nestedContainer(keyedBy: Key.self).codingPath.count }
                note { try list.nestedUnkeyedContainer().codingPath.count }
                note { try list.superDecoder().codingPath.count }
                note { try list.decodeIfPresent(Int.self) }
            }
            note { try Base(from: container.superDecoder()).path }
        }
    }

    @Test("RSP-9: nested and super containers, and elements read in any order, are those of JSONDecoder")
    func containers() {
        expectSame(
            Log.self,
            #"{"list": [1, null, 2, {"x": 3}, [4], 5], "object": {"a": 1}, "text": "x"}"#,
            #"{"list": [1, null, null, {"y": 3}, {}, null], "object": {}, "text": null, "super": 1}"#,
            "{}",
            "[]",
            "null",
            "1"
        ) { $0.userInfo = [CodingUserInfoKey(rawValue: "a")!: 1] }
    }

    @Test("RSP-9: texts that are no JSON are corrupted data with the syntax error as reason")
    func syntax() throws {
        for text in ["", "[", "{\"a\":}", "\u{FEFF}[1]", "[1] x", "nul"] { expectSame([Int].self, text) }
        let error = #expect(throws: DecodingError.self) {
            try JSONIndexDecoder.decode([Int].self, from: Data("[1,]".utf8), as: JSONDecoder())
        }
        guard case .dataCorrupted(let context) = error else { return }
        expect(context.underlyingError is JSONSyntaxError)
    }

    @Test("RSP-9: the type of a subclass that is given as that of its class decides")
    func subclass() throws {
        class Person: Decodable { var name = "" }
        final class Employee: Person {
            private enum CodingKeys: CodingKey { case id }
            let id: Int

            required init(from decoder: any Decoder) throws {
                id = try decoder.container(keyedBy: CodingKeys.self).decode(Int.self, forKey: .id)
                try super.init(from: decoder)
            }
        }
        let type: Person.Type = Employee.self
        let person = try NetworkResponse(body: Data(#"{"name":"ada","id":7}"#.utf8)).decode(type)
        expect((person as? Employee)?.id == 7 && person.name == "ada")
    }

    @Test("RSP-9: JSON5, top-level dictionaries and decoders of other classes are decoded by Foundation")
    func others() throws {
        final class Other: JSONDecoder, @unchecked Sendable {
            override func decode<T: Decodable>(_ type: T.Type, from data: Data) throws -> T {
                try super.decode(type, from: Data("7".utf8))
            }
        }
        expectSame([Int].self, "[1, /* one */ 0x10,]") { $0.allowsJSON5 = true }
        expectSame([String: Int].self, #""a": 1"#) { $0.assumesTopLevelDictionary = true }
        try expect(JSONIndexDecoder.decode(Int.self, from: Data("1".utf8), as: Other()), equals: 7)
    }

    @Test("RSP-9: arrays and optional members of all types, and errors in them, are those of JSONDecoder")
    func collections() {
        struct Optionals: Decodable {
            let a: Bool?
            let b: Int?
            let c: Double?
            let d: String?
            let e: [[Int8]]?
        }
        expectSame(
            Optionals.self,
            #"{"a": true, "b": 1, "c": 1.5, "d": "x", "e": [[1], [], [2, 3]]}"#,
            #"{"e": null, "d": null, "c": null, "b": null, "a": null}"#,
            #"{"a": 1}"#,
            #"{"b": "x"}"#,
            #"{"c": []}"#,
            #"{"d": 1}"#,
            #"{"e": [[1], 2]}"#,
            #"{"e": [[1, 128]]}"#,
            "{}"
        )
        expectSame(
            [[Names]].self,
            #"[[{"userName": "a"}, {"userName": "b"}], []]"#,
            #"[[{"userName": "a"}, {}]]"#,
            "[1]"
        )
        expectSame([Int32].self, "[1, 2]", "[1, null]", "{}", "null")
        expectSame([Decimal].self, "[1, -1.50, 100, 0.001, -0, 0.00, 123456789012345678, 1.23456789012345678, 1e5]")
        expectSame(Set<[Int16]>.self, "[[1]]", "[[1], [true]]")
        for text in [#"["\\", "\u00e9\n", "é日本", "a\"b"]"#, #"["ab\\cd é"]"#] { expectSame([String].self, text) }
    }

    @Test("RSP-9: an index that is there is used, and none is made for Foundation")
    func ownIndex() throws {
        var made = 0
        let index = { () -> Result<JSONIndex, JSONSyntaxError> in
            made += 1
            return JSONIndex.made(of: Data("[1]".utf8))
        }
        try expect(JSONIndexDecoder.decode([Int].self, from: Data(), as: JSONDecoder(), index()), equals: [1])
        let other = JSONDecoder()
        other.allowsJSON5 = true
        try expect(JSONIndexDecoder.decode([Int].self, from: Data("[2,]".utf8), as: other, index()), equals: [2])
        expect(made, equals: 1)
    }

    private indirect enum Tree: Decodable, Equatable {
        case null, bool(Bool), int(Int64), uint(UInt64), double(Double), text(String), array([Tree])
        case object([String: Tree])

        init(from decoder: any Decoder) throws {
            let container = try decoder.singleValueContainer()
            if container.decodeNil() {
                self = .null
            } else if let value = try? container.decode(Bool.self) {
                self = .bool(value)
            } else if let value = try? container.decode(Int64.self) {
                self = .int(value)
            } else if let value = try? container.decode(UInt64.self) {
                self = .uint(value)
            } else if let value = try? container.decode(Double.self) {
                self = .double(value)
            } else if let value = try? container.decode(String.self) {
                self = .text(value)
            } else if let value = try? container.decode([Tree].self) {
                self = .array(value)
            } else {
                self = .object(try container.decode([String: Tree].self))
            }
        }

        var members: Int {
            switch self {
            case .array(let elements): elements.reduce(0) { $0 + $1.members }
            case .object(let members): members.values.reduce(members.count) { $0 + $1.members }
            default: 0
            }
        }
    }

    private static func randomText(_ depth: Int, _ random: inout SeededGenerator) -> String {
        let scalars = [
            "null", "true", "false", "0", "-1", "12345678901234567890", "1.5e3", "-0.25", "9007199254740993", "\"\"",
            "\"a\"", "\"äöü 日本\"", #""\n\u00e9\ud83d\ude00""#, "\"a longer text of more than sixteen bytes\"", "1E-2",
        ]
        switch Int.random(in: 0..<(depth > 3 ? 4 : 8), using: &random) {
        case 0..<4: return scalars.randomElement(using: &random) ?? ""
        case 4, 5:
            let elements = (0..<Int.random(in: 0..<4, using: &random)).map { _ in randomText(depth + 1, &random) }
            return "[" + elements.joined(separator: " , ") + "]"
        default:
            let members = (0..<Int.random(in: 0..<4, using: &random)).map { _ in
                (["\"a\"", "\"b\"", "\"cd\"", "\"é\"", #""\u0061""#].randomElement(using: &random) ?? "") + ":"
                    + randomText(depth + 1, &random)
            }
            return "{" + members.joined(separator: ",") + "\n}"
        }
    }

    /// Where an accepted text is wrong: Foundation takes trailing commas, and does not look into members with a key
    /// that came before in their object.
    private static func isKnown(_ body: Data, _ foundation: Tree) -> Bool {
        var (result, colons) = (Data(), 0)
        var (isText, isEscape) = (false, false)
        for byte in body {
            if isText {
                isText = isEscape || byte != UInt8(ascii: "\"")
                isEscape = !isEscape && byte == UInt8(ascii: "\\")
            } else {
                isText = byte == UInt8(ascii: "\"")
                if byte == UInt8(ascii: ":") { colons += 1 }
                let last = result.lastIndex { !" \n\r\t".utf8.contains($0) }
                if "]}".utf8.contains(byte), let last, result[last] == UInt8(ascii: ",") { result.remove(at: last) }
            }
            result.append(byte)
        }
        let own = try? JSONIndexDecoder.decode(Tree.self, from: result, as: JSONDecoder())
        return own == foundation || own == nil && foundation.members < colons
    }

    @Test("RSP-9: random documents, whole and damaged, are equal trees, or errors, to both decoders")
    func random() {
        let seed = UInt64.random(in: 0...UInt64.max)
        print("JSONIndexDecoderTests seed \(seed)")
        var random = SeededGenerator(seed: seed)
        // In a debug build 3,000 take half a second, and the whole must not take more than about two minutes.
        let (decoder, count) = (JSONDecoder(), TestLoad.count(20_000, part: 3_000, huge: 1_000_000))
        for _ in 0..<count {
            var body = Data(Self.randomText(0, &random).utf8)
            let place = Int.random(in: 0..<body.count, using: &random)
            switch Int.random(in: 0..<6, using: &random) {
            case 0: body[place] = UInt8.random(in: 0...255, using: &random)
            case 1: body = body.prefix(place)
            case 2: body.insert("[]{},:\"\\0-e. ".utf8.randomElement(using: &random) ?? 0, at: place)
            case 3: body.remove(at: place)
            default: break
            }
            let own = try? JSONIndexDecoder.decode(Tree.self, from: body, as: decoder)
            let foundation = try? decoder.decode(Tree.self, from: body)
            if own == nil, let foundation, Self.isKnown(body, foundation) { continue }
            expect(own, equals: foundation, "seed \(seed): \(String(decoding: body, as: UTF8.self)), \(Array(body))")
        }
    }
}

extension JSONIndex {
    fileprivate static func made(of body: Data) -> Result<JSONIndex, JSONSyntaxError> {
        Result { () throws(JSONSyntaxError) in try JSONIndex(body) }
    }
}

extension JSONIndexDecoder {
    fileprivate static func decode<T: Decodable>(_ type: T.Type, from body: Data, as decoder: JSONDecoder) throws -> T {
        try decode(type, from: body, as: decoder, JSONIndex.made(of: body))
    }
}
