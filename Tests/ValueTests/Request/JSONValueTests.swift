import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("Parameters as JSONValue")
struct JSONValueTests {
    private enum Colour: String { case red }
    private enum Level: Int { case high = 3 }
    private struct Flags: OptionSet { let rawValue: UInt8 }
    private struct Itself: RawRepresentable {
        init() {}
        init(rawValue: Itself) {}
        var rawValue: Itself { self }
    }
    private struct Unknown {}
    private final class Holder {}

    @Test("REQ-2: every kind of scalar becomes the value it means")
    func scalars() throws {
        let uuid = try #require(UUID(uuidString: "6C2A8F6B-6B0E-4F0A-9E0B-1B8B0C5B5C11"))
        let url = try #require(URL(string: "https://example.com/a?b=1"))
        let table: [(Any, JSONValue)] = [
            (true, .bool(true)), (false, .bool(false)),
            (1, .integer(1)), (Int8(-1), .integer(-1)), (Int16(2), .integer(2)), (Int32(3), .integer(3)),
            (Int64.min, .integer(.min)), (UInt(4), .integer(4)), (UInt8(5), .integer(5)), (UInt16(6), .integer(6)),
            (UInt32(7), .integer(7)), (UInt64(8), .integer(8)), (UInt64.max, .unsigned(.max)),
            (0.1, .double(0.1)), (Float(0.1), .double(0.1)), (CGFloat(2.5), .double(2.5)),
            (Decimal(15) / 10, .decimal(Decimal(15) / 10)),
            ("text", .string("text")), ("text".dropFirst(), .string("ext")), (Character("é"), .string("é")),
            (url, .string("https://example.com/a?b=1")), (uuid, .string(uuid.uuidString)),
            (Data([1, 2, 3]), .string("AQID")), (Colour.red, .string("red")), (Level.high, .integer(3)),
            (Flags(rawValue: 5), .integer(5)), (AnyHashable(UInt8(9)), .integer(9)), (AnyHashable(true), .bool(true)),
        ]
        for (value, expected) in table {
            try expect(JSONValue(parameter: value), equals: expected, "\(type(of: value)) \(value)")
        }
    }

