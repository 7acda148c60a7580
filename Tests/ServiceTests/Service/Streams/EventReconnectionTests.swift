import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("EventReconnection")
struct EventReconnectionTests {
    private func reconnection(_ time: TimeInterval = 3, maximum: TimeInterval = 60) -> EventReconnection {
        EventReconnection(time: time, maximumTime: maximum)
    }

    private func delays(
        _ reconnection: inout EventReconnection,
        _ count: Int,
        retry: TimeInterval? = nil
    ) -> [TimeInterval] {
        (0..<count).map { _ in reconnection.delay(retry: retry) }
    }

    @Test("BEY-8: connections in a row that bring nothing are waited for twice as long each, up to a bound")
    func doubling() {
        var reconnection = reconnection()
        let silent = delays(&reconnection, 7)
        expect(silent, equals: [3, 6, 12, 24, 48, 60, 60])
        reconnection.receivedEvent()
        let again = delays(&reconnection, 2)
        expect(again, equals: [3, 6])
    }

    @Test("BEY-8: the server's time counts instead, also beyond the bound, up to an hour")
    func server() {
        var reconnection = reconnection(maximum: 10)
        let asked = delays(&reconnection, 3, retry: 5)
        expect(asked, equals: [5, 10, 10])
        let longer = delays(&reconnection, 2, retry: 100)
        expect(longer, equals: [100, 100])
        for retry in [3_601, 999_999_999, 1e300] {
            expect(delays(&reconnection, 1, retry: retry), equals: [3_600])
        }
    }

    @Test("BEY-8: bytes without an event begin the waits from the start, but not without end; an event does")
    func eventless() {
        var reconnection = reconnection(0.1)
        func rounds(_ count: Int) -> [TimeInterval] {
            (0..<count).map { _ in
                reconnection.receivedBytes()
                return reconnection.delay(retry: nil)
            }
        }
        expect(rounds(20).allSatisfy { $0 == 0.1 })
        expect(rounds(3), equals: [0.2, 0.4, 0.8])
        expect(rounds(1_000).last, equals: 60)
        reconnection.receivedEvent()
        expect(rounds(20).allSatisfy { $0 == 0.1 })
        expect(rounds(1), equals: [0.2])
    }

    @Test("BEY-8: a server that wants no pause gets a short one, and one that brings nothing a longer one")
    func noPause() {
        var reconnection = reconnection()
        let asked = delays(&reconnection, 3, retry: 0)
        expect(asked, equals: [0.1, 0.2, 0.4])
        var odd = self.reconnection(.nan, maximum: .nan)
        let none = delays(&odd, 3)
        expect(none.allSatisfy { $0 >= 0 })
        var many = self.reconnection()
        let bounded = delays(&many, 2_000).last
        expect(bounded, equals: 60)
    }
}
