import Foundation

/// Between the transport that brings a body and the task that iterates over it.
///
/// The transport's thread puts in, the task takes out. What waits has a bound: beyond it the sender is held back until
/// half of it has been fetched.
final class StreamChannel: Sendable {
    typealias Opening = CheckedContinuation<Result<StreamedResponse, NetworkError>, Never>
    private typealias Reading = CheckedContinuation<StreamBuffer.Step, Never>

    private struct State {
        var buffer = StreamBuffer()
        /// Who waits for the head; nil once there is one, or none will be.
        var opening: Opening?
        /// Who waits for bytes.
        var reading: Reading?
        var valve: BodyValve?
        var isClaimed = false
    }

    /// Has one request under way: this one.
    private let service: EasyNetworkService
    private let state: Locked<State>

    init(_ service: EasyNetworkService, opening: Opening) {
        self.service = service
        state = Locked(State(opening: opening))
    }

    // MARK: - Putting in

    /// Hands the head over.
    ///
    /// - Returns: false when one has been handed over, or the request has ended.
    func begin(_ head: TransportHead, from url: URL, valve: BodyValve) -> Bool {
        let opening = state.withLock { state in
            if state.opening != nil { state.valve = valve }
            return state.opening.take()
        }
        guard let opening else { return false }
        let response = StreamedResponse(statusCode: head.statusCode, headers: head.headers, url: url, channel: self)
        opening.resume(returning: .success(response))
        return true
    }

    /// Whether the head has been handed over, so that no other answer can take the place of this one.
    var hasBegun: Bool { state.withLock { $0.opening == nil } }

    /// Some bytes more; the sender is held back when too many wait.
    func take(_ data: Data) {
        let (valve, wakeUp) = state.withLock { state -> (BodyValve?, (() -> Void)?) in
            state.buffer.append(data)
            let wakeUp = Self.wakeUp(&state)
            return (state.buffer.isFull ? state.valve : nil, wakeUp)
        }
        wakeUp?()
        guard let valve else { return }
        valve.hold(.backlog)
        // Who has fetched it all meanwhile may have let go before this thread held.
        if state.withLock({ $0.buffer.hasRoom }) { valve.release(.backlog) }
    }

    /// The request has ended.
    func finish(_ result: Result<NetworkResponse, NetworkError>) {
        let (opening, wakeUp) = state.withLock { state -> (Opening?, (() -> Void)?) in
            let opening = state.opening.take()
            // Not the network's: its body comes with it.
            if opening != nil, case .success(let response) = result { state.buffer.append(response.body) }
            state.buffer.finish(result.map { _ in })
            return (opening, Self.wakeUp(&state))
        }
        wakeUp?()
        guard let opening else { return }
        let response = result.map { response in
            StreamedResponse(
                statusCode: response.statusCode,
                headers: response.headers,
                url: response.url,
                channel: self
            )
        }
        opening.resume(returning: response)
    }

    // MARK: - Taking out

    /// - Returns: whether it is the first who wants to iterate.
    func claim() -> Bool {
        !state.withLock { exchange(&$0.isClaimed, with: true) }
    }

    /// - Returns: the next bytes, never none; nil at the end.
    func next() async throws(NetworkError) -> Data? {
        let step = await withTaskCancellationHandler {
            await withCheckedContinuation { read($0) }
        } onCancel: {
            cancel()
        }
        switch step {
        case .chunk(let data): return data
        case .failed(let error): throw error
        case .end, .wait: return nil
        }
    }

    private func read(_ reading: Reading) {
        let (step, valve) = state.withLock { state -> (StreamBuffer.Step, BodyValve?) in
            guard state.reading == nil else { return (.failed(Self.isReadTwice), nil) }
            let step = state.buffer.next()
            if case .wait = step { state.reading = reading }
            return (step, state.buffer.hasRoom ? state.valve : nil)
        }
        valve?.release(.backlog)
        if case .wait = step { return }
        reading.resume(returning: step)
    }

    /// Ends the exchange; what waits is given up.
    func cancel() {
        let (abandoned, wakeUp) = state.withLock { state in
            (state.buffer.abandon(NetworkError(code: .cancelled)), Self.wakeUp(&state))
        }
        withExtendedLifetime(abandoned) {}
        wakeUp?()
        service.cancel()
    }

    /// What tells who waits for bytes of what there is; nil when nobody waits or nothing is there.
    private static func wakeUp(_ state: inout State) -> (() -> Void)? {
        guard let reading = state.reading else { return nil }
        let step = state.buffer.next()
        if case .wait = step { return nil }
        state.reading = nil
        return { reading.resume(returning: step) }
    }

    static let isReadTwice = NetworkError(
        code: .invalidRequest,
        message: "the body of a streamed answer can be iterated over once; send the request again, or keep what came"
    )

    /// How many bytes wait to be fetched.
    var waitingByteCount: Int { state.withLock { $0.buffer.byteCount } }
}
