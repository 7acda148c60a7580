import EasyNetwork
import Foundation
import SampleSupport

/// The jobs of a plan in a queue.
struct Runner: Sendable {
    /// A job of the plan. If the plan runs several times, the id ends with the number of the copy.
    typealias Job = (id: String, api: String, operation: NetworkOperation)

    let queue: NetworkQueue
    let jobs: [Job]
    /// The jobs that are not in a batch, and the batches.
    private let added: [Operation]

    /// Creates all jobs, so that an error is found before any of them runs.
    ///
    /// - Throws: A ``Misuse`` that names the place in the plan.
    init(_ plan: Plan, _ arguments: Arguments, _ registry: Registry, _ service: EasyNetworkService) throws {
        queue = NetworkQueue(name: "Harness", maxConcurrentOperationCountPerHost: plan.hostLimit ?? -1)
        if let limit = arguments.jobCount ?? plan.limit { queue.maxConcurrentOperationCount = limit }
        for (tag, limit) in plan.tagLimits ?? [:] { queue.setMaxConcurrentOperationCount(limit, forTag: tag) }
        let copies = try (1...arguments.repeatCount).map { copy in
            try Self.operations(plan, registry, service, suffix: arguments.repeatCount > 1 ? "#\(copy)" : "")
        }
        (jobs, added) = (copies.flatMap(\.jobs), copies.flatMap(\.added))
    }

    private static func operations(
        _ plan: Plan,
        _ registry: Registry,
        _ service: EasyNetworkService,
        suffix: String
    ) throws -> (jobs: [Job], added: [Operation]) {
        var operations: [String: NetworkOperation] = [:]
        var jobs: [Job] = []
        for (index, job) in plan.jobs.enumerated() {
            let operation: NetworkOperation
            do {
                operation = try registry.named(job.api).operation(job.with?.mapValues(\.text) ?? [:], service)
            } catch let misuse as Misuse {
                throw Misuse("jobs[\(index)]: \(misuse.message)")
            }
            operation.name = job.id + suffix
            operation.tags.formUnion(job.tags ?? [])
            if let priority = job.priority.flatMap({ Plan.priorities[$0] }) { operation.queuePriority = priority }
            operation.deadline = job.deadline
            operations[job.id] = operation
            jobs.append((job.id + suffix, job.api, operation))
        }
        for batch in plan.batches ?? [] {
            let group = BatchOperation(
                batch.jobs.compactMap { operations[$0] },
                policy: batch.policy == .collectAll ? .collectAll : .failFast,
                maxConcurrentOperationCount: batch.limit ?? -1
            )
            group.name = batch.id + suffix
            operations[batch.id] = group
        }
        for job in plan.jobs {
            for id in job.after ?? [] {
                if let other = operations[id] { operations[job.id]?.addDependency(other) }
            }
        }
        let batched = Set((plan.batches ?? []).flatMap(\.jobs))
        let ids = plan.jobs.map(\.id).filter { !batched.contains($0) } + (plan.batches ?? []).map(\.id)
        return (jobs, ids.compactMap { operations[$0] })
    }

    /// Runs the jobs, and returns when all have ended.
    ///
    /// - Parameter console: Shows a line for each job that ends and, on a terminal, the counts while jobs run.
    func run(_ console: Console) async -> Report {
        let progress = Progress(jobs, console)
        let events = queue.events
        queue.addOperations(added)
        let ticking = Task {
            // Draw the counts ten times a second.
            while (try? await Task.sleep(for: .milliseconds(100))) != nil { await progress.draw() }
        }
        // The end of `shutDown` is the last event of the queue.
        async let undone = queue.shutDown(deadline: .infinity)
        for await event in events {
            await progress.note(event)
            if case .shutDown = event.kind { break }
        }
        _ = await undone
        ticking.cancel()
        await ticking.value
        return await progress.finish()
    }
}
