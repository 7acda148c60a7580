import EasyNetwork
import Foundation
import Testing

@testable import EasyNetworkTesting
@testable import TestSupport

@Suite("NetworkLink")
struct NetworkLinkTests {
    private func trips(_ count: Int, _ conditions: NetworkConditions) -> [NetworkLink.Trip] {
        var link = NetworkLink(conditions)
        return (0..<count).map { _ in link.nextTrip() }
    }

    @Test("BEY-24: a seed decides everything random, the same on every platform")
    func seeds() {
        let seed = UInt64.random(in: 0 ... .max)
        var conditions = NetworkConditions(jitter: 1, lossOfConnections: 0.5, seed: seed)
        let first = trips(100, conditions)
        expect(trips(100, conditions), equals: first, "seed \(seed)")
        conditions.seed &+= 1
        expect(trips(100, conditions) != first, "seed \(seed)")
        // The first number of SplitMix64 with the seed 0.
        let known = Double(0xE220_A839_7B1D_CDAF as UInt64 >> 11) / 0x1p53
        expect(trips(1, NetworkConditions(jitter: 1)).map(\.up), equals: [known])
    }

    @Test("BEY-24: jitter and losses do not change what each other draws")
    func independent() {
        let seed = UInt64.random(in: 0 ... .max)
        let both = trips(100, NetworkConditions(jitter: 1, lossOfConnections: 0.5, seed: seed))
        let late = trips(100, NetworkConditions(jitter: 1, seed: seed))
        let lost = trips(100, NetworkConditions(lossOfConnections: 0.5, seed: seed))
        expect(both.map(\.up) == late.map(\.up) && both.map(\.down) == late.map(\.down), "seed \(seed)")
        expect(both.map(\.loss), equals: lost.map(\.loss), "seed \(seed)")
    }

    @Test("BEY-24: each way takes the latency and up to the jitter more")
    func delays() {
        let seed = UInt64.random(in: 0 ... .max)
        let delays = trips(1_000, NetworkConditions(latency: 2, jitter: 4, seed: seed)).flatMap { [$0.up, $0.down] }
        expect(delays.allSatisfy { (2..<6).contains($0) }, "seed \(seed)")
        expect(delays.contains { $0 < 3 } && delays.contains { $0 > 5 }, "seed \(seed)")
    }

    @Test("BEY-24: a share of the requests is lost, at each place")
    func losses() {
        let seed = UInt64.random(in: 0 ... .max)
        func losses(_ share: Double) -> [NetworkLink.Loss] {
            trips(4_000, NetworkConditions(lossOfConnections: share, seed: seed)).compactMap(\.loss)
        }
        expect(losses(0).count, equals: 0)
        expect(losses(1).count, equals: 4_000)
        let quarter = losses(0.25)
        // Five standard deviations.
        expect(abs(quarter.count - 1_000) < 140, "seed \(seed): \(quarter.count)")
        expect(quarter.contains(.request) && quarter.contains(.response), "seed \(seed)")
        let shares = quarter.compactMap { if case .body(let share) = $0 { share } else { nil } }
        expect(shares.count > 200 && shares.allSatisfy { (0..<1).contains($0) }, "seed \(seed)")
    }

    @Test("BEY-24: values out of bounds count as documented")
    func bounds() {
        for nonsense in [Double.nan, -Double.nan, -1, -Double.infinity] {
            let conditions = NetworkConditions(latency: nonsense, jitter: nonsense, lossOfConnections: nonsense)
            expect(trips(1, conditions), equals: [NetworkLink.Trip(up: 0, down: 0, loss: nil)])
        }
        for huge in [3_601, .infinity, Double.greatestFiniteMagnitude] {
            let trip = trips(1, NetworkConditions(latency: huge, jitter: huge, lossOfConnections: huge))[0]
            expect((3_600..<7_200).contains(trip.up) && (3_600..<7_200).contains(trip.down) && trip.loss != nil)
        }
        for (bandwidth, second, share) in [(0, 1, 1), (-5, 1, 1), (.min, 1, 1), (1_000, 1_000, 20), (nil, 0, .max)] {
            var link = NetworkLink(NetworkConditions(bandwidth: bandwidth))
            expect(link.share, equals: share)
            expect(link.wait(for: second, .up, now: 0), equals: bandwidth == nil ? 0 : 1)
        }
        var fast = NetworkLink(NetworkConditions(bandwidth: .max))
        expect(fast.share, equals: 1_048_576)
        expect(fast.wait(for: .max, .down, now: 1e9).isFinite)
    }

    @Test("BEY-24: bytes of all connections follow each other, each direction by itself, and idle time is not saved up")
    func order() {
        var link = NetworkLink(NetworkConditions(bandwidth: 100))
        expect(link.wait(for: 100, .down, now: -10), equals: 1)
        expect(link.wait(for: 50, .down, now: 10), equals: 0.5)
        expect(link.wait(for: 100, .down, now: 10), equals: 1.5)
        expect(link.wait(for: 100, .up, now: 10), equals: 1)
        expect(link.wait(for: 100, .down, now: 11), equals: 1.5)
        expect(link.wait(for: 100, .down, now: 50), equals: 1)
        expect(link.wait(for: 0, .down, now: 60), equals: 0)
    }

    @Test("BEY-24: at no time have more bytes arrived than the bandwidth allows", arguments: 0..<20)
    func neverFaster(round: Int) {
        let seed = UInt64.random(in: 0 ... .max)
        var random = SeededGenerator(seed: seed)
        let bandwidth = Int.random(in: 1...1_000_000, using: &random)
        var link = NetworkLink(NetworkConditions(bandwidth: bandwidth))
        var (now, sum) = (0.0, 0.0)
        for _ in 0..<500 {
            if Bool.random(using: &random) { now += Double.random(in: 0...0.1, using: &random) }
            let count = Int.random(in: 1...link.share, using: &random)
            sum += Double(count)
            let wait = link.wait(for: count, .down, now: now)
            expect(wait > 0 && sum <= (now + wait) * Double(bandwidth) * (1 + 1e-9), "seed \(seed)")
        }
    }

    @Test("BEY-24: a lost response is never complete, and a fault of its own comes first")
    func applied() {
        func fault(_ loss: NetworkLink.Loss, _ response: MockResponse, _ method: String = "GET") -> MockResponse.Fault?
        {
            NetworkLink.Trip(up: 0, down: 0, loss: loss).applied(to: response, method: method).fault
        }
        let almost = NetworkLink.Loss.body(share: 1 - 0x1p-53)
        expect(fault(almost, .text("abcd")), equals: .reset(at: .responseBody(after: 3)))
        expect(fault(.body(share: 0), .chunked([Data(), Data("a".utf8)])), equals: .reset(at: .responseBody(after: 0)))
        let endless = MockResponse(body: .repeating(0, count: .max))
        expect(fault(.body(share: 0.5), endless), equals: .reset(at: .responseBody(after: 524_288)))
        for empty in [MockResponse.status(204), .text(""), .status(304)] {
            expect(fault(almost, empty), equals: .reset)
        }
        expect(fault(almost, .text("abcd"), "HEAD"), equals: .reset)
        expect(fault(.response, .text("abcd")), equals: .reset)
        expect(fault(.response, .fault(.stall)), equals: .stall)
        for (delay, sum) in [(0, 2), (1, 3), (-1, 2), (TimeInterval.nan, TimeInterval(2))] {
            let trip = NetworkLink.Trip(up: 9, down: 2, loss: nil)
            expect(trip.applied(to: MockResponse(delay: delay), method: "GET").delay, equals: sum)
        }
    }
}
