#if os(Linux) && canImport(CCurl)
import Foundation

/// What the caller of a ``CurlTransport`` holds of an exchange.
final class CurlExchange: TransportExchange {
    private struct State {
        var isCancelled = false
        var isPaused = false
        /// Whether there is nothing left for the loop to do, and no need to wake it.
        var isOver = false
    }

    private let loop: CurlLoop
    private let state = Locked(State())

    init(_ loop: CurlLoop) {
        self.loop = loop
    }

    /// Set before the loop hears of it, so that no event follows a cancel from inside another.
    var isCancelled: Bool { state.withLock { $0.isCancelled } }
    /// Set before the loop hears of it, so that a pause from inside an event holds for the next one.
    var isPaused: Bool { state.withLock { $0.isPaused } }

    /// For the loop, before it tells of the end.
    ///
    /// - Returns: whether it was cancelled before that.
    func end() -> Bool {
        state.withLock { state in
            state.isOver = true
            return state.isCancelled
        }
    }

    func cancel() {
        let isNew = state.withLock { state in
            defer { state.isCancelled = true }
            return !state.isCancelled && !state.isOver
        }
        if isNew { loop.post(.cancel(self)) }
    }

    func pause() {
        setPaused(true)
    }

    func resume() {
        setPaused(false)
    }

    private func setPaused(_ isPaused: Bool) {
        let isNew = state.withLock { state in
            defer { state.isPaused = isPaused }
            return state.isPaused != isPaused && !state.isOver
        }
        if isNew { loop.post(.pauseOrResume(self)) }
    }

    func bodyHasBytes() {
        loop.post(.resumeSending(self))
    }
}

/// What an exchange begins with.
struct CurlStart: Sendable {
    let exchange: CurlExchange
    let request: TransportRequest
    /// When it was asked for, by the clock.
    let time: TimeInterval
    let events: @Sendable (TransportEvent) -> Void
}
#endif
