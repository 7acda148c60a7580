/// An observer of an operation: an activity indicator, a measurement, a log.
///
/// ```swift
/// operation.addAccessory(spinner)      // shown in operationWillStart, hidden in operationDidStop
/// ```
///
/// Each method is called at most once, on the operation's callback queue: its own, else its ``NetworkQueue``'s, else its
/// host's or a background queue. The operation waits until it returns. For an operation that ends before its start,
/// because it was cancelled or a dependency failed, only the methods of the stop are called. Every method does nothing by
/// default.
public protocol OperationAccessory: AnyObject, Sendable {
    /// Before ``NetworkOperation/execute()``.
    func operationWillStart(_ operation: NetworkOperation)
    /// The outcome is known, the callbacks have not run.
    func operationWillStop(_ operation: NetworkOperation)
    /// The callbacks have run, the dependents have not started.
    func operationDidStop(_ operation: NetworkOperation)
}

extension OperationAccessory {
    public func operationWillStart(_ operation: NetworkOperation) {}
    public func operationWillStop(_ operation: NetworkOperation) {}
    public func operationDidStop(_ operation: NetworkOperation) {}
}

extension NetworkOperation {
    /// Adds an accessory, which is kept alive until the operation has finished. Add it before the operation is added to a
    /// queue: later only the remaining methods are called, and none when the outcome is known.
    ///
    /// In an operation that overrides `start()`, ``OperationAccessory/operationWillStart(_:)`` may come after what that
    /// does. The calls that a ``ServiceOperation`` makes there wait for it.
    public final func addAccessory(_ accessory: any OperationAccessory) {
        changeOptions { options, phase in
            guard phase != .delivering, phase != .finished else { return }
            options.accessories.append(accessory)
        }
    }

    /// Tells the accessories, then goes on with `next`, on the callback queue.
    final func tellAccessories(
        _ accessories: [any OperationAccessory],
        _ event: @escaping @Sendable (any OperationAccessory) -> Void,
        next: @escaping @Sendable () -> Void
    ) {
        deliveryQueue.async {
            for accessory in accessories { event(accessory) }
            next()
        }
    }
}
