import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("ResponseDecoder")
struct ResponseDecoderTests {
    private struct Event: Codable, Equatable, Sendable {
        var madeAt: Date
    }

    private func response(_ body: String, type: String? = nil) -> NetworkResponse {
        var headers = HTTPHeaders()
        headers["Content-Type"] = type
        return NetworkResponse(headers: headers, body: Data(body.utf8))
    }

    @Test("RSP-2: decode uses the decoder of the answer")
    func decoderOfTheAnswer() throws {
        let body = #"{"made_at":"1970-01-01T00:00:01Z"}"#
        var answer = response(body)
        #expect(throws: NetworkError.self) { try answer.decode(Event.self) }
        // As the message of the error says.
        for decoder: ResponseDecoder in [
            .json(keys: .convertFromSnakeCase), .json(dates: .rfc3339, keys: .convertFromSnakeCase),
        ] {
            answer.decoder = decoder
            try expect(answer.decode(Event.self), equals: Event(madeAt: Date(timeIntervalSince1970: 1)))
        }
        answer.decoder = ResponseDecoder.json {
            let decoder = JSONDecoder()
            decoder.dateDecodingStrategy = .iso8601
            decoder.keyDecodingStrategy = .convertFromSnakeCase
            return decoder
        }
        try expect(answer.decode(Event.self), equals: Event(madeAt: Date(timeIntervalSince1970: 1)))
    }

