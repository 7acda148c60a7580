#if os(Linux) && canImport(CCurl)
/// What the caller of a ``CurlTransport`` holds of an exchange.
final class CurlExchange: TransportExchange {
    private let loop: CurlLoop
    private let state = Locked(false)

    init(_ loop: CurlLoop) {
        self.loop = loop
    }

    /// Set before the loop hears of it, so that no event follows a cancel from inside another.
    var isCancelled: Bool { state.withLock { $0 } }

    func cancel() {
        let wasCancelled = state.withLock { isCancelled in
            defer { isCancelled = true }
            return isCancelled
        }
        if !wasCancelled { loop.post(.cancel(self)) }
    }
}

/// What an exchange begins with.
struct CurlStart: Sendable {
    let exchange: CurlExchange
    let request: TransportRequest
    let events: @Sendable (TransportEvent) -> Void
}
#endif
