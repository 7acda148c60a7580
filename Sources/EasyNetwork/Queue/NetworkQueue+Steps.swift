import Foundation

/// A step of the graph: what comes out of it is handed on.
extension NetworkQueue {
    typealias Actions = JobGraph<Operation>.Actions

    /// Starts the operations that only have to end. It has no limit, so nothing that runs can be in their way.
    private static let endings: OperationQueue = {
        let queue = OperationQueue()
        queue.name = "EasyNetwork.NetworkQueue.endings"
        return queue
    }()

    /// Does one step of the graph, and then what it asks for.
    ///
    /// - Parameter beforeActing: called with the result in between, without the lock.
    @discardableResult
    func step<Result>(
        _ body: (inout State, inout Actions) -> Result,
        beforeActing: (Result) -> Void = { _ in }
    ) -> Result {
        var actions = Actions(now: clock.now)
        // What waited for the slots that are given again.
        var granted: [@Sendable () -> Void] = []
        let (result, timer, isHeard) = state.withLock { state -> (Result, (new: Wake, old: (any ClockTimer)?)?, Bool) in
            let result = body(&state, &actions)
            // Under the lock, so that a slot is not taken for one that is asked for afterwards.
            for case let operation as NetworkOperation in actions.resume {
                granted += operation.core.withLock { $0.slotActions.take() }
            }
            for operation in actions.forget { state.outside[ObjectIdentifier(operation)] = nil }
            if state.events.isHeard {
                // A plain one may have to wait after all, see act(on:).
                for case let operation as NetworkOperation in actions.start where !operation.isHidden {
                    state.events.note(.started(operation))
                }
            }
            return (result, state.wakeIsDue(actions), state.events.isHeard)
        }
        if let timer {
            timer.old?.cancel()
            set(timer.new)
        }
        beforeActing(result)
        act(on: actions, granted)
        if isHeard { publishEvents() }
        return result
    }

    /// When the queue is to look again at jobs that a rate holds back.
    struct Wake {
        /// On the clock of the queue.
        var time: TimeInterval
        var delay: TimeInterval
        /// Tells this one from those before.
        var number: Int
        var timer: (any ClockTimer)?
    }

    private func set(_ wake: Wake) {
        let timer = clock.schedule(after: wake.delay) { [weak self] in
            self?.step { state, actions in
                if state.wake?.number == wake.number { state.wake = nil }
                state.graph.admit(&actions)
            }
        }
        let isWanted = state.withLock { state in
            if state.wake?.number == wake.number { state.wake?.timer = timer }
            return state.wake?.number == wake.number
        }
        // It has fired already, or another one is set for an earlier time.
        if !isWanted { timer.cancel() }
    }

    private func act(on actions: Actions, _ granted: [@Sendable () -> Void]) {
        for operation in actions.end { hand(operation, to: Self.endings) }
        for action in granted { WorkQueue.shared.async(execute: action) }
        for operation in actions.start {
            if !(operation is NetworkOperation) {
                if postpone(operation) { continue }
                state.withLock { $0.events.note(.started(operation)) }
            }
            hand(operation, to: queue)
        }
    }

    private func hand(_ operation: Operation, to executor: OperationQueue) {
        if !(operation is NetworkOperation) {
            FinishWatcher.watch(operation) {
                // Not from in here: an operation that has already finished would go on with the next, and so deeper.
                WorkQueue.shared.async { self.plainOperationDidFinish(operation) }
            }
        }
        // Somebody may have started it by hand meanwhile; an executor would stop the process.
        if !operation.isExecuting, !operation.isFinished { executor.addOperationReliably(operation) }
    }

    /// - Parameter error: only asked when somebody listens.
    func finish(_ operation: Operation, _ job: JobID, succeeded: Bool, error: () -> NetworkError?) {
        let emptyWaiters = step { state, actions -> [@Sendable () -> Void] in
            state.graph.finish(job, succeeded: succeeded, &actions)
            if state.events.isHeard, !operation.isHiddenJob { state.events.note(.finished(operation, error())) }
            return state.graph.isEmpty ? state.emptyWaiters.take() : []
        }
        for waiter in emptyWaiters { waiter() }
    }
}

extension Operation {
    var isHiddenJob: Bool {
        (self as? NetworkOperation)?.isHidden ?? false
    }
}

extension NetworkQueue.State {
    /// - Returns: the timer to set, unless one is set that comes before.
    fileprivate mutating func wakeIsDue(_ actions: NetworkQueue.Actions) -> (
        new: NetworkQueue.Wake, old: (any ClockTimer)?
    )? {
        guard let time = actions.wake, wake.map({ time < $0.time }) ?? true else { return nil }
        let old = wake?.timer
        wakeCount += 1
        let new = NetworkQueue.Wake(time: time, delay: time - actions.now, number: wakeCount)
        wake = new
        return (new, old)
    }
}
