#if os(Linux) && canImport(CCurl)
internal import CCurl
import Foundation

/// One exchange as its loop sees it; made and used on the loop's thread only.
final class CurlTransfer {
    /// Scheme, host and port.
    let origin: String
    let exchange: CurlExchange
    /// Empty after the end.
    private(set) var request: TransportRequest

    /// Whether it counts among those under way, and gives its place back at its end.
    var hasPlace = false
    /// Nil while it waits for its turn, and after its end.
    var handle: CurlHandle?
    var body: CurlBody?
    /// Nil while it waits for its turn.
    var watch: DeadlineWatch?
    /// What one of the callbacks made of it; counts before what libcurl makes of the callback's refusal.
    private(set) var failure: NetworkError?
    private(set) var isOver = false

    private let clock: any NetworkClock
    private var head = CurlHead()
    private var events: (@Sendable (TransportEvent) -> Void)?

    init(_ start: CurlStart, clock: any NetworkClock) {
        exchange = start.exchange
        request = start.request
        events = start.events
        self.clock = clock
        let url = start.request.url
        origin = "\(url.scheme ?? "")://\(url.host ?? ""):\(url.port ?? 0)"
    }

    /// - Returns: false when the transfer is to be broken off.
    func received(headerLine line: UnsafeRawBufferPointer) -> Bool {
        moved()
        guard !exchange.isCancelled else { return false }
        do throws(NetworkError) {
            if let head = try head.add(line) { events?(.head(head)) }
            return true
        } catch {
            failure = error
            return false
        }
    }

    /// - Returns: false when the transfer is to be broken off.
    func received(_ bytes: UnsafeRawBufferPointer) -> Bool {
        moved()
        guard !exchange.isCancelled else { return false }
        if !bytes.isEmpty { events?(.body(Data(bytes))) }
        return true
    }

    /// - Returns: how many bytes were put into the buffer; nil when the transfer is to be broken off.
    func read(into buffer: UnsafeMutableRawBufferPointer) -> Int? {
        moved()
        guard !exchange.isCancelled else { return nil }
        do throws(NetworkError) {
            return try body?.read(into: buffer) ?? 0
        } catch {
            failure = error
            return nil
        }
    }

    /// Tells of the end, once.
    func end(_ error: NetworkError?) {
        guard !isOver else { return }
        isOver = true
        body = nil
        // One that ends while it waits is passed over only when its turn comes.
        request.headers = HTTPHeaders()
        request.body = .none
        // A cancel that came first counts, whatever happened since.
        let error = exchange.isCancelled ? NetworkError(code: .cancelled) : error
        events.take()?(.end(TransportEnd(error: error)))
    }

    private func moved() {
        guard watch != nil else { return }
        watch?.activity(now: clock.now)
    }
}
#endif
