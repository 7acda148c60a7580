import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite struct TransferRateTests {
    @Test("TRF-1: a steady rate is shown as it is, from the first seconds on", arguments: [0.125, 0.5, 1, 3])
    func steady(step: Double) {
        var rate = TransferRate(completed: 0, at: 100)
        for index in 1...20 {
            let now = 100 + Double(index) * step
            rate.note(completed: Int64((Double(index) * step * 1_000).rounded()), at: now)
            expect(abs(rate.bytesPerSecond(at: now) - 1_000) < 1, "after \(index) steps")
        }
    }

    @Test("TRF-1: bytes that were there before do not count, and 0 before the first ones")
    func earlierBytes() {
        var rate = TransferRate(completed: 1_000_000, at: 0)
        expect(rate.bytesPerSecond(at: 0) == 0 && rate.bytesPerSecond(at: 3) == 0)
        rate.note(completed: 1_000_500, at: 1)
        expect(abs(rate.bytesPerSecond(at: 1) - 500) < 1)
    }

    @Test("TRF-1: the rate falls while nothing comes, to nothing in the end")
    func stall() {
        var rate = TransferRate(completed: 0, at: 0)
        rate.note(completed: 60_000, at: 60)
        var before = rate.bytesPerSecond(at: 60)
        expect(abs(before - 1_000) < 1)
        for second in stride(from: 61.0, through: 100, by: 1) {
            let now = rate.bytesPerSecond(at: second)
            expect(now < before)
            before = now
        }
        expect(before < 1)
        // Reading the rate does not change it.
        rate.note(completed: 60_000, at: 65)
        expect(abs(rate.bytesPerSecond(at: 65) - 1_000 * exp(-1)) < 1)
    }

    @Test("TRF-1: after a change the rate is on its way after a second, and there after some twenty")
    func change() {
        var rate = TransferRate(completed: 0, at: 0)
        rate.note(completed: 100_000, at: 100)
        rate.note(completed: 110_000, at: 101)
        expect((2_000...4_000).contains(rate.bytesPerSecond(at: 101)))
        for second in 2...25 { rate.note(completed: 100_000 + Int64(second) * 10_000, at: 100 + Double(second)) }
        expect((9_800...10_001).contains(rate.bytesPerSecond(at: 125)))
    }

    @Test("TRF-1: after a step back the rate begins again")
    func stepBack() {
        var rate = TransferRate(completed: 0, at: 0)
        rate.note(completed: 1_000_000, at: 1)
        rate.note(completed: 10, at: 2)
        expect(rate.bytesPerSecond(at: 2), equals: 0)
        rate.note(completed: 210, at: 4)
        expect(abs(rate.bytesPerSecond(at: 4) - 100) < 1)
    }

    @Test("TRF-1: bytes all at once, and a clock that stands still or goes back, give finite numbers")
    func oddTimes() {
        var rate = TransferRate(completed: 0, at: 10)
        rate.note(completed: 1_000, at: 10)
        expect(rate.bytesPerSecond(at: 10), equals: 10_000)
        rate.note(completed: 2_000, at: 5)
        rate.note(completed: .max, at: 5)
        expect(rate.bytesPerSecond(at: 5).isFinite && rate.bytesPerSecond(at: .infinity) == 0)
    }
}
