/// The observers of an operation that were added together.
struct OperationAccessory: Sendable {
    typealias Observer = @Sendable (NetworkOperation) -> Void

    let willStart: Observer?
    let willStop: Observer?
    let didStop: Observer?
}

extension NetworkOperation {
    /// Adds an accessory, such as an activity indicator, a measurement or a log.
    ///
    /// ```swift
    /// operation.addAccessory(willStart: { _ in spinner.show() }, didStop: { _ in spinner.hide() })
    /// ```
    ///
    /// Each closure is called at most once, on the operation's callback queue: its own, otherwise its
    /// ``NetworkQueue``'s, its host's, or a background queue. The operation waits until the closure returns. If the
    /// operation ends before its start, because it was cancelled or a dependency failed, only `willStop` and `didStop`
    /// are called. The closures are released when the operation has finished.
    ///
    /// Add it before the operation is added to a queue. Later, only the remaining closures are called, and none once
    /// the outcome is known. If an operation overrides `start()`, `willStart` can run after that override's work. The
    /// calls that a ``ServiceOperation`` makes there wait for it.
    ///
    /// - Parameters:
    ///   - willStart: called before ``execute()``. Defaults to `nil`.
    ///   - willStop: called when the outcome is known and the callbacks have not run. Defaults to `nil`.
    ///   - didStop: called when the callbacks have run and the dependents have not started. Defaults to `nil`.
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

    /// Notifies the accessories, then calls `next`, on the callback queue.
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