    @Test(
        "RSP-2: a missing key that is there in snake case is told, where that would have been read",
        arguments: [
            (#"{"made_at":1}"#, #"; there is "made_at", which keys: .convertFromSnakeCase would find"#),
            (#"{"made-at":1}"#, ""), (#"{"MADE":1}"#, ""), (#"{"made":{"made_at":1}}"#, ""), ("{}", ""),
        ]
    )
    func snakeCase(_ body: String, _ hint: String) throws {
        let error = #expect(throws: NetworkError.self) { try response("[\(body)]").decode([Event].self) }
        expect(error?.message, equals: #"[0]: no value for key "madeAt""# + hint)
        let plist = try PropertyListEncoder().encode(["made_at": 1])
        let other = NetworkResponse(body: plist)
        let unfit = #expect(throws: NetworkError.self) { try other.decode(Event.self, with: .propertyList) }
        expect(unfit?.message, equals: #"no value for key "madeAt""#)
    }

    private struct GetSession: APIRequest {
        struct Item: Decodable, Sendable { var accessToken: String }
        let api = "session"
        let params = ["token": "s3cret"]
    }

    @Test("RSP-6: an answer that cannot be decoded names host, path and key, and no secrets")
    func namesRequest() async throws {
        let server = InMemoryTransport()
        server.route("GET", "/v1/session") { _ in .json(["access_token": "s3cret"]) }
        let url = try #require(URL(string: "https://api.example.com/v1"))
        let service = EasyNetworkService(HostConfiguration(baseURL: url, transport: server))
        let error = await #expect(throws: NetworkError.self) {
            try await NetworkQueue().perform(GetSession(), service: service)
        }
        let text = try #require(error?.errorDescription)
        expect(text.contains("accessToken") && text.contains(#""access_token", which keys: .convertFromSnakeCase"#))
        expect(text.contains("GET https://api.example.com/v1/session)"), "\(text)")
        expect(!text.contains("s3cret"))
    }

    @Test(
        "RSP-2: dates of RFC 3339 with fractions of seconds and without",
        arguments: [
            ("2024-02-29T12:00:00Z", 1_709_208_000), ("2024-02-29T12:00:00.25Z", 1_709_208_000.25),
            ("2024-02-29T13:00:00+01:00", 1_709_208_000), ("2024-02-29T12:00:00.5-00:30", 1_709_209_800.5),
        ]
    )
    func dates(_ text: String, _ seconds: Double) throws {
        let decoder = ResponseDecoder.json(dates: .rfc3339)
        let date = try response(#"["\#(text)"]"#).decode([Date].self, with: decoder)
        expect(abs(date[0].timeIntervalSince1970 - seconds) < 0.001)
        let error = #expect(throws: NetworkError.self) {
            try response(#"["2024-13-01"]"#).decode([Date].self, with: decoder)
        }
        expect(error?.message, equals: #"[0]: "2024-13-01" is not a date of RFC 3339"#)
    }

    @Test("RSP-2: the error of a custom decoder becomes a NetworkError that names the place")
    func ownDecoder() throws {
        let lines = ResponseDecoder { _, _ in
            throw DecodingError.dataCorrupted(.init(codingPath: [], debugDescription: "no lines at all."))
        }
        let circular = ResponseDecoder { type, response in try response.decode(type) }
        let error = #expect(throws: NetworkError.self) { try response("a\nb").decode(Int.self, with: lines) }
        expect(error?.code, equals: .cannotParseResponse)
        expect(error?.message, equals: "no lines at all")
        expect(error?.responseBody, equals: Data("a\nb".utf8))
        var answer = response("7")
        answer.decoder = circular
        try expect(answer.decode(Int.self), equals: 7)
        try expect(answer.decode(Int?.self), equals: 7)
        let wrong = #expect(throws: NetworkError.self) {
            try answer.decode(Int.self, with: ResponseDecoder { _, _ in "7" })
        }
        expect(wrong?.message, equals: "the decoder returned a String instead of a Int")
    }

    @Test("RSP-2: the first of several readers that fits the answer")
    func firstReader() throws {
        enum Answer: Equatable { case number(Int), names([String]), text(String) }
        func read(_ body: String) throws -> Answer {
            try response(body).decodeFirst([
                { .number(try $0.decode(Int.self)) }, { .names(try $0.decode([String].self)) },
                { .text(try $0.text()) },
            ])
        }
        try expect(read("7"), equals: .number(7))
        try expect(read(#"["a"]"#), equals: .names(["a"]))
        try expect(read("hello"), equals: .text("hello"))
        let error = #expect(throws: NetworkError.self) {
            try response("hello").decodeFirst([{ try $0.decode(Int.self) }, { try $0.decode([Int].self)[0] }])
        }
        let reason = #"the body is not JSON: expected a value, found "h" at line 1, column 1"#
        expect(error?.message, equals: "all readers failed: \(reason); \(reason)")
        expect((error?.underlying as? NetworkError)?.code, equals: .cannotParseResponse)
        let none = #expect(throws: NetworkError.self) {
            try response("").decodeFirst([(NetworkResponse) throws -> Int]())
        }
        expect(none?.code, equals: .cannotParseResponse)
        // A host can have the same decoder for JSON and property lists.
        let either = ResponseDecoder { type, response in
            try response.decodeFirst([{ try $0.decode(type) }, { try $0.decode(type, with: .propertyList) }])
        }
        let event = Event(madeAt: Date(timeIntervalSinceReferenceDate: 5))
        for body in [Data(#"{"madeAt":5}"#.utf8), try PropertyListEncoder().encode(event)] {
            var answer = NetworkResponse(body: body)
            answer.decoder = either
            try expect(answer.decode(Event.self), equals: event)
        }
    }

    @Test("RSP-4: a lenient array leaves out elements that cannot be decoded, and reports index and place")
    func lenient() throws {
        struct User: Decodable, Equatable {
            var id: Int
            var at: Date
        }
        struct Page: Decodable { var users: LenientArray<User> }
        var answer = response(#"[{"id":1,"at":0},{"id":"2","at":0},null,{"id":4,"at":0},[],{"at":0}]"#)
        let users = try answer.decode(LenientArray<User>.self)
        expect(users.items.map(\.id), equals: [1, 4])
        expect(users.failures.map(\.index), equals: [1, 2, 4, 5])
        let messages = users.failures.map { ($0.error as? NetworkError)?.message }
        expect(messages[0]?.hasPrefix("[1].id: expected Int"), equals: true)
        expect(messages[1]?.hasPrefix("[2]: expected object"), equals: true)
        expect(messages[3], equals: #"[5]: no value for key "id""#)
        answer = response(#"[{"id":1,"at":"1970-01-01T00:00:01Z"},{}]"#)
        answer.decoder = ResponseDecoder.json(dates: .rfc3339)
        try expect(
            answer.decode(LenientArray<User>.self).items,
            equals: [User(id: 1, at: Date(timeIntervalSince1970: 1))]
        )
        try expect(answer.decode(LenientArray<Date>.self).items.isEmpty)
        let page = try response(#"{"users":[{"id":1,"at":0},{}]}"#).decode(Page.self)
        expect(page.users.items.count, equals: 1)
        expect(page.users.failures.map(\.index), equals: [1])
        let missing = page.users.failures[0].error as? NetworkError
        expect(missing?.code, equals: .cannotParseResponse)
        expect(missing?.message, equals: #"users[1]: no value for key "id""#)
        expect(missing?.underlying is DecodingError)
        #expect(throws: NetworkError.self) { try response("{}").decode(LenientArray<Int>.self) }
        try expect(response("[]").decode(LenientArray<Int>.self).failures.isEmpty)
    }

    @Test("RSP-4: dates in a lenient array are read with the decoder's strategy")
    func lenientDates() throws {
        var answer = response(#"["1970-01-01T00:00:01Z","yesterday",7]"#)
        answer.decoder = ResponseDecoder.json(dates: .rfc3339)
        let dates = try answer.decode(LenientArray<Date>.self)
        expect(dates.items, equals: [Date(timeIntervalSince1970: 1)])
        expect(dates.failures.map(\.index), equals: [1, 2])
    }

    @Test("RSP-2: hostile JSON is one error")
    func adversarialJSON() throws {
        struct Deep: Decodable {
            init(from decoder: any Decoder) throws {
                var container = try decoder.unkeyedContainer()
                while !container.isAtEnd { _ = try container.decode(Deep.self) }
            }
        }
        let deep = String(repeating: "[", count: 200_000) + String(repeating: "]", count: 200_000)
        #expect(throws: NetworkError.self) { try response(deep).json() }
        #expect(throws: NetworkError.self) { try response(deep).decode(Deep.self) }
        #expect(throws: NetworkError.self) { try response(deep).decode(LenientArray<Deep>.self) }
        let cut = Data(#"["é"#.utf8.dropLast())
        #expect(throws: NetworkError.self) { try NetworkResponse(body: cut).json() }
        #expect(throws: NetworkError.self) { try NetworkResponse(body: cut).decode([String].self) }
        #expect(throws: NetworkError.self) { try response(#"["\ud800"]"#).decode([String].self) }
        #expect(throws: NetworkError.self) { try response("1e999").decode(Double.self) }
    }

    @Test("RSP-2: every day from 1600 to 2400 is the day it is")
    func days() throws {
        // Counts the days from 1600-01-01, which is 135140 days before 1970.
        var expected = -135_140
        for year in 1_600..<2_400 {
            let isLeap = year % 4 == 0 && year % 100 != 0 || year % 400 == 0
            for (index, length) in [31, isLeap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31].enumerated() {
                for day in [1, length] {
                    let text = "\(year)-\(index < 9 ? "0" : "")\(index + 1)-\(day < 10 ? "0" : "")\(day)T00:00:00Z"
                    let date = Date(rfc3339Text: text)
                    expect(date?.timeIntervalSince1970, equals: Double((expected + day - 1) * 86_400), "\(text)")
                }
                expected += length
            }
        }
        expect(Date(rfc3339Text: "2000-01-01T00:00:00Z")?.timeIntervalSince1970, equals: 946_684_800)
        expect(Date(rfc3339Text: "0000-01-01T00:00:00Z")?.timeIntervalSince1970, equals: -62_167_219_200)
        expect(Date(rfc3339Text: "9999-12-31t23:59:60z")?.timeIntervalSince1970, equals: 253_402_300_800)
        for text in [
            "", "2024-02-30T00:00:00Z", "2023-02-29T00:00:00Z", "1900-02-29T00:00:00Z", "2024-00-01T00:00:00Z",
            "2024-01-01T24:00:00Z", "2024-01-01T00:60:00Z", "2024-01-01T00:00:61Z", "2024-01-01T00:00:00",
            "2024-01-01T00:00:00.Z", "2024-01-01T00:00:00+0100", "2024-01-01T00:00:00Z ", "2024-1-1T00:00:00Z",
            "2024-01-01", "+024-01-01T00:00:00Z", "2024-01-01T00:00:00+24:00",
        ] { expect(Date(rfc3339Text: text) == nil, "\(text)") }
    }
}
