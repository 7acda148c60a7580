import Foundation
import Testing

@testable import EasyNetwork

@Suite("DeadlineWatch")
struct DeadlineWatchTests {
    @Test("REQ-5: activity moves the idle deadline, and not the total one")
    func deadlines() {
        var watch = DeadlineWatch(TransportDeadlines(idle: 10, total: 25), now: 100)
        #expect(watch.verdict(now: 100) == .checkAgain(after: 10))
        watch.activity(now: 108)
        #expect(watch.verdict(now: 110) == .checkAgain(after: 8))
        watch.activity(now: 117)
        #expect(watch.verdict(now: 120) == .checkAgain(after: 5))
        #expect(watch.verdict(now: 125) == .expired(message: "not done after 25.0 seconds"))
        #expect(DeadlineWatch(TransportDeadlines(idle: 0.5), now: 0).verdict(now: 0.5) != .checkAgain(after: 0))
        #expect(DeadlineWatch(TransportDeadlines(idle: nil), now: 0).verdict(now: 1e9) == .never)
    }
}

@Suite("ConnectionAdmission")
struct ConnectionAdmissionTests {
    private final class Token {}

    @Test("BEY-6: no more than the limit for one origin, the others in order, other origins apart")
    func admission() {
        var admission = ConnectionAdmission<Token>(limit: 2)
        let tokens = (0..<50).map { _ in Token() }
        #expect(tokens.map { admission.enter($0, origin: "a") } == [true, true] + Array(repeating: false, count: 48))
        let otherOrigin = admission.enter(Token(), origin: "b")
        #expect(otherOrigin)
        for token in tokens.dropFirst(2) { #expect(admission.end(origin: "a") === token) }
        #expect(admission.end(origin: "a") == nil)
        #expect(admission.end(origin: "a") == nil)
        let later = admission.enter(Token(), origin: "a")
        #expect(later)
        #expect(admission.end(origin: "never") == nil)
    }
}
