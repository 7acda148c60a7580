import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("A queue of batches", .timeLimit(.minutes(10)))
struct BatchQueueTests {
    @Test("DIA-1: it works on each element once, in order, and on all that were added before it has settled")
    func order() async {
        let queue = BatchQueue<Int>(label: "BatchQueueTests")
        let received = Locked<[Int]>([])
        let work: BatchQueue<Int>.Work = { numbers in received.withLock { $0 += numbers } }
        for round in 1...20 {
            for number in (round - 1) * 100..<round * 100 { queue.add(number, work) }
            await withCheckedContinuation { continuation in queue.settle(work) { continuation.resume() } }
            expect(received.withLock { $0 }, equals: Array(0..<round * 100))
        }
    }

    @Test("DIA-1: an element is worked on though nothing waits for it, the first one and those behind it")
    func unawaited() async {
        let queue = BatchQueue<Int>(label: "BatchQueueTests")
        let (numbers, continuation) = AsyncStream.makeStream(of: Int.self)
        let work: BatchQueue<Int>.Work = { batch in
            for number in batch { continuation.yield(number) }
        }
        var received: [Int] = []
        queue.add(1, work)
        for await number in numbers {
            received.append(number)
            if number == 20 { break }
            queue.add(number + 1, work)
        }
        expect(received, equals: Array(1...20))
    }
}
