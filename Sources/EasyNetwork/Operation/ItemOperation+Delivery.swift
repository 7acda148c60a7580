import Dispatch
import Foundation

/// The callbacks of an end.
extension ItemOperation {
    /// Calls back, after the last progress and the cache's item, and stores the answer afterwards.
    final func deliverItem(_ error: NetworkError?, _ done: @escaping @Sendable () -> Void) {
        // Everything taken here is released outside the lock.
        let (_, call, cachedDelivery, meter, keep) = state.withLock { state in
            state.isClosed = true
            return (state.source.take(), state.call.take(), state.cachedDelivery, state.meter, state.keep.take())
        }
        var done = done
        if let keep {
            // An answer that stops the program in a callback is not found again.
            done = { [done] in
                // Not on the user's queue, as it may decode.
                WorkQueue.run {
                    keep()
                    done()
                }
            }
        }
        // It was finished manually.
        if error != nil { call?.cancel() }
        guard let meter else { return callBack(error, after: cachedDelivery, done) }
        meter.finish(success: error == nil) { [done] in self.callBack(error, after: cachedDelivery, done) }
    }

    private func callBack(
        _ error: NetworkError?,
        after cachedDelivery: Promise<Void>?,
        _ done: @escaping @Sendable () -> Void
    ) {
        guard let cachedDelivery else { return callBack(error, done) }
        cachedDelivery.whenSet { self.callBack(error, done) }
    }

    private func callBack(_ error: NetworkError?, _ done: @escaping @Sendable () -> Void) {
        // Asked before, as it is behind the lock, too.
        let isSilent = error.map { $0.isSilent || $0.code == .cancelled && silencesCancellation } ?? false
        var preprocess: (@Sendable (Result<any Sendable, NetworkError>) -> Void)?
        var unused = ItemOperationState.Closures()
        let (delegate, result) = state.withLock { state -> (AnyObject?, Result<any Sendable, NetworkError>?) in
            // The delegate comes along, as we may be the last to hold it.
            let delegate = state.delegate
            let isCalled = error == nil ? state.closures.success != nil : state.closures.failure != nil
            let hasOthers =
                state.closures.preprocess != nil || state.closures.willDeliver != nil || state.closures.onMain != nil
                || error == nil && state.closures.successWithResponse != nil
            guard !isSilent, isCalled || hasOthers || delegate != nil else {
                state.delegate = nil
                swap(&state.closures, &unused)
                return (delegate, nil)
            }
            preprocess = state.closures.preprocess.take()
            return (delegate, error.map(Result.failure) ?? state.item.map(Result.success))
        }
        withExtendedLifetime((delegate, unused)) {}
        guard let result else { return done() }
        guard let preprocess else { return hand(over: result, done) }
        WorkQueue.shared.add {
            preprocess(result)
            self.hand(over: result, done)
        }
    }

    /// The response of an operation that has succeeded with a message, as every ``RequestOperation`` does.
    final var responseOfItem: NetworkResponse { response ?? NetworkResponse() }

    private func hand(over result: Result<any Sendable, NetworkError>, _ done: @escaping @Sendable () -> Void) {
        WorkQueue.call(on: deliveryQueue) {
            let isAwaitedOnMain = WorkQueue.userCode {
                // Taken only now: they may have been released before.
                let (closures, delegate) = self.state.withLock { state in
                    let onMain = state.closures.onMain
                    return (
                        exchange(&state.closures, with: ItemOperationState.Closures(onMain: onMain)), state.delegate
                    )
                }
                closures.willDeliver?(result)
                switch result {
                case .success(let item):
                    delegate?.requestOperationDidSucceed(self)
                    closures.success?(item)
                    if let closure = closures.successWithResponse { closure(item, self.responseOfItem) }
                case .failure(let error):
                    delegate?.requestOperation(self, didFailWith: error)
                    closures.failure?(error)
                }
                return closures.onMain != nil
            }
            if isAwaitedOnMain { self.handOverOnMain(result, done) } else { done() }
        }
    }

    private func handOverOnMain(_ result: Result<any Sendable, NetworkError>, _ done: @escaping @Sendable () -> Void) {
        WorkQueue.callOnMain(
            {
                // As above, they may have been released.
                let closures = self.state.withLock { $0.closures.onMain.take() }
                switch result {
                case .success(let item): closures?.success?(item, self.response)
                case .failure(let error): closures?.failure?(error)
                }
            },
            then: done
        )
    }
}
