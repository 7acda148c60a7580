import Dispatch
import EasyNetwork
import Foundation

/// An exchange of an ``InMemoryTransport``.
final class InMemoryExchange: TransportExchange, Sendable {
    private struct State: Sendable {
        /// The receiver of the events. `nil` after the end.
        var events: (@Sendable (TransportEvent) -> Void)?
        /// The first error that ends the exchange instead of the response: a cancellation or a passed deadline.
        var interruption: NetworkError?
        var timers: [any ClockTimer] = []
        var hasHead = false
        var trailers = HTTPHeaders()
        /// A closure that is called if the exchange is interrupted.
        var interrupted: (@Sendable () -> Void)?
    }

    private let request: TransportRequest
    private let clock: any NetworkClock
    private let begun: TimeInterval
    private let state: Locked<State>
    /// Delivers the events in order.
    private let queue = DispatchQueue(label: "EasyNetworkTesting.InMemoryExchange", autoreleaseFrequency: .workItem)

    init(
        _ request: TransportRequest,
        clock: any NetworkClock,
        events: @escaping @Sendable (TransportEvent) -> Void
    ) {
        self.request = request
        self.clock = clock
        begun = clock.now
        state = Locked(State(events: events))
    }

    var isInterrupted: Bool { state.withLock { $0.interruption != nil } }

    func cancel() {
        fail(.cancelled, nil)
    }

    /// - Parameter action: Called once when the exchange is interrupted, immediately if it has already ended.
    func whenInterrupted(_ action: @escaping @Sendable () -> Void) {
        let isOver = state.withLock { state in
            let isOver = state.events == nil || state.interruption != nil
            if !isOver { state.interrupted = action }
            return isOver
        }
        if isOver { action() }
    }

    /// Sets the timer of the earliest deadline. One timer is enough, because all bytes of a response arrive at once.
    func watchDeadlines() {
        let times = request.deadlines
        let idle = times.idle.map { ($0, "no data was received for \($0) seconds") }
        let total = times.total.map { ($0, "the response was not complete after \($0) seconds") }
        let firstByte = times.firstByte.map { ($0, "no response after \($0) seconds") }
        let deadlines = [idle, total, firstByte].compactMap(\.self).filter { !$0.0.isNaN }
        guard let (time, message) = deadlines.min(by: { $0.0 < $1.0 }) else { return }
        setTimer(after: time) { $0.fail(.timedOut, message) }
    }

    /// Reports that the whole body has been received.
    func sent(_ count: Int) {
        guard count > 0 else { return }
        queue.async { self.emit(.sent(count)) }
    }

    /// Delivers the response after its delay.
    func answer(_ response: MockResponse) {
        if response.delay > 0 {
            setTimer(after: response.delay) { exchange in exchange.queue.async { exchange.play(response) } }
        } else {
            queue.async { self.play(response) }
        }
    }

    /// Ends the exchange with an error, unless it has ended. After this call, only the end is delivered.
    func fail(_ code: NetworkError.Code, _ message: String?, underlying: (any Error)? = nil) {
        let error = failure(code, message, underlying: underlying)
        let taken: (timers: [any ClockTimer], interrupted: (@Sendable () -> Void)?)? = state.withLock { state in
            guard state.events != nil, state.interruption == nil else { return nil }
            state.interruption = error
            defer { state.timers = [] }
            return (state.timers, state.interrupted.take())
        }
        guard let taken else { return }
        for timer in taken.timers { timer.cancel() }
        taken.interrupted?()
        queue.async { self.end(nil) }
    }

    private func setTimer(after delay: TimeInterval, _ action: @escaping @Sendable (InMemoryExchange) -> Void) {
        // The timer keeps the exchange alive until the end of the exchange cancels it.
        let timer = clock.schedule(after: delay) { action(self) }
        let isOver = state.withLock { state in
            if state.events == nil || state.interruption != nil { return true }
            state.timers.append(timer)
            return false
        }
        if isOver { timer.cancel() }
    }

    // MARK: On the queue

    private func play(_ response: MockResponse) {
        switch response.fault?.kind {
        case .raw:
            end(
                failure(
                    .badServerResponse,
                    "InMemoryTransport does not parse the raw bytes of a fault; use MockServer instead"
                )
            )
        case .malformed(.statusLine):
            end(failure(.badServerResponse, "the status line is malformed"))
        case .breaksOff(.refuse(let statusCode), _):
            deliver(ResponsePlan(.status(statusCode), method: request.method.rawValue))
        case .breaksOff(let action, let place) where place.isBeforeHead:
            let message = "the server closed the connection instead of sending a response"
            breakOff(action, message, in: place.isInRequest ? .send : .firstByte)
        case .breaksOff, .malformed, nil:
            deliver(ResponsePlan(response, method: request.method.rawValue))
        }
    }

    private func deliver(_ plan: ResponsePlan) {
        // RFC 9110, section 15.2: an interim response must be followed by a final one, and there is none.
        guard plan.statusCode >= 200 else { return }
        emit(.head(TransportHead(statusCode: plan.statusCode, headers: plan.headers)))
        var left = Int.max
        if case .contentLength = plan.malformation { left = plan.headers["Content-Length"].flatMap { Int($0) } ?? left }
        for piece in plan.pieces {
            var offset = 0
            let count = min(left, piece.content.count)
            while offset < count, !isInterrupted {
                let data = piece.content.data(from: offset).prefix(count - offset)
                emit(.body(data))
                offset += data.count
            }
            left -= count
        }
        if case .badChunk = plan.malformation, !plan.isComplete {
            end(failure(.badServerResponse, "a chunk has no valid size"))
        } else if plan.isComplete {
            state.withLock { $0.trailers = plan.trailers }
            end(nil)
        } else {
            breakOff(plan.ending ?? .close, "the response is not complete")
        }
    }

    private func breakOff(
        _ action: MockResponse.Fault.Action,
        _ message: String,
        in phase: TransportPhase = .firstByte
    ) {
        switch action {
        case .stall, .halfOpen, .refuse: break
        case .close, .reset: end(failure(.connectionLost, message), in: phase)
        }
    }

    /// Delivers an event, unless the exchange was interrupted, possibly by the receiver of the previous event.
    private func emit(_ event: TransportEvent) {
        let events = state.withLock { state in
            guard state.interruption == nil else { return nil as (@Sendable (TransportEvent) -> Void)? }
            if case .head = event { state.hasHead = true }
            return state.events
        }
        events?(event)
    }

    /// Delivers the end.
    ///
    /// - Parameter phase: The phase of an exchange whose head was not delivered.
    private func end(_ error: NetworkError?, in phase: TransportPhase = .firstByte) {
        let now = clock.now
        let (before, events) = state.withLock { state in
            defer {
                state.events = nil
                state.timers = []
                state.interrupted = nil
            }
            return (state, state.events)
        }
        for timer in before.timers { timer.cancel() }
        var error = before.interruption ?? error
        if error?.code != .invalidRequest { error?.phase = before.hasHead ? .body : phase }
        let metrics = TransportMetrics(total: now - begun)
        events?(.end(TransportEnd(error: error, trailers: before.trailers, metrics: metrics)))
    }

    private func failure(
        _ code: NetworkError.Code,
        _ message: String?,
        underlying: (any Error)? = nil
    ) -> NetworkError {
        let line = NetworkError.Request(method: request.method.rawValue, url: request.url)
        return NetworkError(code: code, message: message, underlying: underlying, request: line)
    }
}
