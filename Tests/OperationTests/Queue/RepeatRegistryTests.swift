import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("RepeatRegistry")
struct RepeatRegistryTests {
    private final class Job: Sendable {
        let number: Int

        init(_ number: Int) { self.number = number }
    }

    private enum Answer: Equatable {
        case proceed([Int])
        case refuse(Int)

        init(_ decision: RepeatRegistry<Job>.Decision) {
            switch decision {
            case .proceed(let cancelled): self = .proceed(cancelled.map(\.number))
            case .refuse(let older): self = .refuse(older.number)
            }
        }
    }

    private struct Jobs {
        var registry = RepeatRegistry<Job>()
        let jobs: [Job]
        private var keys: [Int: RepeatKey] = [:]

        /// The number of jobs that count.
        var count: Int { registry.jobs.values.reduce(0) { $0 + $1.count } }

        init(_ count: Int) {
            jobs = (0..<count).map(Job.init)
        }

        mutating func enter(_ job: Int, _ policy: RepeatPolicy, _ key: String = "a") -> Answer {
            keys[job] = .named(key)
            return Answer(registry.enter(jobs[job], key: .named(key), policy: policy))
        }

        mutating func leave(_ job: Int) {
            if let key = keys[job] { registry.leave(ObjectIdentifier(jobs[job]), key: key) }
        }
    }

    @Test("OPQ-6: a newer job has the older ones of its key cancelled, in order, and takes their place")
    func cancelOlder() {
        var jobs = Jobs(5)
        let answers = [
            jobs.enter(0, .allow), jobs.enter(1, .join), jobs.enter(2, .allow, "b"), jobs.enter(3, .cancelOlder),
            jobs.enter(4, .cancelOlder),
        ]
        expect(answers, equals: [.proceed([]), .proceed([]), .proceed([]), .proceed([0, 1]), .proceed([3])])
        expect(jobs.count, equals: 2)
        for job in 0..<5 { jobs.leave(job) }
        expect(jobs.count, equals: 0)
    }

    @Test("OPQ-6: a newer job is refused while an older one of its key is there, and only then")
    func ignoreNewer() {
        var jobs = Jobs(5)
        let answers = [
            jobs.enter(0, .ignoreNewer), jobs.enter(1, .ignoreNewer), jobs.enter(2, .ignoreNewer, "b"),
        ]
        expect(answers, equals: [.proceed([]), .refuse(0), .proceed([])])
        jobs.leave(0)
        // A refused job does not count.
        let next = jobs.enter(3, .ignoreNewer)
        expect(next, equals: .proceed([]))
        jobs.leave(1)
        let refused = jobs.enter(4, .ignoreNewer)
        expect(refused, equals: .refuse(3))
    }

    @Test("OPQ-6: random histories go as in a slow model", arguments: 1...50 as ClosedRange<UInt64>)
    func histories(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        var jobs = Jobs(400)
        /// The jobs that count, in the order in which they entered.
        var model: [(job: Int, key: String)] = []
        let policies: [RepeatPolicy] = [.allow, .cancelOlder, .ignoreNewer, .join]
        for job in 0..<400 {
            while Bool.random(using: &generator), let left = (0...job).randomElement(using: &generator) {
                jobs.leave(left)
                model.removeAll { $0.job == left }
            }
            let key = ["a", "b", "c"].randomElement(using: &generator) ?? "a"
            let policy = policies.randomElement(using: &generator) ?? .allow
            let older = model.filter { $0.key == key }.map(\.job)
            switch jobs.enter(job, policy, key) {
            case .refuse(let because):
                expect(policy == .ignoreNewer && older.contains(because), "seed \(seed), job \(job)")
            case .proceed(let cancelled):
                expect(policy != .ignoreNewer || older.isEmpty, "seed \(seed), job \(job)")
                expect(cancelled, equals: (policy == .cancelOlder ? older : []), "seed \(seed), job \(job)")
                model.removeAll { cancelled.contains($0.job) }
                model.append((job, key))
            }
        }
        expect(jobs.count, equals: model.count)
        for job in 0..<400 { jobs.leave(job) }
        expect(jobs.count, equals: 0)
    }
}
