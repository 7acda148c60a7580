import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("DateFormat")
struct DateFormatTests {
    private func date(_ text: String, _ format: String, _ timeZone: TimeZone = .gmt) throws -> Date? {
        try DateFormat(format, timeZone: timeZone).date(text)
    }

    @Test(
        "RSP-2: dates in a format of a server's own",
        arguments: [
            ("2024-02-29 12:34:56", "yyyy-MM-dd HH:mm:ss", 1_709_210_096), ("29.02.2024", "dd.MM.yyyy", 1_709_164_800),
            ("29.2.2024", "d.M.y", 1_709_164_800), ("29.12.2024", "d.M.y", 1_735_430_400),
            ("20240229123456", "yyyyMMddHHmmss", 1_709_210_096), ("2024", "yyyy", 1_704_067_200),
            ("2024-02-29T12:34:56.250+0100", "yyyy-MM-dd'T'HH:mm:ss.SSSZ", 1_709_206_496.25),
            ("2024-02-29T12:34:56.25Z", "yyyy-MM-dd'T'HH:mm:ss.SSSZ", 1_709_210_096.25),
            ("2024-02-29T12:34:56-01:30", "yyyy-MM-dd'T'HH:mm:ssXXX", 1_709_215_496),
            ("2024-02-29 12:34:56 +01", "yyyy-MM-dd HH:mm:ss x", 1_709_206_496),
            ("Thu, 29 Feb 2024 12:34:56 GMT", "EEE, dd MMM yyyy HH:mm:ss zzz", 1_709_210_096),
            ("thursday, february 29, 2024", "EEEE, MMMM d, yyyy", 1_709_164_800),
            ("02/29/2024 12:34 PM", "MM/dd/yyyy hh:mm a", 1_709_210_040),
            ("02/29/2024 12:34 am", "MM/dd/yyyy hh:mm a", 1_709_166_840),
            ("2/9/2024 1:05 PM", "M/d/yyyy h:mm a", 1_707_483_900),
            ("year '24: 2024", "'year ''24: 'yyyy", 1_704_067_200), ("it's 2024", "'it''s' yyyy", 1_704_067_200),
            ("2024年02月29日", "yyyy年MM月dd日", 1_709_164_800),
            ("Thu 29 Feb 2024 GMT+01:00", "E d MMM yyyy ZZZZ", 1_709_161_200),
            ("9999-12-31 23:59:60", "yyyy-MM-dd HH:mm:ss", 253_402_300_800),
        ]
    )
    func formats(text: String, format: String, seconds: Double) throws {
        try expect(date(text, format)?.timeIntervalSince1970, equals: seconds)
    }

    @Test(
        "RSP-2: other texts are not dates of a format",
        arguments: [
            ("2024-02-30", "yyyy-MM-dd"), ("2023-02-29", "yyyy-MM-dd"), ("24-1-1", "yyyy-MM-dd"),
            ("24-01-01", "y-MM-dd"),
            ("2024-2-29", "yyyy-MM-dd"), ("2024-02-29 ", "yyyy-MM-dd"), (" 2024-02-29", "yyyy-MM-dd"), ("", "yyyy"),
            ("２０２４-02-29", "yyyy-MM-dd"), ("2024/02/29", "yyyy-MM-dd"), ("2024-13-01", "yyyy-MM-dd"),
            ("2024-01-01 24", "yyyy-MM-dd HH"), ("2024 13 PM", "yyyy hh a"), ("2024 0 AM", "yyyy h a"),
            ("2024 1 XM", "yyyy h a"), ("2024.", "yyyy.SSS"), ("Xyz 2024", "EEE yyyy"), ("Nev 2024", "MMM yyyy"),
            ("2024 PST", "yyyy zzz"), ("2024 +1", "yyyy Z"), ("2024 +01:", "yyyy Z"), ("2024 +24:00", "yyyy Z"),
            ("2024 ", "yyyy Z"), ("2024t", "yyyy'T'"), ("2024 0." + String(repeating: "1", count: 300), "yyyy '0.'S"),
        ]
    )
    func noDate(text: String, format: String) throws {
        try expect(date(text, format) == nil)
    }

    @Test(
        "RSP-2: a format that is not supported says what is wrong with it",
        arguments: [
            ("YYYY-MM-dd", "has the unsupported field \"YYYY\"; the year is yyyy"),
            ("yy-MM-dd", "has the unsupported field \"yy\""), ("yyyy-DD", "has the unsupported field \"DD\""),
            ("yyyy-MM-ddTHH:mm", "has the unsupported field \"T\""), ("", "has no year, which is yyyy"),
            ("yyyy MMMMM", "has the unsupported field \"MMMMM\""), ("yyyy 'at", "has an open quote"),
            ("MM/dd", "has no year, which is yyyy"), ("yyyy-MM-MM", "has the field \"MM\" a second time"),
            ("yyyy hh:mm", "has only one of h and a; the hour of 24 is HH"), ("yyyy HH h a", "has both h and H"),
            ("yyyy a", "has only one of h and a; the hour of 24 is HH"),
        ]
    )
    func invalid(format: String, problem: String) {
        let error = #expect(throws: NetworkError.self) { try DateFormat(format, timeZone: .gmt) }
        expect(error?.code, equals: .invalidRequest)
        expect(error?.message, equals: "the date format \"\(format)\" \(problem)")
    }

