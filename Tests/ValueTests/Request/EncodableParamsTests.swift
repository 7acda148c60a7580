import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("Encodable parameters")
struct EncodableParamsTests {
    private enum Colour: String, Encodable { case red }

    private struct Filter: Encodable, Sendable {
        struct Range: Encodable, Sendable {
            var from = 1.0
            var to = Float(0.1)
        }

        var text = "a b/é"
        var flag = true
        var none: Int?
        var big = UInt64.max
        var small = Int8(-5)
        var price = Decimal(string: "12345678901234567.89")
        var date = Date(timeIntervalSince1970: 0.5)
        var bytes = Data([1, 2, 3])
        var url = URL(string: "https://h/?a=b")
        var id = UUID(uuidString: "6C2A8F6B-6B0E-4F0A-9E0B-1B8B0C5B5C11")
        var colour = Colour.red
        var range = Range()
        var list: [Int?] = [1, nil]
        var ranges = [Range()]
        var named = [1: "one"]
        var empty = Empty()
        struct Empty: Encodable, Sendable {}
    }

    private static let json =
        #"{"big":18446744073709551615,"bytes":"AQID","colour":"red","date":"1970-01-01T00:00:00.500Z","empty":{},"#
        + #""flag":true,"id":"6C2A8F6B-6B0E-4F0A-9E0B-1B8B0C5B5C11","list":[1,null],"named":{"1":"one"},"#
        + #""price":12345678901234567.89,"range":{"from":1,"to":0.1},"ranges":[{"from":1,"to":0.1}],"small":-5,"#
        + #""text":"a b/é","url":"https://h/?a=b"}"#

    private static let query =
        "big=18446744073709551615&bytes=AQID&colour=red&date=1970-01-01T00%3A00%3A00.500Z&flag=true"
        + "&id=6C2A8F6B-6B0E-4F0A-9E0B-1B8B0C5B5C11&list%5B%5D=1&list%5B%5D&named%5B1%5D=one&price=12345678901234567.89"
        + "&range%5Bfrom%5D=1&range%5Bto%5D=0.1&ranges%5B0%5D%5Bfrom%5D=1&ranges%5B0%5D%5Bto%5D=0.1&small=-5"
        + "&text=a%20b%2F%C3%A9&url=https%3A%2F%2Fh%2F%3Fa%3Db"

    @Test("REQ-2, REQ-3: an Encodable follows query and the rules of params")
    func places() throws {
        var request = AnyRequest(method: .post, encodableParams: Filter())
        try expect(Built(request).url, equals: "https://h/v1/users?\(Self.query)")
        request.query = .json
        try expect(Built(request).text, equals: Self.json)
        try expect(Built(request).contentType, equals: "application/json")
        request.query = .form
        try expect(Built(request).text, equals: Self.query.replacingOccurrences(of: "%20", with: "+"))
        request.queryEncoder = QueryEncoder(encodeDate: { $0.timeIntervalSince1970 })
        try expect(Built(request).text?.contains("bytes=AQID&colour=red&date=0.5&"), equals: true)
    }

    @Test("REQ-2: the article's example: a nil property is left out, an existing query stays")
    func example() throws {
        struct Filter: Encodable {
            var tags = ["bug", "linux"]
            var since = Date(timeIntervalSince1970: 1_782_907_200)
            var isOpen: Bool?
        }
        try expect(
            Built(AnyRequest(api: "issues?sort=new", encodableParams: Filter())).url,
            equals: "https://h/v1/issues?sort=new&since=2026-07-01T12%3A00%3A00Z&tags%5B%5D=bug&tags%5B%5D=linux"
        )
    }

    @Test("CFG-5, REQ-2: a filter of the host sees and changes encodable parameters")
    func filters() throws {
        struct Values: Encodable {
            var gone = 1
            var list = [1, nil]
            var date = Date(timeIntervalSince1970: 0)
        }
        let base = try #require(URL(string: "https://h/v1"))
        let host = HostConfiguration(baseURL: base) { host in
            host.filters = [{ $0.parameters["stamp"] = $0.parameters.count }, { $0.parameters["gone"] = nil }]
        }
        let message = try RequestBuilder.build(AnyRequest(encodableParams: Values()), for: host)
        expect(message.url.query, equals: "date=1970-01-01T00%3A00%3A00Z&list%5B%5D=1&list%5B%5D&stamp=3")
        let bare = try RequestBuilder.build(AnyRequest(), for: HostConfiguration(baseURL: base) { $0.filters = [] })
        expect(bare.url.query == nil)
    }

    private class Base: Encodable, @unchecked Sendable {  // Nobody alters it.
        let base = 1
    }

    private final class Derived: Base, @unchecked Sendable {  // As its superclass.
        private enum Key: CodingKey { case own, other, list }

