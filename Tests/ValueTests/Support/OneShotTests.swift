import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("OneShot", .timeLimit(.minutes(10)))
struct OneShotTests {
    @Test("BEY-16: everyone who waits for an event hears of it, once and in order")
    func several() async {
        let event = OneShot()
        let notes = Locked<[Int]>([])
        for number in 0..<3 { event.whenOver { notes.withLock { $0.append(number) } } }
        let tasks = (0..<3).map { _ in Task { await event.wait() } }
        event.end()
        event.end()
        event.whenOver { notes.withLock { $0.append(3) } }
        for task in tasks { await task.value }
        expect(notes.withLock { $0 }, equals: [0, 1, 2, 3])
    }
}
