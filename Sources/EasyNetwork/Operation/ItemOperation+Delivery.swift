import Dispatch
import Foundation

/// The callbacks of the end.
extension ItemOperation {
    /// Calls back, after the last progress and the cache's item, and then stores the response.
    final func tellEnd(_ error: NetworkError?, inPlace: Bool, _ done: @escaping @Sendable () -> Void) {
        // Read the setting before taking the lock, which protects it too.
        let isSilent = error.map { $0.isSilent || $0.code == .cancelled && silencesCancellation } ?? false
        var unreported = ItemOperationState.Closures()
        // Release everything taken here outside the lock, including the delegate, because this may be its last
        // reference.
        let (source, call, delegate, result, waits, keep) = state.withLock { state in
            state.isClosed = true
            let delegate = state.delegate
            let hasHandlers = !isSilent && (delegate != nil || state.closures.handle(error))
            if !hasHandlers {
                state.delegate = nil
                swap(&state.closures, &unreported)
                // The cached item may still have to be delivered, and its delivery takes this closure.
                if state.cachedDelivery != nil { state.closures.cached = unreported.cached.take() }
            }
            return (
                state.source.take(), state.call.take(), delegate,
                hasHandlers ? error.map(Result.failure) ?? state.item.map(Result.success) : nil,
                (meter: state.meter, cached: state.cachedDelivery, preprocess: state.closures.preprocess.take()),
                // For a hidden job, the jobs that share its response store it.
                ownTraits.isHidden ? nil : state.keep.take()
            )
        }
        withExtendedLifetime((source, delegate, unreported)) {}
        // The user's code may have finished the operation.
        if error != nil {
            // The history is complete only when the call begins no other message.
            call?.cancel()
            option({ $0.undo })?.noteFailure(call?.history ?? [])
        }
        var done = done
        if let keep {
            // Store the response after the callbacks. A response that crashes the app in a callback is then not found
            // again.
            done = { [done] in
                // Storing can decode, so don't do it on the user's queue.
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
                // Take the closures only now, because they may have been released since.
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
                // Take the closures only now, because they may have been released since.
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
