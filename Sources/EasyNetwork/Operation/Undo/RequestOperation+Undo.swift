import Foundation

extension RequestOperation {
    /// A closure that makes the request which undoes this one, for a job of a batch or a chain. It returns `nil` if
    /// there is nothing to undo. Set it before the batch or chain is added to a queue. Defaults to `nil`.
    ///
    /// ```swift
    /// booking.undo = { outcome in
    ///     switch outcome {
    ///     case .succeeded(let booking): CancelBooking(id: booking.id)
    ///     case .unknown(let key): CancelBooking(key: key)
    ///     }
    /// }
    /// trip.addOperation(booking)
    /// ```
    ///
    /// When another job fails after its retries, the batch or chain is cancelled, or its deadline passes, its other
    /// jobs end at once. The ones that have succeeded are then undone, one at a time, the last one first. So is a job
    /// that failed or was cancelled after its request may have reached the server. The batch or chain ends, and its
    /// callbacks run, after these undos. ``GroupOperation/undo()`` undoes one that has succeeded. With
    /// ``BatchOperation/Policy/collectAll``, a failed job ends nothing, so nothing is undone.
    ///
    /// An undo is a job of the same queue and host, with retries, a slot and an `Idempotency-Key` of its own. It has
    /// ``GroupOperation/undoDeadline`` to end, and nothing else cancels it. If it fails, its error is in
    /// ``NetworkError/undoFailures``, and the other undos follow.
    ///
    /// The job's own request gets an `Idempotency-Key` too, unless it has one. This key identifies the request for
    /// `.unknown`. It does not permit retries, as ``RequestOptions/idempotencyKey`` does. The undo can reach the server
    /// before the request that it undoes: the server must then refuse that request when it arrives. A job that can be
    /// undone sends its own request: it is not joined with others, and does not read the cache. An upload with
    /// ``RequestOptions/resuming`` cannot be undone, and ends with ``NetworkError/Code/invalidRequest``.
    ///
    /// A job in several batches or chains is undone once, by the first of them that undoes its jobs. Only one of them
    /// can have `undoneBy`. Otherwise, the job ends with ``NetworkError/Code/invalidRequest``.
    ///
    /// The closure is called once on a background thread. It stays with the job, for ``GroupOperation/undo()``. With
    /// `undoneBy`, it is also called when `undoneBy` is set, on the thread that sets it, to check the undo request;
    /// before the job is sent; and after it has succeeded.
    public final var undo: (@Sendable (StepOutcome<Request.Item>) -> (any APIRequest)?)? {
        get {
            guard let makeRequest = option({ $0.undo })?.makeRequest else { return nil }
            return { makeRequest($0.map { $0 }) }
        }
        set { setOption(\.undo, newValue.map { closure in UndoStep { closure($0.map { CallGroup.typed($0) }) } }) }
    }

    /// Gives the request its key, and stores its undo request if a group wants that.
    ///
    /// - Returns: whether the request can be sent. If not, the operation has ended.
    final func begin(_ undo: UndoStep, _ request: Request, _ call: inout CallRequest) -> Bool {
        let field = Call.Attempts.keyField
        let own =
            call.options.idempotencyKey ?? call.options.customURLRequest?.value(forHTTPHeaderField: field)
            ?? WorkQueue.userCode { try? RequestBuilder.headers(of: request.headers)[field] }
        let key = own ?? UUID.make().uuidString
        if own == nil {
            // A request that was read when it was added is read again, with its key.
            var other = CallRequest(call.request, call.options)
            other.options.setKey(key)
            other.isSafeByKey = false
            call = other
        }
        call.order = .ignore
        do throws(NetworkError) {
            // The requests are made and encoded by the user's code, and the journal is a file.
            try WorkQueue.userCode { () throws(NetworkError) in
                try undo.begin(key, in: try undoGroup()?.undoJournal())
            }
            guard hasOutcome else { return true }
            // The operation was cancelled before its group could know of the journal. Nothing is sent.
            undo.forget()
            return false
        } catch {
            finish(error)
            return false
        }
    }

    /// Returns the group that stores undo requests; `nil` for none. Of nested groups it is the outermost one: the steps
    /// of the inner groups are final only with that one.
    private func undoGroup() throws(NetworkError) -> GroupOperation? {
        var found: GroupOperation?
        for group in groups {
            let outermost = Array(sequence(first: group) { $0.groups.first }).last { $0.undoStore != nil }
            guard let outermost, outermost !== found else { continue }
            guard found == nil else {
                throw .invalidRequest("undoneBy must be set for only one of the batches and chains of a job with undo")
            }
            found = outermost
        }
        return found
    }
}
