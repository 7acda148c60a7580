import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("DownloadTurn")
struct DownloadTurnTests {
    private typealias Effect = DownloadTurn.Effect

    /// A fetch under way.
    ///
    /// - Parameter canResume: what its answer has shown; nil before that.
    private func fetching(mayRepeat: Bool = true, canResume: Bool?) -> DownloadTurn {
        var turn = DownloadTurn()
        _ = turn.begin(mayRepeat: mayRepeat)
        if let canResume { _ = turn.answered(canResume: canResume) }
        return turn
    }

    @Test("TRF-3: a pause stops what can be resumed, or has brought nothing yet, and it goes on later")
    func stops() {
        for canResume in [true, nil] {
            var turn = fetching(canResume: canResume)
            expect(turn.pause() == [.stop] && turn.isStopped && !turn.isHeld && turn.isPaused)
            expect(turn.pause() == [] && turn.ended(hasLostConnection: false))
            expect(turn.begin(mayRepeat: true), equals: false)
            expect(turn.resume() == [] && turn.begin(mayRepeat: true))
            expect(turn.ended(hasLostConnection: true), equals: false)
        }
    }

    @Test("BEY-23: a pause keeps the connection of what cannot be resumed, and of a request that is sent once")
    func keeps() {
        for (mayRepeat, canResume) in [(true, false), (false, nil), (false, false), (false, true)] {
            var turn = fetching(mayRepeat: mayRepeat, canResume: canResume)
            expect(turn.pause() == [.hold, .releaseSlot] && turn.isHeld && turn.isResting && !turn.isStopped)
            expect(turn.resume() == [.reclaimSlot] && turn.isHeld && !turn.isResting)
            // Paused again before the slot is there.
            expect(turn.pause() == [.hold, .releaseSlot] && turn.hasSlotAgain() == [.releaseSlot])
            expect(turn.resume() == [.reclaimSlot] && turn.hasSlotAgain() == [.read] && !turn.isHeld)
            // The server may have closed it because nothing was read.
            expect(turn.ended(hasLostConnection: true), equals: mayRepeat)
        }
    }

    @Test("BEY-23: a GET that an interceptor has made a POST of is sent once")
    func changedByInterceptor() {
        var turn = fetching(canResume: nil)
        turn.asks(true)
        turn.asks(false)
        expect(turn.pause() == [.hold, .releaseSlot] && turn.answered(canResume: true) == false)
        expect(turn.ended(hasLostConnection: true), equals: false)
    }

    @Test("OPQ-11: what can be resumed keeps its connection for a while, and then lets it go")
    func yields() {
        var turn = fetching(canResume: true)
        expect(turn.yielded() == [.hold, .startTimer] && turn.isHeld)
        expect(turn.resumedAfterYield() == [.cancelTimer, .read] && !turn.isHeld && turn.keptLongEnough() == [])
        expect(turn.yielded() == [.hold, .startTimer] && turn.keptLongEnough() == [.stop] && turn.isStopped)
        expect(turn.resumedAfterYield() == [.cancelTimer, .read] && turn.ended(hasLostConnection: false))
    }

    @Test("TRF-8: what turns out not to be resumable after it has yielded keeps its connection")
    func keptForUrgentJob() {
        var turn = fetching(canResume: true)
        _ = turn.yielded()
        expect(turn.answered(canResume: false) == false && turn.keptLongEnough() == [])
        expect(turn.resumedAfterYield(), equals: [.cancelTimer, .read])
        expect(turn.ended(hasLostConnection: true), equals: true)
    }

    @Test("OPQ-11: a yield and its end count in any order, and with a pause between")
    func order() {
        var turn = fetching(canResume: true)
        expect(turn.resumedAfterYield() == [.cancelTimer, .read] && turn.yielded() == [] && !turn.isHeld)
        var kept = fetching(mayRepeat: false, canResume: false)
        expect(kept.yielded() == [.hold, .startTimer] && kept.pause() == [.hold, .releaseSlot])
        expect(kept.resume() == [.reclaimSlot] && kept.hasSlotAgain() == [] && kept.isHeld)
        expect(kept.resumedAfterYield() == [.cancelTimer, .read] && !kept.isHeld)
    }

    @Test(
        "BEY-23, TRF-8: laws with random events: a request that is sent once is never stopped, and nothing stays held",
        arguments: [UInt64.random(in: 0...UInt64.max)]
    )
    func laws(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        for _ in 0..<2_000 {
            let mayRepeat = Bool.random(using: &random)
            var turn = DownloadTurn()
            var (isFetching, yields, asksForSlot) = (false, 0, false)
            for _ in 0..<30 {
                var effects: [Effect] = []
                switch Int.random(in: 0..<9, using: &random) {
                case 0 where !isFetching: isFetching = turn.begin(mayRepeat: mayRepeat)
                case 1 where isFetching:
                    let answer = Bool.random(using: &random)
                    if let mayYield = turn.answered(canResume: answer) {
                        expect(mayYield, equals: (answer && mayRepeat), "seed \(seed)")
                    }
                case 2 where isFetching:
                    let isFollowed = turn.ended(hasLostConnection: Bool.random(using: &random))
                    expect(mayRepeat || !isFollowed, "seed \(seed)")
                    isFetching = false
                case 3: effects = turn.pause()
                case 4: effects = turn.resume()
                case 5:
                    yields += 1
                    effects = turn.yielded()
                case 6 where yields > 0:
                    yields -= 1
                    effects = turn.resumedAfterYield()
                case 7: effects = turn.keptLongEnough()
                case 8 where asksForSlot:
                    asksForSlot = false
                    effects = turn.hasSlotAgain()
                default: break
                }
                if effects.contains(.reclaimSlot) { asksForSlot = true }
                expect(mayRepeat || !effects.contains(.stop), "seed \(seed)")
                expect(!turn.isResting || turn.isHeld && turn.isPaused, "seed \(seed)")
            }
            // In the end all go on.
            if turn.resume().contains(.reclaimSlot) || asksForSlot { _ = turn.hasSlotAgain() }
            for _ in 0..<yields { _ = turn.resumedAfterYield() }
            expect(!turn.isHeld && !turn.isPaused, "seed \(seed)")
        }
    }
}
