import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("JobAdmission")
struct JobAdmissionTests {
    private typealias Graph = JobGraph<Int>
    private typealias Actions = JobGraph<Int>.Actions

    @Test("OPQ-3: a low priority is overtaken so many times and no more, in all and within a host")
    func overtaking() {
        for keys in [[], [LimitKey.host("a")]] {
            var graph = Graph(limit: keys.isEmpty ? 1 : nil)
            graph.overtakingLimit = 3
            if !keys.isEmpty { graph.setLimit(1, for: keys[0]) }
            var actions = Actions()
            let first = graph.submit(0, keys: keys)
            graph.release(first, &actions)
            var running = [0: first]
            let low = graph.submit(-1, priority: .low, keys: keys)
            graph.release(low, &actions)
            running[-1] = low
            for number in 1...6 {
                running[number] = graph.submit(number, priority: .high, keys: keys)
                graph.release(running[number]!, &actions)  // Put there in the line above.
            }
            var started = 0
            while started < actions.start.count {
                if let job = running[actions.start[started]] { graph.finish(job, succeeded: true, &actions) }
                started += 1
            }
            expect(actions.start, equals: [0, 1, 2, 3, -1, 4, 5, 6])
        }
    }

    @Test("BEY-6: a host at its limit delays no other host, and goes on in order when it has room")
    func hostLimit() {
        var graph = Graph(limit: 3)
        graph.hostLimit = 1
        var actions = Actions()
        let hosts = ["a", "a", "a", "b", "b", "c"]
        let jobs = hosts.indices.map { graph.submit($0, keys: [.host(hosts[$0])]) }
        for job in jobs { graph.release(job, &actions) }
        expect(actions.start, equals: [0, 3, 5])
        graph.finish(jobs[3], succeeded: true, &actions)
        graph.finish(jobs[0], succeeded: true, &actions)
        expect(actions.start, equals: [0, 3, 5, 4, 1])
        graph.setLimit(2, for: .host("a"))
        graph.admit(&actions)
        expect(actions.start, equals: [0, 3, 5, 4, 1], "three run already")
        graph.finish(jobs[5], succeeded: true, &actions)
        expect(actions.start, equals: [0, 3, 5, 4, 1, 2])
    }

    @Test("BEY-6: jobs that exclude each other by two categories in opposite order both run, one after the other")
    func exclusion() {
        var graph = Graph(limit: nil)
        var actions = Actions()
        let jobs = [["x", "y"], ["y", "x"], ["x"], ["z"]].enumerated().map { index, categories in
            graph.submit(index, keys: categories.map { .exclusion($0) })
        }
        for job in jobs { graph.release(job, &actions) }
        expect(actions.start, equals: [0, 3])
        graph.finish(jobs[0], succeeded: true, &actions)
        graph.finish(jobs[1], succeeded: true, &actions)
        expect(actions.start, equals: [0, 3, 1, 2])
    }

    @Test("BEY-6: a rate spaces starts, keeps as many tokens as its burst, and says when to look again")
    func rate() {
        var graph = Graph(limit: nil)
        graph.setRate(RateLimit(2, per: 1, burst: 2), for: .queueLane)
        var actions = Actions(now: 10)
        let jobs = (0..<5).map { graph.submit($0) }
        for job in jobs { graph.release(job, &actions) }
        expect(actions.start, equals: [0, 1])
        expect(actions.wake, equals: 10.5)
        actions = Actions(now: 10.4)
        graph.admit(&actions)
        expect(actions.start.isEmpty && actions.wake == 10.5)
        actions = Actions(now: 10.5)
        graph.admit(&actions)
        expect(actions.start == [2] && actions.wake == 11)
        actions = Actions(now: 20)
        graph.admit(&actions)
        expect(actions.start == [3, 4] && actions.wake == nil)
    }

    @Test("BEY-6: a rate of one host holds back that host alone")
    func hostRate() {
        var graph = Graph(limit: nil)
        var actions = Actions(now: 0)
        graph.setRate(RateLimit(1, per: 2), for: .host("a"))
        let hosts = ["a", "a", "b", "a", "b"]
        let jobs = hosts.indices.map { graph.submit($0, keys: [.host(hosts[$0])]) }
        for job in jobs { graph.release(job, &actions) }
        expect(actions.start == [0, 2, 4] && actions.wake == 2)
        actions = Actions(now: 2)
        graph.finish(jobs[0], succeeded: true, &actions)
        expect(actions.start == [1] && actions.wake == 4)
        actions = Actions(now: 3)
        graph.setRate(nil, for: .host("a"))
        graph.admit(&actions)
        expect(actions.start == [3] && actions.wake == nil)
    }

