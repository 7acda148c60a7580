import Foundation
import Testing

@testable import EasyNetwork

@Suite("RefreshFlight")
struct RefreshFlightTests {
    private typealias Flight = RefreshFlight<String>

    private static func flight(limit: Int = 5, window: TimeInterval = 30) -> RefreshFlight<String> {
        RefreshFlight(limit: limit, window: window)
    }

    /// `#expect` takes no mutating call.
    private static func refuse(
        _ flight: inout RefreshFlight<String>,
        _ waiter: String,
        sent: Int,
        isReplay: Bool = false,
        now: TimeInterval = 0
    ) -> RefreshFlight<String>.Decision {
        flight.refuse(waiter, sent: sent, isReplay: isReplay, now: now)
    }

    private static func prepare(
        _ flight: inout RefreshFlight<String>,
        _ waiter: String,
        isExpired: Bool = false
    ) -> RefreshFlight<String>.Decision {
        flight.prepare(waiter, isExpired: isExpired, now: 0)
    }

    @Test("CBK-7: many refusals of one credential are one refresh, after which all go on in their order")
    func oneRefresh() {
        var flight = Self.flight()
        let first = Self.refuse(&flight, "a", sent: 0)
        let second = Self.refuse(&flight, "b", sent: 0)
        let third = Self.prepare(&flight, "c")
        #expect(first == .refresh(1))
        #expect(second == .hold)
        #expect(third == .hold)
        let waited = flight.finish(1, isRefreshed: true)
        #expect(waited == ["a", "b", "c"])
        #expect(flight.version == 1)
        #expect(flight.running == nil)
    }

    @Test("CBK-7: the late refusal of an old credential is answered with the new one, without a refresh")
    func lateRefusal() {
        var flight = Self.flight()
        _ = Self.refuse(&flight, "a", sent: 0)
        _ = flight.finish(1, isRefreshed: true)
        let late = Self.refuse(&flight, "b", sent: 0)
        #expect(late == .send(version: 1))
        #expect(flight.running == nil)
        let newest = Self.refuse(&flight, "c", sent: 1)
        #expect(newest == .refresh(2))
    }

    @Test("CBK-7: what is refused again after a refresh ends, and begins none")
    func refusedAgain() {
        var flight = Self.flight()
        _ = Self.refuse(&flight, "a", sent: 0)
        _ = flight.finish(1, isRefreshed: true)
        let again = Self.refuse(&flight, "a", sent: 1, isReplay: true)
        #expect(again == .fail(.refusedAgain))
        #expect(flight.running == nil)
    }

    @Test("CBK-7: an expired credential is refreshed before it is sent")
    func expired() {
        var flight = Self.flight()
        let sound = Self.prepare(&flight, "a")
        #expect(sound == .send(version: 0))
        let expired = Self.prepare(&flight, "b", isExpired: true)
        #expect(expired == .refresh(1))
        let other = Self.prepare(&flight, "c", isExpired: true)
        #expect(other == .hold)
    }

    @Test("CBK-7: after a refresh that failed the next refusal begins another one")
    func failed() {
        var flight = Self.flight()
        _ = Self.refuse(&flight, "a", sent: 0)
        _ = Self.refuse(&flight, "b", sent: 0)
        let ended = flight.finish(1, isRefreshed: false)
        #expect(ended == ["a", "b"])
        #expect(flight.version == 0)
        let next = Self.refuse(&flight, "c", sent: 0)
        #expect(next == .refresh(2))
    }

    @Test("CBK-7: whoever leaves is forgotten, and a refresh that nobody waits for counts all the same")
    func leaving() {
        var flight = Self.flight()
        _ = Self.refuse(&flight, "a", sent: 0)
        _ = Self.refuse(&flight, "b", sent: 0)
        let left = [flight.leave("a"), flight.leave("b"), flight.leave("b")]
        #expect(left == [true, true, false])
        let waited = flight.finish(1, isRefreshed: true)
        #expect(waited == [])
        #expect(flight.version == 1)
    }

    @Test("CBK-7: no more than so many refreshes begin within a window; then requests are refused at once")
    func storm() {
        var flight = Self.flight(limit: 2, window: 10)
        for (now, number) in [(0.0, 1), (4.0, 2)] {
            let decision = Self.refuse(&flight, "a", sent: flight.version, now: now)
            #expect(decision == .refresh(number))
            _ = flight.finish(number, isRefreshed: true)
        }
        let beyond = Self.refuse(&flight, "b", sent: flight.version, now: 9.9)
        #expect(beyond == .fail(.tooManyRefreshes))
        #expect(flight.running == nil)
        let expired = flight.prepare("c", isExpired: true, now: 9.9)
        #expect(expired == .fail(.tooManyRefreshes))
        let sound = flight.prepare("c", isExpired: false, now: 9.9)
        #expect(sound == .send(version: 2))
        // The first one is out of the window now, and one place is free.
        let later = Self.refuse(&flight, "d", sent: flight.version, now: 10)
        #expect(later == .refresh(3))
        _ = flight.finish(3, isRefreshed: true)
        let again = Self.refuse(&flight, "e", sent: flight.version, now: 10)
        #expect(again == .fail(.tooManyRefreshes))
    }

