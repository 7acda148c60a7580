import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("JobGraph")
struct JobGraphTests {
    private typealias Graph = JobGraph<Int>
    private typealias Actions = JobGraph<Int>.Actions

    @Test("OPQ-3: within a priority first in, first out; the higher priority first")
    func order() {
        var graph = Graph(limit: 0)
        var actions = Actions()
        let priorities: [JobPriority] = [.low, .high, .normal, .high, .veryLow, .veryHigh]
        for (index, priority) in priorities.enumerated() {
            graph.release(graph.submit(index + 1, priority: priority), &actions)
        }
        expect(actions.start.isEmpty)
        graph.setLimit(nil, &actions)
        expect(actions.start, equals: [6, 2, 4, 3, 1, 5])
    }

    @Test("OPQ-3: a change of priority of a waiting job takes effect, at the end of its new row")
    func priorityChange() {
        var graph = Graph(limit: 0)
        var actions = Actions()
        let jobs = (1...3).map { graph.submit($0, priority: .normal) }
        for job in jobs { graph.release(job, &actions) }
        graph.setPriority(.high, of: jobs[2])
        graph.setPriority(.low, of: jobs[0])
        graph.setPriority(.normal, of: jobs[0])
        graph.setLimit(nil, &actions)
        expect(actions.start, equals: [3, 2, 1])
    }

    @Test("BEY-6: room that a job cannot take after all goes to one that needs no slot", arguments: [1, nil])
    func roomPassedOn(limit: Int?) {
        var graph = Graph(limit: limit)
        var actions = Actions()
        let first = graph.submit(1, keys: [.exclusion("x")])
        let second = graph.submit(2, keys: [.tag("t"), .exclusion("x")])
        let third = graph.submit(3, keys: [.exclusion("x")], occupiesSlot: false)
        for job in [first, second, third] { graph.release(job, &actions) }
        expect(actions.start, equals: [1])
        graph.setLimit(0, for: .tag("t"))
        graph.finish(first, succeeded: true, &actions)
        expect(actions.start, equals: [1, 3])
    }

    @Test("BEY-6: a job that asks for a slot may take that back, and ask again")
    func askedAndTakenBack() {
        var graph = Graph(limit: 1)
        var actions = Actions()
        let jobs = (1...2).map { graph.submit($0) }
        for job in jobs { graph.release(job, &actions) }
        graph.park(jobs[0], &actions)
        expect(actions.start, equals: [1, 2])
        let asks = graph.unpark(jobs[0], &actions)
        // Without `evenIfReturning` the request for a slot stays.
        graph.park(jobs[0], &actions)
        graph.park(jobs[0], evenIfReturning: true, &actions)
        graph.finish(jobs[1], succeeded: true, &actions)
        expect(asks && actions.resume.isEmpty && graph.queueLane.runningCount == 0)
        let asksAgain = graph.unpark(jobs[0], &actions)
        expect(asksAgain && actions.resume == [1])
        graph.park(jobs[0], evenIfReturning: true, &actions)
        expect(graph.queueLane.runningCount, equals: 0)
    }

    @Test("OPQ-3: a suspended graph starts nothing, but ends cancelled jobs")
    func suspended() {
        var graph = Graph(limit: nil)
        var actions = Actions()
        graph.setSuspended(true, &actions)
        let job = graph.submit(1, priority: .normal)
        graph.release(job, &actions)
        expect(actions.start.isEmpty)
        graph.end(job, &actions)
        graph.end(job, &actions)
        expect(actions.end, equals: [1])
        graph.finish(job, succeeded: false, &actions)
        graph.setSuspended(false, &actions)
        expect(actions.start.isEmpty)
        expect(graph.count, equals: 0)
    }

    @Test("BEY-1: a failed dependency ends its dependents at once, unless they allow failure")
    func failure() {
        var graph = Graph(limit: nil)
        var actions = Actions()
        let first = graph.submit(1, priority: .normal)
        let other = graph.submit(2, priority: .normal)
        let strict = graph.submit(3, priority: .normal)
        let lenient = graph.submit(4, priority: .normal)
        graph.addDependency(of: strict, on: first, .requireSuccess)
        graph.addDependency(of: strict, on: other, .requireSuccess)
        graph.addDependency(of: lenient, on: first, .allowFailure)
        for job in [first, other, strict, lenient] { graph.release(job, &actions) }
        expect(actions.start, equals: [1, 2])
        actions = Actions()
        graph.finish(first, succeeded: false, &actions)
        expect(actions.end, equals: [3])
        expect(actions.start, equals: [4])
        expect(graph.queueLane.runningCount, equals: 2)
    }

