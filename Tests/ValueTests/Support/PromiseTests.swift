import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("Promise", .timeLimit(.minutes(10)))
struct PromiseTests {
    @Test("BEY-16: all that wait get the one result, and the actions run in order")
    func several() async {
        let promise = Promise<Int>()
        let notes = Locked<[Int]>([])
        for number in 0..<3 { promise.whenSet { notes.withLock { $0.append(number) } } }
        let tasks = (0..<3).map { _ in Task { await promise.wait() } }
        expect(promise.value == nil)
        expect(promise.set(1))
        expect(!promise.set(2))
        promise.whenSet { notes.withLock { $0.append(3) } }
        for task in tasks { await expect(task.value, equals: 1) }
        expect(notes.withLock { $0 }, equals: [0, 1, 2, 3])
    }

    @Test("BEY-16: a task that is cancelled stops waiting, and the others do not")
    func cancel() async {
        let promise = Promise<Int>()
        let tasks = (0..<2).map { _ in Task { await promise.wait() } }
        tasks[0].cancel()
        await expect(tasks[0].value == nil)
        expect(promise.set(1))
        await expect(tasks[1].value, equals: 1)
    }

    @Test("BEY-16: a hundred thousand may wait, each of which may be cancelled")
    func many() async {
        let promise = Promise<Int>()
        let count = Locked(0)
        for _ in 0..<100_000 { promise.whenSet { count.withLock { $0 += 1 } } }
        let left = await withTaskGroup(of: Int?.self) { group in
            for _ in 0..<100_000 { group.addTask { await promise.wait() } }
            group.cancelAll()
            return await group.reduce(into: 0) { left, value in left += value == nil ? 1 : 0 }
        }
        promise.set(1)
        expect(left, equals: 100_000)
        expect(count.withLock { $0 }, equals: 100_000)
    }
}
