#if os(Linux)
import Foundation

@testable import EasyNetwork
@testable import TestSupport

/// An exchange that counts and discards its body, and can be paused at the first piece.
final class CountedExchange: Sendable {
    struct Contents: Sendable {
        var status: Int?
        var byteCount = 0
        var end: TransportEnd?
    }

    private let state: Locked<Contents>
    private let exchange: CurlExchange
    private let firstBytes: Gate
    private let ended: Gate

    /// - Parameter isHeld: Whether to pause during the event of the first piece.
    init(_ request: TransportRequest, over transport: CurlTransport, isHeld: Bool = false) {
        let state = Locked(Contents())
        let exchange = CurlExchange(transport.loop)
        let firstBytes = Gate()
        let ended = Gate()
        transport.start(request, as: exchange) { event in
            switch event {
            case .sent: break
            case .head(let head):
                state.withLock { $0.status = head.statusCode }
            case .body(let data):
                let isFirst = state.withLock { contents in
                    contents.byteCount += data.count
                    return contents.byteCount == data.count
                }
                guard isFirst else { return }
                if isHeld { exchange.pause() }
                firstBytes.open()
            case .end(let end):
                state.withLock { $0.end = end }
                firstBytes.open()
                ended.open()
            }
        }
        self.state = state
        self.exchange = exchange
        self.firstBytes = firstBytes
        self.ended = ended
    }

    var contents: Contents { state.withLock { $0 } }

    /// Returns when the body has begun, or after the end.
    func begun() async {
        await firstBytes.opened()
    }

    func letGo() {
        exchange.resume()
    }

    func cancel() {
        exchange.cancel()
    }

    func end() async -> Contents {
        await ended.opened()
        return contents
    }
}

/// The peak memory of this process.
enum PeakMemory {
    struct Unknown: Error {}

    static func now() throws -> Int {
        let status = try String(contentsOfFile: "/proc/self/status", encoding: .utf8)
        guard let line = status.split(separator: "\n").first(where: { $0.hasPrefix("VmHWM:") }),
            let kilobytes = line.split(whereSeparator: { $0 == " " || $0 == "\t" }).dropFirst().first.flatMap({
                Int($0)
            })
        else { throw Unknown() }
        return kilobytes * 1_024
    }
}
#endif
