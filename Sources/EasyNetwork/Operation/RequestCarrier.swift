/// A message that is sent once for all operations that share it.
struct SharedMessage: Sendable {
    let key: SharingKey
    let request: any APIRequest
    let configuration: HostConfiguration
    /// The host that is called, for limits by host.
    let host: String?
    /// See ``RequestOperation/ignoresCache``.
    let ignoresCache: Bool
}

/// The job that sends a message for several operations and hands each of them the answer.
///
/// It has a service of its own: cancelling one of those that share leaves it alone.
final class RequestCarrier: ServiceOperation, @unchecked Sendable {
    // Sendable because everything that changes is in `answer`, behind its lock.
    private let message: SharedMessage
    private let close: @Sendable () -> [(joiner: AnswerReceiver, isOpener: Bool)]
    private let answer = Locked<NetworkResponse?>(nil)

    /// - Parameter close: lets nobody in any more, and tells who is to get the answer.
    init(
        _ message: SharedMessage,
        close: @escaping @Sendable () -> [(joiner: AnswerReceiver, isOpener: Bool)]
    ) {
        self.message = message
        self.close = close
        super.init(service: EasyNetworkService(message.configuration))
    }

    override var isHidden: Bool { true }
    override var host: String? { message.host }

    override func execute() {
        // Each operation that shares the answer maps it. An answer that cannot be mapped must not stay in the cache.
        let request = message.request
        let map = { @Sendable (response: NetworkResponse) throws -> NetworkResponse in
            if response.source == .cache { try request.check(response) }
            return response
        }
        let isMapped = { @Sendable (response: NetworkResponse) in (try? request.check(response)) != nil }
        let order: CacheLookup.Order = message.ignoresCache ? .ignore : .standard
        _ = service.start(request, order: order, map: map, isMapped: isMapped) { result in
            switch result {
            case .success(let response):
                self.answer.withLock { $0 = response }
                self.finish()
            case .failure(let error):
                self.finish(error)
            }
        }
    }

    override func missingResultError() -> NetworkError? {
        answer.withLock { $0 == nil } ? NetworkError(code: .cancelled) : nil
    }

    override func deliver(_ done: @escaping @Sendable () -> Void) {
        let answer = answer.exchange(nil)
        for (receive, isOpener) in close() {
            if let error {
                receive(.failure(error))
            } else if var answer {
                // The one that asked first has it from where it came.
                if !isOpener { answer.source = .joined }
                receive(.success(answer))
            }
        }
        done()
    }
}

extension APIRequest {
    /// Makes the item, and throws what that throws.
    fileprivate func check(_ response: NetworkResponse) throws {
        _ = try item(from: response)
    }
}
