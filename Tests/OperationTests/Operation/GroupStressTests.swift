import Dispatch
import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("Batches of batches at random", .timeLimit(.minutes(10)))
struct GroupStressTests {
    /// Counts the live objects and the endings of each.
    private final class Book: Sendable {
        let alive = Locked(0)
        let endings = Locked<[ObjectIdentifier: Int]>([:])
        let wrong = Locked<[String]>([])

        func ended(_ operation: NetworkOperation) {
            endings.withLock { $0[ObjectIdentifier(operation), default: 0] += 1 }
        }
    }

    private final class CountedJob: NetworkOperation, @unchecked Sendable {
        // Sendable because its properties are constant.
        let book: Book
        let isInline: Bool
        let code: NetworkError.Code?

        init(_ book: Book, isInline: Bool, code: NetworkError.Code?) {
            self.book = book
            self.isInline = isInline
            self.code = code
            book.alive.withLock { $0 += 1 }
        }

        deinit { book.alive.withLock { $0 -= 1 } }

        override func execute() {
            if isInline { end() } else { DispatchQueue.global().async { self.end() } }
        }

        private func end() { finish(code.map { NetworkError(code: $0) }) }
    }

    private final class CountedBatch: BatchOperation, @unchecked Sendable {
        // Sendable because its properties are constant.
        let book: Book

        init(_ book: Book, _ children: [NetworkOperation], policy: Policy) {
            self.book = book
            super.init(children, policy: policy)
            book.alive.withLock { $0 += 1 }
        }

        deinit { book.alive.withLock { $0 -= 1 } }
    }

    private final class CountedChain: ChainOperation, @unchecked Sendable {
        // Sendable because its properties are constant.
        let book: Book

        init(_ book: Book, _ children: [NetworkOperation]) {
            self.book = book
            super.init(children)
            book.alive.withLock { $0 += 1 }
        }

        deinit { book.alive.withLock { $0 -= 1 } }
    }

    private func listen(_ operation: NetworkOperation) {
        operation.addAccessory(didStop: { if $0.hash % 7 == 0 { _ = $0.isCancelled } })
    }

    /// Makes a tree; the root is the last element.
    private func grow(_ book: Book, depth: Int, _ random: inout SeededGenerator) -> [NetworkOperation] {
        let kind = depth == 0 ? 0 : Int.random(in: 0..<4, using: &random)
        if kind < 2, depth < 3 {
            let fails = Int.random(in: 0..<12, using: &random) == 0
            let job = CountedJob(book, isInline: Bool.random(using: &random), code: fails ? .timedOut : nil)
            if Int.random(in: 0..<6, using: &random) == 0 { listen(job) }
            return [job]
        }
        var all: [NetworkOperation] = []
        var children: [NetworkOperation] = []
        for _ in 0..<Int.random(in: 0...5, using: &random) {
            let branch = grow(book, depth: depth - 1, &random)
            if let child = branch.last { children.append(child) }
            all += branch
        }
        for (index, child) in children.enumerated() where Int.random(in: 0..<5, using: &random) == 0 {
            // Dependencies between children go in one direction, so that there is no cycle.
            if kind != 3, index + 1 < children.count { child.addDependency(children[index + 1], policy: .allowFailure) }
        }
        let group: GroupOperation
        if kind == 3 {
            let chain = CountedChain(book, children)
            chain.success = { note(book, $0) }
            chain.failure = { chain, _ in note(book, chain) }
            group = chain
        } else {
            let policy = Bool.random(using: &random) ? BatchOperation.Policy.failFast : .collectAll
            let batch = CountedBatch(book, children, policy: policy)
            batch.success = { note(book, $0) }
            batch.failure = { batch, _ in note(book, batch) }
            group = batch
        }
        if Int.random(in: 0..<4, using: &random) == 0 { listen(group) }
        return all + [group]
    }

    @Test(
        "OPQ-4, OPQ-5: every child ends exactly once, every group once and after its children, nothing leaks",
        arguments: [true, false],
        0..<UInt64(TestLoad.count(8, part: 1))
    )
    func stress(onPlainQueue: Bool, seed: UInt64) async {
        var random = SeededGenerator(seed: seed)
        let book = Book()
        let completions = Locked(0)
        do {
            let queue = NetworkQueue(maxConcurrentOperationCount: Bool.random(using: &random) ? 1 : 4)
            let plain = OperationQueue()
            plain.maxConcurrentOperationCount = 2
            let trees = (0..<150).map { _ in grow(book, depth: 3, &random) }
            let all = trees.flatMap { $0 }
            for operation in all {
                operation.completionBlock = { completions.withLock { $0 += 1 } }
            }
            let victims = all.filter { _ in Int.random(in: 0..<12, using: &random) == 0 }.shuffled(using: &random)
            async let disturbance: Void = Task.detached {
                for (index, victim) in victims.enumerated() {
                    if index % 3 == 0, let group = victim as? GroupOperation {
                        group.progress.cancel()
                    } else {
                        victim.cancel()
                    }
                    if index % 4 == 0 { await Task.yield() }
                    if index % 5 == 0 { queue.isSuspended.toggle() }
                }
                queue.isSuspended = false
            }.value
            for tree in trees {
                guard let root = tree.last else { continue }
                if onPlainQueue { plain.addOperation(root) } else { queue.addOperation(root) }
            }
            await disturbance
            for tree in trees { await tree.last?.ended() }
            // A root finishes after all its descendants.
            expect(all.allSatisfy { $0.isFinished }, "seed \(seed)")
            await expect(eventually { completions.withLock { $0 } >= all.count }, "seed \(seed)")
            expect(completions.withLock { $0 }, equals: all.count, "seed \(seed)")
            let groups = all.filter { $0 is GroupOperation }
            expect(groups.count > 20, "seed \(seed)")
            let endings = book.endings.withLock { $0 }
            expect(groups.allSatisfy { endings[ObjectIdentifier($0)] == 1 }, "seed \(seed)")
            expect(book.wrong.withLock { $0 }, equals: [], "seed \(seed)")
            await expect(eventually { queue.operationCount == 0 }, "seed \(seed)")
        }
        await expect(eventually { book.alive.withLock { $0 } == 0 }, "seed \(seed)")
    }

    @Sendable
    private func note(_ book: Book, _ group: GroupOperation) {
        book.ended(group)
        guard let message = complaint(about: group) else { return }
        book.wrong.withLock { $0.append(message) }
    }

    /// The rule that is violated when the group's closure is called, or nil.
    private func complaint(about group: GroupOperation) -> String? {
        if !group.operations.allSatisfy({ $0.isFinished }) { return "ended before a child" }
        if group.progress.completedUnitCount != group.progress.totalUnitCount {
            return "progress \(group.progress.completedUnitCount) of \(group.progress.totalUnitCount)"
        }
        let failures = group.failures
        let isCollecting = (group as? BatchOperation)?.policy == .collectAll
        if group.error == nil, !isCollecting, !failures.isEmpty { return "success in spite of a failure" }
        if let decisive = group.decisiveFailure, !group.isCancelled, group.error?.code != decisive.error.code {
            return "not the child's error"
        }
        return nil
    }
}