        override func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: Key.self)
            try container.encode(2, forKey: .own)
            try super.encode(to: container.superEncoder())
            try super.encode(to: encoder)
            var other = container.nestedContainer(keyedBy: Key.self, forKey: .other)
            try other.encodeNil(forKey: .own)
            var list = container.nestedUnkeyedContainer(forKey: .list)
            try list.encode("x")
            try list.encodeNil()
            var inner = list.nestedContainer(keyedBy: Key.self)
            try inner.encode(list.count, forKey: .own)
            var array = list.nestedUnkeyedContainer()
            try array.encode(contentsOf: [1, 2])
            try super.encode(to: list.superEncoder())
        }
    }

    @Test("REQ-2: superclasses and nested containers find their places")
    func containers() throws {
        let request = AnyRequest(method: .post, query: .json, encodableParams: Derived())
        try expect(
            Built(request).text,
            equals:
                #"{"base":1,"list":["x",null,{"own":3},[1,2],{"base":1}],"other":{"own":null},"own":2,"super":{"base":1}}"#
        )
    }

    private final class Circle: Encodable, @unchecked Sendable {  // Altered before it is shared only.
        var next: Circle?
    }

    private struct Itself: Encodable, Sendable {
        func encode(to encoder: any Encoder) throws {
            var container = encoder.singleValueContainer()
            try container.encode(self)
        }
    }

    private struct Wrapper: Encodable, Sendable {
        let value: any Encodable & Sendable

        func encode(to encoder: any Encoder) throws {
            var container = encoder.singleValueContainer()
            try container.encode(value)
        }
    }

    private struct Failing: Encodable, Sendable {
        func encode(to encoder: any Encoder) throws { throw CocoaError(.fileNoSuchFile) }
    }

    @Test("REQ-3: an Encodable that holds itself is one error, as parameters and as a body")
    func circles() {
        let circle = Circle()
        circle.next = circle
        defer { circle.next = nil }
        for query in [NetworkService.QueryType.path, .form, .json] {
            let text = Built.failure(AnyRequest(method: .post, query: query, encodableParams: circle))
            expect(text.contains(": next.next.next.") && text.contains("more than 100 levels deep"), "\(text)")
            expect(
                Built.failure(AnyRequest(method: .post, query: query, encodableParams: Itself())).contains(
                    "100 levels deep"
                )
            )
        }
        let bodies: [RequestBody] = [
            .json(circle), .json([circle], encoder: JSONEncoder()), .json(Itself()), .propertyList(circle),
        ]
        for body in bodies {
            expect(Built.failure(AnyRequest(method: .post, body: body)).contains("more than 100 levels deep"))
        }
    }

    @Test("REQ-3: a hundred levels pass")
    func depth() throws {
        func chain(_ length: Int) -> Circle {
            (1..<length).reduce(Circle()) { inner, _ in
                let outer = Circle()
                outer.next = inner
                return outer
            }
        }
        #expect(throws: Never.self) { try Built(AnyRequest(method: .post, query: .json, encodableParams: chain(100))) }
        #expect(throws: Never.self) { try Built(AnyRequest(method: .post, body: .json(chain(100)))) }
        // Wrapper types do not count as levels.
        let wrapped = (0..<99).reduce(Wrapper(value: 1)) { inner, _ in Wrapper(value: [inner]) }
        #expect(throws: Never.self) { try Built(AnyRequest(method: .post, body: .json(wrapped))) }
        expect(!Built.failure(AnyRequest(method: .post, query: .json, encodableParams: chain(101))).isEmpty)
        expect(!Built.failure(AnyRequest(method: .post, body: .json(chain(103)))).isEmpty)
    }

    @Test(
        "REQ-3: an invalid value is an error with its place; so is a value without keys"
    )
    func refusals() {
        let table: [(any Encodable & Sendable, String)] = [
            (["a": [1, Double.nan]], "parameter a[1]: nan cannot be sent"), ([1, 2], "Array<Int> have no keys"),
            (5, "Int have no keys"), (Date(), "Date have no keys"), (Failing(), "parameters of type Failing cannot be"),
            (["d": Date(timeIntervalSince1970: 1e300)], "parameter d: a date outside"),
        ]
        for (value, fragment) in table {
            let text = Built.failure(AnyRequest(encodableParams: value))
            expect(text.contains(fragment), "\(text)")
        }
        let body = AnyRequest(method: .post, query: .form, encodableParams: ["b": 2], body: .text("x"))
        expect(Built.failure(body).contains("has a body, so params cannot be sent"))
        expect(Built.failure(AnyRequest(query: .json, encodableParams: ["b": 2])).contains("GET request takes no body"))
    }

    @Test("REQ-2: random values become the same parameters in both ways", arguments: 1...20 as ClosedRange<UInt64>)
    func agreement(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        let text = String((0..<8).compactMap { _ in "ab é&=+😀\r\n\u{0}".randomElement(using: &generator) })
        let numbers = (0..<5).map { _ in Double(Int64.random(in: .min ... .max, using: &generator)) / 1_000 }
        let flags = (0..<5).map { _ in Bool.random(using: &generator) }
        struct Values: Encodable, Sendable {
            var text: String
            var numbers: [Double]
            var inner: [String: [Bool]]
        }
        let values = Values(text: text, numbers: numbers, inner: [text + "k": flags])
        let params: @Sendable () -> [String: Any]? = {
            ["text": text, "numbers": numbers, "inner": [text + "k": flags]]
        }
        for query in [NetworkService.QueryType.path, .form, .json] {
            let one = try Built(AnyRequest(method: .post, query: query, makeParams: params))
            let other = try Built(AnyRequest(method: .post, query: query, encodableParams: values))
            expect(one.message.url == other.message.url && one.data == other.data, "seed \(seed), \(query)")
        }
    }
}
