import Foundation

extension Operation {
    /// The operation itself, or the ``ForeignJob`` that stands for it.
    var asNetworkOperation: NetworkOperation {
        (self as? NetworkOperation) ?? ForeignJob.standing(for: self)
    }
}

extension NetworkOperation {
    /// The operation as the user knows it: a ``ForeignJob`` is never shown.
    final var original: Operation { (self as? ForeignJob)?.foreign ?? self }

    /// The error of a foreign operation that was cancelled, and that nothing has watched yet.
    final var errorOfOriginal: NetworkError? {
        (self as? ForeignJob)?.foreign.isCancelled == true ? NetworkError(code: .cancelled) : nil
    }
}

/// Stands for an `Operation` that is not of this package, a foreign one: as a job, and as what others wait for.
///
/// Foundation runs the foreign operation, and this one ends when that has finished. It ends without an error, unless
/// the foreign operation was cancelled. There is one for each foreign operation at a time: the graph and dependencies
/// hold it, and, when it has been a job or anything waits for it, a watcher until the end.
final class ForeignJob: NetworkOperation, @unchecked Sendable {
    // Sendable because what changes is behind a lock.
    private struct State {
        var isWatched = false
        /// Whether Foundation has been given the operation.
        var isHandedOver = false
    }

    let foreign: Operation
    private let state = Locked(State())
    /// Set when the foreign operation has finished, or nothing waits for it any longer.
    private let done = Promise<Void>()

    private static let all = Locked<[ObjectIdentifier: Weak<ForeignJob>]>([:])

    /// Runs the operations that only have to end. It has no limit, so running operations cannot delay them.
    private static let endings: OperationQueue = {
        let queue = OperationQueue()
        queue.name = "EasyNetwork.NetworkQueue.endings"
        return queue
    }()

    static func standing(for operation: Operation) -> ForeignJob {
        all.withLock { all in
            if let job = all[ObjectIdentifier(operation)]?.object { return job }
            let job = ForeignJob(operation)
            all[ObjectIdentifier(operation)] = Weak(object: job)
            return job
        }
    }

    private init(_ foreign: Operation) {
        self.foreign = foreign
        super.init()
    }

    deinit {
        let id = ObjectIdentifier(foreign)
        // Another one may have taken the place. It is released outside the lock, which its end would take again.
        let next = Self.all.withLock { all in
            let next = all[id]?.object
            if next == nil { all[id] = nil }
            return next
        }
        withExtendedLifetime(next) {}
    }

    // MARK: - For the queue

    /// Takes over the dependencies and the state of the foreign operation, which is about to become a job: if that was
    /// cancelled, so is this.
    ///
    /// - Returns: false when it has been started elsewhere.
    func prepareForQueue() -> Bool {
        guard !foreign.isExecuting, !foreign.isFinished else { return false }
        let dependencies = foreign.dependencies.map { OperationDependency($0, .allowFailure) }
        let old = core.withLock { state in
            state.scheduling == nil ? exchange(&state.dependencies, with: dependencies) : []
        }
        withExtendedLifetime(old) {}
        if foreign.isCancelled { cancel() }
        return true
    }

    /// Its dependencies by Foundation's account.
    var unfinishedDependencies: [OperationDependency] {
        foreign.dependencies.filter { !$0.isFinished }.map { OperationDependency($0, .allowFailure) }
    }

    /// Whether it is not ready, and has not been started manually.
    var isHeldBack: Bool { !foreign.isReady && !foreign.isExecuting && !foreign.isFinished }

    override var queuePriority: QueuePriority {
        get { foreign.queuePriority }
        set { foreign.queuePriority = newValue }
    }

    override func whenFinished(_ action: @escaping @Sendable () -> Void) {
        watchForeign()
        super.whenFinished(action)
    }

    // MARK: - The work

    override var traits: JobTraits { JobTraits(startRunsUserCode: false) }

    override func execute() {
        watchForeign()
        // It may never become ready, and would keep the slot.
        if foreign.isCancelled { return cancel() }
        handOver { $0.executor.execute(foreign) }
    }

    override func stop() {
        // An override may wait for other jobs.
        if !foreign.isCancelled, !foreign.isFinished { WorkQueue.userCode { foreign.cancel() } }
    }

    override func endWork(after error: NetworkError?) -> [Promise<Void>] {
        watchForeign()
        // A cancelled operation finishes only when it is started.
        handOver { _ in Self.endings.addOperationReliably(foreign) }
        // Cancelled but not ready: Foundation may never start it, so nothing waits for it any more.
        if isHeldBack { done.set() }
        return [done]
    }

    /// Has Foundation start the foreign operation, once: adding it twice stops the process.
    private func handOver(_ add: (NetworkQueue) -> Void) {
        guard let queue = scheduling?.queue, state.withLock({ !exchange(&$0.isHandedOver, with: true) }) else { return }
        // It may have been started by hand by now; Foundation would stop the process.
        if !foreign.isExecuting, !foreign.isFinished { add(queue) }
    }

    /// Ends when the foreign operation has finished; at once, on this thread, if it already has. Until then it is kept
    /// alive.
    ///
    /// Linux has no key-value observing and a completion block belongs to the user, so an operation that depends on the
    /// foreign one watches it.
    private func watchForeign() {
        guard state.withLock({ !exchange(&$0.isWatched, with: true) }) else { return }
        guard !foreign.isFinished else { return foreignDidFinish() }
        // A queue for each: a shared queue would look through all that wait whenever one is done. The watcher keeps its
        // queue.
        let queue = OperationQueue()
        let watcher = BlockOperation { withExtendedLifetime(queue) { self.foreignDidFinish() } }
        watcher.addDependency(foreign)
        queue.addOperationReliably(watcher)
    }

    private func foreignDidFinish() {
        done.set()
        end(foreign.isCancelled ? NetworkError(code: .cancelled) : nil)
        // An end before the start takes effect at the start, and the foreign operation may have been started by hand or
        // by another queue.
        start()
        #if !canImport(Darwin)
        guard state.withLock({ $0.isHandedOver }) else { return }
        // A dependency that outlives its dependent keeps a pointer to it that nothing else clears. And the members of a
        // long chain, which hold each other, would be released recursively, too deep. Removing many dependencies costs
        // the square of their number, and a chain has few.
        let dependencies = foreign.dependencies
        for dependency in dependencies where !dependency.isFinished || dependencies.count < 16 {
            foreign.removeDependency(dependency)
        }
        #endif
    }
}
