import Testing

@testable import Downloader

@Suite("Amounts")
struct AmountsTests {
    @Test(
        "TRF-1: a limit has powers of 1,024 and fractions",
        arguments: [
            ("1", 1), ("1000", 1_000), ("500K", 512_000), ("1.5m", 1_572_864), ("2G", 2_147_483_648), (".5k", 512),
        ]
    )
    func parse(text: String, count: Int) {
        #expect(ByteCount.parse(text) == count)
    }

    @Test(
        "TRF-1: an invalid number of bytes is nil",
        arguments: [
            "", "K", "0", "0.1", "-1", "+1", "1T", "1KK", "1 K", "1e3", "0x10", "nan", "inf", "1.2.3", "9999999999G",
            "٣",
        ]
    )
    func unsound(text: String) {
        #expect(ByteCount.parse(text) == nil)
    }

    @Test(
        "TRF-1: bytes are shown with three or four digits, in the largest unit with at least one",
        arguments: [
            (0, "0 B"), (1_023, "1023 B"), (1_024, "1.0 KiB"), (1_536, "1.5 KiB"), (102_348, "99.9 KiB"),
            (102_400, "100 KiB"),
            (1_048_063, "1023 KiB"), (1_048_064, "1.0 MiB"), (5 << 30, "5.0 GiB"), (.max, "8192 PiB"), (-1, "?"),
        ] as [(Int64, String)]
    )
    func bytes(count: Int64, text: String) {
        #expect(Amounts.bytes(count) == text)
    }

    @Test("TRF-1: every rate and time can be shown")
    func others() {
        #expect(Amounts.rate(1_536) == "1.5 KiB/s" && Amounts.rate(.nan) == "?/s" && Amounts.rate(.infinity) == "?/s")
        #expect(Amounts.clock(0) == "0:00" && Amounts.clock(6.1) == "0:07" && Amounts.clock(3_723) == "1:02:03")
        for unknown in [nil, Double.nan, .infinity, -1, 1e300] { #expect(Amounts.clock(unknown) == "-:--") }
        #expect(
            Amounts.duration(3.24) == "3.2 s" && Amounts.duration(59.96) == "1:00" && Amounts.duration(-1) == "0.0 s"
        )
    }
}
