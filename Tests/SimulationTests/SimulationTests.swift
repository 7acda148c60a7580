import SimulatedWorld
import Testing

@testable import TestSupport

@Suite(.timeLimit(.minutes(10)))
struct SimulationTests {
    @Test("A thousand short histories of a whole world keep the laws (all features)")
    func laws() {
        let summary = Simulation.live(Simulation.shortSeeds(1_000), threads: 2, failureLimit: 1)
        guard let failure = summary.failures.first else { return }
        let (history, smallest, _) = Simulation.shrink(failure)
        let text = "seed \(failure.seed): \(failure.law ?? ""): \(failure.detail)\n\(history)"
        expect(false, "\(text)\n\(smallest.trace.joined(separator: "\n"))")
    }

    @Test("A history has the same trace each time")
    func replay() {
        for seed in 1..<51 as Range<UInt64> {
            let (one, other) = (Simulation.live(seed, isTraced: true), Simulation.live(seed, isTraced: true))
            expect(one.trace == other.trace, "seed \(seed)")
        }
    }
}
