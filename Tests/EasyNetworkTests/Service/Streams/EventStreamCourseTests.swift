import Foundation
import Testing

@testable import EasyNetwork

@Suite("When a stream of events is begun again")
struct EventStreamCourseTests {
    private func course(_ time: TimeInterval = 3, maximum: TimeInterval = 60) -> EventStreamCourse {
        EventStreamCourse(lastEventID: "", reconnectionTime: time, maximumReconnectionTime: maximum)
    }

    private func delays(_ course: inout EventStreamCourse, _ count: Int) -> [TimeInterval] {
        (0..<count).map { _ in course.delay() }
    }

    @Test("BEY-8: connections in a row that bring nothing are waited for twice as long each, up to a bound")
    func doubling() {
        var course = course()
        let silent = delays(&course, 7)
        #expect(silent == [3, 6, 12, 24, 48, 60, 60])
        course.receivedEvent()
        let again = delays(&course, 2)
        #expect(again == [3, 6])
    }

    @Test("BEY-8: what the server says counts until it says otherwise, also beyond the bound")
    func server() {
        var course = course(maximum: 10)
        course.adopt(lastEventID: "1", retry: 5)
        course.adopt(lastEventID: "2", retry: nil)
        let asked = delays(&course, 3)
        #expect(asked == [5, 10, 10])
        #expect(course.lastEventID == "2")
        course.adopt(lastEventID: "2", retry: 100)
        let longer = delays(&course, 2)
        #expect(longer == [100, 100])
        for retry in [3_601, 999_999_999, 1e300] {
            course.adopt(lastEventID: "2", retry: retry)
            #expect(delays(&course, 1) == [3_600])
        }
    }

    @Test("BEY-8: bytes without an event begin the waits from the start, but not without end; an event does")
    func eventless() {
        var course = course(0.1)
        func rounds(_ count: Int) -> [TimeInterval] {
            (0..<count).map { _ in
                course.receivedBytes()
                return course.delay()
            }
        }
        #expect(rounds(20).allSatisfy { $0 == 0.1 })
        #expect(rounds(3) == [0.2, 0.4, 0.8])
        #expect(rounds(1_000).last == 60)
        course.receivedEvent()
        #expect(rounds(20).allSatisfy { $0 == 0.1 })
        #expect(rounds(1) == [0.2])
    }

    @Test("BEY-8: a server that wants no pause gets a short one, and one that brings nothing a longer one")
    func noPause() {
        var course = course()
        course.adopt(lastEventID: "", retry: 0)
        let asked = delays(&course, 3)
        #expect(asked == [0.1, 0.2, 0.4])
        var odd = self.course(.nan, maximum: .nan)
        let none = delays(&odd, 3)
        #expect(none.allSatisfy { $0 >= 0 })
        var many = self.course()
        let bounded = delays(&many, 2_000).last
        #expect(bounded == 60)
    }
}
