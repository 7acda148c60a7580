import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork

@Suite struct BandwidthLimitTests {
    @Test("TRF-4: a tenth of a second may go in advance, then the rate is kept")
    func pace() {
        var bucket = ByteBucket(bytesPerSecond: 1_000, at: 0)
        let delays = (0..<3).map { _ in bucket.take(100, at: 0) }
        #expect(delays == [0, 0.1, 0.2])
        let paid = bucket.take(0, at: 0.2)
        #expect(abs(paid) < 1e-9)
        // A pause of an hour saves up no more than a tenth of a second.
        let afterPause = bucket.take(200, at: 3_600)
        #expect(abs(afterPause - 0.1) < 1e-9)
    }

    @Test("TRF-4: with pieces of any size, no more moves than the rate allows, and a tenth of a second in advance")
    func longRun() {
        let seed = UInt64.random(in: 0...99_999)
        print("seed of BandwidthLimitTests.longRun: \(seed)")
        var generator = SeededGenerator(seed: seed)
        var bucket = ByteBucket(bytesPerSecond: 50_000, at: 0)
        var (now, moved) = (0.0, 0)
        for _ in 0..<2_000 {
            let count = Int.random(in: 0...20_000, using: &generator)
            // What is taken is late by less than what was owed before it.
            #expect(Double(moved) <= 50_000 * (now + 0.1) + 1e-3)
            moved += count
            now += bucket.take(count, at: now)
        }
        #expect(abs(Double(moved) / now - 50_000) < 500)
    }

    @Test("TRF-4: a debt is paid at the new rate; extreme numbers stay finite")
    func change() {
        var bucket = ByteBucket(bytesPerSecond: 1_000, at: 0)
        var delays = [bucket.take(1_100, at: 0)]
        bucket.setRate(10_000, at: 0.5)
        delays.append(bucket.take(0, at: 0.5))
        #expect(delays == [1, 0.05])
        bucket.setRate(.min, at: 1)
        for _ in 0..<10 { delays.append(bucket.take(.max, at: 1)) }
        bucket.setRate(.max, at: 2)
        delays.append(bucket.take(-5, at: 1))
        #expect(delays.allSatisfy { $0.isFinite && $0 >= 0 })
    }

    @Test("TRF-4: transfers that share a limit wait for each other's bytes")
    func shared() {
        let clock = ManualClock()
        let limit = BandwidthLimit(bytesPerSecond: 1_000, clock: clock)
        #expect(limit.delay(after: 600) == 0.5 && limit.delay(after: 500) == 1)
        clock.advance(by: 1)
        #expect(abs(limit.delay(after: 0)) < 1e-9)
        limit.bytesPerSecond = 0
        #expect(limit.bytesPerSecond == 1)
    }

    @Test("TRF-4: a queue's limit is reached from its jobs; default none")
    func queueLimit() async {
        let queue = NetworkQueue()
        #expect(queue.bandwidthLimit == nil)
        let limit = BandwidthLimit(bytesPerSecond: 5)
        let seen = Locked<BandwidthLimit?>(nil)
        let job = TestJob { job in
            seen.exchange(job.scheduling?.queue.bandwidthLimit)
            job.finish()
        }
        queue.bandwidthLimit = limit
        queue.addOperation(job)
        await job.finished()
        #expect(seen.withLock { $0 } === limit && queue.bandwidthLimit === limit)
    }
}
