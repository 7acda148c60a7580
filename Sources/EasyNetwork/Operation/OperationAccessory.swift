/// The observers of an operation that were added together.
struct OperationAccessory: Sendable {
    typealias Observer = @Sendable (NetworkOperation) -> Void

    let willStart: Observer?
    let willStop: Observer?
    let didStop: Observer?
}

extension NetworkOperation {
    /// Adds an accessory: an activity indicator, a measurement, a log.
    ///
    /// ```swift
    /// operation.addAccessory(willStart: { _ in spinner.show() }, didStop: { _ in spinner.hide() })
    /// ```
    ///
    /// Each closure is called at most once, on the operation's callback queue: its own, else its ``NetworkQueue``'s,
    /// else its host's or a background queue. The operation waits until it returns. For an operation that ends before
    /// its start, because it was cancelled or a dependency failed, only the closures of the stop are called. They are
    /// released when the operation has finished.
    ///
    /// Add it before the operation is added to a queue: later only the remaining closures are called, and none when the
    /// outcome is known. In an operation that overrides `start()`, `willStart` may come after what that does. The calls
    /// that a ``ServiceOperation`` makes there wait for it.
    ///
    /// - Parameters:
    ///   - willStart: called before ``execute()``. Default nil.
    ///   - willStop: called when the outcome is known and the callbacks have not run. Default nil.
    ///   - didStop: called when the callbacks have run and the dependents have not started. Default nil.
    public final func addAccessory(
        willStart: (@Sendable (NetworkOperation) -> Void)? = nil,
        willStop: (@Sendable (NetworkOperation) -> Void)? = nil,
        didStop: (@Sendable (NetworkOperation) -> Void)? = nil
    ) {
        changeOptions { options, phase in
            guard phase != .delivering, phase != .finished else { return }
            options.accessories.append(OperationAccessory(willStart: willStart, willStop: willStop, didStop: didStop))
        }
    }

    /// Tells the accessories, then goes on with `next`, on the callback queue.
    final func tellAccessories(
        _ accessories: [OperationAccessory],
        _ observer: @escaping @Sendable (OperationAccessory) -> OperationAccessory.Observer?,
        next: @escaping @Sendable () -> Void
    ) {
        deliveryQueue.add {
            for accessory in accessories { observer(accessory)?(self) }
            next()
        }
    }
}
