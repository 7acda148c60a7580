import Foundation

/// Steps of the graph, and the work that they leave to the queue.
extension NetworkQueue {
    typealias Actions = JobGraph<Operation>.Actions

    /// Starts the operations that only have to end. It has no limit, so running operations cannot delay them.
    private static let endings: OperationQueue = {
        let queue = OperationQueue()
        queue.name = "EasyNetwork.NetworkQueue.endings"
        return queue
    }()

    /// The work that a step leaves.
    private struct Work {
        var actions: Actions
        /// The actions that waited for slots that were given again.
        var granted: [@Sendable () -> Void] = []
        var reachability: (any NetworkReachability)?
        var isHeard = false
    }

    /// Performs one step of the graph, and the work that it leaves.
    ///
    /// - Parameter beforeActing: called with the result in between, without the lock.
    @discardableResult
    func step<Result>(
        _ body: (inout State, inout Actions) -> Result,
        beforeActing: (Result) -> Void = { _ in }
    ) -> Result {
        var (result, work) = perform(body)
        beforeActing(result)
        // In a loop and not recursively: 100,000 jobs may turn out not to be ready.
        while true {
            let isSlotFree = act(on: work)
            if work.isHeard { publishEvents() }
            guard isSlotFree else { return result }
            (_, work) = perform { $0.graph.admit(&$1) }
        }
    }

    private func perform<Result>(_ body: (inout State, inout Actions) -> Result) -> (Result, Work) {
        var work = Work(actions: Actions(now: clock.now))
        let (result, timer) = state.withLock { state -> (Result, (new: Wake, old: (any ClockTimer)?)?) in
            let result = body(&state, &work.actions)
            // Under the lock, so that a later request for a slot is not served with this one.
            for case let operation as NetworkOperation in work.actions.resume {
                work.granted += operation.core.withLock { $0.slotActions.take() }
            }
            for operation in work.actions.forget { state.outside[ObjectIdentifier(operation)] = nil }
            work.reachability = state.reachability
            work.isHeard = state.events.isHeard
            if work.isHeard, work.reachability == nil {
                // Other jobs may have to wait after all, see act(on:); a job that is prepared first has no slot yet.
                for case let operation as NetworkOperation in work.actions.start
                where !operation.isHidden && !operation.isPreparedFirst {
                    state.events.note(.started(operation))
                }
            }
            return (result, state.wakeIsDue(work.actions))
        }
        if let timer {
            timer.old?.cancel()
            set(timer.new)
        }
        return (result, work)
    }

    /// The next look at jobs that a rate holds back.
    struct Wake {
        /// On the clock of the queue.
        var time: TimeInterval
        var delay: TimeInterval
        /// Tells this one from earlier ones.
        var number: Int
        var timer: (any ClockTimer)?
    }

    private func set(_ wake: Wake) {
        let timer = clock.schedule(after: wake.delay) { [weak self] in
            self?.stepMakingRoom { state, actions in
                if state.wake?.number == wake.number { state.wake = nil }
                state.graph.admit(&actions)
            }
        }
        let isWanted = state.withLock { state in
            if state.wake?.number == wake.number { state.wake?.timer = timer }
            return state.wake?.number == wake.number
        }
        // It has fired already, or another timer is set for an earlier time.
        if !isWanted { timer.cancel() }
    }

    /// - Returns: whether a job has given its slot back, since it cannot run yet.
    private func act(on work: Work) -> Bool {
        var isSlotFree = false
        for operation in work.actions.end {
            hand(operation) { Self.endings.addOperationReliably($0) }
            // Cancelled but not ready: Foundation may never start it, so the queue does not wait for it.
            if !(operation is NetworkOperation), operation.isHeldBack { finish(plain: operation) }
        }
        for action in work.granted { WorkQueue.shared.async(execute: action) }
        for operation in work.actions.start {
            if let operation = operation as? NetworkOperation {
                if let reachability = work.reachability {
                    if reachability.status == .unreachable, holdOffline(operation) {
                        isSlotFree = true
                        continue
                    }
                    if !operation.isPreparedFirst { publish(.started(operation)) }
                }
            } else {
                if postpone(operation) {
                    isSlotFree = true
                    continue
                }
                state.withLock { $0.events.note(.started(operation)) }
            }
            hand(operation, to: executor.execute)
        }
        return isSlotFree
    }

    private func hand(_ operation: Operation, to execute: (Operation) -> Void) {
        if let operation = operation as? NetworkOperation { return WorkQueue.run { operation.startOnWorkQueue() } }
        FinishWatcher.watch(operation) {
            // Not from in here: an operation that has already finished would go on with the next, and so deeper.
            WorkQueue.shared.async { self.plainOperationDidFinish(operation) }
        }
        // Somebody may have started it by hand meanwhile; an executor would stop the process.
        if !operation.isExecuting, !operation.isFinished { execute(operation) }
    }

    /// - Parameter error: called only when there is a listener.
    func finish(_ operation: Operation, _ job: JobID, succeeded: Bool, error: () -> NetworkError?) {
        let emptyWaiters = stepMakingRoom { state, actions -> [@Sendable () -> Void] in
            state.graph.finish(job, succeeded: succeeded, &actions)
            if state.events.isHeard, !operation.isHiddenJob { state.events.note(.finished(operation, error())) }
            return state.graph.isEmpty ? state.emptyWaiters.take() : []
        }
        for waiter in emptyWaiters { waiter() }
    }
}

extension NetworkOperation {
    fileprivate func startOnWorkQueue() {
        // It may have been started by hand meanwhile.
        guard !isExecuting, !isFinished else { return }
        if startRunsUserCode { WorkQueue.userCode { start() } } else { start() }
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
