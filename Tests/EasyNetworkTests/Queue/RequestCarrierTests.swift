import Foundation
import Testing

@testable import EasyNetwork

@Suite("RequestCarrier")
struct RequestCarrierTests {
    private static let host = HostConfiguration(baseURL: nil)

    private static func message(_ name: String = "a") -> SharedMessage {
        let (request, url) = (Get(api: name), URL(fileURLWithPath: "/"))
        return SharedMessage(
            key: SharingKey(name: name, message: TransportRequest(url: url), request: request, host: host),
            request: request,
            configuration: host,
            host: nil,
            ignoresCache: false
        )
    }

    @Test("BEY-9, SEC-1: requests that differ in a field with a credential share nothing, whatever their key")
    func credentials() throws {
        let url = try #require(URL(string: "http://one.example/a"))
        func key(_ headers: HTTPHeaders) -> SharingKey {
            let message = TransportRequest(url: url, headers: headers)
            return SharingKey(name: "n", message: message, request: Get(api: "a"), host: Self.host)
        }
        for name in ["Authorization", "Cookie", "Proxy-Authorization", "X-Api-Key", "X-Auth-Token"] {
            #expect(key([name: "ada"]) != key([name: "bob"]) && key([name: "ada"]) != key([:]))
            #expect(key([name: "ada"]) == key([name: "ada", "X-Page": "1"]))
        }
    }

    @Test("BEY-9: the first has a message sent, others share it, and a late one has another one sent")
    func steps() async {
        let queue = NetworkQueue()
        queue.isSuspended = true
        let received = Locked<[Int]>([])
        let jobs = (0..<5).map { _ in TestJob() }
        let share = { (index: Int, name: String) in
            queue.operation(jobs[index], shares: Self.message(name)) { _ in received.withLock { $0.append(index) } }
        }
        let (first, second, other) = (share(0, "a"), share(1, "a"), share(2, "b"))
        #expect(first === second && first !== other && queue.joinedCount == 3)
        first.finish(NetworkError(code: .timedOut))
        await first.finished()
        #expect(received.withLock { $0 } == [0, 1])
        let late = share(3, "a")
        #expect(late !== first)
        first.leave(ObjectIdentifier(jobs[0]))
        late.leave(ObjectIdentifier(jobs[3]))
        // The last member has left.
        #expect(late.isCancelled && share(4, "a") !== late)
        queue.cancelAllOperations()
        #expect(await eventually { received.withLock { $0.sorted() } == [0, 1, 2, 4] && queue.keepsNothing })
    }

    @Test("BEY-5: for an operation that was cancelled while it joined, nothing is sent")
    func cancelledMeanwhile() async {
        let queue = NetworkQueue()
        let job = TestJob()
        job.cancel()
        let carrier = queue.operation(job, shares: Self.message()) { _ in Issue.record("an answer") }
        #expect(carrier.isCancelled)
        #expect(await eventually { queue.keepsNothing })
    }

    @Test("BEY-9: random joins and leaves go as in a list", arguments: 1...50 as ClosedRange<UInt64>)
    func histories(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        let closings = Locked(0)
        let carrier = RequestCarrier(Self.message()) { _ in closings.withLock { $0 += 1 } }
        let members = (0..<20).map { _ in TestJob() }
        let received = Locked<[Int]>([])
        var model: [Int] = []
        for _ in 0..<Int.random(in: 1..<100, using: &generator) {
            let member = Int.random(in: 0..<20, using: &generator)
            if model.contains(member) {
                carrier.leave(ObjectIdentifier(members[member]))
                model.removeAll { $0 == member }
            } else {
                let isOpen = carrier.join(ObjectIdentifier(members[member])) { _ in
                    received.withLock { $0.append(member) }
                }
                #expect(isOpen != carrier.isCancelled, "seed \(seed)")
                if isOpen { model.append(member) }
            }
            #expect(carrier.memberCount == model.count && (!carrier.isCancelled || model.isEmpty), "seed \(seed)")
        }
        carrier.finish(NetworkError(code: .timedOut))
        carrier.deliver {}
        #expect(received.withLock { $0 } == model && closings.withLock { $0 } == 1, "seed \(seed)")
        #expect(!carrier.join(ObjectIdentifier(members[0])) { _ in }, "seed \(seed)")
    }
}
