import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("QueryEncoder")
struct QueryEncoderTests {
    /// Compares with a text whose brackets are written unescaped.
    private func check(_ params: [String: Any], _ expected: String, _ encoder: QueryEncoder = QueryEncoder()) throws {
        let wire = expected.replacingOccurrences(of: "[", with: "%5B").replacingOccurrences(of: "]", with: "%5D")
        try expect(encoder.encode(params), equals: wire)
    }

    @Test("REQ-2: the shapes of parameters, in a stable order")
    func shapes() throws {
        try check([:], "")
        try check(["b": 1, "a": 2, "c": 3, "B": 4], "B=4&a=2&b=1&c=3")
        try check(["a": ["b": 1, "a": ["x": "y"]] as [String: Any]], "a[a][x]=y&a[b]=1")
        try check(["a": [1, 2]], "a[]=1&a[]=2")
        try check(["a": ["b": ["c", "d"]]], "a[b][]=c&a[b][]=d")
        try check(["a": [["b": 1], ["b": 2]]], "a[0][b]=1&a[1][b]=2")
        try check(["a": [[1, 2], [3]]], "a[0][]=1&a[0][]=2&a[1][]=3")
        try check(["a": [7, ["b": 1], NSNull()] as [Any]], "a[0]=7&a[1][b]=1&a[2]")
        try check(["t": true, "f": NSNumber(value: false), "one": NSNumber(value: 1)], "f=false&one=1&t=true")
        try check(["n": NSNull(), "e": "", "o": Int?.none as Any], "e=&n&o")
        try check(["a": [NSNull(), ""] as [Any]], "a[]&a[]=")
        try check(["a": [Int](), "b": [String: Int](), "c": [[Int]()], "d": 1], "d=1")
        try check(["": 1], "=1")
        try check(["": NSNull()], "=")
        try check(["d": Date(timeIntervalSince1970: 0.5)], "d=1970-01-01T00%3A00%3A00.500Z")
        try check(["a": 5.0, "b": 0.1, "c": -0.0, "d": 1e300, "e": Float(0.1)], "a=5&b=0.1&c=0&d=1e%2B300&e=0.1")
        try check(["a": UInt64.max, "b": Int64.min], "a=18446744073709551615&b=-9223372036854775808")
    }

    @Test("REQ-2: arrays and Bools can be written in other ways")
    func options() throws {
        let params: [String: Any] = ["a": [1, 2], "b": true, "c": [["x": false]]]
        try check(params, "a=1&a=2&b=true&c[0][x]=false", QueryEncoder(arrayStyle: .repeated))
        try check(params, "a[0]=1&a[1]=2&b=1&c[0][x]=0", QueryEncoder(arrayStyle: .indices, usesNumericBools: true))
    }

    @Test("REQ-2: all but the unreserved characters are escaped, in keys and in values")
    func escaping() throws {
        let reserved = ":/?#[]@!$&'()*+,;=% \"<>\\^`{|}\r\n\u{0}é😀"
        let expected =
            "%3A%2F%3F%23%5B%5D%40%21%24%26%27%28%29%2A%2B%2C%3B%3D%25%20%22%3C%3E%5C%5E%60%7B%7C%7D%0D%0A%00%C3%A9%F0%9F%98%80"
        try expect(QueryEncoder().encode([reserved: reserved]), equals: "\(expected)=\(expected)")
        try expect(QueryEncoder().encode(["aZ09-._~": "aZ09-._~"]), equals: "aZ09-._~=aZ09-._~")
        try expect(QueryEncoder().encode(["a b": ["c&d": "e=f"]]), equals: "a%20b%5Bc%26d%5D=e%3Df")
    }

    @Test("REQ-2: a form follows WHATWG's URL standard")
    func form() throws {
        let form = try QueryEncoder().encode(["a b": "c + d%20e", "s": "*-._~", "é": ["x y"]], isForm: true)
        expect(form, equals: "a+b=c+%2B+d%2520e&s=*-._%7E&%C3%A9%5B%5D=x+y")
    }

    @Test("REQ-2: a value that cannot be sent throws")
    func refusal() {
        let error = #expect(throws: NetworkError.self) { try QueryEncoder().encode(["a": ["b": Double.nan]]) }
        expect(error?.code, equals: .invalidRequest)
        expect(error?.message?.contains("a.b"), equals: true)
    }

