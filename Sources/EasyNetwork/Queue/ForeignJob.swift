import Foundation

extension Operation {
    /// The operation itself, or the ``ForeignJob`` that represents it.
    var asNetworkOperation: NetworkOperation {
        (self as? NetworkOperation) ?? ForeignJob.proxy(for: self)
    }
}

extension NetworkOperation {
    /// The operation as the user knows it. A ``ForeignJob`` is never shown.
    final var original: Operation { (self as? ForeignJob)?.foreign ?? self }

    /// The error of a foreign operation that was cancelled and that nothing has watched yet.
    final var errorOfOriginal: NetworkError? {
        (self as? ForeignJob)?.foreign.isCancelled == true ? NetworkError(code: .cancelled) : nil
    }
}

/// Represents an `Operation` that is not of this package, a foreign operation, as a job and as a dependency.
///
/// Foundation runs the foreign operation, and this operation ends when the foreign one has finished. It ends without an
/// error, unless the foreign operation was cancelled. There is one `ForeignJob` for each foreign operation at a time.
/// The graph and dependencies keep it alive. If it has been a job or anything waits for it, a watcher also does, until
/// the end.
final class ForeignJob: NetworkOperation, @unchecked Sendable {
    // Sendable because all mutable state is under a lock.
    let foreign: Operation
    /// Whether a watcher waits for the end of the operation, and whether Foundation has been given the operation.
    private let state = Locked((isWatched: false, isHandedOver: false))
    /// Completes when the foreign operation has finished, or nothing waits for it any longer.
    private let done = Promise<Void>()

    private static let all = Locked<[ObjectIdentifier: Weak<ForeignJob>]>([:])

    /// The queue for operations that only have to end. It has no limit, so running operations cannot delay them.
    private static let endings: OperationQueue = {
        let queue = OperationQueue()
        queue.name = "EasyNetwork.NetworkQueue.endings"
        return queue
    }()

    static func proxy(for operation: Operation) -> ForeignJob {
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
        traits.startRunsUserCode = false
    }

    deinit {
        let id = ObjectIdentifier(foreign)
        // Another job may have replaced this one. Its deinitializer would take the lock again.
        Self.all.discard { all in
            let next = all[id]?.object
            if next == nil { all[id] = nil }
            return next
        }
    }

    // MARK: - For the queue

    /// Takes over the dependencies of the foreign operation, which is about to become a job. If the foreign operation
    /// was cancelled, cancels this one.
    ///
    /// - Returns: `false` if the foreign operation has been started elsewhere.
    func prepareForQueue() -> Bool {
        guard !foreign.isExecuting, !foreign.isFinished else { return false }
        let dependencies = OperationDependencies()
        dependencies.list = foreign.dependencies.map { OperationDependency($0, .allowFailure) }
        core.discard { state in
            state.scheduling == nil ? exchange(&state.dependencies, with: dependencies) : nil
        }
        if foreign.isCancelled { cancel() }
        return true
    }

    /// The unfinished dependencies of the foreign operation.
    var unfinishedDependencies: [OperationDependency] {
        foreign.dependencies.filter { !$0.isFinished }.map { OperationDependency($0, .allowFailure) }
    }

    /// Whether the foreign operation is not ready, and has not been started manually.
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

    override func cancel() {
        // What has finished can't be cancelled, even if the watcher has not noticed yet.
        if foreign.isFinished { foreignDidFinish() } else { super.cancel() }
    }

    override func execute() {
        watchForeign()
        // A cancelled operation may never become ready, and would keep the slot.
        if foreign.isCancelled { return cancel() }
        handOver { $0.executor.execute(foreign) }
    }

    override func stop() {
        // Run `cancel()` as user code, because an override can wait for other jobs.
        if !foreign.isCancelled, !foreign.isFinished { WorkQueue.userCode { foreign.cancel() } }
    }

    override func endWork(after error: NetworkError?) -> [Promise<Void>] {
        watchForeign()
        // A cancelled operation finishes only when it is started.
        handOver { _ in OperationQueue.addReliably(foreign) { Self.endings.addOperation($0) } }
        // If it was cancelled but isn't ready, Foundation may never start it, so stop waiting for it.
        if isHeldBack { done.set() }
        return [done]
    }

    /// Makes Foundation start the foreign operation, once. Adding it twice crashes the process.
    private func handOver(_ add: (NetworkQueue) -> Void) {
        guard let queue = scheduling?.queue, state.withLock({ !exchange(&$0.isHandedOver, with: true) }) else { return }
        // If user code has started the operation in the meantime, adding it would crash the process.
        if !foreign.isExecuting, !foreign.isFinished { add(queue) }
    }

    /// Ends this operation when the foreign operation has finished. If it has already finished, ends at once, on this
    /// thread. Until then, this operation is kept alive.
    ///
    /// Linux has no key-value observing, and a completion block belongs to the user. The watcher is therefore an
    /// operation that depends on the foreign one.
    private func watchForeign() {
        guard state.withLock({ !exchange(&$0.isWatched, with: true) }) else { return }
        guard !foreign.isFinished else { return foreignDidFinish() }
        // Use a queue for each watcher. A shared queue would search all its waiting operations whenever one is done.
        // The watcher keeps its queue alive.
        let queue = OperationQueue()
        let watcher = BlockOperation { withExtendedLifetime(queue) { self.foreignDidFinish() } }
        watcher.addDependency(foreign)
        OperationQueue.addReliably(watcher) { queue.addOperation($0) }
    }

    private func foreignDidFinish() {
        done.set()
        end(foreign.isCancelled ? NetworkError(code: .cancelled) : nil)
        // Start this operation, because an end before the start takes effect at the start. The foreign operation may
        // have been started by user code or by another queue.
        start()
        #if !canImport(Darwin)
        guard state.withLock({ $0.isHandedOver }) else { return }
        // A dependency that outlives its dependent keeps a pointer to it that nothing else clears. Also, the members of
        // a long chain, which keep each other alive, would be released recursively and overflow the stack. Removing
        // many dependencies costs the square of their number, and a chain has few.
        let dependencies = foreign.dependencies
        for dependency in dependencies where !dependency.isFinished || dependencies.count < 16 {
            foreign.removeDependency(dependency)
        }
        #endif
    }
}
