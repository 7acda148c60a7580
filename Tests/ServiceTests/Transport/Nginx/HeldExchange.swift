#if os(Linux)
import Foundation

@testable import EasyNetwork
@testable import TestSupport

/// An exchange that pauses during its head event, so that no body arrives before ``letGo()``.
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

    /// Returns when the head has arrived, or after the end.
    func held() async {
        await head.opened()
    }

    /// Resumes the exchange after its head.
    func letGo() {
        head.whenOpen { [exchange] in exchange.resume() }
    }

    func end() async -> Recording.Contents {
        await recording.ended.opened()
        return recording.contents
    }
}
#endif
