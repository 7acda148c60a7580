import Dispatch
import EasyNetwork
import EasyNetworkDiagnostics
import Foundation

/// What became of a history.
public struct Outcome: Sendable {
    public let seed: UInt64
    /// The law that was broken, and how; nil when all were kept.
    public internal(set) var law: String?
    public internal(set) var detail = ""
    public internal(set) var trace: [String] = []
    /// The kinds of jobs with their ends and faults, and what users did.
    public internal(set) var covered: Set<String> = []
    public internal(set) var stepCount = 0
}

/// Histories by their seeds.
public enum Simulation {
    /// What many histories have shown.
    public typealias Summary = (failures: [Outcome], stepCount: Int, covered: Set<String>)

    public static func live(_ seed: UInt64, isTraced: Bool = false) -> Outcome {
        History.make(seed).live(isTraced: isTraced)
    }

    /// The first seeds of histories with at most six jobs.
    public static func shortSeeds(_ count: Int) -> [UInt64] {
        Array((1...).lazy.filter { History.make($0).jobs.count <= 6 }.prefix(count))
    }

    /// Lives many histories, until so many have failed.
    ///
    /// - Parameter begins: called before each history, on its thread.
    public static func live(
        _ seeds: some Sequence<UInt64>,
        threads: Int = 1,
        failureLimit: Int = .max,
        begins: @escaping @Sendable (_ thread: Int, _ seed: UInt64) -> Void = { _, _ in }
    ) -> Summary {
        let (rest, summary) = (Locked(Array(seeds)[...]), Locked<Summary>(([], 0, [])))
        DispatchQueue.concurrentPerform(iterations: threads) { thread in
            while summary.withLock({ $0.failures.count < failureLimit }), let seed = rest.withLock({ $0.popFirst() }) {
                begins(thread, seed)
                let outcome = live(seed)
                summary.withLock { summary in
                    if outcome.law != nil { summary.failures.append(outcome) }
                    summary.stepCount += outcome.stepCount
                    summary.covered.formUnion(outcome.covered)
                }
            }
        }
        var result = summary.withLock { $0 }
        result.failures.sort { $0.seed < $1.seed }
        return result
    }

    /// The smallest history found that breaks the same law, in words, with its trace and its page.
    public static func shrink(_ outcome: Outcome) -> (history: String, outcome: Outcome, timeline: Timeline?) {
        let history = History.make(outcome.seed)
        guard let law = outcome.law else { return (history.text, outcome, nil) }
        let best = history.shrunk(law)
        var timeline: Timeline?
        let smallest = best.live(isTraced: true) { world in
            guard let queue = world.queue else { return }
            world.listen(to: queue)
            timeline = Timeline(clock: world.loop)
            timeline?.record(queue)
        }
        return (best.text, smallest, timeline)
    }
}

extension History {
    /// Lives it.
    ///
    /// - Parameter begins: called when the world has been made.
    func live(isTraced: Bool = false, begins: (World) -> Void = { _ in }) -> Outcome {
        let memory = "/dev/shm"
        // A name that no other history has: what one leaves behind is not the next one's.
        let folder = (access(memory, W_OK) == 0 ? memory : NSTemporaryDirectory()) + "/EasyNetwork-simulation-\(UUID())"
        let hasFiles = !mails.isEmpty || jobs.contains { $0.kind == .download }
        if hasFiles { try? FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true) }
        let world = World(self, isTraced: isTraced, folder: folder)
        WorkQueue.simulate(on: world.loop) {
            world.prepare()
            begins(world)
            world.live()
        }
        world.outcome.stepCount = world.loop.stepCount
        if hasFiles { try? FileManager.default.removeItem(atPath: folder) }
        return world.outcome
    }
}
