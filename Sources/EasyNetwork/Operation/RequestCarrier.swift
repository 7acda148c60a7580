import Foundation

/// A message that is sent once for all operations that share it. Each of them makes its own item of the answer.
struct SharedMessage: APIRequest, RequestWrapper {
    let key: SharingKey
    let request: any APIRequest
    let configuration: HostConfiguration
    /// The host that is called, for limits by host.
    let host: String?

    var wrapped: any BaseAPIRequest { request }
    // Those that share it lend their priorities to the job that sends it, which is no repeat itself.
    var options: RequestOptions {
        request.options.with { ($0.priority, $0.repeatPolicy, $0.repeatKey) = (.veryLow, .allow, nil) }
    }

    func item(from response: NetworkResponse) throws -> NetworkResponse {
        // A stored answer that cannot be mapped is replaced.
        if response.source == .cache { _ = try request.item(from: response) }
        return response
    }

    func mayStore(_ response: NetworkResponse) -> Bool {
        (try? request.item(from: response)) != nil
    }
}

/// The job that sends a message for several operations. They wait for its ``ItemOperation/value``, which cancels it
/// when the last of them has given that up.
///
/// It has a service of its own: cancelling one of those that share leaves it alone. It goes as early as they do.
final class RequestCarrier: RequestOperation<SharedMessage>, @unchecked Sendable {
    // Sendable because what changes is behind a lock.
    private let message: SharedMessage
    /// Stores the answer in the cache; nil once that was done.
    private let store = Locked<(@Sendable () -> Void)?>(nil)

    /// A job for which one operation waits already.
    override init(_ message: SharedMessage) {
        self.message = message
        super.init(message, service: EasyNetworkService(message.configuration))
        state.withLock { $0.waiterCount = 1 }
        ignoresCache = message.key.ignoresCache
        // It is the message that excludes others.
        mutualExclusionCategories = message.key.categories
    }

    override var isHidden: Bool { true }
    override var host: String? { message.host }

    override func deliver(_ error: NetworkError?, _ done: @escaping @Sendable () -> Void) {
        store.exchange(state.withLock { $0.keep.take() })
        super.deliver(error, done)
    }

    /// Stores the answer in the cache, once: called by the operations that share it when their callbacks have returned.
    func keepAnswer() {
        store.exchange(nil)?()
    }

    /// Counts one more operation that waits.
    ///
    /// - Returns: false when it is too late: the job has ended, or all have left.
    func join() -> Bool {
        guard !hasOutcome else { return false }
        return state.withLock { state in
            if state.waiterCount > 0 { state.waiterCount += 1 }
            return state.waiterCount > 0
        }
    }
}
