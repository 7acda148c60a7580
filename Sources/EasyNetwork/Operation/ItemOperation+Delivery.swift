import Dispatch
import Foundation

/// The callbacks of the end.
extension ItemOperation {
    /// The response of an operation that has succeeded with a message, as every ``RequestOperation`` does.
    final var responseOfItem: NetworkResponse { response ?? NetworkResponse() }

    /// Hands the result over on a queue, if it is not `nil`.
    ///
    /// - Parameter inPlace: see ``NetworkOperation/end(_:inPlace:)``.
    final func hand(
        over result: Result<any Sendable, NetworkError>?,
        on queue: DispatchQueue,
        inPlace: Bool,
        _ done: @escaping @Sendable () -> Void
    ) {
        guard let result else { return done() }
        if inPlace, queue === WorkQueue.shared { return report(result, done) }
        queue.add { self.report(result, done) }
    }

    /// Calls the delegate and the closures.
    private func report(_ result: Result<any Sendable, NetworkError>, _ done: @escaping @Sendable () -> Void) {
        // The closures are released at the end of this call, before the operation has finished.
        let isAwaitedOnMain = WorkQueue.userCode {
            // Take the closures only now, because they may have been released since.
            let (closures, delegate) = state.withLock { state in
                let closures = exchange(&state.closures, with: ItemOperationState.Closures())
                state.closures.onMain = closures.onMain
                return (closures, state.delegate)
            }
            closures.willDeliver?(result)
            switch result {
            case .success(let item):
                delegate?.requestOperationDidSucceed(self)
                closures.success?(item)
                if let closure = closures.successWithResponse { closure(item, responseOfItem) }
            case .failure(let error):
                delegate?.requestOperation(self, didFailWith: error)
                closures.failure?(error)
            }
            return closures.onMain != nil
        }
        guard isAwaitedOnMain else { return done() }
        WorkQueue.callOnMain(
            {
                // Take the closures only now, because they may have been released since.
                let closures = self.state.withLock { $0.closures.onMain.take()?.value }
                switch result {
                case .success(let item): closures?.success?(item, self.response)
                case .failure(let error): closures?.failure?(error)
                }
            },
            then: done
        )
    }
}
