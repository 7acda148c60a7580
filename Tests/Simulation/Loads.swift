import EasyNetwork
import EasyNetworkResources
import Foundation

/// What users ask a loader for.
final class Loads: @unchecked Sendable {
    // Sendable because one thread uses it.
    private unowned let world: World
    private let loader: ResourceLoader<Answer>
    private var receipts: [ResourceReceipt<Answer>] = []
    private var (endCounts, cancelled): ([Int], Set<Int>) = ([], [])
    /// Whether the jobs of the loader may have been cancelled.
    var mayBeCancelled = false

    init(_ world: World, _ queue: NetworkQueue, _ service: EasyNetworkService) {
        self.world = world
        loader = ResourceLoader(queue: queue, service: service, maximumLoadCount: 2, maximumDecodeCount: 1) {
            world.loop.interrupt()
            return try $0.decode(Answer.self)
        }
    }

    func load(_ load: History.Load) {
        guard let url = URL(string: "https://a.test/r/\(load.resource)") else { return }
        let (number, step) = (receipts.count, world.loop.stepCount)
        let negative = ResourceVariant<Answer>("negative") {
            Answer(message: -1 - $0.message, job: $0.job, user: $0.user, path: $0.path)
        }
        let variant = load.isVariant ? negative : nil
        endCounts.append(0)
        let receipt = loader.load(url, variant: variant, ignoresCache: load.ignoresCache) { [unowned self] result in
            world.log("load \(number) ends: \(World.text(of: result.map { $0 }))")
            world.outcome.covered.insert("load \(result.code.map { "\($0)" } ?? "well")")
            endCounts[number] += 1
            world.loop.interrupt()
            let (name, isUnwanted) = ("load \(number)", cancelled.contains(number))
            world.forbid(.cancelTakesLong, name, when: isUnwanted && result.code != .cancelled)
            let isInVain = result.code == .cancelled && !isUnwanted && !mayBeCancelled
            world.forbid(.failedWithoutReason, name, when: isInVain)
            guard case .success(let answer) = result else { return }
            world.check(answer, of: load.resource, since: step, name)
            world.forbid(.responseOfAnotherRequest, name, when: (answer.message < 0) != load.isVariant)
        }
        receipts.append(receipt)
    }

    func cancel(_ number: Int) {
        guard receipts.indices.contains(number), receipts[number].result == nil else { return }
        cancelled.insert(number)
        receipts[number].cancel()
    }

    func hurry(_ number: Int, _ priority: Operation.QueuePriority) {
        if receipts.indices.contains(number) { receipts[number].priority = priority }
    }

    func checkEnd() {
        for (number, count) in endCounts.enumerated() where count != 1 {
            world.violate(count == 0 ? .neverEnds : .calledBackTwice, "load \(number)")
        }
    }
}