    @Test("BEY-6: in no span of time do more start than the rate says", arguments: 0..<200 as Range<UInt64>)
    func rateProperty(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let limit = RateLimit(
            Int.random(in: 1...20, using: &random),
            per: Double.random(in: 0.1...10, using: &random),
            burst: Int.random(in: 1...5, using: &random)
        )
        var gate = RateGate(limit)
        var now = 0.0
        var starts: [Double] = []
        while starts.count < 200 {
            if gate.opens <= now {
                gate.take(at: now)
                starts.append(now)
            } else if Bool.random(using: &random) {
                now = gate.opens
            } else {
                now += Double.random(in: 0...1, using: &random)
            }
        }
        let most = limit.count + limit.burst - 1
        for (index, start) in starts.enumerated() where index >= most {
            // The tolerance of a millionth covers rounding.
            expect(start - starts[index - most] >= limit.seconds * (1 - 1e-6), "seed \(seed)")
        }
    }

    @Test("BEY-20: a job notes for which limit, rate or suspension it waited at last, and for how long")
    func waitNotes() {
        var graph = Graph(limit: 2)
        graph.notesWaits = true
        graph.setLimit(1, for: .host("a"))
        graph.setRate(RateLimit(1, per: 10), for: .tag("t"))
        var actions = Actions(now: 0)
        let keys: [[LimitKey]] = [[.host("a")], [.host("a")], [.tag("t")], [.tag("t")], [], []]
        let jobs = keys.enumerated().map { graph.submit($0, keys: $1) }
        for job in jobs { graph.release(job, &actions) }
        expect(actions.start, equals: [0, 2])
        func note(_ index: Int) -> [WaitReason?] { [jobs[index].wait?.reason] }
        expect(note(0) == [nil] && jobs[0].wait?.seconds == 0)
        actions = Actions(now: 1)
        graph.finish(jobs[0], succeeded: true, &actions)
        expect(actions.start == [1] && note(1) == [.hostLimit(host: "a", 1)] && jobs[1].wait?.seconds == 1)
        actions = Actions(now: 2)
        graph.isSuspended = true
        graph.finish(jobs[1], succeeded: true, &actions)
        graph.finish(jobs[2], succeeded: true, &actions)
        actions = Actions(now: 3)
        graph.setSuspended(false, &actions)
        // The rate holds the job with the tag.
        expect(actions.start == [4, 5] && note(4) == [.suspended] && jobs[4].wait?.seconds == 3)
        graph.finish(jobs[4], succeeded: true, &actions)
        actions = Actions(now: 10)
        graph.admit(&actions)
        expect(actions.start == [3] && jobs[3].wait?.seconds == 10)
        expect(note(3), equals: [.rate(seconds: 0)])
    }

    @Test("BEY-20: a job that ends before its turn notes what it waits for; without listeners nothing is noted")
    func waitNotesOfEnded() {
        var graph = Graph(limit: nil)
        graph.hostLimit = 1
        var actions = Actions(now: 0)
        let unheard = (0..<2).map { graph.submit($0, keys: [.host("a")]) }
        for job in unheard { graph.release(job, &actions) }
        expect(unheard.allSatisfy { $0.wait == nil })
        graph.notesWaits = true
        let job = graph.submit(3, keys: [.host("a")])
        graph.release(job, &actions)
        actions = Actions(now: 5)
        graph.end(job, &actions)
        expect(job.wait?.reason == .hostLimit(host: "a", 1) && job.wait?.seconds == 5)
    }

    @Test("BEY-6: invalid rates are raised to valid ones")
    func rateValues() {
        expect(RateLimit(0, per: 0, burst: 0), equals: RateLimit(1, per: 1e-9, burst: 1))
        expect(RateLimit(1, per: .nan), equals: RateLimit(1, per: 1))
    }

    @Test("BEY-4: 100,000 jobs that wait for two keys in turn cost the starts of others nothing")
    func manyBehindTwoKeys() {
        var graph = Graph(limit: nil)
        let keys = [LimitKey.host("a"), .tag("t")]
        for key in keys { graph.setLimit(1, for: key) }
        var actions = Actions()
        var running = keys.map { graph.submit(0, keys: [$0]) }
        for job in running { graph.release(job, &actions) }
        let jobs = (1...TestLoad.count(100_000)).map { graph.submit($0, keys: keys) }
        for job in jobs { graph.release(job, &actions) }
        for round in 0..<jobs.count / 5 {
            let next = graph.submit(0, keys: [keys[round % 2]])
            graph.finish(running[round % 2], succeeded: true, &actions)
            graph.release(next, &actions)
            running[round % 2] = next
        }
        expect(running.allSatisfy { $0.phase == .running } && actions.start.allSatisfy { $0 == 0 })
        for job in running + jobs { graph.finish(job, succeeded: true, &actions) }
        expect(actions.start.filter { $0 > 0 } == Array(1...jobs.count) && graph.totalCount == 0)
    }

    @Test("BEY-4: 100,000 jobs of one host behind its limit cost the same each")
    func manyBehindOneHost() {
        var graph = Graph(limit: nil)
        graph.hostLimit = 1
        var actions = Actions()
        let count = TestLoad.count(100_000)
        let jobs = (0..<count).map { graph.submit($0, keys: [.host("a")]) }
        for job in jobs { graph.release(job, &actions) }
        for job in jobs { graph.finish(job, succeeded: true, &actions) }
        expect(actions.start, equals: Array(0..<count))
        expect(graph.submitted.isEmpty)
    }
}
