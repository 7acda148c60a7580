import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("SharedResult", .timeLimit(.minutes(10)))
struct SharedResultTests {
    @Test("BEY-16: all that wait get the one result, and the actions run in order")
    func several() async {
        let shared = SharedResult<Int>()
        let notes = Locked<[Int]>([])
        for number in 0..<3 { shared.whenSet { notes.withLock { $0.append(number) } } }
        let tasks = (0..<3).map { _ in Task { await shared.wait() } }
        expect(shared.value == nil)
        expect(shared.set(1))
        expect(!shared.set(2))
        shared.whenSet { notes.withLock { $0.append(3) } }
        for task in tasks { await expect(task.value, equals: 1) }
        expect(notes.withLock { $0 }, equals: [0, 1, 2, 3])
    }

    @Test("BEY-16: a task that is cancelled stops waiting, and the others do not")
    func cancel() async {
        let shared = SharedResult<Int>()
        let tasks = (0..<2).map { _ in Task { await shared.wait() } }
        tasks[0].cancel()
        await expect(tasks[0].value == nil)
        expect(shared.set(1))
        await expect(tasks[1].value, equals: 1)
    }

    @Test("BEY-16: a hundred thousand may wait")
    func many() {
        let shared = SharedResult<Int>()
        let count = Locked(0)
        for _ in 0..<100_000 { shared.whenSet { count.withLock { $0 += 1 } } }
        shared.set(1)
        expect(count.withLock { $0 }, equals: 100_000)
    }
}
