import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

/// Requires another operation to run first.
private func needs(_ other: @escaping @Sendable () -> Operation?) -> OperationCondition {
    OperationCondition("needs", prerequisite: { _ in other() }, holds: { _ in true })
}

@Suite("Cycles through groups, prerequisites and barriers", .timeLimit(.minutes(10)))
struct GroupCycleTests {
    private let queue = NetworkQueue()

    private func jobs(_ names: String...) -> [TestJob] {
        names.map { name in
            let job = TestJob()
            job.name = name
            return job
        }
    }

    private func named<Group: GroupOperation>(_ group: Group, _ name: String = "group") -> Group {
        group.name = name
        return group
    }

    enum Order: CaseIterable { case groupFirst, groupLast, late }

    @Test("BEY-7: a child that waits for its batch by way of another job", arguments: [true, false], [true, false])
    func indirect(isGroupFirst: Bool, isPlain: Bool) async {
        let child = jobs("child")[0]
        let between = isPlain ? BlockOperation {} : TestJob()
        between.name = "between"
        let batch = named(BatchOperation([child], policy: .collectAll))
        child.addDependency(between)
        between.addDependency(batch)
        queue.addOperations(isGroupFirst ? [batch, between] : [between, batch], waitUntilFinished: false)
        await batch.ended()
        await between.ended()
        // The last of several operations added together closes the cycle.
        let error = isGroupFirst && !isPlain ? child.error?.rootCause : child.error
        expect(error?.code == .cycle || between.isCancelled)
        if child.error?.code == .cycle {
            expect(child.error?.dependencyPath, equals: ["child", "between", "group", "child"])
        }
    }

    @Test("BEY-7: a cycle that is closed while the child waits")
    func lateDependency() async {
        let gate = Gate()
        let held = TestJob { job in gate.whenOpen { job.finish() } }
        let (child, between) = (jobs("child")[0], jobs("between")[0])
        child.addDependency(held)
        let batch = named(BatchOperation([held, child], policy: .collectAll))
        between.addDependency(batch)
        queue.addOperations([batch, between], waitUntilFinished: false)
        await expect(eventually { child.isTaken })
        child.addDependency(between)
        expect(child.error?.code, equals: .cycle)
        expect(child.error?.dependencyPath, equals: ["child", "between", "group", "child"])
        gate.open()
        await between.ended()
        expect(batch.error == nil && between.error == nil)
    }

    @Test("BEY-7: a child of a group in a group that waits for the outer one")
    func nested() async {
        let (child, between) = (jobs("child")[0], jobs("between")[0])
        let inner = named(BatchOperation([child], policy: .collectAll), "inner")
        let outer = named(ChainOperation([inner]), "outer")
        child.addDependency(between)
        between.addDependency(outer)
        queue.addOperations([between, outer], waitUntilFinished: false)
        await between.ended()
        expect(child.error?.dependencyPath, equals: ["child", "between", "outer", "inner", "child"])
        expect(outer.error == nil)
    }

    @Test("BEY-7: a child on another queue that waits for its batch", arguments: [true, false])
    func childElsewhere(isLast: Bool) async {
        let other = NetworkQueue()
        let (child, between) = (jobs("child")[0], jobs("between")[0])
        let batch = named(BatchOperation([child], policy: .collectAll))
        child.addDependency(between)
        between.addDependency(batch)
        if isLast { queue.isSuspended = true }
        other.addOperations([child, between], waitUntilFinished: false)
        queue.addOperation(batch)
        queue.isSuspended = false
        await batch.ended()
        await between.ended()
        expect(child.error?.code, equals: .cycle)
        expect(child.error?.dependencyPath, equals: ["child", "between", "group", "child"])
    }

    @Test("BEY-7: a job that the group waits for, and that waits for a child of it", arguments: Order.allCases)
    func beforeTheGroup(order: Order) async {
        queue.isSuspended = true
        let (child, before) = (jobs("child")[0], jobs("before")[0])
        let batch = named(BatchOperation(order == .late ? [] : [child]))
        batch.addDependency(before, policy: .allowFailure)
        before.addDependency(child, policy: .allowFailure)
        queue.addOperations(order == .groupLast ? [before, batch] : [batch, before], waitUntilFinished: false)
        if order == .late { batch.addOperation(child) }
        queue.isSuspended = false
        for operation in [batch, before, child] as [NetworkOperation] { await operation.ended() }
        let closing: NetworkOperation =
            switch order {
            case .groupFirst: before
            case .groupLast: batch
            case .late: child
            }
        expect(closing.error?.code, equals: .cycle)
        expect(Set(closing.error?.dependencyPath ?? []), equals: ["child", "group", "before"])
    }

