import Foundation

/// The answer to one message on its way into a ``BodyIntake``, or, where that does not want it, into memory.
///
/// Told of the events of its exchange, which come one after the other.
final class AnswerIntake: Sendable {
    /// What an exchange has come to.
    enum Ending {
        case result(Result<NetworkResponse, NetworkError>)
        /// The body has gone where it was to go; the answer is without it.
        case taken(NetworkResponse)
        /// The message is to be sent again.
        case again(NetworkResponse)

        var result: Result<NetworkResponse, NetworkError> {
            switch self {
            case .result(let result): result
            case .taken(let response), .again(let response): .success(response)
            }
        }

        var isUsed: Bool {
            if case .taken = self { true } else { false }
        }
    }

    private enum Phase {
        /// Gathered, as long as the head has not come.
        case gathering
        case taking
        case over
    }

    private struct State {
        var phase = Phase.gathering
        var head: TransportHead?
        var gathered: ResponseAssembly
        /// Bytes that were taken.
        var count: Int64 = 0
        var hasTaken = false
    }

    let intake: any BodyIntake
    let valve = BodyValve()
    private let site: CallContext
    private let url: URL
    private let state: Locked<State>

    init(_ intake: any BodyIntake, at site: CallContext, url: URL) {
        self.intake = intake
        self.site = site
        self.url = url
        state = Locked(State(gathered: ResponseAssembly(keepingAtMost: NetworkError.responseBodyLimit)))
    }

    /// - Returns: how the exchange ends, after which nothing more is taken; nil while it goes on.
    func receive(_ event: TransportEvent) -> Ending? {
        switch event {
        case .sent: return nil
        case .head(let head): return begin(head, event)
        case .body(let data): return take(data, event)
        case .end(let end): return finish(end, event)
        }
    }

    /// Whether the body goes into the intake, or went.
    var hasTaken: Bool { state.withLock { $0.hasTaken } }

    /// Tells the intake that the exchange is over, unless it knows.
    func abandon() {
        let isKnown = state.withLock { state in
            defer { state.phase = .over }
            return state.phase == .over
        }
        if !isKnown { intake.end(NetworkError(code: .cancelled)) { _ in } }
    }

    private func begin(_ head: TransportHead, _ event: TransportEvent) -> Ending? {
        let decision = intake.begin(head, isAccepted: site.wants(head), valve: valve)
        state.withLock { state in
            state.head = head
            if case .take = decision {
                state.phase = .taking
                state.hasTaken = true
            } else {
                _ = state.gathered.receive(event, from: url)
            }
        }
        return ending(of: decision)
    }

    private func take(_ data: Data, _ event: TransportEvent) -> Ending? {
        let (phase, count) = state.withLock { state in
            if state.phase == .taking { state.count += Int64(data.count) }
            return (state.phase, Int(clamping: state.count))
        }
        switch phase {
        case .over: return nil
        case .gathering: return gathered(event)
        case .taking:
            guard site.validation.accepts(bodyCount: count) else {
                return over(.result(.failure(site.validation.bodyTooLong(answer()))))
            }
            return ending(of: intake.take(data))
        }
    }

    private func finish(_ end: TransportEnd, _ event: TransportEvent) -> Ending? {
        guard state.withLock({ $0.phase }) == .taking else { return gathered(event) }
        guard var error = end.error else { return over(.taken(answer(end))) }
        let head = state.withLock { $0.head }
        error.metrics = end.metrics
        error.statusCode = head?.statusCode
        error.headers = head?.headers ?? HTTPHeaders()
        return over(.result(.failure(error)))
    }

    private func gathered(_ event: TransportEvent) -> Ending? {
        let result = state.withLock { state in
            state.phase == .gathering ? state.gathered.receive(event, from: url) : nil
        }
        return result.flatMap { over(.result($0)) }
    }

    private func ending(of decision: BodyDecision) -> Ending? {
        switch decision {
        case .gather, .take: nil
        case .enough: over(.taken(answer()))
        case .again: over(.again(answer()))
        case .fail(let error): over(.result(.failure(error)))
        }
    }

    private func over(_ ending: Ending) -> Ending {
        state.withLock { $0.phase = .over }
        valve.detach()
        return ending
    }

    private func answer(_ end: TransportEnd? = nil) -> NetworkResponse {
        let head = state.withLock { $0.head } ?? TransportHead(statusCode: 0)
        var response = NetworkResponse(statusCode: head.statusCode, headers: head.headers, body: Data(), url: url)
        response.trailers = end?.trailers ?? HTTPHeaders()
        response.metrics = end?.metrics
        return response
    }
}
