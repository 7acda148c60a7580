import Foundation
import Testing

@testable import EasyNetwork

@Suite("PartClaim")
struct PartClaimTests {
    /// A part that no other test has.
    private let part = UUID().uuidString

    @Test("TRF-3: a part belongs to one download, and to another when that one has released it")
    func inTurn() async {
        let (first, second, third) = (PartClaim(), PartClaim(), PartClaim())
        #expect(await first.take(part))
        #expect(await !second.take(part), "the first download is not ending")
        first.willRelease()
        let isOver = Locked(false)
        let waiting = Task {
            let isTaken = await second.take(part)
            #expect(isOver.withLock { $0 }, "the first download still has it")
            return isTaken
        }
        await Task.yield()
        isOver.withLock { $0 = true }
        first.release(part)
        #expect(await waiting.value)
        #expect(await !third.take(part))
        // It does not have it.
        third.release(part)
        #expect(await !PartClaim().take(part))
        second.release(part)
    }

    @Test("TRF-3: a download that has ended before it asks takes nothing, and keeps nobody from the part")
    func endedBefore() async {
        let (first, second) = (PartClaim(), PartClaim())
        first.willRelease()
        #expect(await !first.take(part))
        #expect(await second.take(part))
        second.release(part)
    }

    @Test("TRF-3: cancelled while it waits for the part, it keeps nobody from it", .timeLimit(.minutes(1)))
    func cancelled() async {
        let (first, second, third) = (PartClaim(), PartClaim(), PartClaim())
        #expect(await first.take(part))
        first.willRelease()
        let waiting = Task { await second.take(part) }
        waiting.cancel()
        #expect(await !waiting.value)
        first.release(part)
        #expect(await third.take(part))
        third.release(part)
    }
}
