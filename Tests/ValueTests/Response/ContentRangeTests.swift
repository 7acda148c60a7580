import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("ContentRange")
struct ContentRangeTests {
    @Test(
        "TRF-3: RFC 9110, section 14.4: a range and the length of the whole, which may be unknown",
        arguments: [
            ("bytes 0-0/1", 0..<1, 1), ("bytes 42-1233/1234", 42..<1_234, 1_234), ("BYTES 42-1233/*", 42..<1_234, nil),
            (" Bytes 00-09/010 ", 0..<10, 10),
            ("bytes 0-9223372036854775806/9223372036854775807", 0..<Int64.max, Int64.max),
        ] as [(String, Range<Int64>, Int64?)]
    )
    func range(field: String, range: Range<Int64>, total: Int64?) throws {
        let value = try #require(ContentRange(field))
        expect(value.range == range && value.total == total)
    }

    @Test(
        "BEY-10: RFC 9110, section 14.1.2: the part that a Range field asks for, if these bytes contain it",
        arguments: [
            ("bytes 0-9/10", "bytes=0-1", "bytes 0-1/10"), ("bytes 0-9/10", "Bytes=7-", "bytes 7-9/10"),
            ("bytes 0-9/10", "bytes=-3", "bytes 7-9/10"), ("bytes 0-9/10", "bytes=-30", "bytes 0-9/10"),
            ("bytes 0-9/10", "bytes=5-30", "bytes 5-9/10"), ("bytes 0-9/10", "bytes=10-", nil),
            ("bytes 0-9/10", "bytes=10-11", nil), ("bytes 0-9/10", "bytes=-0", nil), ("bytes 0-9/10", "bytes=3-2", nil),
            ("bytes 0-9/10", "bytes=0-0,2-2", nil), ("bytes 0-9/10", "bytes", nil), ("bytes 0-9/10", "bytes=-", nil),
            ("bytes 0-9/10", "items=0-1", nil), ("bytes 0-9/10", "bytes=+1-2", nil), ("bytes 0-9/10", "bytes=1=2", nil),
            ("bytes 4-6/10", "bytes=4-6", "bytes 4-6/10"), ("bytes 4-6/10", "bytes=5-5", "bytes 5-5/10"),
            ("bytes 4-6/10", "bytes=3-5", nil), ("bytes 4-6/10", "bytes=5-7", nil), ("bytes 4-6/10", "bytes=5-", nil),
            ("bytes 4-9/10", "bytes=-6", "bytes 4-9/10"), ("bytes 4-9/10", "bytes=-7", nil),
            ("bytes 4-6/*", "bytes=4-5", "bytes 4-5/*"), ("bytes 4-6/*", "bytes=4-7", nil),
            ("bytes 4-6/*", "bytes=4-", nil),
            ("bytes 4-6/*", "bytes=-1", nil), ("bytes */10", "bytes=0-1", nil),
            ("bytes 0-9/*", "bytes=0-9223372036854775807", nil),
            ("bytes 0-9/10", "bytes=0-9223372036854775807", "bytes 0-9/10"),
            ("bytes 0-9/10", "bytes=0-9223372036854775808", nil),
            ("bytes 0-9/10", "bytes=-9223372036854775807", "bytes 0-9/10"),
        ] as [(String, String, String?)]
    )
    func part(contents: String, field: String, expected: String?) throws {
        try expect(#require(ContentRange(contents)).part(field)?.fieldValue, equals: expected)
        expect(ContentRange(bodyCount: 0).part(field) == nil)
    }

    @Test(
        "TRF-3: RFC 9110, section 14.4: the form of a 416 has only the length",
        arguments: [("bytes */0", 0), ("bytes */7", 7)]
    )
    func unsatisfied(field: String, total: Int64) throws {
        let value = try #require(ContentRange(field))
        expect(value.range == nil && value.total == total)
    }

    @Test(
        "TRF-3: an invalid range is nil, so that no byte is written at a guessed place",
        arguments: [
            "", "bytes", "bytes ", "bytes */*", "bytes 0-9", "bytes=0-9/10", "bytes  0-9/10", "bytes 0 - 9/10",
            "bytes 0-9 /10",
            "items 0-9/10", "0-9/10", "bytes 9-0/10", "bytes 0-10/10", "bytes 5-5/5", "bytes 0-9/0", "bytes -9/10",
            "bytes 0-/10", "bytes -/10", "bytes 0-9/", "bytes /10", "bytes 0-9/10/10", "bytes 0-9-9/10",
            "bytes +0-9/10",
            "bytes 0-+9/10", "bytes 0-9/-10", "bytes 0x0-9/10", "bytes 0-9/10, bytes 0-9/10", "bytes\t0-9/10",
            "bytes ٠-٩/١٠", "bytes 0-9/** ",
            // Numbers beyond `Int64.max`.
            "bytes 0-9223372036854775807/*", "bytes 0-9/9223372036854775808", "bytes 0-99999999999999999999/*",
            "bytes 99999999999999999999-99999999999999999999/99999999999999999999", "bytes */99999999999999999999",
        ]
    )
    func unsound(field: String) {
        expect(ContentRange(field) == nil)
    }
}
