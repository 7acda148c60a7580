import Foundation

/// The state of an ``ItemOperation``, under its lock. The type is not generic, because reading a generic type's layout
/// at run time costs each request some 30,000 instructions.
struct ItemOperationState {
    enum Source {
        case request(CallRequest)
        /// Called by ``ItemOperation/prepare()``.
        case maker(@Sendable () throws -> any BaseAPIRequest)
    }

    typealias Item = any Sendable

    /// The closures of the operation. They are released outside the lock, because a captured object can use the
    /// operation when it is released.
    struct Closures {
        var preprocess: (@Sendable (Result<Item, NetworkError>) -> Void)?
        var willDeliver: (@Sendable (Result<Item, NetworkError>) -> Void)?
        var cached: (@Sendable (Item) -> Void)?
        var success: (@Sendable (Item) -> Void)?
        var failure: (@Sendable (NetworkError) -> Void)?
        var successWithResponse: (@Sendable (Item, NetworkResponse) -> Void)?
        /// The closures for the main actor; `nil` for most operations.
        var onMain: Shared<ClosuresOnMain>?

        /// Returns whether the operation calls one of the closures at this end.
        func handle(_ error: NetworkError?) -> Bool {
            preprocess != nil || willDeliver != nil || onMain != nil
                || (error == nil ? success != nil || successWithResponse != nil : failure != nil)
        }
    }

    /// The closures for the main actor. They are stored in a separate object because few operations have them.
    struct ClosuresOnMain {
        var success: (@MainActor (Item, NetworkResponse?) -> Void)?
        var failure: (@MainActor (NetworkError) -> Void)?
        var cached: (@MainActor (Item) -> Void)?
    }

    /// The request, taken when it is sent.
    var source: Source?
    var closures = Closures()
    /// Whether the end is being delivered. A closure that is set now would never be called.
    var isClosed = false
    weak var delegate: (any RequestOperationDelegate)?
    /// Whether the operation was given a priority itself, so that its request's priority does not count.
    var hasOwnPriority = false
    var item: Item?
    var response: NetworkResponse?
    var cachedItem: Item?
    /// Stores the response in the cache, after the callbacks have returned.
    var keep: (@Sendable () -> Void)?
    /// Completes when the cache's item has been delivered; `nil` without a receiver.
    var cachedDelivery: Promise<Void>?
    var call: Call?
    /// The meter, created when it is first requested, because the progress of few requests is read.
    var meter: TransferMeter?

    /// Removes the delegate, and removes and returns the closures, when no end is reported to them.
    mutating func takeUnreported() -> Closures {
        delegate = nil
        // The cached item may still have to be delivered, and its delivery takes this closure.
        let cached = cachedDelivery == nil ? nil : closures.cached
        let unreported = exchange(&closures, with: Closures())
        closures.cached = cached
        return unreported
    }
}

extension Locked<ItemOperationState> {
    /// Sets a closure, unless it comes too late. The old one is released outside the lock. `set` assigns the closure,
    /// because closures that pass through generic code are wrapped on the way.
    ///
    /// - Parameter isRemoved: whether the closure becomes `nil`, which is never too late.
    func setClosure(isRemoved: Bool, _ set: (inout ItemOperationState.Closures) -> Void) {
        discard { state in
            let old = state.closures
            if isRemoved || !state.isClosed { set(&state.closures) }
            return old
        }
    }
}