    @Test("BEY-7: a step that depends on a later step, also by way of another job", arguments: [true, false])
    func laterStep(isDirect: Bool) async {
        let steps = jobs("first", "second", "third")
        let between = jobs("between")[0]
        if isDirect {
            steps[0].addDependency(steps[2])
        } else {
            steps[0].addDependency(between)
            between.addDependency(steps[2])
            queue.addOperation(between)
        }
        let chain = named(ChainOperation(steps))
        queue.addOperation(chain)
        await chain.ended()
        expect(chain.error?.code, equals: .cycle)
        let path = isDirect ? ["first", "third", "first"] : ["first", "between", "third", "first"]
        expect(steps[0].error?.dependencyPath, equals: path)
        for step in steps { await step.ended() }
    }

    @Test("BEY-7: a job added late that waits for a later step, and that the running step waits for")
    func laterStepLate() async {
        let steps = jobs("first", "second")
        let between = jobs("between")[0]
        steps[0].addDependency(between)
        between.addDependency(steps[1])
        let chain = named(ChainOperation(steps))
        queue.addOperation(chain)
        await expect(eventually { steps[0].isTaken })
        queue.addOperation(between)
        await chain.ended()
        await between.ended()
        await steps[0].ended()
        // The last of the two to search sees the cycle.
        let closing = [between, steps[0]].filter { $0.error?.code == .cycle }
        expect(closing.count >= 1 && between.error?.rootCause.code == .cycle)
        expect(closing.allSatisfy { Set($0.error?.dependencyPath ?? []) == ["between", "second", "first"] })
    }

    @Test("BEY-7: steps that depend on earlier steps, and children on each other, are no cycle")
    func noCircle() async {
        let steps = jobs("a", "b", "c")
        steps[2].addDependency(steps[0])
        let children = jobs("d", "e")
        children[0].addDependency(children[1])
        let batch = BatchOperation(children)
        batch.addDependency(steps[1])
        let chain = ChainOperation(steps + [batch])
        let after = TestJob()
        after.addDependency(chain)
        after.addDependency(children[0])
        queue.addOperations([after, chain], waitUntilFinished: false)
        await after.ended()
        expect(after.error == nil && chain.error == nil)
    }

    @Test("BEY-7: operations that are prerequisites of each other: at least one ends with .cycle")
    func prerequisitesOfEachOther() async {
        let two = jobs("one", "other")
        let (one, other) = (two[0], two[1])
        one.addCondition(needs { [weak other] in other })
        other.addCondition(needs { [weak one] in one })
        queue.addOperations(two, waitUntilFinished: false)
        for job in two { await job.ended() }
        let circles = two.compactMap { $0.error?.code == .cycle ? $0.error?.dependencyPath : nil }
        expect(!circles.isEmpty)
        expect(circles.allSatisfy { $0.count == 3 && $0.first == $0.last && Set($0) == ["one", "other"] })
    }

    @Test("BEY-7: a prerequisite that comes to wait for its operation")
    func latePrerequisite() async {
        let two = jobs("job", "sign in")
        let (job, signIn) = (two[0], two[1])
        let other = NetworkQueue()
        other.isSuspended = true
        job.addCondition(needs { signIn })
        other.addOperation(signIn)
        queue.addOperation(job)
        // The watch begins after the condition has searched for a cycle; before that, both would find this one.
        await expect(eventually { signIn.core.withLock { !$0.finishActions.isEmpty } })
        signIn.addDependency(job)
        await signIn.ended()
        await job.ended()
        expect(signIn.error?.dependencyPath, equals: ["sign in", "job", "sign in"])
        expect(job.error == nil && job.executionCount == 1)
    }

    @Test("BEY-7: a cycle over two queues that a plain operation closes")
    func plainClosesCircle() async {
        let other = NetworkQueue()
        let job = TestJob()
        let plain = BlockOperation {}
        job.addDependency(plain, policy: .allowFailure)
        plain.addDependency(job)
        queue.addOperation(job)
        other.addOperation(plain)
        await job.ended()
        await plain.ended()
        expect(plain.isCancelled && job.error == nil)
    }

    // MARK: - Barriers

    /// Makes a batch or a job with a prerequisite that waits for `part` after its start.
    private func holder(of part: NetworkOperation, isBatch: Bool) -> NetworkOperation {
        if isBatch { return named(BatchOperation([part], policy: .collectAll)) }
        let job = jobs("group")[0]
        job.addCondition(needs { part })
        return job
    }

    @Test("BEY-7: a child or prerequisite added behind a barrier passes it", arguments: [true, false])
    func passes(isBatch: Bool) async {
        queue.isSuspended = true
        let part = jobs("part")[0]
        let job = holder(of: part, isBatch: isBatch)
        queue.addOperation(job)
        let order = Locked<[String]>([])
        queue.addBarrierBlock { order.withLock { $0.append(part.isFinished ? "after" : "before") } }
        queue.addOperation(part)
        queue.isSuspended = false
        await job.ended()
        await Task.detached { queue.waitUntilAllOperationsAreFinished() }.value
        expect(job.error == nil && part.executionCount == 1)
        expect(order.withLock { $0 }, equals: ["after"])
    }

