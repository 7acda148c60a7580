import Foundation

/// A message that is sent once for all operations that share it. Each of them creates its own item from the response.
struct SharedMessage: Sendable {
    let key: SharingKey
    let snapshot: RequestSnapshot
    /// The host of the message, for limits by host.
    let host: String?
    /// Creates an item. If it throws, the response is not stored, or a stored response is replaced.
    let checkItem: @Sendable (NetworkResponse) throws -> Void
}

/// The job that sends a message for several operations. They wait for its ``ItemOperation/value``. When the last of
/// them stops waiting, the job is cancelled.
///
/// The job has its own service, so cancelling one of the operations does not affect it. The operations lend it their
/// priorities.
package final class RequestCarrier: ItemOperation<NetworkResponse>, @unchecked Sendable {
    // Sendable because all mutable state is under a lock.
    private let message: SharedMessage

    /// Creates a job for which one operation already waits.
    init(_ message: SharedMessage) {
        self.message = message
        let snapshot = message.snapshot
        super.init(snapshot.request, RequestOptions(priority: .veryLow), of: EasyNetworkService(snapshot.host))
        state.discard { exchange(&$0.source, with: .request(CallRequest(snapshot))) }
        traits.isHidden = true
        core.withLock { $0.waitingTaskCount = 1 }
        // The message excludes others, so the carrier holds the categories.
        mutualExclusionCategories = message.key.categories
    }

    package override var host: String? { message.host }

    package override func execute() {
        guard var request = takeRequest() else { return }
        let checkItem = message.checkItem
        if message.key.ignoresCache { request.order = .ignore }
        request.mayStore = { (try? checkItem($0)) != nil }
        request.keepsBody = false
        request.map = { _, response in
            if response.source != .network { try checkItem(response) }
            return response
        }
        send(request)
    }

    /// Stores the response in the cache, once. The operations that share it call this method when their callbacks have
    /// returned.
    func keepAnswer() {
        state.withLock { $0.keep.take() }?()
    }

    /// Counts one more waiting operation.
    ///
    /// - Returns: `false` if it is too late: the job has ended, or no operation waits for it any longer.
    func join() -> Bool {
        core.withLock { state in
            guard state.lifecycle.outcome == nil, state.waitingTaskCount > 0 else { return false }
            state.waitingTaskCount += 1
            return true
        }
    }
}
