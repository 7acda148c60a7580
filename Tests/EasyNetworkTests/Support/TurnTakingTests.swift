import Dispatch
import Testing

@testable import EasyNetwork

@Suite("TurnTaking")
struct TurnTakingTests {
    @Test("OPQ-4: work is done one at a time, in order, also what is added from inside")
    func inTurn() async {
        let turns = TurnTaking()
        let occupancy = Occupancy()
        let order = Locked<[Int]>([])
        turns.add {
            order.withLock { $0.append(0) }
            turns.add { order.withLock { $0.append(2) } }
            turns.run()
            order.withLock { $0.append(1) }
        }
        turns.run()
        #expect(order.withLock { $0 } == [0, 1, 2])
        let count = Locked(0)
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<8 {
                group.addTask {
                    for _ in 0..<1_000 {
                        turns.add {
                            occupancy.enter()
                            count.withLock { $0 += 1 }
                            occupancy.leave()
                        }
                        turns.run()
                    }
                }
            }
        }
        #expect(await eventually { count.withLock { $0 } == 8_000 })
        #expect(occupancy.most == 1)
    }
}
