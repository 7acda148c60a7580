import Foundation

/// Undoing the steps of a group.
extension GroupOperation {
    /// What a group needs to undo its steps.
    struct Undoing {
        var logic = UndoState()
        var deadline: TimeInterval = 30
        var store: (any UndoStore)?
        var journal: (any UndoJournal)?
        /// Why the journal could not be committed.
        var commitError: NetworkError?
        /// Completes when the journal of a group that was finished from outside is committed, or cannot be.
        var committed: Promise<Void>?
        /// The group as whose children the undos run; `nil` if they run by themselves, because the group has finished.
        var runner: GroupOperation?
        /// The undo that runs.
        var job: NetworkOperation?
        /// The errors of the undos, in their order.
        var failures: [NetworkError] = []
        /// Called with the errors of the undos. There is one as long as undos run.
        var waiters: [@Sendable ([NetworkError]) -> Void] = []
    }

    /// The time in seconds that each undo has, from when it is added to the queue. It includes its wait for a slot and
    /// its retries. Defaults to 30. See ``RequestOperation/undo``.
    public final var undoDeadline: TimeInterval {
        get { state.withLock { $0.undoing.deadline } }
        set { state.withLock { $0.undoing.deadline = newValue } }
    }

    /// Undoes the steps of a group that has finished, last first, and waits for the end of these undos. Steps that were
    /// undone before are skipped, and undos that have failed are tried again, even those of nested groups. The undos run
    /// as jobs of the group's queue. Cancelling the task ends only the wait. See ``RequestOperation/undo``.
    ///
    /// ```swift
    /// try await trip.undo()
    /// ```
    ///
    /// - Throws: ``NetworkError/Code/refused`` if the group has not finished: cancel it, which undoes its steps.
    ///   ``NetworkError/Code/cannotWriteFile`` if `undoneBy` cannot store the undo requests again; nothing is undone then.
    ///   The error of the first undo that failed, with all of them in ``NetworkError/undoFailures``.
    ///   ``NetworkError/Code/cancelled`` if the task was cancelled.
    public final func undo() async throws(NetworkError) {
        guard isFinished else {
            let message = "\(nameForMessages) has not finished; cancel it instead, which undoes its steps"
            throw NetworkError(code: .refused, message: message)
        }
        let end = Promise<[NetworkError]>()
        undoSteps(.asked, in: nil) { end.set($0) }
        guard let failures = await end.wait() else { throw NetworkError(code: .cancelled) }
        guard var error = failures.first else { return }
        error.undoFailures = failures
        throw error
    }

    // MARK: - The journal

    /// The store that keeps the undo requests on disk. Set it before the group is added to a queue.
    package final var undoStore: (any UndoStore)? {
        get { state.withLock { $0.undoing.store } }
        set {
            state.discard { exchange(&$0.undoing.store, with: newValue) }
            guard let newValue else { return }
            do throws(NetworkError) { try checkUndos(newValue) } catch { finish(error) }
        }
    }

    private func checkUndos(_ store: any UndoStore) throws(NetworkError) {
        for (index, child) in operations.enumerated() {
            do throws(NetworkError) {
                if let undo = child.option({ $0.undo }) {
                    try store.checkUndo(try undo.requestOfUnknown(undo.id.uuidString))
                }
                try (child as? GroupOperation)?.checkUndos(store)
            } catch {
                throw error.ofChild(child, at: index)
            }
        }
    }

    /// Returns the journal, which is created for the first step; `nil` without a store.
    final func undoJournal() throws(NetworkError) -> (any UndoJournal)? {
        let (store, journal) = state.withLock { ($0.undoing.store, $0.undoing.journal) }
        guard let store, journal == nil else { return journal }
        let made = try store.makeUndoJournal()
        return state.withLock { state in
            // Another step of a batch may have been faster.
            let journal = state.undoing.journal ?? made
            (state.undoing.journal, state.undoing.logic.isJournaled) = (journal, true)
            return journal
        }
    }

    // MARK: - The undos

    /// Whether the group has steps to undo.
    final var hasStepsToUndo: Bool { state.withLock { $0.undoing.logic.hasSteps } }

    /// Undoes the steps, if it must, and then calls `done`.
    ///
    /// - Parameter runner: the group as whose children the undos run; `nil` if they run by themselves.
    final func undoSteps(
        _ input: UndoState.Input,
        in runner: GroupOperation?,
        then done: @escaping @Sendable ([NetworkError]) -> Void
    ) {
        let (isFirst, isNeeded) = state.withLock { state in
            // A second caller waits for the undos that the first one has begun.
            let isFirst = state.undoing.waiters.isEmpty
            let hasNested = input == .failed && state.children.contains { $0.operation is GroupOperation }
            let logic = state.undoing.logic
            let isNeeded = !isFirst || logic.hasSteps || logic.isJournaled || hasNested
            if isFirst { state.undoing.failures = [] }
            // The runner, usually this group itself, is released with the last undo.
            if isFirst, isNeeded { state.undoing.runner = runner }
            if isNeeded { state.undoing.waiters.append(done) }
            return (isFirst, isNeeded)
        }
        guard isNeeded else { return done([]) }
        // Undos read files and call the user's code, which must not happen on this thread.
        if isFirst { WorkQueue.shared.add { self.note(input) } }
    }

