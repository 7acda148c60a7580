import Foundation
import Testing

@testable import EasyNetwork

@Suite("What holds back a sender")
struct BodyValveTests {
    private func exchange() throws -> SteeredTransport.Exchange {
        let url = try #require(URL(string: "https://api.example.com"))
        return SteeredTransport.Exchange(TransportRequest(method: .get, url: url)) { _ in }
    }

    @Test(
        "BEY-3: the first reason pauses, the last that goes resumes, and what is held before it is known is paused then"
    )
    func reasons() throws {
        let exchange = try exchange()
        let valve = BodyValve()
        valve.hold(.backlog)
        valve.attach(exchange)
        valve.hold(.rate)
        valve.hold(.rate)
        valve.release(.backlog)
        #expect(exchange.orders == ["pause"])
        valve.release(.rate)
        valve.release(.rate)
        #expect(exchange.orders == ["pause", "resume"])
        valve.detach()
        valve.hold(.backlog)
        #expect(exchange.orders == ["pause", "resume"])
    }

    @Test("BEY-3: an exchange that was over before it was known is neither told nor kept")
    func late() throws {
        let valve = BodyValve()
        valve.hold(.backlog)
        valve.detach()
        weak var kept: SteeredTransport.Exchange?
        do {
            let exchange = try exchange()
            kept = exchange
            valve.attach(exchange)
            #expect(exchange.orders.isEmpty)
        }
        #expect(kept == nil)
    }

    /// Lets go while it is told to pause, as a reader on another thread may.
    private final class Releasing: TransportExchange {
        let orders = Locked<[String]>([])
        let valve: BodyValve

        init(_ valve: BodyValve) {
            self.valve = valve
        }

        func cancel() {}

        func pause() {
            let thread = Thread { [valve] in
                valve.release(.backlog)
                self.isReleased.signal()
            }
            thread.start()
            // The other thread has let go before this one has paused.
            isReleased.wait()
            orders.withLock { $0.append("pause") }
        }

        func resume() {
            orders.withLock { $0.append("resume") }
        }

        private let isReleased = DispatchSemaphore(value: 0)
    }

    @Test("BEY-3: who lets go while another thread pauses has the last word")
    func overtaking() async {
        let valve = BodyValve()
        let exchange = Releasing(valve)
        valve.attach(exchange)
        let gate = Gate()
        Thread {
            valve.hold(.backlog)
            gate.open()
        }.start()
        await gate.opened()
        #expect(exchange.orders.withLock { $0 }.last == "resume")
        valve.detach()
    }
}
