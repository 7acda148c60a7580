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
        /// The timers by number. `nil` for a timer that is being scheduled.
        var timers: [Int: (any ClockTimer)?] = [:]
        var lastTimer = 0
        /// The deadlines. `nil` once the end is certain.
        var watch: DeadlineWatch?
        var hasHead = false
        var trailers = HTTPHeaders()
        /// A closure that is called if the exchange is interrupted.
        var interrupted: (@Sendable () -> Void)?
    }

    private let request: TransportRequest
    private let clock: any NetworkClock
    private let begun: TimeInterval
    private let link: Locked<NetworkLink>
    private let trip: NetworkLink.Trip
    private let state: Locked<State>
    /// Delivers the events in order.
    private let queue = DispatchQueue(label: "EasyNetworkTesting.InMemoryExchange", autoreleaseFrequency: .workItem)

    init(
        _ request: TransportRequest,
        clock: any NetworkClock,
        link: Locked<NetworkLink>,
        events: @escaping @Sendable (TransportEvent) -> Void
    ) {
        self.request = request
        self.clock = clock
        self.link = link
        trip = link.withLock { $0.nextTrip() }
        begun = clock.now
        var watch = DeadlineWatch(request.deadlines, now: begun)
        watch.connected()
        state = Locked(State(events: events, watch: watch))
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

    /// Sets the timer of the earliest deadline. Activity only changes a number, and a timer that fires too early is
    /// scheduled again.
    func watchDeadlines() {
        let now = clock.now
        do throws(NetworkError) {
            let left = try state.withLock { $0.watch }?.timeLeft(now: now) ?? .infinity
            if left < .infinity { setTimer(after: left) { $0.watchDeadlines() } }
        } catch {
            fail(error.code, error.message)
        }
    }

    /// Sends the request's body.
    ///
    /// - Parameter arrived: Called when the request has arrived, unless the connection is lost. With `false`, it is
    ///   called before this method returns; with `true`, possibly later on the clock's thread.
    func send(_ body: Data, then arrived: @escaping @Sendable (_ isLate: Bool) -> Void) {
        let isLate = trip.up > 0 || link.withLock { $0.share } < .max
        after(trip.up) { exchange in
            exchange.carry(BodyPieces(body), .up, as: { .sent($0.count) }) { exchange in
                guard exchange.trip.loss == .request else { return arrived(isLate) }
                exchange.finish(.connectionLost, "the connection was lost before the request arrived", in: .send)
            }
        }
    }

    /// Delivers the response after its delay.
    func answer(_ response: MockResponse) {
        let response = trip.applied(to: response, method: request.method.rawValue)
        after(response.delay) { $0.play(response) }
    }

    /// Ends the exchange with an error, unless it has ended. After this call, only the end is delivered.
    func fail(_ code: NetworkError.Code, _ message: String?, underlying: (any Error)? = nil) {
        let error = failure(code, message, underlying: underlying)
        let taken: (timers: [Int: (any ClockTimer)?], interrupted: (@Sendable () -> Void)?)? = state.withLock { state in
            guard state.events != nil, state.interruption == nil else { return nil }
            state.interruption = error
            defer { state.timers = [:] }
            return (state.timers, state.interrupted.take())
        }
        guard let taken else { return }
        for timer in taken.timers.values { timer?.cancel() }
        taken.interrupted?()
        let now = clock.now
        queue.async { self.end(nil, at: now) }
    }

    /// Calls an action: at once if there is no delay, otherwise on the clock's thread.
    private func after(_ delay: TimeInterval, _ action: @escaping @Sendable (InMemoryExchange) -> Void) {
        if delay > 0 { setTimer(after: delay, action) } else { action(self) }
    }

    private func setTimer(after delay: TimeInterval, _ action: @escaping @Sendable (InMemoryExchange) -> Void) {
        let number: Int? = state.withLock { state in
            guard state.events != nil, state.interruption == nil else { return nil }
            state.lastTimer += 1
            state.timers.updateValue(nil, forKey: state.lastTimer)
            return state.lastTimer
        }
        guard let number else { return }
        // The timer keeps the exchange alive until the end of the exchange cancels it.
        let timer = clock.schedule(after: delay) {
            guard self.state.withLock({ $0.timers.removeValue(forKey: number) }) != nil else { return }
            action(self)
        }
        let isSet = state.withLock { state in
            guard state.timers.keys.contains(number) else { return false }
            state.timers.updateValue(timer, forKey: number)
            return true
        }
        // The timer has fired meanwhile, or the exchange has ended.
        if !isSet { timer.cancel() }
    }

    // MARK: On the thread of the clock, or of the route

    /// Delivers bytes when they arrive: all at once, or one share after the other if the bandwidth has a limit.
    ///
    /// - Parameters:
    ///   - event: Creates the event for a share of the bytes.
    ///   - done: Called when all bytes have arrived.
    private func carry(
        _ pieces: BodyPieces,
        _ direction: NetworkLink.Direction,
        as event: @escaping @Sendable (Data) -> TransportEvent,
        then done: @escaping @Sendable (InMemoryExchange) -> Void
    ) {
        var rest = pieces
        let share = link.withLock { $0.share }
        guard share < .max else {
            // A repeated byte can be endless, so create each piece only after the previous one has been delivered.
            guard !pieces.isRepeated else {
                return queue.async {
                    var rest = pieces
                    while !self.isInterrupted, let data = rest.next() { self.emit(event(data)) }
                    done(self)
                }
            }
            while let data = rest.next() { queue.async { self.emit(event(data)) } }
            return done(self)
        }
        guard let data = rest.next(atMost: share) else { return done(self) }
        let now = clock.now
        let wait = link.withLock { $0.wait(for: data.count, direction, now: now) }
        setTimer(after: wait) { [rest] exchange in
            let now = exchange.clock.now
            exchange.state.withLock { $0.watch?.activity(now: now) }
            exchange.queue.async { exchange.emit(event(data)) }
            exchange.carry(rest, direction, as: event, then: done)
        }
    }

    private func play(_ response: MockResponse) {
        switch response.fault?.kind {
        case .raw:
            finish(
                .badServerResponse,
                "InMemoryTransport does not parse the raw bytes of a fault; use MockServer instead"
            )
        case .malformed(.statusLine):
            finish(.badServerResponse, "the status line is malformed")
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
        let now = clock.now
        state.withLock { state in
            state.watch?.answered()
            state.watch?.activity(now: now)
        }
        queue.async { self.emit(.head(TransportHead(statusCode: plan.statusCode, headers: plan.headers))) }
        carry(BodyPieces(plan), .down, as: { .body($0) }) { $0.complete(plan) }
    }

    private func complete(_ plan: ResponsePlan) {
        if case .badChunk = plan.malformation, !plan.isComplete {
            finish(.badServerResponse, "a chunk has no valid size")
        } else if plan.isComplete {
            state.withLock { $0.trailers = plan.trailers }
            finish(nil)
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
        case .close, .reset: finish(.connectionLost, message, in: phase)
        }
    }

    /// Ends the exchange after all events that have been queued.
    private func finish(_ code: NetworkError.Code?, _ message: String? = nil, in phase: TransportPhase = .firstByte) {
        let (now, error) = (clock.now, code.map { failure($0, message) })
        state.withLock { $0.watch = nil }
        queue.async { self.end(error, in: phase, at: now) }
    }

    // MARK: On the queue

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
    private func end(_ error: NetworkError?, in phase: TransportPhase = .firstByte, at now: TimeInterval) {
        let (before, events) = state.withLock { state in
            defer {
                state.events = nil
                state.timers = [:]
                state.interrupted = nil
            }
            return (state, state.events)
        }
        for timer in before.timers.values { timer?.cancel() }
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

/// The bytes of a body, one piece after the other.
private struct BodyPieces: Sendable {
    private var pieces: ArraySlice<WireSegment>
    /// The number of bytes of the first piece that have been taken.
    private var offset = 0
    /// The number of bytes left up to a wrong `Content-Length`, which can be too short.
    private var left = Int.max

    init(_ body: Data) {
        pieces = [.bytes(body)]
    }

    init(_ plan: ResponsePlan) {
        pieces = plan.pieces.map(\.content)[...]
        if case .contentLength = plan.malformation { left = plan.headers["Content-Length"].flatMap { Int($0) } ?? left }
    }

    /// Whether a piece repeats one byte. It takes no memory and can be endless.
    var isRepeated: Bool {
        pieces.contains { piece in
            if case .repeating = piece { true } else { false }
        }
    }

    mutating func next(atMost limit: Int = .max) -> Data? {
        while let piece = pieces.first, left > 0 {
            let data = piece.data(from: offset).prefix(min(limit, left))
            offset += data.count
            left -= data.count
            if !data.isEmpty { return data }
            pieces.removeFirst()
            offset = 0
        }
        return nil
    }
}