    @Test(
        "REQ-2: random parameters come back whole through an independent reader",
        arguments: 1...40 as ClosedRange<UInt64>
    )
    func roundTrip(_ seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        let fields = (0..<8).map { _ in (Self.randomKey(&generator), Self.randomTree(&generator, depth: 0)) }
        let params = Dictionary(fields) { first, _ in first }
        for isForm in [false, true] {
            let text = try QueryEncoder().encode(params.mapValues(\.any), isForm: isForm)
            expect(text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F }, "seed \(seed): \(text)")
            let read = try #require(QueryReader.read(text, form: isForm), "seed \(seed): \(text)")
            let expected = params.compactMapValues(\.withoutEmpty)
            expect(read, equals: .object(expected), "seed \(seed), form \(isForm): \(text)")
            // The dictionary's insertion order has no effect.
            let again = Dictionary(fields.reversed().filter { params[$0.0] == $0.1 }) { first, _ in first }
            if again == params {
                try expect(QueryEncoder().encode(again.mapValues(\.any), isForm: isForm), equals: text, "seed \(seed)")
            }
        }
    }

    private static let alphabet: [Character] = Array("ab19 &=+%#?/;,.~*_-\"'<>\\^`{|}$!@:()é\u{301}漢😀👨‍👩‍👧\r\n\t\u{0}")

    private static func randomText(_ generator: inout SeededGenerator, from shortest: Int = 0) -> String {
        String(
            (0..<Int.random(in: shortest...6, using: &generator)).compactMap { _ in
                alphabet.randomElement(using: &generator)
            }
        )
    }

    private static func randomKey(_ generator: inout SeededGenerator) -> String {
        // The prefix prevents numbers, which would be read as indexes.
        "k" + randomText(&generator)
    }

    private static func randomTree(_ generator: inout SeededGenerator, depth: Int) -> Tree {
        switch Int.random(in: 0..<(depth < 4 ? 6 : 4), using: &generator) {
        case 0: return .null
        case 1, 2, 3: return .text(randomText(&generator))
        case 4:
            let count = Int.random(in: 0...3, using: &generator)
            return .array((0..<count).map { _ in randomTree(&generator, depth: depth + 1) })
        default:
            let count = Int.random(in: 0...3, using: &generator)
            let pairs = (0..<count).map { _ in (randomKey(&generator), randomTree(&generator, depth: depth + 1)) }
            return .object(Dictionary(pairs) { first, _ in first })
        }
    }
}

/// The values that a query can express.
indirect enum Tree: Equatable {
    case null
    case text(String)
    case array([Tree])
    case object([String: Tree])

    var any: Any {
        switch self {
        case .null: NSNull()
        case .text(let text): text
        case .array(let values): values.map(\.any)
        case .object(let values): values.mapValues(\.any)
        }
    }

    /// The value without empty containers, which a query cannot express.
    var withoutEmpty: Tree? {
        switch self {
        case .null, .text: return self
        case .array(let values):
            let rest = values.compactMap(\.withoutEmpty)
            return rest.isEmpty ? nil : .array(rest)
        case .object(let values):
            let rest = values.compactMapValues(\.withoutEmpty)
            return rest.isEmpty ? nil : .object(rest)
        }
    }
}

/// Reads a query as a server would: splits it, decodes it, and resolves the brackets.
enum QueryReader {
    private final class Node {
        var leaf: Tree?
        var list: [Tree] = []
        var children: [(key: String, node: Node)] = []

        func child(_ key: String) -> Node {
            if let found = children.first(where: { $0.key == key }) { return found.node }
            children.append((key, Node()))
            return children[children.count - 1].node
        }

        var tree: Tree {
            if let leaf { return leaf }
            if !list.isEmpty { return .array(list) }
            if !children.isEmpty, children.allSatisfy({ Int($0.key) != nil }) {
                return .array(children.map(\.node.tree))
            }
            return .object(Dictionary(children.map { ($0.key, $0.node.tree) }) { first, _ in first })
        }
    }

    static func read(_ text: String, form: Bool) -> Tree? {
        let root = Node()
        for pair in text.split(separator: "&") {
            let sides = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard let name = decode(sides[0], form) else { return nil }
            var value = Tree.null
            if sides.count == 2 {
                guard let text = decode(sides[1], form) else { return nil }
                value = .text(text)
            }
            // The keys of the tests contain no brackets.
            var parts = name.unicodeScalars.split(separator: "[").map { String(String.UnicodeScalarView($0)) }
            for index in parts.indices.dropFirst() {
                guard parts[index].unicodeScalars.last == "]" else { return nil }
                parts[index].unicodeScalars.removeLast()
            }
            var node = root
            for part in parts.dropLast() { node = node.child(part) }
            if parts.count > 1, parts[parts.count - 1].isEmpty {
                node.list.append(value)
            } else {
                node.child(parts[parts.count - 1]).leaf = value
            }
        }
        return root.tree
    }

    private static func decode(_ text: Substring, _ form: Bool) -> String? {
        (form ? text.replacingOccurrences(of: "+", with: "%20") : String(text)).removingPercentEncoding
    }
}