    @Test("RSP-2: a format has at most 100 bytes, and random ones trap nothing")
    func bounds() throws {
        let dashes = String(repeating: "-", count: 96)
        try expect(date("2024" + dashes, "yyyy" + dashes) != nil)
        let long = String(repeating: "y", count: 1_000_000)
        let error = #expect(throws: NetworkError.self) { try DateFormat(long, timeZone: .gmt) }
        expect(error?.message, equals: "the date format \"\(long.prefix(40))…\" is longer than 100 bytes")
        let seed = UInt64.random(in: 0...99_999)
        print("seed of DateFormatTests.bounds: \(seed)")
        var generator = SeededGenerator(seed: seed)
        func random(_ characters: [Character]) -> String {
            String(
                (0..<Int.random(in: 0...12, using: &generator)).map { _ in
                    characters[Int.random(in: 0..<characters.count, using: &generator)]
                }
            )
        }
        for _ in 0..<20_000 {
            let format = "yyyy" + random(Array("MMddEHhmsaSZXxz'' :-.T年"))
            _ = try? date("2024" + random(Array("0123456789 :-.'+ZGMTAP年")), format)
        }
    }

    @Test("RSP-2: texts without an offset are read in the time zone, by its rules of that day")
    func timeZones() throws {
        let format = "yyyy-MM-dd HH:mm"
        let berlin = try #require(TimeZone(identifier: "Europe/Berlin"))
        for (text, seconds) in [
            ("2024-02-29 12:00", 1_709_204_400), ("2024-07-01 12:00", 1_719_828_000),
            // Clocks go from 2 to 3, then from 3 back to 2.
            ("2024-03-31 01:59", 1_711_846_740), ("2024-03-31 03:00", 1_711_846_800),
            ("2024-03-31 02:30", 1_711_848_600),
            ("2024-10-27 01:59", 1_729_987_140), ("2024-10-27 02:30", 1_729_989_000),
            ("2024-10-27 03:00", 1_729_994_400),
        ] { try expect(date(text, format, berlin)?.timeIntervalSince1970, equals: Double(seconds), "\(text)") }
        // An offset in the text counts more.
        try expect(date("2024Z", "yyyyZ", berlin)?.timeIntervalSince1970, equals: 1_704_067_200)

        var generator = SeededGenerator(seed: 7)
        let formatter = DateFormatter()
        formatter.locale = Locale(identifier: "en_US_POSIX")
        formatter.dateFormat = "yyyy-MM-dd HH:mm:ss"
        for name in ["Europe/Berlin", "America/New_York", "Asia/Kathmandu", "Pacific/Apia", "Australia/Lord_Howe"] {
            let timeZone = try #require(TimeZone(identifier: name))
            formatter.timeZone = timeZone
            for _ in 0..<200 {
                let date = Date(timeIntervalSince1970: Double(Int.random(in: 0...2_000_000_000, using: &generator)))
                let text = formatter.string(from: date)
                let found = try #require(try self.date(text, "yyyy-MM-dd HH:mm:ss", timeZone))
                // Of a time that occurs twice it is the first.
                expect(formatter.string(from: found) == text && found <= date, "\(name) \(text)")
            }
        }
    }

    private struct Event: Decodable, Sendable {
        var at: Date
        var ends: Date?
    }

    /// Succeeds if the package's own decoder reads it.
    private struct Probe: Decodable {
        init(from decoder: any Decoder) throws {
            guard decoder is JSONIndexDecoder else { throw CancellationError() }
            _ = try decoder.singleValueContainer().decode(Date.self)
        }
    }

    private func response(_ body: String) -> NetworkResponse { NetworkResponse(body: Data(body.utf8)) }

    @Test("RSP-2: a decoder with a format reads by the index, also on several threads at once")
    func decoder() async throws {
        let decoder = ResponseDecoder.json(dates: .format("dd.MM.yyyy HH:mm"))
        let response = response(
            #"[{"at":"29.02.2024 12:34"},{"at":"01.03.2024 00:00","ends":null},{"at":"01\u002e03.2024 00:00"}]"#
        )
        await withTaskGroup(of: [Double].self) { group in
            for _ in 0..<8 {
                group.addTask {
                    let events = try? response.decode([Event].self, with: decoder)
                    return events?.map(\.at.timeIntervalSince1970) ?? []
                }
            }
            for await seconds in group { expect(seconds, equals: [1_709_210_040, 1_709_251_200, 1_709_251_200]) }
        }
        _ = try self.response(#""01.03.2024 00:00""#).decode(Probe.self, with: decoder)
        // Foundation's decoder reads the format too.
        let plain = JSONDecoder()
        plain.dateDecodingStrategy = .format("dd.MM.yyyy")
        let dates = try plain.decode([Date].self, from: Data(#"["29.02.2024"]"#.utf8))
        expect(dates, equals: [Date(timeIntervalSince1970: 1_709_164_800)])
    }

    @Test("RSP-2: a text that is no date of the format is an error that names place, text and format")
    func errors() {
        let decoder = ResponseDecoder.json(dates: .format("dd.MM.yyyy HH:mm"))
        let other = #expect(throws: NetworkError.self) {
            try response(#"[{"at":"29.02.2024"}]"#).decode([Event].self, with: decoder)
        }
        expect(other?.code, equals: .cannotParseResponse)
        expect(other?.message, equals: #"[0].at: "29.02.2024" is not a date of the format "dd.MM.yyyy HH:mm""#)
        let number = #expect(throws: NetworkError.self) { try response("[7]").decode([Date].self, with: decoder) }
        expect(number?.message?.hasPrefix("[0]: expected String but found"), equals: true)
        let unsupported = #expect(throws: NetworkError.self) {
            try response(#"["2024"]"#).decode([Date].self, with: .json(dates: .format("YYYY")))
        }
        expect(unsupported?.code, equals: .invalidRequest)
        let message = "the date format \"YYYY\" has the unsupported field \"YYYY\"; the year is yyyy"
        expect(unsupported?.message, equals: message)
    }
}
