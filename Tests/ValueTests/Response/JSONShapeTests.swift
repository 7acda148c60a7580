import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("JSONShape")
struct JSONShapeTests {
    private static let user: JSONShape = [
        "id": .integer, "name": .string.orNull, "email": .string.optional, "state": .oneOf(["active", "closed"]),
        "kind": "user", "ratio": .number, "tags": .array(of: .string),
        "owner": ["id": .oneOf([.integer, .string])], "extra": .any.optional,
    ]

    private static let good =
        #"{"id":1,"name":null,"state":"active","kind":"user","ratio":0.5,"tags":["a"],"#
        + #""owner":{"id":"x"},"unknown":[]}"#

    private func json(_ text: String) throws -> Any {
        try NetworkResponse(body: Data(text.utf8)).json()
    }

    @Test("RSP-3: JSON of the shape passes, unknown keys included")
    func good() throws {
        expect(Self.user.mismatch(in: try json(Self.good)) == nil)
        expect(Self.user.mismatch(in: try json(Self.good.replacing("null", with: "\"Ada\""))) == nil)
        expect(JSONShape.array().mismatch(in: try json("[1,{},null]")) == nil)
        expect(JSONShape.object().mismatch(in: try json(#"{"a":1}"#)) == nil)
        expect(JSONShape.any.mismatch(in: try json("null")) == nil)
        expect(JSONShape.integer.mismatch(in: try json("18446744073709551615")) == nil)
        expect(JSONShape.integer.mismatch(in: try json("3.0")) == nil)
        expect(JSONShape.integer.optional.mismatch(in: 1) == nil)
    }

    @Test(
        "RSP-3: the message names the path at which the answer is wrong",
        arguments: [
            (#""id":1"#, #""id":"1""#, "$.id: expected Int but found String"),
            (#""id":1"#, #""id":true"#, "$.id: expected Int but found Bool"),
            (#""id":1"#, #""id":1.5"#, "$.id: expected Int but found Double"),
            (#""id":1,"#, "", "$.id: expected Int but found nothing"),
            (#""name":null"#, #""name":7"#, "$.name: expected String or null but found Int"),
            (#""name":null,"#, "", "$.name: expected String or null but found nothing"),
            (#""state":"active""#, #""state":"gone""#, #"$.state: expected "active" or "closed" but found "gone""#),
            (#""state":"active""#, #""state":null"#, #"$.state: expected "active" or "closed" but found null"#),
            (#""kind":"user""#, #""kind":"team""#, #"$.kind: expected "user" but found "team""#),
            (#""ratio":0.5"#, #""ratio":false"#, "$.ratio: expected number but found Bool"),
            (#"["a"]"#, #"["a","b",null]"#, "$.tags[2]: expected String but found null"),
            (#"["a"]"#, "{}", "$.tags: expected array but found object"),
            (#"{"id":"x"}"#, "[]", "$.owner: expected object but found array"),
            (#"{"id":"x"}"#, #"{"id":[]}"#, "$.owner.id: expected Int or String but found array"),
            (#""unknown""#, #""email":null,"unknown""#, "$.email: expected String but found null"),
        ]
    )
    func places(_ old: String, _ new: String, _ message: String) throws {
        expect(Self.good.contains(old))
        let mismatch = try #require(Self.user.mismatch(in: try json(Self.good.replacing(old, with: new))))
        expect(mismatch, equals: message)
    }

    @Test("RSP-3: a mismatch may be in an element of an array, or at the root")
    func nested() throws {
        let shape: JSONShape = ["users": .array(of: ["name": .string])]
        let users = try json(#"{"users":[{"name":"a"},{"name":"b"},{"name":"c"},{"name":null}]}"#)
        expect(shape.mismatch(in: users), equals: "$.users[3].name: expected String but found null")
        expect(shape.mismatch(in: []), equals: "$: expected object but found array")
        expect(shape.mismatch(in: users)?.hasPrefix("$.users[3].name:"), equals: true)
        let twice: JSONShape = ["b": .string, "a": .string]
        expect(twice.mismatch(in: [String: Any]()), equals: "$.a: expected String but found nothing")
    }

    @Test("RSP-3: keys that are no names are quoted, and control characters are escaped")
    func oddKeys() {
        for (key, path) in [
            ("odd name", "$['odd name']"), ("", "$['']"), ("1a", "$['1a']"), ("a.b", "$['a.b']"), ("é_1", "$.é_1"),
            ("it's\n\u{1B}[1m", #"$['it\'s\n\u{1B}[1m']"#), ("\u{202E}x", #"$['\u{202E}x']"#),
            (String(repeating: "k", count: 100), "$['\(String(repeating: "k", count: 40))…']"),
        ] {
            expect(JSONShape.object([key: .string]).mismatch(in: [key: 1])?.hasPrefix(path + ":"), equals: true)
        }
    }

    @Test("RSP-3: a mismatch with several shapes names the one that matches furthest")
    func alternatives() {
        let shape = JSONShape.oneOf([
            ["type": "circle", "radius": .number], ["type": "square", "side": .number], .array(of: .number),
        ])
        expect(shape.mismatch(in: ["type": "circle", "radius": 1] as [String: Any]) == nil)
        expect(shape.mismatch(in: [1, 2]) == nil)
        expect(shape.mismatch(in: [1, "x"] as [Any]), equals: "$[1]: expected number but found String")
        expect(shape.mismatch(in: 7), equals: "$: expected object or array but found Int")
        expect(JSONShape.oneOf([]).mismatch(in: 7), equals: "$: expected nothing but found Int")
        expect(JSONShape.oneOf(["on", .null]).mismatch(in: "off")?.hasSuffix(#"found "off""#), equals: true)
    }

    @Test("RSP-3: a body must not repeat a key of the shape, of whose values each reader uses another")
    func repeatedKey() {
        func mismatch(_ text: String) -> String? {
            let shape: JSONShape = ["user": ["role": .string, "name": .string.optional]]
            do throws(NetworkError) {
                _ = try NetworkResponse(body: Data(text.utf8)).json(shape)
                return nil
            } catch {
                return error.localizedDescription
            }
        }
        expect(mismatch(#"{"user": {"role": "guest", "x": 1, "x": 2}}"#), equals: nil)
        for second in [#""role""#, #""r\u006fle""#] {
            let text = #"{"user": {"role": "guest", "x": 1, \#(second): "admin"}}"#
            let found = mismatch(text) ?? ""
            expect(found.contains("$.user.role: expected one value but found several"), "\(found)")
        }
    }

    @Test("RSP-3: shapes are values, equal when they are written alike")
    func values() {
        let same: JSONShape = ["b": .string.orNull, "a": .integer.optional]
        expect(same, equals: ["a": .integer.optional, "b": .oneOf([.string, .null])])
        expect(same != ["a": .integer, "b": .string.orNull])
        expect(Set([same, .string, "a", .oneOf(["a"])]).count, equals: 4)
        expect((["a": .integer, "a": .string] as JSONShape), equals: ["a": .string])
    }

    @Test("RSP-3: a deep shape checks deep JSON, and hostile nesting is an error")
    func deep() throws {
        var shape = JSONShape.string
        for _ in 0..<500 { shape = .array(of: shape) }
        let text = String(repeating: "[", count: 500) + "1" + String(repeating: "]", count: 500)
        let place = "$" + String(repeating: "[0]", count: 500)
        expect(shape.mismatch(in: try json(text)), equals: place + ": expected String but found Int")
        let bomb = Data(String(repeating: "[", count: 100_000).utf8)
        #expect(throws: NetworkError.self) { try NetworkResponse(body: bomb).json(shape) }
    }

    @Test("RSP-3: random JSON passes its own shape, and fails at the place where it is changed")
    func random() throws {
        let seed = UInt64.random(in: 0 ... .max)
        print("JSONShapeTests.random: seed \(seed)")
        var generator = SeededGenerator(seed: seed)
        for _ in 0..<500 {
            let sample = Sample.random(depth: 4, &generator)
            // Goes through text, so that the values have the types of a parsed answer.
            let data = try JSONSerialization.data(withJSONObject: sample.value, options: .fragmentsAllowed)
            let answer = NetworkResponse(body: data)
            _ = try answer.json(sample.shape)
            let (broken, path) = sample.broken(&generator)
            let mismatch = sample.shape.mismatch(in: broken)
            expect(
                mismatch?.hasPrefix("$" + path + ":"),
                equals: true,
                "seed \(seed): \(sample.value) broken as \(broken)"
            )
        }
    }
}

/// A JSON value and its shape.
private indirect enum Sample {
    case leaf(Any, JSONShape)
    case array([Sample])
    case object([String: Sample])

    static func random(depth: Int, _ generator: inout SeededGenerator) -> Sample {
        switch depth == 0 ? 0 : Int.random(in: 0...2, using: &generator) {
        case 0:
            let leaves: [(Any, JSONShape)] = [
                (1, .integer), (1.5, .number), ("x", .string), (true, .boolean), (NSNull(), .null), ("x", "x"),
                (NSNull(), .string.orNull),
            ]
            let leaf = leaves[Int.random(in: 0..<leaves.count, using: &generator)]
            return .leaf(leaf.0, leaf.1)
        case 1:
            let element = random(depth: depth - 1, &generator)
            return .array(Array(repeating: element, count: Int.random(in: 0...3, using: &generator)))
        default:
            var members: [String: Sample] = [:]
            for key in ["a", "b", "c"] where Bool.random(using: &generator) {
                members[key] = random(depth: depth - 1, &generator)
            }
            return .object(members)
        }
    }

    var value: Any {
        switch self {
        case .leaf(let value, _): value
        case .array(let elements): elements.map(\.value)
        case .object(let members): members.mapValues(\.value)
        }
    }

    var shape: JSONShape {
        switch self {
        case .leaf(_, let shape): shape
        case .array(let elements): .array(of: elements.first?.shape ?? .any)
        case .object(let members): .object(members.mapValues(\.shape))
        }
    }

    /// Returns the value with one mistake, and the path of the mistake.
    func broken(_ generator: inout SeededGenerator) -> (value: Any, path: String) {
        switch self {
        case .leaf: return ([1, "wrong"] as [Any], "")
        case .array(let elements):
            guard !elements.isEmpty, Bool.random(using: &generator) else { return ("wrong", "") }
            let index = Int.random(in: 0..<elements.count, using: &generator)
            let (value, path) = elements[index].broken(&generator)
            var values = elements.map(\.value)
            values[index] = value
            return (values, "[\(index)]" + path)
        case .object(let members):
            guard let key = members.keys.sorted().randomElement(using: &generator), let member = members[key] else {
                return ("wrong", "")
            }
            var values = members.mapValues(\.value)
            if Bool.random(using: &generator) {
                values[key] = nil
                return (values, ".\(key)")
            }
            let (value, path) = member.broken(&generator)
            values[key] = value
            return (values, ".\(key)" + path)
        }
    }
}
