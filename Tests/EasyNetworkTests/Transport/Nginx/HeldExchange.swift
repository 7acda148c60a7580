#if os(Linux)
import Foundation

@testable import EasyNetwork

/// An exchange that is paused from inside the event of its head, so that its body does not come before it is let go.
final class HeldExchange: Sendable {
    let recording: Recording
    private let exchange: CurlExchange
    private let head: Gate

    init(_ request: TransportRequest, over transport: CurlTransport) {
        let exchange = CurlExchange(transport.loop)
        let head = Gate()
        let recording = Recording {
            exchange.pause()
            head.open()
        }
        recording.ended.whenOpen { head.open() }
        transport.start(request, as: exchange) { recording.note($0) }
        self.exchange = exchange
        self.head = head
        self.recording = recording
    }

    var hasHead: Bool { recording.contents.head != nil }

    /// Returns when the head is there, or the end.
    func held() async {
        await head.opened()
    }

    /// Once it is held, lets the body come.
    func letGo() {
        head.whenOpen { [exchange] in exchange.resume() }
    }

    func end() async -> Recording.Contents {
        await recording.ended.opened()
        return recording.contents
    }
}
#endif