    @Test(
        "BEY-7: a child or prerequisite that depends on a job behind a barrier is a cycle",
        arguments: [true, false],
        [true, false]
    )
    func behind(isBatch: Bool, isAddedLate: Bool) async {
        if !isAddedLate { queue.isSuspended = true }
        let (part, later) = (jobs("part")[0], jobs("later")[0])
        part.addDependency(later, policy: .allowFailure)
        let job = holder(of: part, isBatch: isBatch)
        queue.addOperation(job)
        if isAddedLate { await expect(eventually { part.isTaken }) }
        queue.addBarrierBlock {}
        queue.addOperation(later)
        queue.isSuspended = false
        for operation in [job, later] { await operation.ended() }
        // A prerequisite that closes a cycle is not added.
        if isBatch || isAddedLate { await part.ended() }
        // The last of two operations added concurrently closes the cycle.
        let closing = isAddedLate ? [later, part] : isBatch ? [part] : [job]
        let cycle = closing.compactMap(\.error).first { $0.code == .cycle }
        let path = Set(cycle?.dependencyPath ?? [])
        expect(cycle != nil)
        expect(path.isSuperset(of: isAddedLate ? ["part", "later"] : ["part", "later", "group"]))
        await Task.detached { queue.waitUntilAllOperationsAreFinished() }.value
    }

    // MARK: - Cost

    @Test("BEY-4: a dependency added to a waiting job costs the same, whatever happens on other queues")
    func noLooking() async {
        // Two other jobs depend on each other across queues.
        let two = jobs("a", "b")
        two[1].addDependency(two[0])
        NetworkQueue().addOperation(two[1])
        NetworkQueue().addOperation(two[0])
        await two[1].ended()
        queue.isSuspended = true
        let many = (0..<TestLoad.count(20_000, part: 1_000)).map { _ in TestJob { $0.finish() } }
        queue.addOperations(many, waitUntilFinished: false)
        for (job, other) in zip(many.dropFirst(), many) { job.addDependency(other) }
        queue.isSuspended = false
        await many[many.count - 1].ended()
        expect(many.allSatisfy { $0.error == nil })
    }

    @Test("BEY-4: thousands of children in a row cost the same each", arguments: [false, true])
    func manyChildren(isAwaited: Bool) async {
        let many = (0..<TestLoad.count(20_000, part: 1_000)).map { _ in TestJob { $0.finish() } }
        for (job, other) in zip(many.dropFirst(), many) { job.addDependency(other) }
        let batch = BatchOperation([BatchOperation(many)])
        let after = TestJob { $0.finish() }
        if isAwaited { after.addDependency(batch) }
        queue.addOperations([batch, after], waitUntilFinished: false)
        await batch.ended()
        await after.ended()
        expect(batch.error == nil && after.error == nil)
    }

    // MARK: - At random

    @Test(
        "BEY-7: random graphs of jobs, batches and chains on two queues, with and without cycles: all end",
        arguments: 0..<UInt64(TestLoad.count(100, part: 20))
    )
    func random(seed: UInt64) async {
        var random = SeededGenerator(seed: seed)
        let queues = [queue, NetworkQueue()]
        var operations: [NetworkOperation] = (0..<20).map { _ in TestJob() }
        var loose = operations
        var children: Set<ObjectIdentifier> = []
        for _ in 0..<5 {
            let parts = (0..<Int.random(in: 0...4, using: &random)).compactMap { _ in loose.popLast() }
            children.formUnion(parts.map(ObjectIdentifier.init))
            let group: GroupOperation =
                Bool.random(using: &random) ? BatchOperation(parts, policy: .collectAll) : ChainOperation(parts)
            operations.append(group)
            loose.append(group)
        }
        let isAcyclic = Bool.random(using: &random)
        for (index, operation) in operations.enumerated() where !isAcyclic || !(operation is GroupOperation) {
            for _ in 0..<Int.random(in: 0...2, using: &random) {
                // Without cycles, only jobs outside of groups wait, and only for earlier jobs.
                let other = Int.random(in: 0..<(isAcyclic ? max(1, index) : operations.count), using: &random)
                if other == index || isAcyclic && children.contains(ObjectIdentifier(operation)) { continue }
                operation.addDependency(operations[other], policy: .allowFailure)
            }
        }
        for operation in operations.shuffled(using: &random) {
            // A child is added by its group, or by the user.
            let isChild = children.contains(ObjectIdentifier(operation))
            if isChild, Bool.random(using: &random) { continue }
            queues[Int.random(in: 0...1, using: &random)].addOperation(operation)
        }
        for operation in operations { await operation.ended() }
        if isAcyclic { expect(operations.allSatisfy { $0.error == nil }, "seed \(seed)") }
        await expect(eventually { queues.allSatisfy { $0.operationCount == 0 } }, "seed \(seed)")
    }
}
