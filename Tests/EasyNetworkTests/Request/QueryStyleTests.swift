import Foundation
import Testing

@testable import EasyNetwork

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

    @Test(
        "REQ-2: dates as seconds, as milliseconds, by a pattern; in a query and in JSON alike",
        arguments: [
            (.iso8601, 1.5, "1970-01-01T00%3A00%3A01.500Z", #""1970-01-01T00:00:01.500Z""#),
            (.secondsSince1970, 0, "0", "0"), (.secondsSince1970, 1_782_907_200, "1782907200", "1782907200"),
            (.secondsSince1970, 1.123, "1.123", "1.123"), (.secondsSince1970, -0.5, "-0.5", "-0.5"),
            (.secondsSince1970, 1_782_907_200.25, "1782907200.25", "1782907200.25"),
            (.millisecondsSince1970, 1.123, "1123", "1123"), (.millisecondsSince1970, -0.001, "-1", "-1"),
            (.millisecondsSince1970, 253_402_300_799, "253402300799000", "253402300799000"),
            (.pattern("yyyy-MM-dd"), 1_782_907_200, "2026-07-01", #""2026-07-01""#),
            (.pattern("yyyy-MM-dd"), -30_610_224_000, "1000-01-01", #""1000-01-01""#),
            (.pattern("EEE, dd MMM yyyy HH:mm"), 0, "Thu%2C%2001%20Jan%201970%2000%3A00", #""Thu, 01 Jan 1970 00:00""#),
        ] as [(QueryEncoder.DateStyle, TimeInterval, String, String)]
    )
    func dates(style: QueryEncoder.DateStyle, seconds: TimeInterval, query: String, json: String) throws {
        let encoder = QueryEncoder(dates: style)
        let params = ["d": Date(timeIntervalSince1970: seconds)]
        #expect(try encoder.encode(params) == "d=\(query)")
        var request = AnyRequest(method: .post, query: .json, makeParams: { params })
        request.queryEncoder = encoder
        #expect(try Built(request).text == #"{"d":\#(json)}"#)
    }

    @Test("REQ-2: a date outside of the years 0 to 9999 is refused in every style")
    func dateRange() {
        for style in [QueryEncoder.DateStyle.iso8601, .secondsSince1970, .millisecondsSince1970, .pattern("yyyy")] {
            for seconds in [-62_167_219_201, 253_402_300_800, .nan, .infinity] as [TimeInterval] {
                let error = #expect(throws: NetworkError.self) {
                    try QueryEncoder(dates: style).encode(["a": ["d": Date(timeIntervalSince1970: seconds)]])
                }
                #expect(error?.message?.hasPrefix("parameter a.d: a date") == true)
            }
        }
    }

    @Test("REQ-2: bytes as Base64, for URLs, and in hexadecimal")
    func data() throws {
        let bytes = Data([0xFB, 0xEF, 0xFF, 0x00])
        #expect(try text(["d": bytes], QueryEncoder()) == "d=%2B%2B%2F%2FAA%3D%3D")
        #expect(try text(["d": bytes], QueryEncoder(data: .base64URL)) == "d=--__AA")
        #expect(try text(["d": bytes], QueryEncoder(data: .hexadecimal)) == "d=fbefff00")
        #expect(try text(["d": Data()], QueryEncoder(data: .hexadecimal)) == "d=")
    }

    @Test("REQ-2: null as the key alone, as an empty text, as a word, or left out")
    func nulls() throws {
        let params: [String: Any] = ["a": NSNull(), "b": [1, nil, 2] as [Int?], "c": ["d": NSNull()], "": NSNull()]
        let table: [(QueryEncoder.NullStyle, String)] = [
            (.key, "=&a&b[]=1&b[]&b[]=2&c[d]"), (.empty, "=&a=&b[]=1&b[]=&b[]=2&c[d]="),
            (.word, "=null&a=null&b[]=1&b[]=null&b[]=2&c[d]=null"), (.omitted, "b[]=1&b[]=2"),
        ]
        for (style, expected) in table { #expect(try text(params, QueryEncoder(nulls: style)) == expected) }
        #expect(try text(params, QueryEncoder(arrays: .indices, nulls: .omitted)) == "b[0]=1&b[2]=2")
    }

    @Test("REQ-2: a space is %20 or + in keys and values; a plus is always escaped")
    func spaces() throws {
        let params = ["a b": "c + d"]
        let table: [(QueryEncoder.SpaceStyle, Bool, String)] = [
            (.automatic, false, "a%20b=c%20%2B%20d"), (.automatic, true, "a+b=c+%2B+d"),
            (.plus, false, "a+b=c+%2B+d"), (.plus, true, "a+b=c+%2B+d"),
            (.percent, false, "a%20b=c%20%2B%20d"), (.percent, true, "a%20b=c%20%2B%20d"),
        ]
        for (style, isForm, expected) in table {
            #expect(try QueryEncoder(spaces: style).encode(params, isForm: isForm) == expected)
        }
    }

    @Test("REQ-2: the article's example: several styles together")
    func example() throws {
        let encoder = QueryEncoder(
            arrays: .repeated,
            dates: .secondsSince1970,
            nulls: .omitted,
            spaces: .plus,
            keys: .dots
        )
        let params: [String: Any] = ["q": "a b", "ids": [1, 2], "owner": ["name": "ada"], "page": Int?.none as Any]
        #expect(try encoder.encode(params) == "ids=1&ids=2&owner.name=ada&q=a+b")
    }

    @Test("REQ-2: keys with dots")
    func keys() throws {
        let params: [String: Any] = ["a": ["b": ["c d": 1]], "l": [1, 2], "m": [["x": 1]]]
        #expect(try text(params, QueryEncoder(keys: .dots)) == "a.b.c%20d=1&l[]=1&l[]=2&m[0].x=1")
    }

    /// A request that says nothing of how its parameters are written.
    private struct Unsaid: BaseAPIRequest {
        let api = "a"
        var method = NetworkService.Method.get
        var encodableParams: (any Encodable & Sendable)? { ["l": [Date(timeIntervalSince1970: 1)]] }
    }

    private struct Altered: RequestWrapper {
        let wrapped: any BaseAPIRequest
        var queryEncoder: QueryEncoder {
            var encoder = wrapped.queryEncoder
            encoder.arrays = .indices
            return encoder
        }
    }

    @Test("REQ-2, CFG-3: the host's encoder writes the parameters of requests without an encoder")
    func host() throws {
        let host = HostConfiguration(baseURL: URL(string: "https://h")) {
            $0.queryEncoder = QueryEncoder(arrays: .repeated, dates: .secondsSince1970)
        }
        func built(_ request: some BaseAPIRequest) throws -> TransportRequest {
            try RequestBuilder.build(request, for: host)
        }
        #expect(try built(Unsaid()).url.query == "l=1")
        #expect(try built(Unsaid(method: .post)).body == .data(Data("l=1".utf8)))
        let own = AnyRequest(makeParams: { ["l": [1]] }, queryEncoder: QueryEncoder())
        #expect(try built(own).url.query == "l%5B%5D=1")
        #expect(try built(Altered(wrapped: Unsaid())).url.query == "l%5B0%5D=1970-01-01T00%3A00%3A01Z")
        #expect(try Built(Unsaid()).message.url.query == "l%5B%5D=1970-01-01T00%3A00%3A01Z")
    }

    @Test("REQ-2: a request's encoder writes its query and its form; an existing query stays, the fragment is last")
    func request() throws {
        var request = AnyRequest(
            api: "users?kept=%20#end",
            makeParams: { ["d": Data([255]), "n": NSNull(), "q": "x y"] }
        )
        request.queryEncoder = QueryEncoder(data: .hexadecimal, nulls: .omitted, spaces: .plus)
        #expect(try Built(request).url == "https://h/v1/users?kept=%20&d=ff&q=x+y#end")
        request.method = .post
        request.query = .form
        #expect(try Built(request).text == "d=ff&q=x+y")
        #expect(try Built(request).url == "https://h/v1/users?kept=%20#end")
    }
}
