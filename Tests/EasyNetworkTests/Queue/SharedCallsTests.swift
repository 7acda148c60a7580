import Foundation
import Testing

@testable import EasyNetwork

@Suite("SharedCalls")
struct SharedCallsTests {
    private final class Token: Sendable {}

    private static let host = HostConfiguration(baseURL: nil)

    private static func key(_ name: String) -> SharingKey {
        let url = URL(fileURLWithPath: "/")
        return SharingKey(name: name, message: TransportRequest(url: url), request: Get(api: name), host: host)
    }

    /// Carriers and joiners are numbers here.
    private struct Sharing {
        var calls = SharedCalls<Int, Int>()
        var carrierCount = 0
        let tokens: [Token]

        init(_ count: Int) {
            tokens = (0..<count).map { _ in Token() }
        }

        mutating func join(_ joiner: Int, _ key: String = "a", _ priority: JobPriority = .normal) -> (UInt64, Int, Bool)
        {
            var count = carrierCount
            defer { carrierCount = count }
            return calls.join(
                ObjectIdentifier(tokens[joiner]),
                joiner,
                key: SharedCallsTests.key(key),
                priority: priority
            ) { _ in
                count += 1
                return count
            }
        }

        mutating func leave(_ joiner: Int) -> SharedCalls<Int, Int>.Departure? {
            calls.leave(ObjectIdentifier(tokens[joiner]))
        }

        mutating func setPriority(_ priority: JobPriority, _ joiner: Int) -> UInt64? {
            calls.setPriority(priority, of: ObjectIdentifier(tokens[joiner]))?.call
        }
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

    @Test("BEY-9: the first opens a call, others share it, and all get the answer in order")
    func steps() {
        var sharing = Sharing(4)
        let first = sharing.join(0)
        let second = sharing.join(1)
        let other = sharing.join(2, "b")
        #expect(first.2 && !second.2 && other.2)
        #expect(first.0 == second.0 && first.1 == second.1 && other.1 != first.1)
        let answered = sharing.calls.close(first.0)
        #expect(answered.map(\.joiner) == [0, 1] && answered.map(\.isOpener) == [true, false])
        // Whoever comes when the answer is there sends anew.
        let late = sharing.join(3)
        #expect(late.2 && late.1 != first.1)
        #expect(sharing.leave(0) == nil)
        let again = sharing.calls.close(first.0)
        #expect(again.isEmpty && sharing.calls.count == 2)
    }

    @Test("BEY-9: the last that leaves closes the call; another one is the opener for nobody")
    func leaving() {
        var sharing = Sharing(4)
        let call = sharing.join(0).0
        _ = sharing.join(1)
        let first = sharing.leave(0)
        #expect(first?.joiner == 0 && first?.wasLast == false)
        _ = sharing.join(0)
        let answered = sharing.calls.close(call)
        #expect(answered.map(\.joiner) == [1, 0] && answered.map(\.isOpener) == [false, false])
        let next = sharing.join(2)
        let last = sharing.leave(2)
        #expect(last?.wasLast == true && last?.carrier == next.1)
        #expect(sharing.calls.count == 0 && sharing.calls.memberCount == 0)
        #expect(sharing.join(3).2)
    }

    @Test("BEY-9: a call has the highest priority of those that share it")
    func priority() {
        var sharing = Sharing(3)
        let call = sharing.join(0, "a", .low).0
        #expect(sharing.calls.priority(of: call) == .low)
        _ = sharing.join(1, "a", .veryHigh)
        _ = sharing.join(2, "a", .normal)
        #expect(sharing.calls.priority(of: call) == .veryHigh)
        _ = sharing.leave(1)
        #expect(sharing.calls.priority(of: call) == .normal)
        let changed = sharing.setPriority(.high, 0)
        #expect(changed == call && sharing.calls.priority(of: call) == .high)
        _ = sharing.calls.close(call)
        let late = sharing.setPriority(.low, 0)
        #expect(late == nil && sharing.calls.priority(of: call) == nil)
    }

    @Test("BEY-9: random histories go as in a slow model", arguments: 1...50 as ClosedRange<UInt64>)
    func histories(seed: UInt64) {
        struct Call {
            var number: UInt64
            var carrier: Int
            var key: String
            var members: [(joiner: Int, priority: JobPriority, isOpener: Bool)]
        }
        var generator = SeededGenerator(seed: seed)
        var sharing = Sharing(30)
        var model: [Call] = []
        for step in 0..<500 {
            let place = Comment(rawValue: "seed \(seed), step \(step)")
            let joiner = Int.random(in: 0..<30, using: &generator)
            let priority = JobPriority.allCases.randomElement(using: &generator) ?? .normal
            let key = ["a", "b", "c"].randomElement(using: &generator) ?? "a"
            let index = model.firstIndex { $0.members.contains { $0.joiner == joiner } }
            switch (Int.random(in: 0..<8, using: &generator), index) {
            case (0..<5, nil):
                let (number, carrier, isNew) = sharing.join(joiner, key, priority)
                if let open = model.firstIndex(where: { $0.key == key }) {
                    #expect(!isNew && number == model[open].number && carrier == model[open].carrier, place)
                    model[open].members.append((joiner, priority, false))
                } else {
                    #expect(isNew && !model.contains { $0.number == number || $0.carrier == carrier }, place)
                    model.append(
                        Call(number: number, carrier: carrier, key: key, members: [(joiner, priority, true)])
                    )
                }
            case (5, let index?):
                let number = sharing.setPriority(priority, joiner)
                #expect(number == model[index].number, place)
                for member in model[index].members.indices where model[index].members[member].joiner == joiner {
                    model[index].members[member].priority = priority
                }
            case (6, _):
                guard let call = model.randomElement(using: &generator) else { break }
                let answered = sharing.calls.close(call.number)
                #expect(answered.map(\.joiner) == call.members.map(\.joiner), place)
                #expect(answered.map(\.isOpener) == call.members.map(\.isOpener), place)
                model.removeAll { $0.number == call.number }
            case (_, let index?):
                let departure = sharing.leave(joiner)
                model[index].members.removeAll { $0.joiner == joiner }
                #expect(departure?.joiner == joiner && departure?.carrier == model[index].carrier, place)
                #expect(departure?.wasLast == model[index].members.isEmpty, place)
                if model[index].members.isEmpty { model.remove(at: index) }
            case (_, nil):
                let departure = sharing.leave(joiner)
                #expect(departure == nil, place)
            }
            for call in model {
                let highest = call.members.map(\.priority.rawValue).max()
                #expect(sharing.calls.priority(of: call.number)?.rawValue == highest, place)
            }
            #expect(sharing.calls.count == model.count, place)
            #expect(sharing.calls.memberCount == model.map(\.members.count).reduce(0, +), place)
        }
    }
}
