import Foundation

/// A message that is sent once for all operations that share it. Each of them makes its own item of the answer.
struct SharedMessage: Sendable {
    let key: SharingKey
    let snapshot: RequestSnapshot
    /// The host that is called, for limits by host.
    let host: String?
    /// Makes an item: an answer of which none can be made is not stored, and a stored one is replaced.
    let checkItem: @Sendable (NetworkResponse) throws -> Void
}

/// The job that sends a message for several operations. They wait for its ``ItemOperation/value``, which cancels it
/// when the last of them has given that up.
///
/// It has a service of its own: cancelling one of those that share leaves it alone. They lend it their
/// priorities.
package final class RequestCarrier: ItemOperation<NetworkResponse>, @unchecked Sendable {
    // Sendable because what changes is behind a lock.
    private let message: SharedMessage

    /// A job for which one operation waits already.
    init(_ message: SharedMessage) {
        self.message = message
        let snapshot = message.snapshot
        super.init(snapshot.request, RequestOptions(priority: .veryLow), of: EasyNetworkService(snapshot.host))
        let unread = state.withLock { exchange(&$0.source, with: .request(CallRequest(snapshot))) }
        withExtendedLifetime(unread) {}
        ownTraits.isHidden = true
        core.withLock { $0.waitingTaskCount = 1 }
        // It is the message that excludes others.
        mutualExclusionCategories = message.key.categories
    }

    package override var host: String? { message.host }

    package override func execute() {
        guard var request = takeRequest() else { return }
        let checkItem = message.checkItem
        if message.key.ignoresCache { request.order = .ignore }
        request.mayStore = { (try? checkItem($0)) != nil }
        request.keepsBody = false
        request.map = { response in
            if response.source != .network { try checkItem(response) }
            return response
        }
        send(request)
    }

    /// Stores the answer in the cache, once: called by the operations that share it when their callbacks have returned.
    func keepAnswer() {
        state.withLock { $0.keep.take() }?()
    }

    /// Counts one more operation that waits.
    ///
    /// - Returns: false when it is too late: the job has ended, or all have left.
    func join() -> Bool {
        core.withLock { state in
            guard state.lifecycle.outcome == nil, state.waitingTaskCount > 0 else { return false }
            state.waitingTaskCount += 1
            return true
        }
    }
}
