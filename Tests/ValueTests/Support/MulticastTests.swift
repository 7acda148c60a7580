import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("Multicast", .timeLimit(.minutes(10)))
struct MulticastTests {
    private func values(_ stream: AsyncStream<Int>) async -> [Int] {
        await stream.reduce(into: []) { $0.append($1) }
    }

    @Test("BEY-16: each reader gets the newest values of its topic, and the end", arguments: [true, false])
    func readers(isReleased: Bool) async {
        var multicast: Multicast<Int>? = Multicast()
        guard let all = multicast?.stream(keeping: 9, first: 0),
            let some = multicast?.stream(keeping: 9, topic: "even"), let newest = multicast?.stream(keeping: 2)
        else { return expect(false) }
        for number in 1...4 { multicast?.send(number, topics: number % 2 == 0 ? ["even", "number"] : ["number"]) }
        if !isReleased {
            multicast?.finish()
            multicast?.send(5)
            if let late = multicast?.stream(first: 6) { await expect(values(late), equals: [6]) }
        }
        multicast = nil
        await expect(values(all), equals: [0, 1, 2, 3, 4])
        await expect(values(some), equals: [2, 4])
        await expect(values(newest), equals: [3, 4])
    }
}
