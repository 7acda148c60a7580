/// What is sent once for all that share it.
struct SharedMessage: Sendable {
    let key: SharingKey
    let request: any BaseAPIRequest
    let configuration: HostConfiguration
    /// The host that is called, for limits by host.
    let host: String?
}

/// The job that sends a message for several operations and hands each of them the answer.
///
/// It has a service of its own: cancelling one of those that share leaves it alone.
final class RequestCarrier: ServiceOperation, @unchecked Sendable {
    // Sendable because everything that changes is in `state`, behind its lock.
    private struct State {
        var landing: Landing?
        var result: Result<NetworkResponse, NetworkError>?

        var answer: Result<SharedAnswer, NetworkError>? {
            guard let landing, let result else { return nil }
            return result.map { SharedAnswer($0, landing: landing) }
        }
    }

    private let message: SharedMessage
    private let close: @Sendable () -> [(joiner: SharedAnswer.Receiver, isOpener: Bool)]
    private let state = Locked(State())

    /// - Parameter close: lets nobody in any more, and tells who is to get the answer.
    init(
        _ message: SharedMessage,
        close: @escaping @Sendable () -> [(joiner: SharedAnswer.Receiver, isOpener: Bool)]
    ) {
        self.message = message
        self.close = close
        super.init(service: EasyNetworkService(message.configuration))
    }

    override var isHidden: Bool { true }
    override var host: String? { message.host }

    override func execute() {
        let landing = service.start(message.request, map: { $0 }) { result in self.note { $0.result = result } }
        note { $0.landing = landing }
    }

    /// The answer may be there before what it came with.
    private func note(_ change: (inout State) -> Void) {
        let answer = state.withLock { state in
            change(&state)
            return state.answer
        }
        switch answer {
        case .success: finish()
        case .failure(let error): finish(error)
        case nil: break
        }
    }

    override func missingResultError() -> NetworkError? {
        state.withLock { $0.answer == nil } ? NetworkError(code: .cancelled) : nil
    }

    override func deliver(_ done: @escaping @Sendable () -> Void) {
        let answer = state.withLock { $0.answer } ?? .failure(NetworkError(code: .cancelled))
        let result = error.map(Result.failure) ?? answer
        for (receive, isOpener) in close() { receive(isOpener ? result : result.map(\.joined)) }
        state.exchange(\.self, State())
        done()
    }
}
