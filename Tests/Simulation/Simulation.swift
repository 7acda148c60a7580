import Dispatch
import EasyNetwork
import Foundation

/// Histories by their seeds.
public enum Simulation {
    /// What many histories have shown.
    public struct Summary: Sendable {
        public internal(set) var failures: [Outcome] = []
        public internal(set) var stepCount = 0
        public internal(set) var covered: Set<String> = []
    }

    public static func live(_ seed: UInt64, isTraced: Bool = false) -> Outcome {
        History(seed).live(isTraced: isTraced)
    }

    /// Lives many histories, on as many threads as are given.
    ///
    /// - Parameters:
    ///   - failureLimit: the number of failures at which it stops.
    ///   - begins: called before each history, on its thread.
    public static func live(
        _ seeds: Range<UInt64>,
        threads: Int = 1,
        failureLimit: Int = .max,
        begins: @escaping @Sendable (_ thread: Int, _ seed: UInt64) -> Void = { _, _ in }
    ) -> Summary {
        let next = Locked(seeds.lowerBound)
        let summary = Locked(Summary())
        DispatchQueue.concurrentPerform(iterations: threads) { thread in
            while summary.withLock({ $0.failures.count < failureLimit }) {
                let seed = next.withLock { next in
                    next += 1
                    return next - 1
                }
                guard seed < seeds.upperBound else { return }
                begins(thread, seed)
                let outcome = live(seed)
                summary.withLock { summary in
                    if outcome.law != nil { summary.failures.append(outcome) }
                    summary.stepCount += outcome.stepCount
                    summary.covered.formUnion(outcome.covered)
                }
            }
        }
        return summary.withLock { summary in
            summary.failures.sort { $0.seed < $1.seed }
            return summary
        }
    }

    /// The smallest history found that breaks the same law, in words, with its trace.
    public static func shrink(_ outcome: Outcome) -> (history: String, outcome: Outcome) {
        guard let law = outcome.law else { return (History(outcome.seed).text, outcome) }
        var shrinker = Shrinker(History(outcome.seed), law: law)
        shrinker.shrink()
        // With the events of the queue in the trace, if that changes nothing.
        var heard = shrinker.best
        heard.settings.listens = true
        let best = heard.live().law == law ? heard : shrinker.best
        return (best.text, best.live(isTraced: true))
    }
}
