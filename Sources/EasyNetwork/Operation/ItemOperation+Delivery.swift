import Dispatch
import Foundation

/// The callbacks of an end.
extension ItemOperation {
    /// Calls back, after the last progress and the cache's item, and stores the response afterwards.
    final func tellEnd(_ error: NetworkError?, inPlace: Bool, _ done: @escaping @Sendable () -> Void) {
        // Read before the lock is taken, which protects the setting, too.
        let isSilent = error.map { $0.isSilent || $0.code == .cancelled && silencesCancellation } ?? false
        var unheard = ItemOperationState.Closures()
        // All that is taken here is released outside the lock; the delegate, too, as this may be the last to hold it.
        let (source, call, delegate, result, waits, keep) = state.withLock { state in
            state.isClosed = true
            let delegate = state.delegate
            let isHeard = !isSilent && (delegate != nil || state.closures.hear(error))
            if !isHeard {
                state.delegate = nil
                swap(&state.closures, &unheard)
                // The delivery of the cached item takes this closure, and may still be to come.
                if state.cachedDelivery != nil { state.closures.cached = unheard.cached.take() }
            }
            return (
                state.source.take(), state.call.take(), delegate,
                isHeard ? error.map(Result.failure) ?? state.item.map(Result.success) : nil,
                (meter: state.meter, cached: state.cachedDelivery, preprocess: state.closures.preprocess.take()),
                // The jobs that share its response store it.
                ownTraits.isHidden ? nil : state.keep.take()
            )
        }
        withExtendedLifetime((source, delegate, unheard)) {}
        // The user finished the operation by hand.
        if error != nil { call?.cancel() }
        var done = done
        if let keep {
            // A response that crashes the app in a callback is not found again.
            done = { [done] in
                // Not on the user's queue, as it may decode.
                WorkQueue.run {
                    keep()
                    done()
                }
            }
        }
        guard waits.meter != nil || waits.cached != nil || waits.preprocess != nil else {
            return hand(over: result, inPlace: inPlace, done)
        }
        WorkQueue.task { [done] in
            await waits.meter?.finish(success: error == nil).wait()
            await waits.cached?.wait()
            if let result { waits.preprocess?(result) }
            self.hand(over: result, inPlace: false, done)
        }
    }

    /// The response of an operation that has succeeded with a message, as every ``RequestOperation`` does.
    final var responseOfItem: NetworkResponse { response ?? NetworkResponse() }

    private func hand(
        over result: Result<any Sendable, NetworkError>?,
        inPlace: Bool,
        _ done: @escaping @Sendable () -> Void
    ) {
        guard let result else { return done() }
        WorkQueue.call(on: deliveryQueue, inPlace: inPlace) {
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
