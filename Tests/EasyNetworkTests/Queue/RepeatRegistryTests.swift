import Foundation
import Testing

@testable import EasyNetwork

@Suite("RepeatRegistry")
struct RepeatRegistryTests {
    private final class Job: Sendable {
        let number: Int

        init(_ number: Int) { self.number = number }
    }

    private enum Answer: Equatable {
        case proceed([Int])
        case refuse(Int)
        /// The job enters again after it was refused or replaced by a newer one.
        case isOver

        init(_ decision: RepeatRegistry<Job>.Decision) {
            switch decision {
            case .proceed(let cancelled): self = .proceed(cancelled.map(\.number))
            case .refuse(let older): self = .refuse(older.number)
            case .known(let mayGoOn): self = mayGoOn ? .proceed([]) : .isOver
            }
        }
    }

    private struct Jobs {
        var registry = RepeatRegistry<Job>()
        let jobs: [Job]

        init(_ count: Int) {
            jobs = (0..<count).map(Job.init)
        }

        mutating func enter(_ job: Int, _ policy: RepeatPolicy, _ key: String = "a") -> Answer {
            Answer(registry.enter(jobs[job], key: .named(key), policy: policy))
        }

        mutating func leave(_ job: Int) {
            registry.leave(ObjectIdentifier(jobs[job]))
        }
    }

    @Test("OPQ-6: a newer job has the older ones of its key cancelled, in order, and takes their place")
    func cancelOlder() {
        var jobs = Jobs(5)
        let answers = [
            jobs.enter(0, .allow), jobs.enter(1, .join), jobs.enter(2, .allow, "b"), jobs.enter(3, .cancelOlder),
            jobs.enter(4, .cancelOlder),
        ]
        #expect(answers == [.proceed([]), .proceed([]), .proceed([]), .proceed([0, 1]), .proceed([3])])
        // A job that was cancelled before its start cancels no others when it enters again.
        let again = jobs.enter(3, .cancelOlder)
        #expect(again == .isOver)
        for job in 0..<5 { jobs.leave(job) }
        #expect(jobs.registry.count == 0)
    }

    @Test("OPQ-6: a newer job is refused while an older one of its key is there, and only then")
    func ignoreNewer() {
        var jobs = Jobs(5)
        let answers = [
            jobs.enter(0, .ignoreNewer), jobs.enter(1, .ignoreNewer), jobs.enter(2, .ignoreNewer, "b"),
            jobs.enter(0, .ignoreNewer), jobs.enter(1, .ignoreNewer),
        ]
        #expect(answers == [.proceed([]), .refuse(0), .proceed([]), .proceed([]), .isOver])
        jobs.leave(0)
        // A refused job does not count.
        let next = jobs.enter(3, .ignoreNewer)
        #expect(next == .proceed([]))
        jobs.leave(1)
        let refused = jobs.enter(4, .ignoreNewer)
        #expect(refused == .refuse(3))
    }

    /// A simple model of the registry: one list with linear search.
    private struct Model {
        var jobs: [(job: Int, key: String, answer: Answer)] = []

        /// - Returns: nil if the newer job is refused because of any older one.
        mutating func enter(_ job: Int, _ key: String, _ policy: RepeatPolicy) -> Answer? {
            if let before = jobs.first(where: { $0.job == job })?.answer { return before }
            let older = counting(key)
            var answer = Answer.proceed([])
            if policy == .ignoreNewer, !older.isEmpty { return nil }
            if policy == .cancelOlder {
                answer = .proceed(older)
                for index in jobs.indices where older.contains(jobs[index].job) { jobs[index].answer = .isOver }
            }
            jobs.append((job, key, .proceed([])))
            return answer
        }

        func counting(_ key: String) -> [Int] {
            jobs.filter { $0.key == key && $0.answer == .proceed([]) }.map(\.job)
        }
    }

    @Test("OPQ-6: random histories go as in a slow model", arguments: 1...50 as ClosedRange<UInt64>)
    func histories(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        var jobs = Jobs(40)
        var model = Model()
        let policies: [RepeatPolicy] = [.allow, .cancelOlder, .ignoreNewer, .join]
        // Key and policy of a job are fixed, as in a queue.
        let traits = (0..<40).map { _ in
            (
                key: ["a", "b", "c"].randomElement(using: &generator) ?? "a",
                policy: policies.randomElement(using: &generator) ?? .allow
            )
        }
        for step in 0..<400 {
            let job = Int.random(in: 0..<40, using: &generator)
            if Int.random(in: 0..<3, using: &generator) == 0 {
                jobs.leave(job)
                model.jobs.removeAll { $0.job == job }
                continue
            }
            let (key, policy) = traits[job]
            let older = model.counting(key)
            let expected = model.enter(job, key, policy)
            let answer = jobs.enter(job, policy, key)
            if let expected {
                #expect(answer == expected, "seed \(seed), step \(step)")
            } else if case .refuse(let because) = answer {
                #expect(older.contains(because), "seed \(seed), step \(step)")
                model.jobs.append((job, key, .isOver))
            } else {
                Issue.record("not refused: seed \(seed), step \(step)")
            }
        }
        #expect(jobs.registry.count == model.jobs.count)
        for job in 0..<40 { jobs.leave(job) }
        #expect(jobs.registry.count == 0)
    }
}
