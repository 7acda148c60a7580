import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("QueryEncoder, styles")
struct QueryStyleTests {
    private func text(
        _ params: [String: Any],
        _ encoder: QueryEncoder,
        isForm: Bool = false
    ) throws -> String {
        try encoder.encode(params, isForm: isForm)
            .replacingOccurrences(of: "%5B", with: "[")
            .replacingOccurrences(of: "%5D", with: "]")
    }

    @Test("REQ-2: dates as a closure makes them; in a query and in JSON alike")
    func dates() throws {
        typealias Dates = @Sendable (Date) -> Any
        let day: Dates = { String($0.formatted(.iso8601).prefix(10)) }
        let table: [(Dates?, TimeInterval, String, String)] = [
            (nil, 1.5, "1970-01-01T00%3A00%3A01.500Z", #""1970-01-01T00:00:01.500Z""#),
            ({ $0.timeIntervalSince1970 }, 1_782_907_200, "1782907200", "1782907200"),
            ({ $0.timeIntervalSince1970 }, -0.5, "-0.5", "-0.5"),
            ({ Int64($0.timeIntervalSince1970 * 1_000) }, 1_782_907_200.25, "1782907200250", "1782907200250"),
            (day, 1_782_907_200, "2026-07-01", #""2026-07-01""#), ({ _ in NSNull() }, 0, "", "null"),
        ]
        for (dates, seconds, query, json) in table {
            let encoder = QueryEncoder(encodeDate: dates)
            let date = Date(timeIntervalSince1970: seconds)
            try expect(encoder.encode(["d": date]), equals: (query.isEmpty ? "d" : "d=\(query)"))
            var request = AnyRequest(method: .post, query: .json, makeParams: { ["d": date] })
            request.queryEncoder = encoder
            try expect(Built(request).text, equals: #"{"d":\#(json)}"#)
            request.makeParams = { nil }
            request.encodableParams = ["d": date]
            try expect(Built(request).text, equals: #"{"d":\#(json)}"#)
        }
    }

    @Test("REQ-2: a date outside of the years 1 to 9999, and one that stays a date, are refused")
    func refusedDates() {
        for seconds in [-62_135_596_801, 253_402_300_800, .nan, .infinity] as [TimeInterval] {
            let error = #expect(throws: NetworkError.self) {
                try QueryEncoder().encode(["a": ["d": Date(timeIntervalSince1970: seconds)]])
            }
            expect(error?.message?.hasPrefix("parameter a.d: a date"), equals: true)
        }
        let error = #expect(throws: NetworkError.self) { try QueryEncoder(encodeDate: { $0 }).encode(["a": Date()]) }
        expect(error?.message?.hasPrefix("parameter a: values are nested more than 100 levels deep"), equals: true)
    }

    @Test("REQ-2: null as the key alone, as an empty text, as a word, or left out")
    func nulls() throws {
        let params: [String: Any] = ["a": NSNull(), "b": [1, nil, 2] as [Int?], "c": ["d": NSNull()], "": NSNull()]
        let table: [(String?, String)] = [
            ("", "=&a&b[]=1&b[]&b[]=2&c[d]"), ("=", "=&a=&b[]=1&b[]=&b[]=2&c[d]="),
            ("=null", "=null&a=null&b[]=1&b[]=null&b[]=2&c[d]=null"), (nil, "b[]=1&b[]=2"),
        ]
        for (nulls, expected) in table { try expect(text(params, QueryEncoder(nullSuffix: nulls)), equals: expected) }
        try expect(text(params, QueryEncoder(arrayStyle: .indices, nullSuffix: nil)), equals: "b[0]=1&b[2]=2")
    }

    @Test("REQ-2: the key of an element is repeated, with or without brackets, or has an index")
    func arrays() throws {
        let params: [String: Any] = ["a": [1, 2], "b": [["x": 1]]]
        let table: [(QueryEncoder.ArrayStyle, String)] = [
            (.brackets, "a[]=1&a[]=2&b[0][x]=1"), (.repeated, "a=1&a=2&b[0][x]=1"),
            (.indices, "a[0]=1&a[1]=2&b[0][x]=1"),
        ]
        for (arrays, expected) in table { try expect(text(params, QueryEncoder(arrayStyle: arrays)), equals: expected) }
    }

    @Test("REQ-2: a space is %20 in a query and + in a form; a plus is always escaped")
    func spaces() throws {
        try expect(QueryEncoder().encode(["a b": "c + d"]), equals: "a%20b=c%20%2B%20d")
        try expect(QueryEncoder().encode(["a b": "c + d"], isForm: true), equals: "a+b=c+%2B+d")
    }

    @Test("REQ-2: the article's example: several styles together")
    func example() throws {
        let encoder = QueryEncoder(arrayStyle: .repeated, usesDotNotation: true, nullSuffix: nil)
        let params: [String: Any] = ["q": "a b", "ids": [1, 2], "owner": ["name": "ada"], "page": Int?.none as Any]
        try expect(encoder.encode(params), equals: "ids=1&ids=2&owner.name=ada&q=a%20b")
    }

    @Test("REQ-2: keys with dots")
    func keys() throws {
        let params: [String: Any] = ["a": ["b": ["c d": 1]], "l": [1, 2], "m": [["x": 1]]]
        try expect(text(params, QueryEncoder(usesDotNotation: true)), equals: "a.b.c%20d=1&l[]=1&l[]=2&m[0].x=1")
    }

    /// A request without a query encoder.
    private struct Unsaid: BaseAPIRequest {
        let api = "a"
        var method = NetworkService.Method.get
        var params: [String: [Date]] { ["l": [Date(timeIntervalSince1970: 1)]] }
    }

    @Test("REQ-2, CFG-3: the host's encoder writes the parameters of requests without an encoder")
    func host() throws {
        let host = HostConfiguration(baseURL: URL(string: "https://h")) {
            $0.queryEncoder = QueryEncoder(arrayStyle: .repeated, encodeDate: { $0.timeIntervalSince1970 })
        }
        func built(_ request: some BaseAPIRequest) throws -> TransportRequest {
            try RequestBuilder.build(request, for: host)
        }
        try expect(built(Unsaid()).url.query, equals: "l=1")
        try expect(built(Unsaid(method: .post)).body, equals: .data(Data("l=1".utf8)))
        let own = AnyRequest(makeParams: { ["l": [1]] }, queryEncoder: QueryEncoder())
        try expect(built(own).url.query, equals: "l%5B%5D=1")
        let altered = RequestOptions(queryEncoder: QueryEncoder(arrayStyle: .indices))
        let message = try RequestBuilder.build(Unsaid(), altered, for: host)
        expect(message.url.query, equals: "l%5B0%5D=1970-01-01T00%3A00%3A01Z")
        try expect(Built(Unsaid()).message.url.query, equals: "l%5B%5D=1970-01-01T00%3A00%3A01Z")
    }

    @Test("REQ-2: a request's encoder writes its query and its form; an existing query stays, the fragment is last")
    func request() throws {
        var request = AnyRequest(
            api: "users?kept=%20#end",
            makeParams: { ["d": true, "n": NSNull(), "q": "x y"] }
        )
        request.queryEncoder = QueryEncoder(usesNumericBools: true, nullSuffix: nil)
        try expect(Built(request).url, equals: "https://h/v1/users?kept=%20&d=1&q=x%20y#end")
        request.method = .post
        request.query = .form
        try expect(Built(request).text, equals: "d=1&q=x+y")
        try expect(Built(request).url, equals: "https://h/v1/users?kept=%20#end")
    }
}
