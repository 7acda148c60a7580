import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("TimerHeap")
struct TimerHeapTests {
    @Test("REQ-5: elements of the same time have the order of their insertion")
    func order() {
        var heap = TimerHeap<Int>()
        for element in 0..<50 { heap.add(element, at: TimeInterval(element % 2)) }
        var taken: [Int] = []
        while let next = heap.takeDue(now: 1) { taken.append(next) }
        expect(taken, equals: (0..<50).filter { $0 % 2 == 0 } + (0..<50).filter { $0 % 2 == 1 })
    }

    @Test("REQ-5: elements have the order of their times, and removed ones are absent", arguments: 0..<20)
    func random(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var heap = TimerHeap<Int>()
        var kept: [Int] = []
        for _ in 0..<200 {
            let time = Int.random(in: 0..<1_000, using: &random)
            heap.add(time, at: TimeInterval(time))
            kept.append(time)
            if Int.random(in: 0..<20, using: &random) == 0 {
                let remainder = Int.random(in: 0..<5, using: &random)
                heap.sweep { $0 % 5 != remainder }
                kept.removeAll { $0 % 5 == remainder }
            }
        }
        expect(heap.count == kept.count && heap.earliest == kept.min().map(TimeInterval.init), "seed \(seed)")
        var taken: [Int] = []
        while let next = heap.takeDue(now: 500) { taken.append(next) }
        expect(taken, equals: kept.filter { $0 <= 500 }.sorted(), "seed \(seed)")
        expect(heap.count == kept.count - taken.count && heap.takeDue(now: 500) == nil, "seed \(seed)")
    }
}