    @Test("CBK-7: signing in lets those who wait go on, and what the refresh brings does not count")
    func replaced() {
        var flight = Self.flight(limit: 1)
        _ = Self.refuse(&flight, "a", sent: 0)
        let waited = flight.replace()
        #expect(waited == ["a"])
        #expect(flight.version == 1)
        let late = flight.finish(1, isRefreshed: true)
        #expect(late == nil)
        #expect(flight.version == 1)
        // Whoever has signed in begins with a clean slate.
        let next = Self.refuse(&flight, "b", sent: 1)
        #expect(next == .refresh(2))
        let lateAgain = flight.finish(1, isRefreshed: true)
        #expect(lateAgain == nil)
        #expect(flight.running == 2)
    }

    @Test("CBK-7: in any order every request ends once, and no refusal is left without one", arguments: UInt64(1)...200)
    func interleavings(seed: UInt64) {
        var world = RefreshWorld(seed: seed)
        world.run()
        #expect(world.problems.isEmpty, "seed \(seed): \(world.problems)")
    }
}

/// Requests, a server whose idea of the credential changes, and refreshes, in a random order.
private struct RefreshWorld {
    private enum Stage {
        case new
        case sent(version: Int, isReplay: Bool)
        case held(isReplay: Bool)
        case over
    }

    private var generator: SeededGenerator
    private var flight: RefreshFlight<Int>
    private var stages: [Stage]
    private var replays: [Int]
    private var ends: [Int]
    private var now: TimeInterval = 0
    private var begun: [TimeInterval] = []
    private var isRefreshing = false
    private let limit: Int
    private(set) var problems: [String] = []

    init(seed: UInt64) {
        generator = SeededGenerator(seed: seed)
        let count = Int.random(in: 1...40, using: &generator)
        limit = Int.random(in: 1...5, using: &generator)
        flight = RefreshFlight(limit: limit, window: 30)
        stages = Array(repeating: .new, count: count)
        replays = Array(repeating: 0, count: count)
        ends = Array(repeating: 0, count: count)
    }

    mutating func run() {
        for _ in 0..<5_000 {
            let open = stages.indices.filter { if case .over = stages[$0] { false } else { true } }
            guard let one = open.randomElement(using: &generator) else { break }
            now += Double.random(in: 0...3, using: &generator)
            switch Int.random(in: 0..<20, using: &generator) {
            case 0: cancel(one)
            case 1: if Bool.random(using: &generator) { replace() }
            case 2...5: finishRefresh()
            default: step(one)
            }
        }
        for id in stages.indices where ends[id] != 1 { problems.append("request \(id) ended \(ends[id]) times") }
        if replays.contains(where: { $0 > 1 }) { problems.append("replayed twice") }
    }

    private mutating func step(_ id: Int) {
        switch stages[id] {
        case .new:
            let isExpired = Int.random(in: 0..<4, using: &generator) == 0
            act(flight.prepare(id, isExpired: isExpired, now: now), id, isReplay: false)
        case .sent(let version, let isReplay):
            guard Bool.random(using: &generator) else { return end(id) }
            act(flight.refuse(id, sent: version, isReplay: isReplay, now: now), id, isReplay: true)
        case .held, .over:
            break
        }
    }

    private mutating func act(_ decision: RefreshFlight<Int>.Decision, _ id: Int, isReplay: Bool) {
        switch decision {
        case .send(let version):
            send(id, version, isReplay)
        case .hold:
            if !isRefreshing { problems.append("held with no refresh") }
            stages[id] = .held(isReplay: isReplay)
        case .refresh:
            if isRefreshing { problems.append("two refreshes at once") }
            isRefreshing = true
            begun.append(now)
            if begun.filter({ $0 > now - 30 }).count > limit { problems.append("too many refreshes") }
            stages[id] = .held(isReplay: isReplay)
        case .fail:
            end(id)
        }
    }

    private mutating func send(_ id: Int, _ version: Int, _ isReplay: Bool) {
        if version != flight.version { problems.append("sent with an old credential") }
        if isReplay { replays[id] += 1 }
        stages[id] = .sent(version: version, isReplay: isReplay)
    }

    private mutating func finishRefresh() {
        guard isRefreshing, let number = flight.running else { return }
        isRefreshing = false
        let isRefreshed = Int.random(in: 0..<3, using: &generator) > 0
        guard let waited = flight.finish(number, isRefreshed: isRefreshed) else {
            return problems.append("not counted")
        }
        goOn(waited, isRefreshed)
        if flight.finish(number, isRefreshed: true) != nil { problems.append("finished twice") }
    }

    private mutating func replace() {
        isRefreshing = false
        begun = []
        goOn(flight.replace(), true)
    }

    private mutating func goOn(_ waited: [Int], _ isSound: Bool) {
        let held = stages.indices.filter { if case .held = stages[$0] { true } else { false } }
        if Set(waited) != Set(held) { problems.append("\(waited) go on, \(held) are held") }
        for id in waited {
            guard case .held(let isReplay) = stages[id] else { continue }
            if isSound { send(id, flight.version, isReplay) } else { end(id) }
        }
    }

    private mutating func cancel(_ id: Int) {
        let isHeld = if case .held = stages[id] { true } else { false }
        if flight.leave(id) != isHeld { problems.append("left \(id), which was held: \(isHeld)") }
        end(id)
    }

    private mutating func end(_ id: Int) {
        ends[id] += 1
        stages[id] = .over
    }
}