    @Test("OPQ-1: a hold delays a job, and a job that has finished does nothing")
    func holds() {
        var graph = Graph(limit: nil)
        var actions = Actions()
        let old = graph.submit(1, priority: .normal)
        graph.release(old, &actions)
        graph.finish(old, succeeded: true, &actions)
        let job = graph.submit(2, priority: .normal)
        expect(graph.addDependency(of: job, on: old, .requireSuccess), equals: false)
        graph.hold(job)
        graph.release(job, &actions)
        graph.release(old, &actions)
        graph.end(old, &actions)
        expect(actions.start, equals: [1])
        graph.release(job, &actions)
        expect(actions.start, equals: [1, 2])
    }

    @Test("OPQ-3: a barrier waits for all before it, and all after it wait for the barrier")
    func barrier() {
        var graph = Graph(limit: nil)
        var actions = Actions()
        let jobs = [(1, false), (2, false), (3, true), (4, false), (5, true), (6, false)].map { payload, isBarrier in
            graph.submit(payload, priority: .normal, isBarrier: isBarrier)
        }
        for job in jobs { graph.release(job, &actions) }
        var started: [[Int]] = [actions.start]
        for job in jobs {
            actions = Actions()
            graph.finish(job, succeeded: false, &actions)
            started.append(actions.start)
        }
        expect(started, equals: [[1, 2], [], [3], [4], [5], [6], []])
    }

    @Test("OPQ-3: no job passes a cancelled barrier before the jobs that it waited for have finished")
    func cancelledBarrier() throws {
        var graph = Graph(limit: nil)
        var actions = Actions()
        let jobs = [(1, false), (2, true), (3, true), (4, true), (5, false)].map { payload, isBarrier in
            graph.submit(payload, priority: .normal, isBarrier: isBarrier)
        }
        for job in jobs { graph.release(job, &actions) }
        for job in jobs[2...3] {
            graph.end(job, &actions)
            graph.finish(job, succeeded: false, &actions)
        }
        expect(actions.start == [1] && actions.end == [3, 4] && graph.count == 3)
        let late = graph.submit(6, priority: .normal)
        graph.release(late, &actions)
        graph.finish(jobs[0], succeeded: true, &actions)
        expect(actions.start, equals: [1, 2])
        graph.finish(jobs[1], succeeded: true, &actions)
        expect(actions.start, equals: [1, 2, 5, 6])
        graph.finish(jobs[4], succeeded: true, &actions)
        graph.finish(late, succeeded: true, &actions)
        expect(graph.count, equals: 0)
    }

    @Test("BEY-4: tens of thousands of cancelled barriers behind one job need no recursion")
    func manyCancelledBarriers() {
        var graph = Graph(limit: nil)
        var actions = Actions()
        let first = graph.submit(0, priority: .normal)
        graph.release(first, &actions)
        for number in 1...TestLoad.count(100_000, part: 20_000) {
            let barrier = graph.submit(number, priority: .normal, isBarrier: true)
            graph.release(barrier, &actions)
            graph.end(barrier, &actions)
            graph.finish(barrier, succeeded: false, &actions)
        }
        let last = graph.submit(-1, priority: .normal)
        graph.release(last, &actions)
        expect(actions.start, equals: [0])
        graph.finish(first, succeeded: true, &actions)
        expect(actions.start, equals: [0, -1])
    }

    @Test("OPQ-3: a slot taken back goes to the next, and the job comes again in its turn")
    func slotTakenBack() {
        var graph = Graph(limit: 1)
        var actions = Actions()
        let jobs = (1...3).map { graph.submit($0, priority: .normal) }
        for job in jobs { graph.release(job, &actions) }
        let wasRunning = graph.takeSlot(from: jobs[0], &actions)
        let wasReady = graph.takeSlot(from: jobs[1], &actions)
        expect(wasRunning && !wasReady)
        graph.addDependency(of: jobs[0], on: jobs[2], .allowFailure)
        graph.release(jobs[0], &actions)
        expect(actions.start, equals: [1, 2])
        graph.finish(jobs[1], succeeded: true, &actions)
        graph.finish(jobs[2], succeeded: true, &actions)
        expect(actions.start, equals: [1, 2, 3, 1])
    }

    /// Checks all properties of the queue against a slow, simple model after every step.
    @Test(
        "OPQ-3, BEY-5: random graphs, cancels, limits, suspensions and priorities",
        arguments: 0..<UInt64(TestLoad.count(40, part: 1, huge: 160))
    )
    func randomSteps(batch: UInt64) {
        for seed in (batch * 250)..<(batch * 250 + 250) {
            var run = JobGraphHistory(seed: seed)
            if let fault = run.run() {
                Issue.record("seed \(seed): \(fault)")
                return
            }
        }
    }
}
