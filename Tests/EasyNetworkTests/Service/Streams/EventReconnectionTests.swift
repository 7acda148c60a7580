import Foundation
import Testing

@testable import EasyNetwork

@Suite("EventReconnection")
struct EventReconnectionTests {
    private func reconnection(_ time: TimeInterval = 3, maximum: TimeInterval = 60) -> EventReconnection {
        EventReconnection(lastEventID: "", reconnectionTime: time, maximumReconnectionTime: maximum)
    }

    private func delays(_ reconnection: inout EventReconnection, _ count: Int) -> [TimeInterval] {
        (0..<count).map { _ in reconnection.delay() }
    }

    @Test("BEY-8: connections in a row that bring nothing are waited for twice as long each, up to a bound")
    func doubling() {
        var reconnection = reconnection()
        let silent = delays(&reconnection, 7)
        #expect(silent == [3, 6, 12, 24, 48, 60, 60])
        reconnection.receivedEvent()
        let again = delays(&reconnection, 2)
        #expect(again == [3, 6])
    }

    @Test("BEY-8: the server's time counts until it sends another, also beyond the bound")
    func server() {
        var reconnection = reconnection(maximum: 10)
        reconnection.adopt(lastEventID: "1", retry: 5)
        reconnection.adopt(lastEventID: "2", retry: nil)
        let asked = delays(&reconnection, 3)
        #expect(asked == [5, 10, 10])
        #expect(reconnection.lastEventID == "2")
        reconnection.adopt(lastEventID: "2", retry: 100)
        let longer = delays(&reconnection, 2)
        #expect(longer == [100, 100])
        for retry in [3_601, 999_999_999, 1e300] {
            reconnection.adopt(lastEventID: "2", retry: retry)
            #expect(delays(&reconnection, 1) == [3_600])
        }
    }

    @Test("BEY-8: bytes without an event begin the waits from the start, but not without end; an event does")
    func eventless() {
        var reconnection = reconnection(0.1)
        func rounds(_ count: Int) -> [TimeInterval] {
            (0..<count).map { _ in
                reconnection.receivedBytes()
                return reconnection.delay()
            }
        }
        #expect(rounds(20).allSatisfy { $0 == 0.1 })
        #expect(rounds(3) == [0.2, 0.4, 0.8])
        #expect(rounds(1_000).last == 60)
        reconnection.receivedEvent()
        #expect(rounds(20).allSatisfy { $0 == 0.1 })
        #expect(rounds(1) == [0.2])
    }

    @Test("BEY-8: a server that wants no pause gets a short one, and one that brings nothing a longer one")
    func noPause() {
        var reconnection = reconnection()
        reconnection.adopt(lastEventID: "", retry: 0)
        let asked = delays(&reconnection, 3)
        #expect(asked == [0.1, 0.2, 0.4])
        var odd = self.reconnection(.nan, maximum: .nan)
        let none = delays(&odd, 3)
        #expect(none.allSatisfy { $0 >= 0 })
        var many = self.reconnection()
        let bounded = delays(&many, 2_000).last
        #expect(bounded == 60)
    }
}
