import Foundation

/// The state of an ``ItemOperation``, behind its lock. It is not generic: reading a generic type's layout at run time
/// costs each request some 30,000 instructions.
struct ItemOperationState {
    enum Source {
        case request(CallRequest)
        /// Called by ``ItemOperation/prepare()``.
        case maker(@Sendable () throws -> any BaseAPIRequest)
    }

    typealias Item = any Sendable

    /// They are released outside the lock: what they capture may use the operation when it is released.
    struct Closures {
        var preprocess: (@Sendable (Result<Item, NetworkError>) -> Void)?
        var willDeliver: (@Sendable (Result<Item, NetworkError>) -> Void)?
        var cached: (@Sendable (Item) -> Void)?
        var success: (@Sendable (Item) -> Void)?
        var failure: (@Sendable (NetworkError) -> Void)?
        var successWithResponse: (@Sendable (Item, NetworkResponse) -> Void)?
        /// Nil for most operations.
        var onMain: ClosuresOnMain?

        /// Whether one of the closures is called at this end.
        func hear(_ error: NetworkError?) -> Bool {
            preprocess != nil || willDeliver != nil || onMain != nil
                || (error == nil ? success != nil || successWithResponse != nil : failure != nil)
        }
    }

    /// The closures for the main actor: an object of their own, as few operations have them.
    final class ClosuresOnMain: Sendable {
        let success: (@MainActor (Item, NetworkResponse?) -> Void)?
        let failure: (@MainActor (NetworkError) -> Void)?
        let cached: (@MainActor (Item) -> Void)?

        init(
            success: (@MainActor (Item, NetworkResponse?) -> Void)?,
            failure: (@MainActor (NetworkError) -> Void)?,
            cached: (@MainActor (Item) -> Void)?
        ) {
            self.success = success
            self.failure = failure
            self.cached = cached
        }
    }

    /// Taken when it is sent.
    var source: Source?
    var closures = Closures()
    /// Whether the end is being delivered: a closure that is set now would never be called.
    var isClosed = false
    weak var delegate: (any RequestOperationDelegate)?
    /// Whether the priority was given to the operation itself, so that its request's does not count.
    var hasOwnPriority = false
    var item: Item?
    var response: NetworkResponse?
    var cachedItem: Item?
    /// Stores the answer in the cache, when the callbacks have returned.
    var keep: (@Sendable () -> Void)?
    /// Fires when the cache's item has been delivered; nil without a receiver.
    var cachedDelivery: Promise<Void>?
    /// The call under way.
    var call: Call?
    /// Made when it is first asked for, since the progress of few requests is.
    var meter: TransferMeter?
}

extension Locked<ItemOperationState> {
    /// Sets a closure, unless it comes too late; the old one is released outside the lock. It is set by an assignment,
    /// since closures that pass through generic code are wrapped on the way.
    ///
    /// - Parameter isRemoved: whether it becomes nil, which is never too late.
    func setClosure(isRemoved: Bool, _ set: (inout ItemOperationState.Closures) -> Void) {
        let old = withLock { state in
            let old = state.closures
            if isRemoved || !state.isClosed { set(&state.closures) }
            return old
        }
        withExtendedLifetime(old) {}
    }
}
