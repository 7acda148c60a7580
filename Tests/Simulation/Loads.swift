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
        let negative = ResourceVariant<Answer>("negative") { whole in
            var answer = whole
            answer.message = -1 - whole.message
            return answer
        }
        let variant = load.isVariant ? negative : nil
        endCounts.append(0)
        let receipt = loader.load(url, variant: variant, ignoresCache: load.ignoresCache) { [unowned self] result in
            world.log("load \(number) ends: \(World.text(of: result.map { $0 }))")
            world.outcome.covered.insert("load \(result.code.map { "\($0)" } ?? "well")")
            endCounts[number] += 1
            world.loop.interrupt()
            let isCancelled = cancelled.contains(number)
            if isCancelled, result.code != .cancelled { world.violate(.cancelTakesLong, "load \(number)") }
            switch result {
            case .success(let answer):
                world.check(answer, of: load.resource, since: step, "load \(number)")
                if (answer.message < 0) != load.isVariant { world.violate(.responseOfAnotherRequest, "load \(number)") }
            case .failure(let error):
                if error.code == .cancelled, !mayBeCancelled, !isCancelled {
                    world.violate(.failedWithoutReason, "load \(number): \(error)")
                }
            }
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
