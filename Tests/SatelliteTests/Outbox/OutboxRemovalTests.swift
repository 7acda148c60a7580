import Foundation
import Testing

@testable import EasyNetwork
@testable import EasyNetworkOutbox
@testable import TestSupport

/// Files that call a closure before each step.
private final class WatchedFiles: CacheFiles, @unchecked Sendable {
    // Sendable because its state is behind a lock.
    private let state = Locked<(step: Int, call: (@Sendable () -> Void)?)>((0, nil))

    /// Calls a closure once, before the step with this number, counted from now on.
    func call(at step: Int, _ call: @escaping @Sendable () -> Void) {
        state.exchange((step, call))
    }

    private func step() {
        let call = state.withLock { state in
            state.step -= 1
            return state.step == -1 ? state.call.take() : nil
        }
        call?()
    }

    override func list(_ directory: String) throws -> [String] {
        step()
        return try super.list(directory)
    }

    override func read(_ path: String, count: (_ size: Int) -> Int) throws -> (Data, Status) {
        step()
        return try super.read(path, count: count)
    }

    override func create(_ path: String, _ pieces: [Data], usedAt date: Date) throws {
        step()
        try super.create(path, pieces, usedAt: date)
    }

    override func rename(_ path: String, to newPath: String) throws {
        step()
        try super.rename(path, to: newPath)
    }
}

@Suite("Removal from an outbox", .timeLimit(.minutes(10)))
struct OutboxRemovalTests {
    /// Two calls of two outboxes of one directory, of which the second begins at a step of the first.
    private struct Race: Sendable {
        let first: @Sendable (Outbox, UUID) throws -> Void
        let second: @Sendable (Outbox, UUID) throws -> Void

        /// - Returns: false when the first call has fewer steps.
        func run(_ one: Outbox, _ files: WatchedFiles, _ other: Outbox, _ id: UUID, at step: Int) throws -> Bool {
            let (hasBegun, calls) = (Locked(false), DispatchGroup())
            files.call(at: step) { [second] in
                hasBegun.withLock { $0 = true }
                calls.enter()
                Thread {
                    #expect(throws: Never.self) { try second(other, id) }
                    calls.leave()
                }.start()
                // Leaves it the time to end here, if nothing holds it up.
                _ = calls.wait(timeout: .now() + 0.05)
            }
            try first(one, id)
            files.call(at: -1) {}
            calls.wait()
            return hasBegun.withLock { $0 }
        }
    }

    @Test("BEY-13: a dead letter that one outbox removes, and another one retries meanwhile, is never sent")
    func retriedMeanwhile() async throws {
        let retry: @Sendable (Outbox, UUID) throws -> Void = { try $0.retry($1) }
        let removals: [@Sendable (Outbox, UUID) throws -> Void] = [
            { try $0.remove($1) }, { outbox, _ in try outbox.remove(tag: "ada") },
        ]
        for removal in removals {
            for race in [Race(first: removal, second: retry), Race(first: retry, second: removal)] {
                var step = 0
                while try await run(race, at: step) { step += 1 }
                expect(step >= 4)
            }
        }
    }

    /// Has a dead letter and one that failed since it depends on that.
    private func run(_ race: Race, at step: Int) async throws -> Bool {
        let (fixture, files) = (OutboxFixture(), WatchedFiles())
        let (one, other) = (try fixture.outbox(files: files), try fixture.outbox())
        fixture.answers(400, 204)
        let id = try one.add(OutboxMessage(text: "a"), options: OutboxOptions(tags: ["ada"]))
        let dependent = try one.add(OutboxMessage(text: "b"), after: [id])
        try await expect(one.drain(deadline: 60).isEmpty)
        try expect(one.deadLetters.map(\.id), equals: [id, dependent])
        guard try race.run(one, files, other, id, at: step) else { return false }
        try expect(other.entries.isEmpty && other.deadLetters.map(\.id) == [dependent], "step \(step)")
        try await expect(other.drain(deadline: 60).isEmpty)
        expect(fixture.texts, equals: ["a"], "step \(step)")
        return true
    }

    @Test("BEY-13: an entry that another outbox removes while its job waits for a slot is not sent")
    func waitingJob() async throws {
        let fixture = OutboxFixture()
        let queue = NetworkQueue()
        let (outbox, other) = (try fixture.outbox(queue: queue), try fixture.outbox())
        queue.isSuspended = true
        try outbox.start()
        let id = try outbox.add(OutboxMessage(text: "a"))
        await expect(eventually { queue.operationCount == 1 })
        try other.remove(id)
        queue.isSuspended = false
        try await expect(outbox.drain(deadline: 60).isEmpty)
        expect(fixture.texts.isEmpty)
    }

    @Test("BEY-13: the job of an entry that is not in the directory any more is cancelled")
    func cancelledJob() throws {
        let name = OutboxName(
            sequence: 1,
            id: UUID(),
            priority: .normal,
            hasDependencies: false,
            type: "message",
            lane: nil
        )
        var state = OutboxState(window: 4)
        _ = state.handle(.start, at: 0)
        _ = state.handle(.locked(true), at: 0)
        expect(state.handle(.listed([name: []], changes: 0), at: 0), equals: [.send(name)])
        expect(state.handle(.looked(changes: 1, isDue: false, isReachableAgain: false), at: 0), equals: [.list])
        expect(state.handle(.listed([:], changes: 1), at: 0), equals: [.cancel(name.id)])
        _ = state.handle(.ended(name.id, .gone), at: 0)
        expect(!state.isUnderWay(name.id))
    }

    @Test("BEY-13: the next period of an entry is removed with its tag, if the entry is delivered meanwhile")
    func nextPeriod() async throws {
        let options = OutboxOptions(unique: .keep("sync"), period: 3_600, tags: ["ada"])
        var step = 0
        var hasBegun = true
        while hasBegun {
            let (fixture, files) = (OutboxFixture(), WatchedFiles())
            let (one, other) = (try fixture.outbox(files: files), try fixture.outbox())
            let id = try one.add(OutboxMessage(text: "a"), options: options)
            let removal = Race(
                first: { outbox, _ in try outbox.remove(tag: "ada") },
                second: { outbox, id in
                    try outbox.start()
                    // Paces the polling.
                    while try outbox.entries.contains(where: { $0.id == id }) { usleep(1_000) }
                }
            )
            hasBegun = try removal.run(one, files, other, id, at: step)
            _ = try await other.drain(deadline: 60)
            try expect(one.entries.isEmpty && one.deadLetters.isEmpty, "step \(step)")
            step += 1
        }
        expect(step >= 4)
    }
}
