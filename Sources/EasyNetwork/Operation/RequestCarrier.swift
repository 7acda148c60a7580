import Foundation

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

/// The job that sends a message for several operations and hands each of them the answer. When the last one has left, it
/// is cancelled.
///
/// It has a service of its own: cancelling one of those that share leaves it alone. It goes as early as they do.
final class RequestCarrier: ServiceOperation, @unchecked Sendable {
    // Sendable because everything that changes is in `sharing`, behind its lock.
    private struct Sharing {
        var answer: NetworkResponse?
        /// The operations that share it, with their numbers; nil when it is too late to join.
        var members: [ObjectIdentifier: (number: Int, receive: AnswerReceiver)]? = [:]
        var joinCount = 0
    }

    private let message: SharedMessage
    private let didClose: @Sendable (RequestCarrier) -> Void
    private let sharing = Locked(Sharing())

    /// - Parameter didClose: called when it is too late to join.
    init(_ message: SharedMessage, didClose: @escaping @Sendable (RequestCarrier) -> Void) {
        self.message = message
        self.didClose = didClose
        super.init(service: EasyNetworkService(message.configuration))
        queuePriority = .veryLow
    }

    override var isHidden: Bool { true }
    override var host: String? { message.host }

    /// How many have joined and not left.
    var memberCount: Int { sharing.withLock { $0.members?.count ?? 0 } }

    /// - Returns: false when it is too late.
    func join(_ id: ObjectIdentifier, _ receive: @escaping AnswerReceiver) -> Bool {
        sharing.withLock { sharing in
            guard sharing.members != nil else { return false }
            sharing.joinCount += 1
            sharing.members?[id] = (sharing.joinCount, receive)
            return true
        }
    }

    func leave(_ id: ObjectIdentifier) {
        let (member, wasLast) = sharing.withLock { sharing in
            let member = sharing.members?.removeValue(forKey: id)
            let wasLast = member != nil && sharing.members?.isEmpty == true
            if wasLast { sharing.members = nil }
            return (member, wasLast)
        }
        // Released outside the lock.
        withExtendedLifetime(member) {}
        if wasLast { cancel() }
    }

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
                self.sharing.withLock { $0.answer = response }
                self.finish()
            case .failure(let error):
                self.finish(error)
            }
        }
    }

    override func missingResultError() -> NetworkError? {
        sharing.withLock { $0.answer == nil } ? NetworkError(code: .cancelled) : nil
    }

    override func deliver(_ done: @escaping @Sendable () -> Void) {
        let (answer, members) = sharing.withLock { ($0.answer.take(), $0.members.take() ?? [:]) }
        didClose(self)
        for (number, receive) in members.values.sorted(by: { $0.number < $1.number }) {
            if let error {
                receive(.failure(error))
            } else if var answer {
                // The one that asked first has it from where it came.
                if number > 1 { answer.source = .joined }
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
