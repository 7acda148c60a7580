import Testing

@testable import EasyNetwork
@testable import EasyNetworkResources
@testable import TestSupport

@Suite
struct ResourceOrderTests {
    private func order(isLIFO: Bool, _ keys: [(String, ResourceOrder.Rank)]) -> ResourceOrder {
        var order = ResourceOrder(isLIFO: isLIFO)
        for (key, rank) in keys { order.insert(key, rank) }
        return order
    }

    private func all(_ order: ResourceOrder, from lowest: ResourceOrder.Rank = .prefetch) -> String {
        var (order, keys) = (order, "")
        while let key = order.takeNext(from: lowest) { keys += key }
        return keys
    }

    @Test("IMG-1: the highest priority starts first; within one the oldest, or with LIFO the newest")
    func ranks() {
        let keys: [(String, ResourceOrder.Rank)] = [
            ("a", .normal), ("b", .prefetch), ("c", .veryHigh), ("d", .normal), ("e", .veryLow), ("f", .veryHigh),
        ]
        expect(all(order(isLIFO: false, keys)), equals: "cfadeb")
        expect(all(order(isLIFO: true, keys)), equals: "fcdaeb")
        expect(all(order(isLIFO: false, keys), from: .veryLow), equals: "cfade")
    }

    @Test("IMG-1: a load whose priority changes is the newest of its new priority, and starts once")
    func moves() {
        let keys: [(String, ResourceOrder.Rank)] = [("a", .normal), ("b", .normal), ("c", .high)]
        for isLIFO in [false, true] {
            var order = order(isLIFO: isLIFO, keys)
            order.insert("a", .high)
            expect(order.count, equals: 3)
            expect(all(order), equals: (isLIFO ? "acb" : "cab"))
            order.remove("a")
            expect(all(order), equals: "cb")
            order.insert("a", .normal)
            expect(all(order), equals: (isLIFO ? "cab" : "cba"))
        }
    }

    @Test("IMG-1: the same priority again changes nothing")
    func sameRank() {
        var order = order(isLIFO: false, [("a", .normal), ("b", .normal)])
        order.insert("a", .normal)
        expect(all(order), equals: "ab")
    }

    @Test("IMG-1: keys that come and go leave nothing behind, in both orders")
    func bounded() {
        for isLIFO in [false, true] {
            var order = ResourceOrder(isLIFO: isLIFO)
            for number in 0..<10_000 {
                order.insert("\(number)", .normal)
                order.remove("\(number)")
            }
            expect(order.count, equals: 0)
            expect(order.entryCount < 100)
            expect(all(order), equals: "")
        }
    }
}