    @Test("REQ-2: objects of Foundation have the meaning of their values; a Bool differs from 1")
    func foundationObjects() throws {
        let url = try #require(NSURL(string: "https://example.com/"))
        let date = Date(timeIntervalSince1970: 0)
        let uuid = UUID()
        let table: [(Any, JSONValue)] = [
            (NSNumber(value: true), .bool(true)), (NSNumber(value: 1), .integer(1)),
            (NSNumber(value: Int8(1)), .integer(1)), (NSNumber(value: UInt8(200)), .integer(200)),
            (NSNumber(value: 1.5), .double(1.5)), (NSNumber(value: Float(0.1)), .double(0.1)),
            (NSNumber(value: UInt64.max), .unsigned(.max)), (NSNumber(value: Int64.min), .integer(.min)),
            (NSDecimalNumber(string: "1.5"), .decimal(Decimal(15) / 10)),
            (NSNull(), .null), (NSString(string: "text"), .string("text")),
            (NSDate(timeIntervalSince1970: 0), .string("1970-01-01T00:00:00Z")),
            (date as NSDate, .string("1970-01-01T00:00:00Z")),
            (url, .string("https://example.com/")), (NSData(data: Data([1, 2, 3])), .string("AQID")),
            (NSArray(array: [1, "a", NSNumber(value: true)]), .array([.integer(1), .string("a"), .bool(true)])),
            (NSDictionary(dictionary: ["a": NSNumber(value: false)]), .object(["a": .bool(false)])),
            (NSMutableArray(array: [NSNull()]), .array([.null])),
            (
                NSArray(array: [Colour.red, ["a": [1]], uuid]),
                .array([.string("red"), .object(["a": .array([.integer(1)])]), .string(uuid.uuidString)])
            ),
        ]
        for (value, expected) in table {
            try expect(JSONValue(parameter: value), equals: expected, "\(type(of: value)) \(value)")
        }
        let json = try JSONSerialization.jsonObject(with: Data(#"{"a":true,"b":1,"c":0.5,"d":null}"#.utf8))
        try expect(
            JSONValue(parameter: json),
            equals: .object(["a": .bool(true), "b": .integer(1), "c": .double(0.5), "d": .null])
        )
    }

    @Test("REQ-2: optionals and containers of every static type are read")
    func containers() throws {
        let none: Int? = nil
        let nested: Int?? = .some(nil)
        let some: String?? = "x"
        let optionals: [String: Int?] = ["a": nil, "b": 1]
        let anys: [String: Any?] = ["a": nil, "b": [String?]([nil, "s"])]
        let table: [(Any, JSONValue)] = [
            (none as Any, .null), (nested as Any, .null), (some as Any, .string("x")),
            (optionals, .object(["a": .null, "b": .integer(1)])),
            (anys, .object(["a": .null, "b": .array([.null, .string("s")])])),
            ([[1], []], .array([.array([.integer(1)]), .array([])])),
            ([1, 2, 3].dropFirst(), .array([.integer(2), .integer(3)])),
            ([AnyHashable("k"): 1], .object(["k": .integer(1)])), ([String: Int](), .object([:])),
        ]
        for (value, expected) in table {
            try expect(JSONValue(parameter: value), equals: expected, "\(type(of: value)) \(value)")
        }
    }

    @Test(
        "REQ-2: dates are ISO 8601 in UTC, with milliseconds only if there are any",
        arguments: [
            (0, "1970-01-01T00:00:00Z"), (0.123, "1970-01-01T00:00:00.123Z"), (0.0004, "1970-01-01T00:00:00Z"),
            (-0.001, "1969-12-31T23:59:59.999Z"), (951_782_400, "2000-02-29T00:00:00Z"),
            (1_709_251_199.5, "2024-02-29T23:59:59.500Z"), (4_107_542_399, "2100-02-28T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"), (-62_135_596_800, "0001-01-01T00:00:00Z"),
            (253_402_300_799, "9999-12-31T23:59:59Z"),
        ] as [(TimeInterval, String)]
    )
    func dates(_ seconds: TimeInterval, _ expected: String) throws {
        try expect(JSONValue(parameter: Date(timeIntervalSince1970: seconds)), equals: .string(expected))
    }

    @Test("REQ-2: dates agree with Foundation's formatter on a thousand random days")
    func randomDates() throws {
        let seed: UInt64 = 20_260_701
        var generator = SeededGenerator(seed: seed)
        let formatter = ISO8601DateFormatter()
        // The days begin in 1621, because the formatter uses the Julian calendar for early dates.
        for _ in 0..<1_000 {
            let date = Date(
                timeIntervalSince1970: Double(Int.random(in: -11_000_000_000..<253_402_300_800, using: &generator))
            )
            try expect(JSONValue(parameter: date), equals: .string(formatter.string(from: date)), "seed \(seed)")
        }
    }

    @Test("REQ-2: an invalid value is an error with its place and its type")
    func refusals() throws {
        let dates: [Any] = [
            Date(timeIntervalSince1970: .nan), Date(timeIntervalSince1970: -62_135_596_801),
            Date(timeIntervalSince1970: 1e300),
        ]
        let table: [(value: Any, fragment: String)] = [
            (["filter": ["tags": [1, 2, 3, Unknown()] as [Any]]], "parameter filter.tags[3]: a value of type Unknown"),
            (["a": Holder()], "parameter a: a value of type Holder"),
            (["a": Double.nan], "parameter a: nan"), (["a": [Float.infinity]], "parameter a[0]: inf"),
            (["a": NSNumber(value: -Double.infinity)], "parameter a: -inf"), (["a": Decimal.nan], "parameter a: NaN"),
            (["a": [1: 2]], "parameter a: keys must be Strings"),
            (["a": Set([1])], "parameter a: a value of type Set<Int>"),
            (["a": Itself()], "parameter a: values are nested more than 100 levels deep"),
            (["a": { 1 } as () -> Int], "parameter a:"),
        ]
        for (value, fragment) in table + dates.map({ (["a": $0], "parameter a: a date outside") }) {
            let error = #expect(throws: NetworkError.self) { try JSONValue(parameter: value) }
            expect(error?.code, equals: .invalidRequest)
            expect(error?.message?.contains(fragment), equals: true, "\(error?.message ?? "") has no \(fragment)")
        }
    }

    @Test("REQ-2: a hundred levels pass; more are an error, and so is a container that holds itself")
    func depth() throws {
        func nested(_ levels: Int) -> Any { (0..<levels).reduce(1 as Any) { value, _ in [value] } }
        #expect(throws: Never.self) { try JSONValue(parameter: nested(100)) }
        #expect(throws: NetworkError.self) { try JSONValue(parameter: nested(101)) }
        let cycle = NSMutableArray()
        cycle.add(cycle)
        cycle.add(cycle)
        defer { cycle.removeAllObjects() }
        let error = #expect(throws: NetworkError.self) { try JSONValue(parameter: ["loop": cycle]) }
        expect(error?.message?.hasPrefix("parameter loop[0][0]"), equals: true)
        let dictionary = NSMutableDictionary()
        dictionary["self"] = dictionary
        defer { dictionary.removeAllObjects() }
        let other = #expect(throws: NetworkError.self) { try JSONValue(parameter: [dictionary]) }
        expect(other?.message?.hasPrefix("parameter [0].self.self.self"), equals: true)
        expect((error?.message?.count ?? 0) < 400)
    }

    @Test("REQ-2: as JSON, keys are sorted, slashes plain, and every value reads back")
    func jsonRoundTrip() throws {
        let text = "a/b \"\\\u{0}\u{1F600}é\u{2028}"
        let params: [String: Any] = [
            "z": true, "a": 1, "m": ["k": [1.5, NSNull(), text] as [Any]], "big": UInt64.max,
            "price": try #require(Decimal(string: "12345678901234567.89")), "e": [Any](), "o": [String: Any](),
        ]
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        let data = try encoder.encode(JSONValue.object(from: params))
        let json = String(decoding: data, as: UTF8.self)
        expect(json.hasPrefix(#"{"a":1,"big":18446744073709551615,"e":[],"m":{"k":[1.5,null,"a/b "#))
        expect(json.hasSuffix(#""o":{},"price":12345678901234567.89,"z":true}"#))
        let back = try #require(try JSONSerialization.jsonObject(with: data) as? [String: Any])
        let inner = try #require((back["m"] as? [String: Any])?["k"] as? [Any])
        expect(inner[2] as? String, equals: text)
        try expect(JSONValue(parameter: inner), equals: .array([.double(1.5), .null, .string(text)]))
    }
}
