import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork
@testable import EasyNetworkOutbox
@testable import TestSupport

/// The activities that an outbox asks for, each of which is granted on a thread of its own.
private final class Activities: Sendable {
    private let state = Locked<(begun: Int, ended: Int, last: (@Sendable (Bool) -> Void)?)>((0, 0, nil))

    var activity: ExpiringActivity {
        ExpiringActivity { [state] activity in
            state.withLock { state in
                state.begun += 1
                state.last = activity
            }
            Thread {
                activity(false)
                state.withLock { $0.ended += 1 }
            }.start()
        }
    }

    var begun: Int { state.withLock { $0.begun } }
    var areOver: Bool { state.withLock { $0.begun > 0 && $0.begun == $0.ended } }

    func expire() {
        state.withLock { $0.last }?(true)
    }
}

@Suite("Outbox in programs that are suspended", .timeLimit(.minutes(10)))
struct OutboxSuspensionTests {
    private func isFree(_ fixture: OutboxFixture) throws -> Bool {
        try OutboxFolder(fixture.directory).lock() != nil
    }

    @Test("BEY-13: the lock is held only while something is delivered, within an activity")
    func idle() async throws {
        let (fixture, activities) = (OutboxFixture(), Activities())
        let outbox = try fixture.outbox(activity: activities.activity)
        try outbox.start()
        await expect(eventually { activities.areOver })
        try expect(isFree(fixture))
        for text in ["a", "b"] {
            let begun = activities.begun
            let id = try outbox.add(OutboxMessage(text: text))
            await expect(eventually { fixture.count("entries") == 0 })
            await expect(eventually { activities.begun > begun && activities.areOver })
            try expect(isFree(fixture) && fixture.keys.last == id.uuidString)
        }
        // Nothing changes any more, but that the last removal is seen.
        for _ in 1...3 { await fixture.checkForChanges() }
        await expect(eventually { activities.areOver })
        let begun = activities.begun
        for _ in 1...9 { await fixture.checkForChanges() }
        expect(activities.begun == begun && activities.areOver)
        try await expect(outbox.drain(deadline: 60).isEmpty)
    }

    @Test("BEY-13: when the activity expires, what is under way is cancelled, the lock is free, and it goes on later")
    func expired() async throws {
        let (fixture, activities) = (OutboxFixture(), Activities())
        let gate = Locked(true)
        fixture.transport.route("POST", "*") { _ in gate.withLock { $0 } ? .fault(.stall) : .status(204) }
        let outbox = try fixture.outbox(activity: activities.activity)
        let id = try outbox.add(OutboxMessage(text: "a"))
        try outbox.start()
        await expect(eventually { fixture.transport.requests.count == 1 })
        try expect(!isFree(fixture) && !activities.areOver)
        activities.expire()
        await expect(eventually { activities.areOver })
        try expect(isFree(fixture))
        let left = try outbox.entries
        expect(left.map(\.id) == [id] && left.allSatisfy { !$0.isSending && $0.error == nil })
        gate.exchange(false)
        await fixture.checkForChanges()
        await expect(eventually { fixture.count("entries") == 0 && activities.areOver })
        expect(fixture.keys, equals: [id.uuidString, id.uuidString])
        try await outbox.drain(deadline: 0)
    }
}