    /// Passes an event to the ``UndoState``, and performs the effects that it returns.
    final func note(_ input: UndoState.Input) {
        for effect in state.withLock({ $0.undoing.logic.handle(input) }) {
            switch effect {
            case .succeed:
                finish()
                state.withLock { $0.undoing.committed.take() }?.set()
            case .fail: failToCommit()
            case .commit: WorkQueue.shared.add { self.commit() }
            case .reopen: WorkQueue.shared.add { self.reopen() }
            case .undo(let index): WorkQueue.shared.add { self.undoStep(at: index) }
            case .end: endUndoing()
            }
        }
    }

    private func commit() {
        let journal = state.withLock { $0.undoing.journal }
        let error = Result { () throws(NetworkError) in try journal?.commit() }.failure
        state.withLock { $0.undoing.commitError = error }
        note(.committed(error == nil))
    }

    private func reopen() {
        let journal = state.withLock { $0.undoing.journal }
        guard var error = Result(catching: { () throws(NetworkError) in try journal?.reopen() }).failure else {
            return note(.reopened(true))
        }
        error.message = "the undo requests cannot be stored again" + (error.message.map { ": \($0)" } ?? "")
        state.withLock { $0.undoing.failures.append(error) }
        note(.reopened(false))
    }

    private func failToCommit() {
        finish(state.withLock { $0.undoing.commitError } ?? NetworkError(code: .cannotWriteFile))
        guard let committed = state.withLock({ $0.undoing.committed.take() }) else { return }
        // The group was finished from outside, and counts as whole. Its steps must not be undone later.
        for child in operations { child.option { $0.undo }?.forget() }
        committed.set()
    }

    private func undoStep(at index: Int) {
        let (child, runner, deadline) = state.withLock { state in
            (state.children[index].operation, state.undoing.runner, state.undoing.deadline)
        }
        if let group = child as? GroupOperation {
            return group.undoSteps(.asked, in: runner) { failures in
                self.noteUndone(child, at: index, failures, isDone: !group.hasStepsToUndo)
            }
        }
        guard let step = child as? ServiceOperation, let undo = step.option({ $0.undo }), let outcome = step.stepOutcome
        else { return noteUndone(child, at: index, [], isDone: true) }
        let ended: UndoStep.Ended = { error, isDone in
            self.noteUndone(child, at: index, error.map { [$0] } ?? [], isDone: isDone)
        }
        guard let request = WorkQueue.userCode({ undo.undo(outcome, ended) }) else { return }
        let operation = step.undoOperation(request, undo)
        operation.name = "undo of \(child.name ?? "job \(index + 1)")"
        operation.deadline = deadline
        operation.whenFinished {
            let error = operation.error
            // The server has accepted the request, even if its response cannot be decoded.
            let isAccepted = error?.code == .cannotParseResponse && 200..<300 ~= error?.statusCode ?? 0
            // The journal is a file.
            WorkQueue.shared.add { undo.noteUndone(isAccepted ? nil : error) }
        }
        state.withLock { $0.undoing.job = operation }
        // An undo is a part of its group, which a barrier or a shutdown of the queue waits for.
        if let runner { runner.queue.add([operation], in: runner) } else { queue.addOperation(operation) }
    }

    private func noteUndone(_ child: NetworkOperation, at index: Int, _ failures: [NetworkError], isDone: Bool) {
        state.discard { state in
            state.undoing.failures += failures.map { $0.ofChild(child, at: index) }
            return state.undoing.job.take()
        }
        note(.undone(index, isDone: isDone))
    }

    private func endUndoing() {
        let nested = operations.enumerated().reversed().flatMap { index, child in
            ((child as? GroupOperation)?.error?.undoFailures ?? []).map { $0.ofChild(child, at: index) }
        }
        if !isFinished {
            let failures = state.withLock { $0.undoing.failures } + nested
            core.withLock { $0.lifecycle.setUndoFailures(failures) }
        }
        let (runner, waiters, journal, failures) = state.withLock { state in
            // A journal that still has requests is left to its store. A whole group can still be undone later.
            let journal = state.undoing.logic.phase == .over ? state.undoing.journal.take() : nil
            return (state.undoing.runner.take(), state.undoing.waiters.take(), journal, state.undoing.failures)
        }
        withExtendedLifetime((runner, journal)) {}
        for waiter in waiters { waiter(failures) }
    }
}

extension ServiceOperation {
    /// Creates the job that undoes this one. Whatever has cancelled this one does not cancel it.
    fileprivate final func undoOperation(_ request: some APIRequest, _ undo: UndoStep) -> NetworkOperation {
        var options = request.options
        let key = undo.isJournaled ? undo.id.uuidString : options.idempotencyKey ?? undo.id.uuidString
        options.setKey(key)
        // Two steps can have the same undo request, and both must be sent.
        options.repeatPolicy = .allow
        // The service of this operation may have been cancelled.
        let operation = UndoOperation(request, options, of: EasyNetworkService(callGroup.host))
        operation.ignoresCache = true
        operation.traits.isUndo = true
        operation.setOption(\.refreshedSessions, option { $0.refreshedSessions })
        return operation
    }
}

extension RequestOptions {
    /// Sets the `Idempotency-Key` of the request, even of a ``customURLRequest``.
    package mutating func setKey(_ key: String) {
        idempotencyKey = key
        customURLRequest?.setValue(key, forHTTPHeaderField: Call.Attempts.keyField)
    }
}

/// The job that undoes another one. It cannot be cancelled, and ends at its deadline.
private final class UndoOperation<Request: APIRequest>: RequestOperation<Request>, @unchecked Sendable {
    // Sendable because the class has no state of its own.
    override func cancel() {}
}
