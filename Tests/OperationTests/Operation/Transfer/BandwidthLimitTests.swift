import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite struct BandwidthLimitTests {
    private let clock = ManualClock()

    @Test("TRF-4: a tenth of a second may go in advance, then the rate is kept; transfers with one limit share it")
    func pace() {
        let limit = BandwidthLimit(bytesPerSecond: 1_000, clock: clock)
        expect((0..<3).map { _ in limit.delay(after: 100) }, equals: [0, 0.1, 0.2])
        clock.advance(by: 0.2)
        expect(abs(limit.delay(after: 0)) < 1e-9)
        // A pause of an hour saves up no more than a tenth of a second.
        clock.advance(by: 3_600)
        expect(abs(limit.delay(after: 200) - 0.1) < 1e-9)
    }

    @Test("TRF-4: with pieces of any size, no more moves than the rate allows, and a tenth of a second in advance")
    func longRun() {
        let seed = UInt64.random(in: 0...99_999)
        print("seed of BandwidthLimitTests.longRun: \(seed)")
        var generator = SeededGenerator(seed: seed)
        let limit = BandwidthLimit(bytesPerSecond: 50_000, clock: clock)
        let start = clock.now
        var moved = 0
        for _ in 0..<2_000 {
            let count = Int.random(in: 0...20_000, using: &generator)
            // Bytes are never ahead of the rate by more than a tenth of a second.
            expect(Double(moved) <= 50_000 * (clock.now - start + 0.1) + 1e-3)
            moved += count
            clock.advance(by: limit.delay(after: count))
        }
        expect(abs(Double(moved) / (clock.now - start) - 50_000) < 500)
    }

    @Test("TRF-4: extreme numbers stay finite; the least rate is a byte a second")
    func extremes() {
        for rate in [Int.min, 0, .max] {
            let limit = BandwidthLimit(bytesPerSecond: rate, clock: clock)
            expect(limit.bytesPerSecond, equals: max(1, rate))
            let delays = [Int.max, .max, -5].map { limit.delay(after: $0) }
            expect(delays.allSatisfy { $0.isFinite && $0 >= 0 })
        }
    }

    @Test("TRF-4: a queue's limit is reached from its jobs; default none")
    func queueLimit() async {
        let queue = NetworkQueue()
        expect(queue.bandwidthLimit == nil)
        let seen = Locked<BandwidthLimit?>(nil)
        let job = TestJob { job in
            seen.exchange(job.scheduling?.queue.bandwidth)
            job.finish()
        }
        queue.bandwidthLimit = 5
        queue.addOperation(job)
        await job.ended()
        expect(seen.withLock { $0 } === queue.bandwidth && queue.bandwidthLimit == 5)
    }
}
